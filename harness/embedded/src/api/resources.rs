//! Requests for resources: who answers them.

use axum::body::to_bytes;
use axum::extract::State;
use axum::response::Response;
use http::Method;

use super::objects::{self, Place};
use super::request::{Accept, Query, Request, Target};
use super::resource::{Resource, Source};
use super::respond::{Include, View, refuse};
use super::{daemon_sets, log, metrics, proxy, refusal, resource, review};
use crate::cluster::Cluster;
use crate::registry::Status;
use crate::store::{Kind, Scope};

/// Larger bodies are refused, as by a real server (`MaxRequestBodyBytes`).
const MAX_BODY: usize = 3 << 20;

/// Answers a request that no fixed path takes.
pub async fn answer(State(cluster): State<Cluster>, request: axum::extract::Request) -> Response {
    let (parts, body) = request.into_parts();
    let Some(target) = Target::read(parts.uri.path()) else {
        return refuse(&refusal::no_path(parts.uri.path()));
    };
    let Ok(body) = to_bytes(body, MAX_BODY).await else {
        return refuse(&refusal::too_long(MAX_BODY));
    };
    let raw_query = parts.uri.query().unwrap_or_default().to_owned();
    let accept = Accept::read(&parts.headers);
    let request = Request {
        method: parts.method,
        target,
        query: Query::read(&raw_query),
        raw_query,
        accept: accept.unwrap_or_default(),
        headers: parts.headers,
        body,
    };
    let answered = route(&cluster, &request, accept.is_some());
    answered.unwrap_or_else(|status| refuse(&status))
}

fn route(cluster: &Cluster, request: &Request, acceptable: bool) -> Result<Response, Status> {
    let target = &request.target;
    let resource = resource::find(target).ok_or_else(|| refusal::no_resource(target))?;
    if resource.scope == Scope::Cluster && target.namespace.is_some() {
        return Err(refusal::no_resource(target));
    }
    if let Some(name) = &target.subresource {
        let part = resource.subresource(name).ok_or_else(|| refusal::no_resource(target))?;
        let verb = verb(request);
        if !part.verbs.contains(&verb) {
            return Err(refusal::no_verb(verb, target));
        }
        return subresource(cluster, request, resource, name);
    }
    let verb = verb(request);
    if !resource.verbs.contains(&verb) {
        return Err(refusal::no_verb(verb, target));
    }
    if !acceptable {
        return Err(refusal::not_acceptable());
    }
    match resource.source {
        Source::Stored(kind) => object(cluster, request, resource, kind, verb),
        Source::NewEvents => object(cluster, request, resource, Kind::Event, verb),
        Source::NodeMetrics => metrics::nodes(cluster, request, view(cluster, request, resource)?),
        Source::PodMetrics => metrics::pods(cluster, request, view(cluster, request, resource)?),
        Source::DaemonSets => daemon_sets::answer(cluster, request, view(cluster, request, resource)?),
        Source::Bindings => objects::bind(cluster, request),
        Source::AccessReviews => review::allow(request),
    }
}

/// What is asked for, as `RequestInfo` derives it from method and path.
fn verb(request: &Request) -> &'static str {
    let named = request.target.name.is_some();
    match request.method {
        Method::GET | Method::HEAD if named => "get",
        Method::GET | Method::HEAD if request.query.is("watch") => "watch",
        Method::GET | Method::HEAD => "list",
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE if named => "delete",
        Method::DELETE => "deletecollection",
        Method::OPTIONS => "options",
        _ => "another method",
    }
}

fn view(cluster: &Cluster, request: &Request, resource: &'static Resource) -> Result<View, Status> {
    let now = cluster.with(|world| world.store.epoch.at(world.now));
    let include = Include::read(request.query.text("includeObject"))?;
    Ok(View { resource, accept: request.accept, include, now })
}

fn object(
    cluster: &Cluster,
    request: &Request,
    resource: &'static Resource,
    kind: Kind,
    verb: &str,
) -> Result<Response, Status> {
    let place = Place { view: view(cluster, request, resource)?, kind };
    // A write in no namespace, or to no name, has no path.
    let target = &request.target;
    let nowhere = resource.scope == Scope::Namespaced && target.namespace.is_none();
    if nowhere && !matches!(verb, "list" | "watch") || verb == "create" && target.name.is_some() {
        return Err(refusal::no_verb(verb, target));
    }
    match verb {
        "get" => objects::get(cluster, request, place),
        "list" => objects::list(cluster, request, place),
        "watch" => objects::watch(cluster, request, place),
        "create" => objects::create(cluster, request, place),
        "update" if target.name.is_some() => objects::update(cluster, request, place),
        "patch" if target.name.is_some() => objects::patch(cluster, request, place),
        "delete" => objects::delete(cluster, request, place),
        "deletecollection" => objects::delete_collection(cluster, request, place),
        _ => Err(refusal::no_verb(verb, target)),
    }
}

fn subresource(
    cluster: &Cluster,
    request: &Request,
    resource: &'static Resource,
    name: &str,
) -> Result<Response, Status> {
    let Source::Stored(kind) = resource.source else { return Err(refusal::no_resource(&request.target)) };
    let place = Place { view: view(cluster, request, resource)?, kind };
    match (name, &request.method) {
        ("status" | "ephemeralcontainers", &Method::GET) => objects::get(cluster, request, place),
        ("status" | "ephemeralcontainers", &Method::PATCH) => objects::patch(cluster, request, place),
        ("status" | "ephemeralcontainers", _) => objects::update(cluster, request, place),
        ("finalize", _) => objects::finalize(cluster, request, place),
        ("binding", _) => objects::bind(cluster, request),
        ("eviction", _) => objects::evict(cluster, request),
        ("log", _) => log::log(cluster, request),
        ("proxy", &Method::GET) if kind == Kind::Node => proxy::node(cluster, request),
        ("proxy", _) if kind == Kind::Node => Err(refusal::no_verb("a write", &request.target)),
        (other, _) => {
            Err(refusal::not_modelled(&format!("{} {:?}: {other}", resource.plural, request.target.name())))
        }
    }
}
