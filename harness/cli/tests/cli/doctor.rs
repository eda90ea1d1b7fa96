//! `evictlab doctor` without Docker and kind

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::Command;

use crate::documents;

#[test]
fn fails_without_docker_and_kind() {
    let nothing = tempfile::tempdir().unwrap();
    for (host, found) in [
        (format!("unix://{}/docker.sock", nothing.path().display()), ": the socket does not exist"),
        ("tcp://127.0.0.1:1".to_owned(), ": Connection refused"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_evictlab"));
        command.env("PATH", nothing.path()).env("DOCKER_HOST", &host).args(["doctor", "--json"]);
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(4), "{output:?}");
        let diagnosis = documents::parse("doctor", &output.stdout);
        assert_eq!(diagnosis["fit"], false);
        let state = |about: &str| {
            let mut checks = diagnosis["checks"].as_array().unwrap().iter();
            let check = checks.find(|check| check["subject"] == about).unwrap();
            (
                check["state"].as_str().unwrap(),
                check["finding"].as_str().unwrap(),
                check["remedy"].is_string(),
            )
        };
        assert_eq!(state("embedded").0, "ok");
        let (docker, says, advice) = state("docker");
        assert!(
            docker == "fail"
                && says.starts_with(&format!("failed to connect to the Docker daemon at {host}{found}"))
                && advice,
            "{says}"
        );
        for (about, expected) in [
            ("docker-command", "fail"),
            ("kind", "fail"),
            ("cgroup", "unknown"),
            ("privileged", "unknown"),
            ("memory", "unknown"),
            ("disk", "unknown"),
            ("inotify", "unknown"),
            ("node-image", "unknown"),
        ] {
            assert_eq!(state(about).0, expected, "{about}");
        }
    }
}

#[test]
fn a_failed_info_ends_the_checks_of_docker() {
    let nothing = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_evictlab"));
    command.env("PATH", nothing.path()).env("DOCKER_HOST", docker_with_one_info());
    let output = command.args(["doctor", "--json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    let diagnosis = documents::parse("doctor", &output.stdout);
    let checks = diagnosis["checks"].as_array().unwrap();
    let finding = |about: &str| {
        let check = checks.iter().find(|check| check["subject"] == about).unwrap();
        check["finding"].as_str().unwrap()
    };
    assert!(finding("docker").starts_with("failed to read the system information of Docker"), "{output:?}");
    for about in ["cgroup", "privileged", "memory", "disk", "inotify", "node-image"] {
        assert_eq!(finding(about), "not checked: Docker does not answer", "{about}");
    }
}

/// Serves a Docker daemon that returns its system information only once; returns its address.
fn docker_with_one_info() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("tcp://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let mut has_info = true;
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let head: Vec<String> = BufReader::new(&stream)
                .lines()
                .map(Result::unwrap)
                .take_while(|line| !line.is_empty())
                .collect();
            let path = head[0].split(' ').nth(1).unwrap_or_default();
            let (code, body) = match path.rsplit('/').next() {
                Some("version") => (200, r#"{"ApiVersion": "1.47"}"#),
                Some("info") if std::mem::take(&mut has_info) => (200, r#"{"ID": "daemon"}"#),
                _ => (500, r#"{"message": "out of order"}"#),
            };
            let length = body.len();
            write!(
                stream,
                "HTTP/1.1 {code} -\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
            )
            .unwrap();
        }
    });
    address
}
