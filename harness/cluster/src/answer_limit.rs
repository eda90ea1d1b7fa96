//! Limit of the length of answers of an API server: a server that never ends an answer would fill
//! the memory of this process.

use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body::{Body as HttpBody, Frame, SizeHint};
use kube::client::Body;
use tower::{Layer, Service};

use crate::api_error::AnswerError;

/// Maximum length of an answer, in bytes: more than a page of 500 objects, and than the largest log
/// that is read.
const MAX_ANSWER: usize = 256 << 20;
/// Maximum length of an answer of a kubelet, of which many are read at a time, and of a line of a
/// stream, in bytes.
const MAX_KUBELET_ANSWER: usize = 32 << 20;

/// Limits the answers to the requests of a client. Watches and followed logs have no end: each of
/// their lines is limited.
#[derive(Clone, Copy)]
pub(crate) struct AnswerLimit;

impl<S> Layer<S> for AnswerLimit {
    type Service = LimitedAnswers<S>;

    fn layer(&self, inner: S) -> LimitedAnswers<S> {
        LimitedAnswers { inner }
    }
}

/// A service whose answers are limited.
pub(crate) struct LimitedAnswers<S> {
    inner: S,
}

impl<S, B> Service<Request<Body>> for LimitedAnswers<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Future: Send + 'static,
    S::Error: 'static,
    B: 'static,
{
    type Response = Response<LimitedBody<B>>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Self::Response, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let path = request.uri().path();
        let is_stream = is_stream(request.uri().query().unwrap_or_default());
        let limit = if is_stream || path.contains("/proxy/") { MAX_KUBELET_ANSWER } else { MAX_ANSWER };
        let request_line = format!("{} {path}", request.method());
        let response = self.inner.call(request);
        async move {
            let limited = |body| LimitedBody { body, length: 0, limit, is_stream, request_line };
            response.await.map(|response| response.map(limited))
        }
        .boxed()
    }
}

fn is_stream(query: &str) -> bool {
    query.split('&').any(|parameter| ["watch=true", "follow=true"].contains(&parameter))
}

/// A body that ends in an error when it exceeds its limit.
pub(crate) struct LimitedBody<B> {
    body: B,
    /// Bytes of the answer so far; in a stream, those of the line that has not ended.
    length: usize,
    limit: usize,
    is_stream: bool,
    /// Method and path of the request.
    request_line: String,
}

impl<B> HttpBody for LimitedBody<B>
where
    B: HttpBody + Unpin,
    B::Data: AsRef<[u8]>,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    type Data = B::Data;
    type Error = Box<dyn Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, Self::Error>>> {
        let frame = match ready!(Pin::new(&mut self.body).poll_frame(context)) {
            Some(Ok(frame)) => frame,
            end => return Poll::Ready(end.map(|failed| failed.map_err(Into::into))),
        };
        let data = frame.data_ref().map(AsRef::as_ref).unwrap_or_default();
        let line_end = data.iter().rposition(|byte| self.is_stream && *byte == b'\n');
        self.length = match line_end {
            Some(end) => data.len() - end - 1,
            None => self.length + data.len(),
        };
        if self.length > self.limit {
            let (request, mebibytes) = (self.request_line.clone(), self.limit >> 20);
            return Poll::Ready(Some(Err(AnswerError::TooLong { request, mebibytes }.into())));
        }
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;

    use futures::{AsyncBufReadExt, StreamExt};
    use kube::client::ClientBuilder;
    use kube::{Client, Config};

    use super::*;
    use crate::api_error::{first_cause, is_unavailable};

    /// A client of a server that answers each request with copies of a line without end.
    fn client(line: &'static [u8]) -> Client {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for mut connection in listener.incoming().map(Result::unwrap) {
                let head = BufReader::new(connection.try_clone().unwrap()).lines();
                head.map_while(Result::ok).take_while(|line| !line.is_empty()).for_each(drop);
                connection.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
                let lines = line.repeat((1 << 20) / line.len());
                while connection.write_all(&lines).is_ok() {}
            }
        });
        let config = Config::new(format!("http://{address}").parse().unwrap());
        ClientBuilder::try_from(config).unwrap().with_layer(&AnswerLimit).build()
    }

    fn request(path: &str) -> Request<Vec<u8>> {
        Request::get(path).body(Vec::new()).unwrap()
    }

    #[tokio::test]
    async fn an_answer_without_an_end_is_an_error_that_names_the_request() {
        let client = client(b" ");
        let rows = [
            ("/api/v1/pods?limit=500", "the answer to GET /api/v1/pods has more than 256 MiB"),
            (
                "/api/v1/nodes/n/proxy/configz",
                "the answer to GET /api/v1/nodes/n/proxy/configz has more than 32 MiB",
            ),
        ];
        for (path, expected) in rows {
            let error = client.request_text(request(path)).await.unwrap_err();
            assert_eq!(first_cause(&error), expected);
            assert!(!is_unavailable(&error), "it would be requested again");
        }
        let stream = client.request_stream(request("/api/v1/pods?watch=true")).await.unwrap();
        let error = stream.lines().next().await.unwrap().unwrap_err();
        assert!(error.to_string().contains("/api/v1/pods has more than 32 MiB"), "{error}");
    }

    #[tokio::test]
    async fn watches_and_followed_logs_are_not_limited_in_total() {
        const LINE: &[u8] = &[b'-'; 1023];
        let client = client(Box::leak([LINE, b"\n"].concat().into_boxed_slice()));
        for path in ["/api/v1/pods?limit=500&watch=true", "/log?follow=true"] {
            let stream = client.request_stream(request(path)).await.unwrap();
            let lines = stream.lines().take(2 * MAX_KUBELET_ANSWER / 1024);
            lines.for_each(async |line| assert_eq!(line.unwrap().len(), LINE.len())).await;
        }
    }
}
