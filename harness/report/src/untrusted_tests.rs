//! Properties of all outputs for untrusted text: pods, API servers, case files
//! and exported runs.

use std::fs;
use std::path::{Component, Path};
use std::process::Command;
use std::sync::LazyLock;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag};
use regex::Regex;
use serde_json::Value;

use crate::github::{Annotations, JobSummary};
use crate::output_options::Verbosity;
use crate::page::SCRIPT;
use crate::run_dir::{RunDir, file_name};
use crate::run_event::RunEvent;
use crate::sink::Report;
use crate::terminal::PlainLog;
use crate::text::{
    code_block, inert_markdown, markdown_cell, markdown_code, shell_quote, visible, without_workflow_commands,
};
use crate::{
    EvidenceBase, EvidenceWriter, History, JsonLines, Junit, Prow, RecordedRun, RunState, compare, fixtures,
    history_page, history_table, markdown_page, page, redact,
};

/// Texts with an effect on a terminal, a shell, a page or a job, if they are not quoted.
const HOSTILE: [&str; 36] = [
    "\u{1b}]52;c;cm0=\u{7}",
    "\u{1b}[2J",
    "\u{9b}31m",
    "\u{202e}",
    "\r",
    "\n",
    "\n\n",
    "\0",
    "::set-output name=a::b",
    "\n  ::error::x",
    "##[group]",
    "[a](javascript:alert(1))",
    "](",
    "[",
    "]",
    "![x](https://e.example/x.png)",
    "\n[a]: javascript:b\n",
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<",
    "</details>",
    "<!--",
    "\n```",
    "\n~~~\n",
    "`",
    "|",
    "\\",
    "'",
    "\"",
    "$(id)",
    "; id #",
    "&",
    "]]>",
    "../../",
    " -rf",
    "\n    ",
];

static TAG: LazyLock<Regex> = LazyLock::new(|| Regex::new("<[^>]*>").unwrap());
/// A link to a file of the run in the directory `run`.
static FILE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new("^run/artifacts(/[a-z0-9_~%-][a-z0-9._~%-]*){4}\"").unwrap());
static QUOTED: LazyLock<Regex> = LazyLock::new(|| Regex::new("\"[^\"]*\"").unwrap());

fn hostile() -> impl Strategy<Value = String> {
    let part = prop_oneof![3 => select(&HOSTILE[..]).prop_map(str::to_owned), 1 => ".{0,6}"];
    vec(part, 0..8).prop_map(|parts| parts.concat())
}

fn has_controls(text: &str) -> bool {
    text.chars().any(|c| c.is_control() && c != '\n' && c != '\t' || ('\u{202a}'..='\u{202e}').contains(&c))
}

fn has_commands(text: &str) -> bool {
    text.lines().any(|line| line.trim_start().starts_with("::")) || text.contains("##[")
}

/// Parses Markdown as GitHub and the page do.
fn parse(markdown: &str) -> Vec<Event<'_>> {
    Parser::new_ext(markdown, Options::ENABLE_TABLES).collect()
}

fn is_active(event: &Event<'_>) -> bool {
    matches!(
        event,
        Event::Html(_)
            | Event::InlineHtml(_)
            | Event::Start(Tag::Link { .. } | Tag::Image { .. } | Tag::HtmlBlock)
            | Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_)))
    )
}

