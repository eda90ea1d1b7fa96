//! `evictlab explain`

use std::fmt::Display;
use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal, Read, stdin};
use std::path::Path;
use std::process::ExitCode;

use clap_complete::engine::ArgValueCandidates;
use evictlab_explain::{Input, StatedVersion, TITLES, decode_text, explain, render};
use evictlab_report::text::visible;
use evictlab_report::{Line, Style};
use evictlab_rules::quantity::MIB;

use crate::args::candidates;
use crate::failure::Failure;
use crate::output::{is_stdout_colored, print_colored, print_json, stdout_width};

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
  evictlab explain event.yaml pod.yaml node.yaml
  evictlab explain 'The node was low on resource: memory. Threshold quantity: 100Mi, available: 52Mi.'")]
pub(crate) struct Args {
    /// Files, `-` for standard input, or the words of an eviction message [default: standard input]
    #[arg(value_name = "FILE")]
    input: Vec<String>,
    /// Version of the kubelet if the input contains no Node: v1.31 or v1.31.14
    #[arg(long, short, value_name = "VERSION", add = ArgValueCandidates::new(candidates::kubelets))]
    kubelet: Option<StatedVersion>,
    /// Print a JSON array instead of text
    #[arg(long)]
    json: bool,
}

/// Reads the input and prints the explanations.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let input = read_input(&args.input)?;
    let all = explain(&input, args.kubelet.as_ref()).map_err(Failure::bad_input)?;
    if args.json {
        print_json(&all)?;
    } else {
        let text = render(&all);
        let width = stdout_width().map_or(usize::MAX, usize::from);
        print_colored(for_terminal(&text, is_stdout_colored(), width))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Breaks the lines of explanations between words, and colors headings and checks.
fn for_terminal(text: &str, color: bool, width: usize) -> String {
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
        lines.extend(wrapped.iter().map(|line| line.text(color).trim_end().to_owned()));
    }
    lines.join("\n")
}

/// Reads standard input, files, or a message on the command line.
fn read_input(arguments: &[String]) -> Result<Input, Failure> {
    if let Some(message) = message_of(arguments) {
        return Input::read(&message).map_err(Failure::bad_input);
    }
    let mut input = Input::default();
    match arguments {
        [] if stdin().is_terminal() => {
            return Err(Failure::bad_input(
                "failed to read the input: standard input is a terminal\nhelp: name a file, or pipe objects: kubectl get events,pods,nodes -o yaml | evictlab explain",
            ));
        }
        [] => input.add_text(&read_stdin()?).map_err(Failure::bad_input)?,
        [file] => input.add_text(&read_file(file)?).map_err(Failure::bad_input)?,
        files => {
            for file in files {
                let fail = |error| Failure::bad_input(format!("failed to explain {file}: {error}"));
                input.add_text(&read_file(file)?).map_err(fail)?;
            }
        }
    }
    input.check().map_err(Failure::bad_input)?;
    Ok(input)
}

/// Returns the message that the arguments are; `None` if they are files. A shell splits a message
/// without quotes into words.
fn message_of(arguments: &[String]) -> Option<String> {
    let message = arguments.join(" ");
    let is_file = |argument: &String| {
        let endings = ["yaml", "yml", "json", "txt", "log"];
        let ending = Path::new(argument).extension().and_then(|ending| ending.to_str());
        ending.is_some_and(|ending| endings.contains(&ending)) && !argument.contains(' ')
    };
    let has_file = match arguments {
        [] => true,
        [one] => !one.contains(' ') || Path::new(one).exists(),
        [first, ..] => first == "-" || Path::new(first).exists() || arguments.iter().any(is_file),
    };
    (!has_file).then_some(message)
}

fn read_stdin() -> Result<String, Failure> {
    read_limited(stdin().lock(), "standard input", 0, MAX_INPUT)
}

