//! `evictlab doctor` without Docker and kind

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
