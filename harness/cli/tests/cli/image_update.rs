//! `evictlab image update` with releases that the test serves.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::JoinHandle;

const DIGEST: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// Releases in the format of GitHub's API: a new version, a new build, and a version without
/// changes.
fn releases() -> String {
    let notes = format!(
        "Images pre-built for this release:\\r\\n- v1.38.0: `kindest/node:v1.38.0@sha256:{DIGEST}`\\r\\n- v1.37.0: \
         `kindest/node:v1.37.0@sha256:{DIGEST}`\\r\\n\\r\\nSee also: …"
    );
    format!(r#"[{{"tag_name": "v0.34.0", "draft": false, "prerelease": false, "body": "{notes}"}}]"#)
}

/// Serves one response; returns its address, and the request line and headers.
fn serve(status: &'static str, body: String) -> (String, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address =
        format!("http://{}/repos/kubernetes-sigs/kind/releases?per_page=100", listener.local_addr().unwrap());
    let served = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let lines = BufReader::new(stream.try_clone().unwrap()).lines().map(Result::unwrap);
        let request: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
        let length = body.len();
        write!(stream, "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}")
            .unwrap();
        request
    });
    (address, served)
}

/// Runs `evictlab image update`: exit status and output.
fn update(catalog: &Path, arguments: &[&str], input: Option<&str>) -> (i32, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_evictlab"))
        .args(["image", "update", "--image-lock"])
        .arg(catalog)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.unwrap_or_default().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8(text).unwrap())
}

fn built_in() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../images/images.lock")).unwrap()
}

fn catalog(folder: &tempfile::TempDir) -> PathBuf {
    folder.path().join("images.lock")
}

#[test]
fn downloads_releases_and_updates_the_catalog() {
    let folder = tempfile::tempdir().unwrap();
    let (address, served) = serve("200 OK", releases());
    let (status, text) = update(&catalog(&folder), &["--from", &address], None);
    assert_eq!(status, 0, "{text}");
    let request = served.join().unwrap();
    assert_eq!(request[0], "GET /repos/kubernetes-sigs/kind/releases?per_page=100 HTTP/1.1");
    // GitHub rejects requests without this header.
    assert!(
        request.iter().any(|header| header.to_lowercase().starts_with("user-agent: evictlab/")),
        "{request:?}"
    );
    assert!(
        text.starts_with("added    v1.38.0      kind 0.34.0\nrebuilt  v1.37.0      kind 0.34.0\n"),
        "{text}"
    );

    let updated = fs::read_to_string(catalog(&folder)).unwrap();
    let unchanged = |text: &str| -> Vec<String> {
        text.lines()
            .filter(|line| !line.contains(" v1.37.0: ") && !line.contains(" v1.38.0: "))
            .map(str::to_owned)
            .collect()
    };
    assert_eq!(
        unchanged(&updated),
        unchanged(&built_in()),
        "a missing catalog is created from the built-in one"
    );
    assert!(
        updated.contains(&format!("nodes:\n  v1.38.0: kindest/node:v1.38.0@sha256:{DIGEST} # kind 0.34\n")),
        "{updated}"
    );
}

#[test]
fn reads_releases_from_files_and_standard_input() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("releases.json");
    fs::write(&file, releases()).unwrap();
    fs::write(catalog(&folder), built_in()).unwrap();
    let (status, text) = update(&catalog(&folder), &["--dry-run", "--from", file.to_str().unwrap()], None);
    assert!(status == 0 && text.contains("images.lock, not written: 2 changed"), "{text}");
    assert_eq!(fs::read_to_string(catalog(&folder)).unwrap(), built_in());

    let (status, text) = update(&catalog(&folder), &["--from", "-"], Some(&releases()));
    assert!(status == 0 && text.contains("images.lock: 2 changed"), "{text}");
    let (status, text) = update(&catalog(&folder), &["--from", "-"], Some(&releases()));
    assert!(status == 0 && text.contains("images.lock: 0 changed"), "{text}");
}

#[test]
fn errors_name_the_remedy_and_keep_the_catalog() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(catalog(&folder), built_in()).unwrap();
    let (address, served) = serve("403 Forbidden", r#"{"message": "API rate limit exceeded"}"#.to_owned());
    let (status, text) = update(&catalog(&folder), &["--from", &address], None);
    served.join().unwrap();
    assert!(
        status == 4 && text.contains("failed to download http://") && text.contains("--from FILE"),
        "{text}"
    );
    let (status, text) = update(&catalog(&folder), &["--from", "-"], Some("[]"));
    assert!(status == 2 && text.contains("none of 0 releases lists a node image"), "{text}");
    let (status, text) = update(&catalog(&folder), &["--from", "nosuch.json"], None);
    assert!(status == 2 && text.contains("from nosuch.json: No such file"), "{text}");
    assert_eq!(fs::read_to_string(catalog(&folder)).unwrap(), built_in());
}
