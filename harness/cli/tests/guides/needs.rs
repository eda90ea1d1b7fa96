//! Requirements of blocks.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use regex::Regex;

use crate::block::Block;

/// Requirements that the machine may not meet.
pub const OF_THE_MACHINE: [&str; 10] =
    ["kind", "man", "kubectl", "install", "network", "kubernetes", "cluster", "served", "github", "release"];

/// Returns why a block is skipped, given the results of previous blocks; `None` if it can run.
pub fn missing(block: &Block, made: &BTreeSet<String>) -> Option<String> {
    block.needs.iter().find_map(|need| match need.as_str() {
        "kind" => kind(&block.script),
        "man" | "kubectl" => {
            (!answers(need, &["--help"])).then(|| format!("the command `{need}` is not here"))
        }
        "install" => std::env::var_os("EVICTLAB_INSTALL").is_none().then(|| {
            "it may build everything once more; EVICTLAB_INSTALL=1 runs it, without optimization".to_owned()
        }),
        "network" => Some("tests do not use the network".to_owned()),
        "kubernetes" => Some("it is run in a checkout of kubernetes/kubernetes, with Go".to_owned()),
        // The test serves a cluster.
        "served" => None,
        "release" => Some("a release does not exist yet".to_owned()),
        "github" => Some("GitHub runs the actions of the job".to_owned()),
        "cluster" => Some("it needs a cluster of the user".to_owned()),
        other => (!made.contains(other)).then(|| format!("the block that makes `{other}` was not run")),
    })
}

fn answers(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    let quiet = command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

/// Returns whether blocks run on kind.
pub fn has_kind() -> bool {
    node_images().as_ref().is_ok_and(|images| !images.is_empty())
}

/// Returns the versions of the node images in Docker, one per line, or why kind is not available.
fn node_images() -> &'static Result<String, String> {
    static IMAGES: OnceLock<Result<String, String>> = OnceLock::new();
    IMAGES.get_or_init(|| {
        if !answers("kind", &["version"]) {
            return Err("the command `kind` is not here".to_owned());
        }
        let listed =
            Command::new("docker").args(["image", "ls", "--format", "{{.Tag}}", "kindest/node"]).output();
        let listed =
            listed.ok().filter(|listed| listed.status.success()).ok_or("no Docker daemon answers")?;
        Ok(String::from_utf8_lossy(&listed.stdout).into_owned())
    })
}

/// kind, Docker, and a node image for every version in the block: tests pull no images.
fn kind(script: &str) -> Option<String> {
    let images = match node_images() {
        Ok(images) => images,
        Err(why) => return Some(why.clone()),
    };
    let version = Regex::new(r"\bv1\.\d+(\.\d+)?").unwrap();
    let has_image =
        |asked: &str| images.lines().any(|tag| tag == asked || tag.starts_with(&format!("{asked}.")));
    let lacking = version.find_iter(script).map(|found| found.as_str()).find(|asked| !has_image(asked));
    match lacking {
        Some(asked) => Some(format!("no node image of {asked} (kindest/node) is in Docker")),
        None if images.is_empty() => Some("no node image (kindest/node) is in Docker".to_owned()),
        None => None,
    }
}
