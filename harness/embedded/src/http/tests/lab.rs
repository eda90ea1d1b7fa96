//! A cluster and its client.

use std::time::Duration;

use crate::{Cluster, ClusterOptions, NodeOptions};
use evictlab_rules::KubeletVersion;
use futures::AsyncBufReadExt;
use http::{Method, Request};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::Api;
use kube::client::Body;
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

/// A cluster of one node, `worker`, with the namespace `test`.
pub(super) struct Lab {
    pub cluster: Cluster,
    pub client: Client,
    driver: JoinHandle<()>,
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// A response.
#[derive(Debug, PartialEq)]
pub(super) struct Answer {
    pub code: u16,
    pub content: String,
    pub text: String,
}

impl Answer {
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    /// The message of a `Status`.
    pub(super) fn message(&self) -> String {
        self.json()["message"].as_str().unwrap_or_default().to_owned()
    }
}

impl Lab {
    pub(super) async fn new() -> Self {
        let options = ClusterOptions::new(
            7,
            "2026-01-01T00:00:00Z".parse().unwrap(),
            vec![NodeOptions::new("worker", KubeletVersion::from_minor(33))],
        );
        let cluster = Cluster::new(options).unwrap();
        let client = Client::new(cluster.router(), "test");
        let driven = cluster.clone();
        let driver = tokio::spawn(async move { driven.drive().await });
        let lab = Self { cluster, client, driver };
        let namespace = json!({"metadata": {"name": "test"}});
        assert_eq!(lab.post("/api/v1/namespaces", &namespace).await.code, 201);
        // The controllers create the default objects of the namespace.
        tokio::time::sleep(Duration::from_secs(1)).await;
        lab
    }

    /// Sends any request.
    pub(super) async fn request(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: String,
    ) -> Answer {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = self.client.send(request.body(Body::from(body.into_bytes())).unwrap()).await.unwrap();
        let (parts, body) = answer.into_parts();
        let content = parts.headers.get("content-type").map(|value| value.to_str().unwrap().to_owned());
        let bytes = body.collect_bytes().await.unwrap();
        Answer {
            code: parts.status.as_u16(),
            content: content.unwrap_or_default(),
            text: String::from_utf8(bytes.to_vec()).unwrap(),
        }
    }

    pub(super) async fn get(&self, path: &str) -> Answer {
        self.request(Method::GET, path, &[], String::new()).await
    }

    pub(super) async fn get_as(&self, path: &str, accept: &str) -> Answer {
        self.request(Method::GET, path, &[("accept", accept)], String::new()).await
    }

    pub(super) async fn post(&self, path: &str, object: &Value) -> Answer {
        self.request(Method::POST, path, &[("content-type", "application/json")], object.to_string()).await
    }

    pub(super) async fn put(&self, path: &str, object: &Value) -> Answer {
        self.request(Method::PUT, path, &[("content-type", "application/json")], object.to_string()).await
    }

    pub(super) async fn patch(&self, path: &str, content: &str, patch: &Value) -> Answer {
        self.request(Method::PATCH, path, &[("content-type", content)], patch.to_string()).await
    }

    /// Opens a watch.
    pub(super) async fn watch(&self, path: &str) -> Watch {
        self.watch_as(path, "application/json").await
    }

    pub(super) async fn watch_as(&self, path: &str, accept: &str) -> Watch {
        let request = Request::get(path).header("accept", accept).body(Vec::new()).unwrap();
        let lines = self.client.request_stream(request).await.unwrap();
        Watch(Box::pin(lines))
    }

    pub(super) fn maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), "test")
    }

    pub(super) fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), "test")
    }

    pub(super) fn now(&self) -> Duration {
        self.cluster.now().since_start()
    }

    pub(super) async fn create_map(&self, name: &str) -> ConfigMap {
        self.maps().create(&Default::default(), &map(name)).await.unwrap()
    }

    /// Creates a sleeping pod and waits until it runs.
    pub(super) async fn sleeper(&self, name: &str) -> Pod {
        let pod = json!({
            "metadata": {"name": name},
            "spec": {"containers": [{"name": "c", "image": "busybox:1.36", "command": ["sleep", "1000"]}]},
        });
        let created = self.post("/api/v1/namespaces/test/pods", &pod).await;
        assert_eq!(created.code, 201, "{}", created.text);
        self.running(name).await
    }

    /// Waits until a pod runs.
    pub(super) async fn running(&self, name: &str) -> Pod {
        let pods = self.pods();
        for _ in 0..60 {
            let pod = pods.get(name).await.unwrap();
            if pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running") {
                return pod;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        panic!("{:?}", pods.get(name).await.unwrap().status)
    }
}

pub(super) fn map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}})).unwrap()
}

pub(super) fn names<T: ResourceExt>(objects: &[T]) -> Vec<String> {
    objects.iter().map(ResourceExt::name_any).collect()
}

/// An open watch.
pub(super) struct Watch(std::pin::Pin<Box<dyn futures::AsyncBufRead + Send>>);

impl Watch {
    /// Returns the next event; `None` at the end.
    pub(super) async fn next(&mut self) -> Option<Value> {
        let mut line = String::new();
        self.0.read_line(&mut line).await.unwrap();
        if line.is_empty() { None } else { Some(serde_json::from_str(&line).unwrap()) }
    }

    /// Returns the type of the next event and the name of its object.
    pub(super) async fn summary(&mut self) -> Option<String> {
        let event = self.next().await?;
        let kind = event["type"].as_str().unwrap();
        Some(format!("{kind} {}", event["object"]["metadata"]["name"].as_str().unwrap_or("-")))
    }
}