proptest! {
    #[test]
    fn printed_text_controls_nothing(text in hostile()) {
        let shown = visible(&text);
        prop_assert!(!has_controls(&shown), "{shown:?}");
        let shown = without_workflow_commands(&shown);
        prop_assert!(!has_commands(&shown), "{shown:?}");
    }

    #[test]
    fn file_names_are_one_component(text in hostile()) {
        let name = file_name(&text);
        let parts: Vec<Component<'_>> = Path::new(&name).components().collect();
        prop_assert!(matches!(parts[..], [Component::Normal(_)]), "{name:?}");
        prop_assert!(!has_controls(&name) && !name.starts_with('-'), "{name:?}");
    }

    #[test]
    fn a_cell_stays_in_its_column(text in hostile()) {
        let table = format!("| a | b |\n|---|---|\n| {} | end |\n", markdown_cell(&text));
        let cells = parse(&table).iter().filter(|event| matches!(event, Event::Start(Tag::TableCell))).count();
        prop_assert!(cells == 4 && table.lines().count() == 3, "{table}");
        prop_assert!(table.trim_end().ends_with("| end |"));
    }

    #[test]
    fn inert_text_has_no_links_images_html_or_fences(text in hostile()) {
        let inert = inert_markdown(&text);
        prop_assert!(!parse(&inert).iter().any(is_active), "{inert:?}");
    }

    /// Several untrusted texts stand in one line of a report.
    #[test]
    fn inert_texts_stay_inert_side_by_side(texts in vec(hostile(), 2..4)) {
        let texts: Vec<String> = texts.iter().map(|text| inert_markdown(text)).collect();
        let line = format!("- run {}", texts.join(", "));
        prop_assert!(!parse(&line).iter().any(is_active), "{line:?}");
    }

    #[test]
    fn code_ends_where_it_should(text in hostile()) {
        let block = format!("before\n\n{}\n\nafter\n", code_block("text", &text));
        let events = parse(&block);
        let blocks = events.iter().filter(|event| matches!(event, Event::Start(Tag::CodeBlock(_)))).count();
        prop_assert_eq!(blocks, 1);
        prop_assert!(matches!(&events[events.len() - 2], Event::Text(text) if &**text == "after"), "{block}");
        let span = format!("before {} after", markdown_code(&text));
        let events = parse(&span);
        prop_assert!(!events.iter().any(is_active), "{span:?}");
        let codes = events.iter().filter(|event| matches!(event, Event::Code(_))).count();
        prop_assert!(codes == 1 || text.is_empty(), "{span:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn a_shell_reads_the_quoted_words(words in vec(hostile(), 1..6)) {
        let words: Vec<String> = words.iter().map(|word| word.replace('\0', "")).collect();
        let script = format!("printf '%s\\0' {}", shell_quote(&words));
        let output = Command::new("sh").args(["-c", &script]).output().unwrap();
        let read = String::from_utf8(output.stdout).unwrap();
        let read: Vec<&str> = read.split_terminator('\0').collect();
        prop_assert_eq!(read, words.iter().map(String::as_str).collect::<Vec<_>>());
    }

    /// Every string of every event of a run is replaced, as far as it is still an event.
    #[test]
    fn reports_of_any_run_are_inert(texts in vec(hostile(), 12)) {
        check_reports(&hostile_run(&texts, false))?;
    }

    /// A directory of results may be untrusted, and was not cleaned when it was written.
    #[test]
    fn the_page_of_any_run_is_inert(texts in vec(hostile(), 12)) {
        let events = hostile_run(&texts, true);
        let lines: String = events.iter().map(|event| serde_json::to_string(event).unwrap() + "\n").collect();
        let run = RecordedRun::from_events(Path::new("/nonexistent"), &lines).unwrap();
        check_page(&page(&run, &EvidenceBase::none()).unwrap())?;
        check_page(&markdown_page("comparison", &compare(&run, &run).render()))?;
        let compared = compare(&run, &run).render();
        let history = History::new(&[run], Some(1));
        check_page(&history_page(&history))?;
        for text in [compared, history_table(&history, true)] {
            prop_assert!(!has_controls(&text) && !parse(&text).iter().any(is_active), "{text:?}");
        }
    }

    #[test]
    fn any_text_is_a_run_or_an_error(text in hostile(), lines in vec(select(event_lines()), 0..4)) {
        let text = lines.concat() + &text + "\n";
        if let Err(error) = RecordedRun::from_events(Path::new("run"), &text) {
            let text = error.to_string();
            // A text of which every line is truncated has no events.
            let is_expected = |start: &&str| text.starts_with(&format!("failed to {start} run/artifacts/events.jsonl"));
            prop_assert!(["parse", "read"].iter().any(is_expected), "{text}");
        }
    }
}

fn event_lines() -> Vec<String> {
    fixtures::full_run().iter().map(|event| serde_json::to_string(event).unwrap() + "\n").collect()
}

/// A run whose texts are replaced in turn. Names of cases and kubelets are checked, or the user's
/// own, except in untrusted results.
fn hostile_run(texts: &[String], with_names: bool) -> Vec<RunEvent> {
    let mut texts = texts.iter().cycle();
    let events = fixtures::full_run();
    events.into_iter().map(|event| replace_texts(event, &mut texts, with_names)).collect()
}

fn replace_texts<'a>(
    event: RunEvent,
    texts: &mut impl Iterator<Item = &'a String>,
    with_names: bool,
) -> RunEvent {
    let mut json = serde_json::to_value(&event).unwrap();
    let mut paths = Vec::new();
    find_texts(&json, &mut String::new(), &mut paths);
    let mut replaced = event;
    let is_name = |path: &String| {
        ["/suite", "/case", "/kubelet", "/path"].iter().any(|name| path.ends_with(name))
            || path.starts_with("/kubelets/")
    };
    for path in paths.into_iter().filter(|path| with_names || !is_name(path)) {
        let place = json.pointer_mut(&path).unwrap();
        let before = std::mem::replace(place, Value::String(texts.next().unwrap().clone()));
        match serde_json::from_value::<RunEvent>(json.clone()) {
            Ok(event) => replaced = event,
            // An enum or a time.
            Err(_) => *json.pointer_mut(&path).unwrap() = before,
        }
    }
    replaced
}

