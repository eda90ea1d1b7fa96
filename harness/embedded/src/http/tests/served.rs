//! The API on a TCP port.

use crate::Access;
use crate::{Cluster, ClusterOptions, NodeOptions};
use evictlab_rules::KubeletVersion;
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, ListParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tokio::net::TcpListener;

#[tokio::test]
async fn requires_the_token_of_the_kubeconfig() {
    let options = ClusterOptions::new(
        1,
        "2026-01-01T00:00:00Z".parse().unwrap(),
        vec![NodeOptions::new("worker", KubeletVersion::from_minor(33))],
    );
    let cluster = Cluster::new(options).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let access = Access::new("s3cret").unwrap();
    let text = access.kubeconfig(address);
    let server = tokio::spawn(async move { cluster.serve(listener, &access).await });
    let list = async |text: &str| {
        let config = Kubeconfig::from_yaml(text).unwrap();
        let config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await.unwrap();
        let nodes: Api<Node> = Api::all(Client::try_from(config).unwrap());
        nodes.list(&ListParams::default()).await
    };
    assert_eq!(list(&text).await.unwrap().items.len(), 1);
    let error = list(&text.replace("s3cret", "guess")).await.unwrap_err();
    let kube::Error::Api(status) = error else { panic!("{error}") };
    assert_eq!((status.code, status.reason.as_str()), (401, "Unauthorized"));
    // Plain HTTP is not served.
    let plain = request_without_tls(address).await;
    assert!(!plain.contains("HTTP/1.1 200"), "{plain}");
    server.abort();
}

async fn request_without_tls(address: std::net::SocketAddr) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    stream
        .write_all(b"GET /version HTTP/1.1\r\nhost: a\r\nauthorization: Bearer s3cret\r\n\r\n")
        .await
        .unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}
