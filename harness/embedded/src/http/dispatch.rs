//! Dispatch of requests for resources to their handlers.

use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::response::Response;
use evictlab_rules::quantity::MIB;
use http::Method;
use k8s_openapi::api::authorization::v1::{SelfSubjectAccessReview, SubjectAccessReviewStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::StatusDetails;

use super::objects::{self, Endpoint};
use super::request::{ApiRequest, Query, Representation, Target};
use super::resource::{self, Resource, Source, Verb};
use super::view::View;
use super::{errors, log, proxy, responses};
use crate::apiserver::Status;
use crate::cluster::Cluster;
use crate::resource::{Kind, Scope};

/// Largest accepted body, as in a real API server (`MaxRequestBodyBytes`).
const MAX_BODY_BYTES: usize = 3 * MIB as usize;

/// Handles a request that no fixed route matches.
pub(crate) async fn handle(State(cluster): State<Cluster>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let Some(target) = Target::parse(parts.uri.path()) else {
        return responses::error(&errors::unknown_path(parts.uri.path()));
    };
    let Ok(body) = to_bytes(body, MAX_BODY_BYTES).await else {
        return responses::error(&errors::body_too_large(MAX_BODY_BYTES));
    };
    let representation = Representation::from_headers(&parts.headers);
    let request = ApiRequest {
        method: parts.method,
        target,
        query: Query::parse(parts.uri.query().unwrap_or_default()),
        representation: representation.unwrap_or_default(),
        headers: parts.headers,
        body,
    };
    let response = dispatch(&cluster, &request, representation.is_some());
    response.unwrap_or_else(|status| responses::error(&status))
}

fn dispatch(cluster: &Cluster, request: &ApiRequest, is_acceptable: bool) -> Result<Response, Status> {
    let target = &request.target;
    let resource = resource::find(target).ok_or_else(|| unknown_resource(target))?;
    if resource.scope == Scope::Cluster && target.namespace.is_some() {
        return Err(unknown_resource(target));
    }
    let verbs = match &target.subresource {
        None => resource.verbs,
        Some(name) => resource.subresource(name).ok_or_else(|| unknown_resource(target))?.verbs,
    };
    let verb = verb(request).filter(|verb| verbs.contains(verb)).ok_or_else(|| unsupported_verb(request))?;
    if let Some(name) = &target.subresource {
        return subresource(cluster, request, resource, name);
    }
    if !is_acceptable {
        return Err(errors::not_acceptable());
    }
    match resource.source {
        Source::Stored(kind) => object(cluster, request, resource, kind, verb),
        Source::AccessReviews => review_access(request),
    }
}

/// Returns the verb of a request, as `RequestInfo` derives it from method and path.
fn verb(request: &ApiRequest) -> Option<Verb> {
    let has_name = request.target.name.is_some();
    Some(match request.method {
        Method::GET | Method::HEAD if has_name => Verb::Get,
        Method::GET | Method::HEAD if request.query.is_true("watch") => Verb::Watch,
        Method::GET | Method::HEAD => Verb::List,
        Method::POST => Verb::Create,
        Method::PUT => Verb::Update,
        Method::PATCH => Verb::Patch,
        Method::DELETE if has_name => Verb::Delete,
        Method::DELETE => Verb::DeleteCollection,
        _ => return None,
    })
}

fn object(
    cluster: &Cluster,
    request: &ApiRequest,
    resource: &'static Resource,
    kind: Kind,
    verb: Verb,
) -> Result<Response, Status> {
    let endpoint = Endpoint { view: View::from_request(cluster, request, resource)?, kind };
    let target = &request.target;
    // Writes need a namespace, creations must not have a name, and the rest needs one.
    let lacks_namespace = resource.scope == Scope::Namespaced && target.namespace.is_none();
    let is_supported = match verb {
        Verb::List | Verb::Watch => true,
        Verb::Create => !lacks_namespace && target.name.is_none(),
        Verb::Update | Verb::Patch => !lacks_namespace && target.name.is_some(),
        Verb::Get | Verb::Delete | Verb::DeleteCollection => !lacks_namespace,
    };
    if !is_supported {
        return Err(unsupported_verb(request));
    }
    match verb {
        Verb::Get => objects::get(cluster, request, endpoint),
        Verb::List => objects::list(cluster, request, endpoint),
        Verb::Watch => objects::watch(cluster, request, endpoint),
        Verb::Create => objects::create(cluster, request, endpoint),
        Verb::Update => objects::update(cluster, request, endpoint),
        Verb::Patch => objects::patch(cluster, request, endpoint),
        Verb::Delete => objects::delete(cluster, request, endpoint),
        Verb::DeleteCollection => objects::delete_collection(cluster, request, endpoint),
    }
}

fn subresource(
    cluster: &Cluster,
    request: &ApiRequest,
    resource: &'static Resource,
    name: &str,
) -> Result<Response, Status> {
    let Source::Stored(kind) = resource.source else { return Err(unknown_resource(&request.target)) };
    let endpoint = Endpoint { view: View::from_request(cluster, request, resource)?, kind };
    match (name, &request.method) {
        ("status" | "ephemeralcontainers" | "resize", &Method::GET) => {
            objects::get(cluster, request, endpoint)
        }
        ("status" | "ephemeralcontainers" | "resize", &Method::PATCH) => {
            objects::patch(cluster, request, endpoint)
        }
        ("status" | "ephemeralcontainers" | "resize", _) => objects::update(cluster, request, endpoint),
        ("eviction", _) => objects::evict(cluster, request),
        ("log", _) => log::log(cluster, request),
        ("proxy", &Method::GET) if kind == Kind::Node => proxy::proxy_to_kubelet(cluster, request),
        ("proxy", _) if kind == Kind::Node => Err(unsupported_verb(request)),
        (other, _) => {
            let what = format!("{} {:?}: {other}", resource.plural, request.target.name());
            Err(errors::not_simulated(&what))
        }
    }
}

/// Handles POST of a `SelfSubjectAccessReview`: every request with the token is allowed.
fn review_access(request: &ApiRequest) -> Result<Response, Status> {
    let body = request.json_body()?;
    let review: SelfSubjectAccessReview =
        serde_json::from_slice(&body).map_err(|error| Status::bad_request(error.to_string()))?;
    let status = SubjectAccessReviewStatus {
        allowed: true,
        reason: Some("the embedded cluster allows everything".to_owned()),
        ..SubjectAccessReviewStatus::default()
    };
    let review = SelfSubjectAccessReview { status: Some(status), ..review };
    Ok(responses::json(201, &review))
}

/// 404 for a resource or subresource that does not exist.
fn unknown_resource(target: &Target) -> Status {
    let version = match target.group.as_str() {
        "" => target.version.clone(),
        group => format!("{group}/{}", target.version),
    };
    let subresource = target.subresource.as_deref().map(|name| format!("/{name}")).unwrap_or_default();
    errors::unknown_path(&format!("{version}/{}{subresource}", target.resource))
}

/// 405 for a verb that a resource does not support.
fn unsupported_verb(request: &ApiRequest) -> Status {
    let target = &request.target;
    let verb = verb(request).map_or_else(|| request.method.as_str().to_lowercase(), |verb| verb.to_string());
    let subresource = target.subresource.as_deref().map(|name| format!("/{name}")).unwrap_or_default();
    let message = format!(
        "the server does not allow this method on the requested resource: {verb} of {}{subresource}",
        target.qualified_resource()
    );
    let details = StatusDetails { kind: Some(target.resource.clone()), ..StatusDetails::default() };
    Status::new(405, "MethodNotAllowed", message).with_details(details)
}