fn find_texts(value: &Value, path: &mut String, paths: &mut Vec<String>) {
    let length = path.len();
    let children: Vec<(String, &Value)> = match value {
        Value::String(_) => return paths.push(path.clone()),
        Value::Array(items) => {
            items.iter().enumerate().map(|(index, item)| (index.to_string(), item)).collect()
        }
        Value::Object(fields) => fields.iter().map(|(key, value)| (key.clone(), value)).collect(),
        _ => return,
    };
    for (key, child) in children {
        path.push('/');
        path.push_str(&key.replace('~', "~0").replace('/', "~1"));
        find_texts(child, path, paths);
        path.truncate(length);
    }
}

fn check_reports(events: &[RunEvent]) -> Result<(), TestCaseError> {
    let dir = tempfile::tempdir().unwrap();
    let run_dir = RunDir::at(&dir.path().join("run")).unwrap();
    let mut events = events.to_vec();
    events.iter_mut().for_each(|event| redact::redact_event(&mut event.kind));
    let plain = fixtures::plain_output(Verbosity::Verbose);
    let summary = dir.path().join("run/summary.md");
    let (mut log, mut annotations) = (Vec::new(), Vec::new());
    deliver(Box::new(PlainLog::new("terminal", &mut log, plain, Some(run_dir.clone()))), &events);
    deliver(Box::new(Annotations::new(&mut annotations)), &events);
    let files: [Box<dyn Report>; 5] = [
        Box::new(JsonLines::create(&run_dir).unwrap()),
        Box::new(Junit::new(&run_dir)),
        Box::new(Prow::new(run_dir.clone())),
        Box::new(EvidenceWriter::new(run_dir.clone())),
        Box::new(JobSummary::new(summary.clone())),
    ];
    files.into_iter().for_each(|report| deliver(report, &events));

    let [log, annotations] = [log, annotations].map(|text| String::from_utf8(text).unwrap());
    prop_assert!(!has_controls(&log) && !has_commands(&log), "{log:?}");
    let annotation = regex::Regex::new("^::(error|warning|notice) (file=[^,:]*,)?title=[^,:]*::").unwrap();
    prop_assert!(annotations.lines().all(|line| annotation.is_match(line)), "{annotations}");
    prop_assert!(!has_controls(&annotations), "{annotations:?}");
    let summary = fs::read_to_string(summary).unwrap();
    // In a code span, a tag is text.
    let acts = |event: &Event<'_>| match event {
        Event::Html(html) | Event::InlineHtml(html) => html.to_ascii_lowercase().contains("<script"),
        event => matches!(event, Event::Start(Tag::Image { .. })),
    };
    prop_assert!(!parse(&summary).iter().any(acts) && !has_controls(&summary), "{summary}");
    let junit = fs::read_to_string(dir.path().join("run/artifacts/junit_evictlab.xml")).unwrap();
    // Other control characters are allowed in XML.
    prop_assert!(!junit.chars().any(|c| c < ' ' && !"\n\t\r".contains(c)), "{junit:?}");
    prop_assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "a file beside the run");
    let run_dir = dir.path().join("run");
    let run = RecordedRun::read(&run_dir).unwrap();
    check_page(&page(&run, &EvidenceBase::relative(&run_dir, dir.path())).unwrap())
}

fn deliver(mut report: Box<dyn Report + '_>, events: &[RunEvent]) {
    let mut state = RunState::default();
    for event in events {
        state.apply(event);
        report.on_event(event, &state).unwrap();
    }
    report.finish(&state).unwrap();
}

/// No script but the own one, nothing from elsewhere, and links only to anchors, `https:` and files
/// of the run.
fn check_page(page: &str) -> Result<(), TestCaseError> {
    let own = format!("<script>{SCRIPT}</script>");
    prop_assert!(
        page.trim_end().ends_with(&format!("{own}</body></html>")),
        "the script is not the last element"
    );
    let page = page.replacen(&own, "", 1);
    for tag in TAG.find_iter(&page).map(|found| found.as_str().to_ascii_lowercase()) {
        let starts = ["<script", "<img", "<iframe", "<link", "<object"];
        prop_assert!(!starts.iter().any(|start| tag.starts_with(start)), "{tag}");
        // Only a quoted attribute contains text.
        let names = QUOTED.replace_all(&tag, "");
        prop_assert!(![" on", " src="].iter().any(|name| names.contains(name)), "{tag}");
        if let Some((_, link)) = tag.split_once("href=\"") {
            prop_assert!(
                link.starts_with('#') || link.starts_with("https://") || FILE.is_match(link),
                "{tag}"
            );
        }
    }
    Ok(())
}
