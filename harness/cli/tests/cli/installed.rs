//! Manual pages and shell completions.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use evictlab_cluster::{ClusterRecord, Owner};
use regex::Regex;

fn evictlab(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_evictlab")).args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_owned()).unwrap()
}

fn printed(arguments: &[&str]) -> String {
    let output = evictlab(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// Returns the `--help` of every command by the name of its page: `cluster create` is
/// `evictlab-cluster-create.1`.
fn helps() -> BTreeMap<String, String> {
    let listed = Regex::new(r"(?m)^  ([a-z][a-z-]*) ").unwrap();
    let mut helps = BTreeMap::new();
    let mut left = vec![vec![]];
    while let Some(words) = left.pop() {
        let words: Vec<&str> = words;
        let help = printed(&[&words[..], &["--help"]].concat()).leak();
        if let Some((_, commands)) = help.split_once("Commands:\n") {
            let commands = commands.split("\n\n").next().unwrap();
            let names = listed.captures_iter(commands).map(|found| found.extract::<1>().1[0]);
            left.extend(names.filter(|name| *name != "help").map(|name| [&words[..], &[name]].concat()));
        }
        helps.insert([&["evictlab"], &words[..]].concat().join("-") + ".1", help.to_owned());
    }
    helps
}

/// Returns whether a program is installed; if not, prints what is skipped.
fn is_installed(program: &str, what: &str) -> bool {
    let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).output().unwrap();
    if !found.status.success() {
        eprintln!("skipped, no {program}: {what}");
    }
    found.status.success()
}

#[test]
fn every_command_has_a_page_with_all_options() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("share/man1");
    let stdout = printed(&["man", pages.to_str().unwrap()]);
    let helps = helps();
    assert_eq!(stdout, format!("{} pages in {}\n", helps.len(), pages.display()));
    assert!(helps.contains_key("evictlab-cluster-create.1") && helps.contains_key("evictlab-run.1"));
    assert_eq!(fs::read_dir(&pages).unwrap().count(), helps.len());
    let option = Regex::new(r"(?m)^ +(?:-\w, |    )(--[a-z-]+)").unwrap();
    for (name, help) in &helps {
        let page = fs::read_to_string(pages.join(name)).unwrap().replace(r"\-", "-");
        for found in option.captures_iter(help) {
            assert!(page.contains(&format!(r"\fB{}\fR", &found[1])), "{name}: {}", &found[1]);
        }
        for (report, section) in [("Examples:", ".SH EXAMPLES"), ("Exit status: ", ".SH \"EXIT STATUS\"")] {
            assert_eq!(help.contains(report), page.contains(section), "{name}: {section}");
        }
        // Code is bold, except in examples.
        assert!(!page.split(".SH EXAMPLES").next().unwrap().contains('`'), "{name}");
    }
    let run = fs::read_to_string(pages.join("evictlab-run.1")).unwrap();
    assert!(run.contains("\n.TP\n\\fB130\\fR\ninterrupted\n"), "{run}");
    let explain = fs::read_to_string(pages.join("evictlab-explain.1")).unwrap();
    assert!(explain.contains("\nkubectl get pod web\\-0 \\-o yaml | evictlab explain"), "{explain}");

    if is_installed("man", "the pages were not rendered") {
        renders_without_a_warning(&pages, "man", &["--warnings=all", "--local-file"]);
    }
    if is_installed("mandoc", "the pages were not linted") {
        renders_without_a_warning(&pages, "mandoc", &["-Tlint", "-Wwarning"]);
    }
}

fn renders_without_a_warning(pages: &Path, program: &str, options: &[&str]) {
    for entry in fs::read_dir(pages).unwrap() {
        let page = entry.unwrap().path();
        let mut command = Command::new(program);
        let output =
            command.args(options).arg(&page).env("MANPAGER", "cat").env("LC_ALL", "C.UTF-8").output();
        let output = output.unwrap();
        // mandoc prints its warnings, man the page. Pages have no date, so that they are
        // reproducible.
        let stdout = if program == "mandoc" { output.stdout } else { output.stderr };
        let stdout = text(&stdout);
        let warned: Vec<_> =
            stdout.lines().filter(|line| !line.ends_with("missing date, using \"\": TH")).collect();
        assert!(warned.is_empty(), "{program} {}: {warned:#?}", page.display());
    }
}

#[test]
fn reports_unwritable_pages() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    let refused = evictlab(&["man", folder.path().join("file/man1").to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(4));
    let stdout = text(&refused.stderr);
    assert!(stdout.contains("failed to write pages to ") && stdout.contains("Not a directory"), "{stdout}");
}

