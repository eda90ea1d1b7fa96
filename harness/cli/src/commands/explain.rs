//! `evictlab explain`

use std::fmt::Display;
use std::fs::File;
use std::io::{IsTerminal, Read, stdin};
use std::path::Path;
use std::process::ExitCode;

use evictlab_explain::{Explanation, Input, TITLES, decode_text, explain};
use evictlab_report::text::visible;
use evictlab_report::{Line, Style};
use evictlab_rules::KubeletVersion;
use evictlab_rules::quantity::MIB;

use crate::failure::{Failure, bad_input};
use crate::output::{is_stdout_coloured, print_coloured, print_json, stdout_width};

/// Maximum size of the input, in bytes: more than all events of 10,000 nodes.
const MAX_INPUT: u64 = 512 * MIB;

/// Explain why a pod was evicted
///
/// Reads Events, Pods and Nodes, or lists of them, as YAML or JSON, from any cluster; or eviction
/// messages, such as lines of `kubectl describe`, of logs, or quoted in a chat. Needs no access to
/// a cluster.
///
/// Reports which threshold was crossed and by how much; which containers the message names, with
/// usage and request; which containers it does not name, and why; whether event, status, condition
/// and annotations agree; and which known bugs match.
///
/// Exit status: 0 explained; 2 the input does not describe an eviction, with the reason.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  kubectl get events,pods,nodes -A -o yaml | evictlab explain
  kubectl get pod web-0 -o yaml | evictlab explain --kubelet v1.31
  evictlab explain event.yaml
  evictlab explain 'The node was low on resource: memory. Threshold quantity: 100Mi, available: 52Mi.'")]
pub(crate) struct Args {
    /// File, `-` for standard input, or the words of an eviction message [default: standard input]
    #[arg(value_name = "FILE")]
    input: Vec<String>,
    /// Version of the kubelet if the input contains no Node: v1.31 or v1.31.14
    #[arg(long, short, value_name = "VERSION", value_parser = version)]
    kubelet: Option<KubeletVersion>,
    /// Print a JSON array instead of text
    #[arg(long)]
    json: bool,
}

fn version(text: &str) -> Result<KubeletVersion, String> {
    let version = text.parse::<KubeletVersion>();
    // A minor version stands for its first patch: no rule depends on the patch.
    let first_patch = || format!("{text}.0").parse::<KubeletVersion>();
    version.clone().or_else(|_| first_patch()).or(version).map_err(|error| error.to_string())
}

