//! A Docker daemon for tests with one kind of container, which records the commands run in them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::client::Docker;

/// The containers of a [`FakeDocker`], which all are in one state.
#[derive(Default)]
pub(crate) struct ContainerState {
    /// True if the containers are paused.
    pub(crate) paused: bool,
    /// True if the daemon fails to resume them.
    pub(crate) cannot_resume: bool,
    /// Memory limit in bytes; 0 for none.
    pub(crate) memory: i64,
    /// Images that containerd lists.
    pub(crate) images: Vec<String>,
    /// Commands that were run.
    pub(crate) commands: Vec<String>,
}

/// A Docker daemon.
#[derive(Clone)]
pub(crate) struct FakeDocker {
    address: String,
    pub(crate) state: Arc<Mutex<ContainerState>>,
}

impl FakeDocker {
    /// Serves until the end of the process.
    pub(crate) fn start(state: ContainerState) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("tcp://{}", listener.local_addr().unwrap());
        let daemon = Self { address, state: Arc::new(Mutex::new(state)) };
        let served = daemon.clone();
        std::thread::spawn(move || listener.incoming().for_each(|stream| served.answer(stream.unwrap())));
        daemon
    }

    /// Returns a connection to the daemon.
    pub(crate) fn docker(&self) -> Docker {
        Docker::of_test(&self.address)
    }

    /// Answers one request.
    fn answer(&self, mut stream: TcpStream) {
        let (method, path, body) = read_request(&stream);
        // The version of the API comes first: /v1.47/containers/json.
        let parts: Vec<&str> =
            path.split('/').filter(|part| !part.is_empty() && !part.starts_with("v1.")).collect();
        let mut state = self.state.lock().unwrap();
        let response = match (method.as_str(), &parts[..]) {
            ("GET", ["containers", _, "json"]) => {
                let limit = json!({"Memory": state.memory});
                json_response(200, &json!({"State": {"Paused": state.paused}, "HostConfig": limit}))
            }
            ("POST", ["containers", _, "unpause"]) if !state.cannot_resume => {
                state.paused = false;
                json_response(204, &Value::Null)
            }
            ("POST", ["containers", _, "update"]) => {
                state.memory = body["Memory"].as_i64().unwrap();
                json_response(200, &json!({"Warnings": []}))
            }
            ("POST", ["containers", _, "exec"]) => {
                let words = body["Cmd"].as_array().unwrap().iter().map(|word| word.as_str().unwrap());
                state.commands.push(words.collect::<Vec<_>>().join(" "));
                json_response(201, &json!({"Id": (state.commands.len() - 1).to_string()}))
            }
            ("POST", ["exec", id, "start"]) => {
                let command = &state.commands[id.parse::<usize>().unwrap()];
                let output =
                    if command.contains("images ls") { state.images.join("\n") } else { String::new() };
                output_response(&output)
            }
            ("GET", ["exec", _, "json"]) => json_response(200, &json!({"ExitCode": 0})),
            ("GET", ["containers", _, "archive"]) => json_response(404, &json!({"message": "no such file"})),
            _ => json_response(500, &json!({"message": format!("unexpected request {method} {path}")})),
        };
        stream.write_all(&response).unwrap();
    }
}

/// Returns the method, the path and the body of a request.
fn read_request(stream: &TcpStream) -> (String, String, Value) {
    let mut reader = BufReader::new(stream);
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        match line.trim_end() {
            "" => break,
            line => head.push(line.to_owned()),
        }
    }
    let length =
        head.iter().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).unwrap();
    let mut words = head.first().map_or("", String::as_str).split(' ').map(str::to_owned);
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let path = target.split('?').next().unwrap_or_default().to_owned();
    (method, path, serde_json::from_slice(&body).unwrap_or_default())
}

fn json_response(status: u16, body: &Value) -> Vec<u8> {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let head = format!(
        "HTTP/1.1 {status} -\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    [head, body].concat().into_bytes()
}

/// The standard output of a command, as a frame of the multiplexed stream.
fn output_response(output: &str) -> Vec<u8> {
    let head = "HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n".as_bytes();
    let length = u32::try_from(output.len()).unwrap().to_be_bytes();
    [head, &[1, 0, 0, 0], &length, output.as_bytes()].concat()
}
