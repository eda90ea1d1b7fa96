//! Dispatch of requests for resources to their handlers.

use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::response::Response;
use evictlab_rules::quantity::MIB;
use http::Method;
use k8s_openapi::api::authorization::v1::{SelfSubjectAccessReview, SubjectAccessReviewStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::StatusDetails;

use super::objects::{self, Endpoint};
use super::request::{ApiRequest, Query, Representation, ResourcePath};
use super::resource::{self, Resource, Subresource, SubresourceKind, Verb};
use super::view::View;
use super::{errors, log, proxy, responses};
use crate::apiserver::{Status, StatusReason};
use crate::cluster::Cluster;
use crate::resource::{Kind, Scope};

/// Largest accepted body, as in a real API server (`MaxRequestBodyBytes`).
const MAX_BODY_BYTES: usize = 3 * MIB as usize;

/// Handles a request that no fixed route matches.
pub(crate) async fn handle(State(cluster): State<Cluster>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let Some(path) = ResourcePath::parse(parts.uri.path()) else {
        return responses::error(&errors::unknown_path(parts.uri.path()));
    };
    let Ok(body) = to_bytes(body, MAX_BODY_BYTES).await else {
        return responses::error(&errors::body_too_large(MAX_BODY_BYTES));
    };
    let representation = Representation::from_headers(&parts.headers);
    let request = ApiRequest {
        method: parts.method,
        path,
        query: Query::parse(parts.uri.query().unwrap_or_default()),
        representation: representation.unwrap_or_default(),
        headers: parts.headers,
        body,
    };
    let response = dispatch(&cluster, &request, representation.is_some());
    response.unwrap_or_else(|status| responses::error(&status))
}

fn dispatch(cluster: &Cluster, request: &ApiRequest, is_acceptable: bool) -> Result<Response, Status> {
    let path = &request.path;
    let resource = resource::find(path).ok_or_else(|| unknown_resource(path))?;
    if resource.scope == Scope::Cluster && path.namespace.is_some() {
        return Err(unknown_resource(path));
    }
    let subresource = match &path.subresource {
        None => None,
        Some(name) => Some(resource.subresource(name).ok_or_else(|| unknown_resource(path))?),
    };
    let verbs = subresource.map_or(resource.verbs, |subresource| subresource.verbs);
    let verb = request_verb(request).filter(|verb| verbs.contains(verb));
    let verb = verb.ok_or_else(|| unsupported_verb(request))?;
    if !request.query.text("dryRun").is_empty() {
        return Err(Status::dry_run());
    }
    if let Some(subresource) = subresource {
        return dispatch_subresource(cluster, request, resource, subresource, verb);
    }
    if !is_acceptable {
        return Err(errors::not_acceptable());
    }
    match resource.stored {
        Some(kind) => dispatch_object(cluster, request, resource, kind, verb),
        None => review_access(request),
    }
}

/// Returns the verb of a request, as `RequestInfo` derives it from method and path.
fn request_verb(request: &ApiRequest) -> Option<Verb> {
    let has_name = request.path.name.is_some();
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

fn dispatch_object(
    cluster: &Cluster,
    request: &ApiRequest,
    resource: &'static Resource,
    kind: Kind,
    verb: Verb,
) -> Result<Response, Status> {
    let view = View::from_request(cluster, request, resource, kind)?;
    let endpoint = Endpoint { view, subresource: None };
    let path = &request.path;
    // Writes need a namespace; create must not name an object, update and patch must.
    let lacks_namespace = resource.scope == Scope::Namespaced && path.namespace.is_none();
    let is_supported = match verb {
        Verb::List | Verb::Watch => true,
        Verb::Create => !lacks_namespace && path.name.is_none(),
        Verb::Update | Verb::Patch => !lacks_namespace && path.name.is_some(),
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

fn dispatch_subresource(
    cluster: &Cluster,
    request: &ApiRequest,
    resource: &'static Resource,
    subresource: &Subresource,
    verb: Verb,
) -> Result<Response, Status> {
    let Some(kind) = resource.stored else { return Err(unknown_resource(&request.path)) };
    let view = View::from_request(cluster, request, resource, kind)?;
    let endpoint = Endpoint { view, subresource: Some(subresource.kind) };
    match (subresource.kind, verb) {
        (SubresourceKind::Eviction, _) => objects::evict(cluster, request),
        (SubresourceKind::Log, _) => log::log(cluster, request),
        (SubresourceKind::NodeProxy, Verb::Get) => proxy::proxy_to_kubelet(cluster, request),
        (SubresourceKind::NodeProxy, _) => Err(unsupported_verb(request)),
        (SubresourceKind::NotSimulated, _) => {
            let what = format!("{} {:?}: {}", resource.plural, request.path.name(), subresource.name);
            Err(errors::not_simulated(&what))
        }
        (SubresourceKind::Status | SubresourceKind::EphemeralContainers | SubresourceKind::Resize, verb) => {
            match verb {
                Verb::Get => objects::get(cluster, request, endpoint),
                Verb::Patch => objects::patch(cluster, request, endpoint),
                _ => objects::update(cluster, request, endpoint),
            }
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
fn unknown_resource(path: &ResourcePath) -> Status {
    let version = match path.group.as_str() {
        "" => path.version.clone(),
        group => format!("{group}/{}", path.version),
    };
    let subresource = path.subresource.as_deref().map(|name| format!("/{name}")).unwrap_or_default();
    errors::unknown_path(&format!("{version}/{}{subresource}", path.resource))
}

/// 405 for a verb that a resource does not support.
fn unsupported_verb(request: &ApiRequest) -> Status {
    let path = &request.path;
    let verb =
        request_verb(request).map_or_else(|| request.method.as_str().to_lowercase(), |verb| verb.to_string());
    let subresource = path.subresource.as_deref().map(|name| format!("/{name}")).unwrap_or_default();
    let message = format!(
        "the server does not allow this method on the requested resource: {verb} of {}{subresource}",
        path.qualified_resource()
    );
    let details = StatusDetails { kind: Some(path.resource.clone()), ..StatusDetails::default() };
    Status::new(StatusReason::MethodNotAllowed, message).with_details(details)
}