/// Reads the input and prints the explanations.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let text = read_input(&args.input)?;
    let input = Input::read(&text).map_err(bad_input)?;
    let all = explain(&input, args.kubelet.as_ref()).map_err(bad_input)?;
    if args.json {
        print_json(&all)?;
    } else {
        let text = all.iter().map(Explanation::to_string).collect::<Vec<_>>().join("\n");
        let width = stdout_width().map_or(usize::MAX, usize::from);
        print_coloured(for_terminal(&text, is_stdout_coloured(), width))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Breaks the lines of explanations between words, and colours headings and checks.
fn for_terminal(text: &str, colour: bool, width: usize) -> String {
    let mut lines = Vec::new();
    for line in visible(text).lines() {
        let words = line.trim_start();
        let indent = line.len() - words.len();
        let is_title = (indent == 0 && !words.is_empty()) || (indent == 2 && TITLES.contains(&words));
        let mut styled = Line::default();
        styled.indent(indent);
        let marks = [("✓", Style::Green), ("✗", Style::Red)];
        let mark = marks.iter().find_map(|(mark, style)| Some((*mark, *style, words.strip_prefix(mark)?)));
        if let Some((mark, style, check)) = mark {
            styled.push(mark, style);
            styled.raw(" ");
            styled.push(check, Style::Plain);
        } else {
            styled.push(words, if is_title { Style::Bold } else { Style::Plain });
        }
        let wrapped = styled.wrapped(width, indent + 2);
        lines.extend(wrapped.iter().map(|line| line.text(colour).trim_end().to_owned()));
    }
    lines.join("\n")
}

fn read_input(input: &[String]) -> Result<String, Failure> {
    // A shell splits a message without quotes into words.
    let words = input.join(" ");
    match input.first().map(|_| words.as_str()) {
        None if stdin().is_terminal() => Err(bad_input(
            "failed to read the input: standard input is a terminal\nhelp: name a file, or pipe objects: kubectl get events,pods,nodes -o yaml | evictlab explain",
        )),
        None | Some("-") => read_limited(stdin().lock(), "standard input", 0, MAX_INPUT),
        Some(files) if input.len() > 1 && (input[0] == "-" || Path::new(&input[0]).exists()) => {
            let problem = format!("failed to read {files}: expected one file");
            Err(bad_input(format!("{problem}\nhelp: explain one file at a time")))
        }
        // A text with spaces that is not a file is a message.
        Some(message) if message.contains(' ') && !Path::new(message).exists() => Ok(message.to_owned()),
        Some(path) => {
            let file =
                File::open(path).map_err(|error| bad_input(format!("failed to read {path}: {error}")))?;
            read_limited(&file, path, file.metadata().map_or(0, |file| file.len()), MAX_INPUT)
        }
    }
}

/// Reads a text of at most `limit` bytes, whose expected size is `size`.
fn read_limited(input: impl Read, name: &str, size: u64, limit: u64) -> Result<String, Failure> {
    let fail = |error: &dyn Display| bad_input(format!("failed to read {name}: {error}"));
    // Without the size, the buffer would be up to twice as large as the file.
    let mut bytes = Vec::with_capacity(usize::try_from(size.min(limit)).unwrap_or(0) + 1);
    input.take(limit + 1).read_to_end(&mut bytes).map_err(|error| fail(&error))?;
    if bytes.len() as u64 > limit {
        return Err(fail(&format_args!(
            "larger than {} MiB\nhelp: select fewer objects: kubectl get events,pods --namespace NAME -o yaml",
            limit >> 20
        )));
    }
    decode_text(bytes).map_err(|error| fail(&error))
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn words_are_a_message_and_files_are_not() {
        let read = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            read_input(&words).map_err(|failure| failure.message)
        };
        assert_eq!(read(&["The", "node", "was", "low"]).unwrap(), "The node was low");
        let error = read(&["Cargo.toml", "b.yaml"]).unwrap_err();
        assert!(error.starts_with("failed to read Cargo.toml b.yaml: expected one file\nhelp: "), "{error}");
    }

    #[test]
    fn headings_and_checks_are_styled_and_lines_wrapped() {
        let text = "shop/web on node n1\n  It exceeded its request.\n\n  consistency\n    ✓ message and status agree\n    ✗ no event\n";
        assert_eq!(for_terminal(text, false, 80), text.trim_end());
        let styled = for_terminal(text, true, 22);
        let expected = "\x1b[1mshop/web on node n1\x1b[0m\n  It exceeded its\n    request.\n\n  \x1b[1mconsistency\x1b[0m\n    \x1b[32m✓\x1b[0m message and\n      status agree\n    \x1b[31m✗\x1b[0m no event";
        assert_eq!(styled, expected);
    }

    #[test]
    fn input_is_read_up_to_a_limit() {
        let read = |input: &mut dyn Read| {
            read_limited(input, "events.yaml", 0, 2 << 20).map_err(|failure| failure.message)
        };
        assert_eq!(read(&mut io::repeat(b' ').take(2 << 20)).map(|text| text.len()), Ok(2 << 20));
        let error = read(&mut io::repeat(b' ')).unwrap_err();
        assert!(error.starts_with("failed to read events.yaml: larger than 2 MiB\nhelp: "), "{error}");
        // The limit is in the middle of a character.
        let error = read(&mut "é".repeat(2 << 20).as_bytes()).unwrap_err();
        assert!(error.contains("larger than"), "{error}");
        let error = read(&mut &b"\xff"[..]).unwrap_err();
        assert!(error.contains("neither UTF-8 nor UTF-16"), "{error}");
    }
}
