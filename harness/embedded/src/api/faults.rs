//! The one place where a request can go wrong by the script of faults, before anything else has seen it or after all else has answered.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use futures::StreamExt;
use futures::stream::unfold;
use tokio::time::{Instant, sleep, sleep_until};

use super::respond;
use crate::cluster::Cluster;
use crate::fault::{self, Verdict};

/// Lets a request pass, or does to it what [`fault::judge`] says.
pub async fn pass(State(cluster): State<Cluster>, request: Request, next: Next) -> Response {
    let verdict =
        cluster.with(|world| world.with(|_, _, ctx| fault::judge(request.method(), request.uri(), ctx)));
    match verdict {
        Verdict::Pass => next.run(request).await,
        Verdict::Refuse(status) => respond::refuse(&status),
        Verdict::Delay(time) => {
            sleep(time).await;
            next.run(request).await
        }
        Verdict::Cut(after) => next.run(request).await.map(|body| cut(body, after)),
    }
}

/// A body that ends after a time, whatever is still to come.
fn cut(body: Body, after: Duration) -> Body {
    let end = Instant::now() + after;
    let pieces = body.into_data_stream();
    Body::from_stream(unfold(pieces, move |mut pieces| async move {
        tokio::select! {
            biased;
            () = sleep_until(end) => None,
            piece = pieces.next() => Some((piece? as Result<Bytes, axum::Error>, pieces)),
        }
    }))
}