#[test]
fn completions_are_valid_scripts() {
    let folder = tempfile::tempdir().unwrap();
    for (shell, checked) in
        [("bash", true), ("zsh", true), ("fish", true), ("elvish", false), ("powershell", false)]
    {
        let script = printed(&["completions", shell]);
        assert!(script.contains("until-failure"), "{shell}");
        let file = folder.path().join(shell);
        fs::write(&file, script).unwrap();
        if checked && is_installed(shell, "its completions were not read") {
            let output = Command::new(shell).arg("-n").arg(&file).output().unwrap();
            assert!(output.status.success() && output.stderr.is_empty(), "{shell}: {}", text(&output.stderr));
        }
    }
    assert_eq!(evictlab(&["completions", "tcsh"]).status.code(), Some(2));
}

#[test]
fn bash_completes_commands_options_and_values() {
    if !is_installed("bash", "its completions were not tried") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("script"), printed(&["completions", "bash"])).unwrap();
    for (words, expected) in [
        (&["evictlab", "ru"][..], "run"),
        (&["evictlab", "run", "--until"], "--until-failure"),
        (&["evictlab", "run", "--backend", "ex"], "existing"),
        (&["evictlab", "cluster", "kube"], "kubeconfig"),
    ] {
        let [.., before, last] = words else { unreachable!("there are two at least") };
        let line = format!(
            "source ./script; COMP_WORDS=({}); COMP_CWORD={}; _evictlab evictlab {last} {before}; echo \"${{COMPREPLY[@]}}\"",
            words.join(" "),
            words.len() - 1
        );
        let output = Command::new("bash").args(["-c", &line]).current_dir(&folder).output().unwrap();
        assert_eq!(text(&output.stdout).trim(), expected, "{words:?}: {}", text(&output.stderr));
    }
}

/// Returns the candidates of the completion engine for the last word of a command line.
fn candidates(words: &[&str]) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("mine.yaml"), "").unwrap();
    fs::write(dir.path().join("mine.txt"), "").unwrap();
    fs::write(dir.path().join("evictlab.toml"), "[profile.nightly]\n").unwrap();
    fs::write(dir.path().join("kubeconfig"), "contexts: [{name: staging}]").unwrap();
    fs::create_dir_all(dir.path().join("results/2026-11-21T09-30-12Z/artifacts")).unwrap();
    fs::create_dir_all(dir.path().join("results/notes")).unwrap();
    let state = dir.path().join("state");
    fs::create_dir(&state).unwrap();
    fs::set_permissions(&state, fs::Permissions::from_mode(0o700)).unwrap();
    let record = ClusterRecord::new("daemon", "lab", "run", Owner::current(), vec!["v1.36.4".to_owned()]);
    fs::write(state.join("lab.json"), serde_json::to_string(&record).unwrap()).unwrap();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_evictlab"));
    command.current_dir(dir.path()).env_remove("EVICTLAB_CASES").env("COMPLETE", "bash");
    command.env("EVICTLAB_STATE_DIR", &state).env("KUBECONFIG", dir.path().join("kubeconfig"));
    command.env("_CLAP_IFS", "\n").env("_CLAP_COMPLETE_INDEX", words.len().to_string());
    let output = command.args(["--", "evictlab"]).args(words).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn completion_knows_cases_labels_and_kubelets() {
    assert_eq!(candidates(&["run", "sidecars-are-n"]), ["sidecars-are-named"]);
    assert_eq!(candidates(&["list", "mess"]), ["message"]);
    assert_eq!(candidates(&["bisect", "requests-dec"]), ["requests-decide"]);
    assert_eq!(candidates(&["run", "--kubelet", "v1.36"])[0], "v1.36");
    assert!(candidates(&["run", "--kubelet", "v1.31"]).contains(&"v1.31.14".to_owned()));
    assert_eq!(candidates(&["run", "--kubelet", "a"]), ["all"]);
    assert_eq!(candidates(&["explain", "--kubelet", "v1.36"])[0], "v1.36");
    assert_eq!(candidates(&["list", "--label-filter", "Disr"]), ["Disruptive"]);
    assert_eq!(candidates(&["run", "mine"]), ["mine.yaml"]);
    assert_eq!(candidates(&["lint", "mi"]), ["mine.yaml"]);
    assert_eq!(candidates(&["cluster", "delete", "l"]), ["lab"]);
    assert_eq!(candidates(&["run", "--cluster", "l"]), ["lab"]);
    assert_eq!(candidates(&["run", "--defect", "limits-h"]), ["limits-halved"]);
    assert_eq!(
        candidates(&["list", "--upstream", "kubernetes/kubernetes#12493"]),
        ["kubernetes/kubernetes#124938"]
    );
    assert_eq!(candidates(&["run", "--fault", "mi"]), ["mine.yaml"]);
    assert_eq!(candidates(&["run", "--profile", ""]), ["nightly"]);
    assert_eq!(candidates(&["watch", "--context", ""]), ["staging"]);
    let run = "results/2026-11-21T09-30-12Z";
    assert_eq!(candidates(&["report", "resul"]), [run]);
    assert_eq!(candidates(&["run", "--rerun-failed=res"]), [format!("--rerun-failed={run}")]);
    assert!(candidates(&["run", "--dry"]).contains(&"--dry-run".to_owned()));
}
