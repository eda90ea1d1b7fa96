//! `evictlab explain`

use std::fs;
use std::io::{IsTerminal, Read, stdin};
use std::path::Path;
use std::process::ExitCode;

use evictlab_rules::KubeletVersion;
use evictlab_runner::explain::{Explanation, Input, explain};

use crate::failure::{Failure, bad_input, infrastructure};
use crate::output::print;

/// Say in plain words why a pod was evicted
///
/// Reads Events, Pods and Nodes, or lists of them, as YAML or JSON, from any cluster; or eviction messages, such as lines of `kubectl describe`. Needs no
/// cluster itself.
///
/// Says which threshold was crossed and by how much, who is named with what against which request, who is not named and why, whether the
/// event, the status, the condition and the annotations agree, and which known bugs fit.
///
/// Exit status: 0 explained; 2 nothing here tells of an eviction, and what it is instead.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  kubectl get events,pods,nodes -A -o yaml | evictlab explain
  kubectl get pod web-0 -o yaml | evictlab explain --kubelet v1.31
  evictlab explain event.yaml
  evictlab explain 'The node was low on resource: memory. Threshold quantity: 100Mi, available: 52Mi.'")]
pub struct Args {
    /// A file; `-` or nothing for standard input; or an eviction message itself
    #[arg(value_name = "FILE")]
    input: Option<String>,
    /// The kubelet's version, where the input has no Node that tells it: v1.31 or v1.31.14
    #[arg(long, value_name = "VERSION", value_parser = version)]
    kubelet: Option<KubeletVersion>,
    /// Print a JSON array instead of text
    #[arg(long)]
    json: bool,
}

fn version(text: &str) -> Result<KubeletVersion, String> {
    let whole = text.parse::<KubeletVersion>();
    // Of a minor alone the first patch: no rule turns on a patch.
    let minor = || format!("{text}.0").parse::<KubeletVersion>();
    whole.clone().or_else(|_| minor()).or(whole).map_err(|error| error.to_string())
}

/// Reads, and says what there is to say.
pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let text = text(args.input.as_deref())?;
    let input = Input::read(&text).map_err(bad_input)?;
    let all = explain(&input, args.kubelet.as_ref()).map_err(bad_input)?;
    if args.json {
        print(serde_json::to_string_pretty(&all).map_err(infrastructure)?)?;
    } else {
        print(all.iter().map(Explanation::to_string).collect::<Vec<_>>().join("\n").trim_end())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn text(input: Option<&str>) -> Result<String, Failure> {
    match input {
        None if stdin().is_terminal() => Err(bad_input(
            "nothing to explain: name a file, or pipe something\n  kubectl get events,pods,nodes -o yaml | evictlab explain",
        )),
        None | Some("-") => {
            let mut text = String::new();
            stdin()
                .read_to_string(&mut text)
                .map_err(|error| bad_input(format!("standard input cannot be read: {error}")))?;
            Ok(text)
        }
        // No file has a sentence for a name.
        Some(message) if message.contains(' ') && !Path::new(message).exists() => Ok(message.to_owned()),
        Some(path) => {
            fs::read_to_string(path).map_err(|error| bad_input(format!("{path} cannot be read: {error}")))
        }
    }
}