fn read_file(path: &str) -> Result<String, Failure> {
    const QUOTE: &str = "to explain a message, quote it: evictlab explain 'The node was low on resource: …'";
    if path == "-" {
        return read_stdin();
    }
    if path.is_empty() {
        let problem = "failed to read the input: the name of the file is empty";
        return Err(Failure::bad_input(format!("{problem}\nhelp: name a file; {QUOTE}")));
    }
    let fail = |error: io::Error| {
        let help = match error.kind() {
            ErrorKind::NotFound => format!("\nhelp: check the path; {QUOTE}"),
            ErrorKind::IsADirectory => "\nhelp: name a file in the directory".to_owned(),
            _ => String::new(),
        };
        Failure::bad_input(format!("failed to read {path}: {error}{help}"))
    };
    let file = File::open(path).map_err(fail)?;
    let metadata = file.metadata().map_err(fail)?;
    if metadata.is_dir() {
        return Err(fail(ErrorKind::IsADirectory.into()));
    }
    read_limited(&file, path, metadata.len(), MAX_INPUT)
}

/// Reads a text of at most `limit` bytes, whose expected size is `size`.
fn read_limited(input: impl Read, name: &str, size: u64, limit: u64) -> Result<String, Failure> {
    let fail = |error: &dyn Display| Failure::bad_input(format!("failed to read {name}: {error}"));
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
    use std::fs;

    use super::*;

    #[test]
    fn words_are_a_message_and_files_are_not() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let rows = [
            ("The node was low", true),
            ("Cargo.toml b.yaml", false),
            ("nosuch.yaml", false),
            ("nosuch.yaml node.json", false),
            ("nosuch Cargo.toml", true),
            ("-", false),
            ("- pod.yaml", false),
        ];
        for (text, is_message) in rows {
            assert_eq!(message_of(&words(text)), is_message.then(|| text.to_owned()), "{text}");
        }
        let one = "The node was low".to_owned();
        assert_eq!(message_of(std::slice::from_ref(&one)), Some(one));
    }

    #[test]
    fn files_are_explained_together() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = directory.path().join(name);
            fs::write(&path, text).unwrap();
            path.display().to_string()
        };
        let low = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 52Mi. ";
        let event = write(
            "event.json",
            &format!(
                "{{\"kind\": \"Event\", \"reason\": \"Evicted\", \"message\": \"{low}\", \"involvedObject\": {{\"kind\": \"Pod\", \"name\": \"a\"}}}}"
            ),
        );
        let pod = write(
            "pod.yaml",
            &format!(
                "kind: Pod\nmetadata: {{name: a}}\nspec: {{nodeName: n1}}\nstatus: {{reason: Evicted, message: '{low}'}}\n"
            ),
        );
        let node = write(
            "node.yaml",
            "kind: Node\nmetadata: {name: n1}\nstatus: {nodeInfo: {kubeletVersion: v1.33.1}}\n",
        );
        let input = read_input(&[event.clone(), pod, node.clone()]).unwrap();
        let text = explain(&input, None).unwrap()[0].to_string();
        for part in ["a on node n1, kubelet v1.33.1", "✓ the pod's status message repeats the event"] {
            assert!(text.contains(part), "{text}");
        }
        let broken = write("broken.yaml", "kind: Pod\nmetadata:\n  name: a\n b: c\n");
        let missing = directory.path().join("nosuch.yaml").display().to_string();
        let rows = [
            (vec![node], "found a Node\nhelp: "),
            (vec![event.clone(), broken], "broken.yaml: failed to parse YAML, line 4, column 2"),
            (
                vec![missing.clone()],
                "nosuch.yaml: No such file or directory (os error 2)\nhelp: check the path; to explain a message, quote it",
            ),
            (
                vec![event, missing],
                "nosuch.yaml: No such file or directory (os error 2)\nhelp: check the path",
            ),
            (
                vec![directory.path().display().to_string()],
                ": is a directory\nhelp: name a file in the directory",
            ),
            (
                vec![String::new()],
                "failed to read the input: the name of the file is empty\nhelp: name a file",
            ),
        ];
        for (files, expected) in rows {
            let error = read_input(&files).unwrap_err().message;
            assert!(error.contains(expected), "{error}");
        }
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
