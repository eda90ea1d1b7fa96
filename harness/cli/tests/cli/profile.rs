//! Profiles: `evictlab.toml`, `--profile` and `EVICTLAB_PROFILE`.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

const FILE: &str = r#"[profile.default.run]
nodes = 2
kubelet = ["v1.28", "v1.32"]

[profile.ci.run]
repeat = 3
quiet = true

[profile.ci.stress]
repeat = 9

[profile.ci.list]
json = true
"#;

/// A directory in a repository with this file at the root.
fn repository(text: &str) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir_all(root.path().join(".git")).unwrap();
    fs::create_dir_all(root.path().join("a/b")).unwrap();
    fs::write(root.path().join("evictlab.toml"), text).unwrap();
    root
}

fn evictlab(dir: &Path, profile: Option<&str>, arguments: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_evictlab"));
    command.current_dir(dir).args(arguments);
    command.env_remove("EVICTLAB_CASES").env_remove("ARTIFACTS_DIR").env_remove("EVICTLAB_PROFILE");
    command.envs(profile.map(|profile| ("EVICTLAB_PROFILE", profile)));
    let output = command.output().unwrap();
    let [out, err] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    (output.status.code().unwrap(), out, err)
}

/// Repeat, nodes of each kubelet and kubelets of a plan.
fn planned(dir: &Path, profile: Option<&str>, arguments: &[&str]) -> (u64, usize, Vec<String>) {
    let arguments = [arguments, &["requests-decide", "--dry-run", "--json"]].concat();
    let (status, out, err) = evictlab(dir, profile, &arguments);
    assert_eq!(status, 0, "{err}");
    let plan: Value = serde_json::from_str(&out).unwrap();
    let cases = plan["cases"].as_array().unwrap();
    let kubelets = cases.iter().map(|case| case["kubelet"].as_str().unwrap()[..5].to_owned()).collect();
    (plan["repeat"].as_u64().unwrap(), cases[0]["nodes"].as_array().unwrap().len(), kubelets)
}

#[test]
fn the_command_line_precedes_the_environment_and_the_profiles() {
    let root = repository(FILE);
    let below = root.path().join("a/b");
    let both = || vec!["v1.28".to_owned(), "v1.32".to_owned()];
    assert_eq!(planned(&below, None, &["run"]), (1, 2, both()));
    assert_eq!(planned(&below, Some("ci"), &["run"]), (3, 2, both()));
    assert_eq!(planned(&below, None, &["run", "--profile", "ci"]), (3, 2, both()));
    assert_eq!(planned(&below, Some("default"), &["--profile=ci", "run", "--repeat", "4"]), (4, 2, both()));
    assert_eq!(
        planned(&below, None, &["run", "--nodes", "1", "--kubelet", "v1.31"]),
        (1, 1, vec!["v1.31".to_owned()])
    );
    // A profile states the limit that `stress` needs.
    assert_eq!(planned(&below, Some("ci"), &["stress", "--kubelet", "v1.31"]).0, 9);
    assert_eq!(evictlab(&below, None, &["stress", "requests-decide", "--dry-run"]).0, 2);
    let (status, out, _) = evictlab(&below, Some("ci"), &["list", "requests-decide"]);
    assert!(status == 0 && out.starts_with('['), "{out}");
    // `--until-failure` conflicts with `--repeat` of the command line, not with that of a profile.
    let arguments = ["run", "requests-decide", "--until-failure", "--dry-run"];
    assert_eq!(evictlab(&below, Some("ci"), &arguments).0, 0);
    // An environment variable of an option precedes the profile.
    fs::write(root.path().join("evictlab.toml"), "[profile.default.list]\ncases = 'nowhere'\n").unwrap();
    assert_eq!(evictlab(&below, None, &["list"]).0, 2);
    let mut command = Command::new(env!("CARGO_BIN_EXE_evictlab"));
    let cases = concat!(env!("CARGO_MANIFEST_DIR"), "/../../cases");
    let output = command.current_dir(&below).env("EVICTLAB_CASES", cases).arg("list").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_command_line_unsets_flags() {
    let root = repository("[profile.default.list]\njson = true\n");
    let other = repository("");
    let rows: [(&Path, &[&str], bool); 6] = [
        (root.path(), &[], true),
        (root.path(), &["--no-json"], false),
        (root.path(), &["--no-json", "--json"], true),
        (other.path(), &["--no-json"], false),
        (other.path(), &["--json"], true),
        (other.path(), &["--json", "--no-json"], false),
    ];
    for (dir, arguments, is_json) in rows {
        let (_, out, err) = evictlab(dir, None, &[&["list", "requests-decide"], arguments].concat());
        assert_eq!(out.starts_with('['), is_json, "{arguments:?}: {out} {err}");
    }
    let (status, _, err) = evictlab(root.path(), None, &["list", "--no-jsn"]);
    assert!(status == 2 && err.contains("'--no-json'"), "{err}");
    let (_, out, _) = evictlab(root.path(), None, &["list", "--help"]);
    assert!(!out.contains("--no-json"), "{out}");
}

#[test]
fn a_file_beyond_the_repository_is_not_read() {
    let root = repository("[profile.default.run]\nnodes = 2\n");
    let below = root.path().join("a");
    fs::create_dir(below.join(".git")).unwrap();
    assert_eq!(planned(&below, None, &["run", "--kubelet", "v1.31"]).1, 1);
    let (status, _, err) = evictlab(&below, None, &["list", "--profile", "ci"]);
    assert!(status == 2 && err.contains("failed to find profile `ci`: no evictlab.toml"), "{err}");
}

/// The help that explains the file is printed although the file has a mistake.
#[test]
fn help_needs_no_valid_file() {
    let root = repository("profle = 1\n");
    for arguments in [&["--help"][..], &["-V"], &["run", "-h"], &["help", "lint"]] {
        let (status, out, err) = evictlab(root.path(), None, arguments);
        assert!(status == 0 && !out.is_empty() && err.is_empty(), "{arguments:?}: {err}");
    }
    let (status, _, err) = evictlab(root.path(), None, &["list"]);
    assert!(status == 2 && err.contains("did you mean `profile`?"), "{err}");
}

#[test]
fn mistakes_have_a_position_and_a_suggestion() {
    let rows = [
        ("[profile.ci.run]\nretry = 1\n", "evictlab.toml:2:1", "unknown key `retry`"),
        ("[profile.ci.run]\nrepaet = 1\n", "evictlab.toml:2:1", "did you mean `repeat`?"),
        ("[profile.ci.rum]\nrepeat = 1\n", "evictlab.toml:1:13", "did you mean `run`?"),
        ("[profiles.ci.run]\nrepeat = 1\n", "evictlab.toml:1:2", "did you mean `profile`?"),
        ("[profile.ci]\nrun = 1\n", "evictlab.toml:2:7", "expected a table of options: [profile.ci.run]"),
        (
            "[profile.default]\nkubelet = 'v1.32'\n",
            "evictlab.toml:2:1",
            "put the options of run under [profile.default.run]",
        ),
        (
            "[profile.ci.cluster]\ndetach = true\n",
            "evictlab.toml:2:1",
            "put the options of create under [profile.ci.cluster.create]",
        ),
        (
            "[profile.ci.run]\nrepeat = 2\nuntil-failure = true\n",
            "evictlab.toml:3:1",
            "`until-failure` cannot be used with `repeat`",
        ),
        (
            "[profile.ci.run]\nquiet = true\nverbose = true\n",
            "evictlab.toml:3:1",
            "`verbose` cannot be used with `quiet`",
        ),
        ("[profile.ci.run]\nprofile = 'a'\n", "evictlab.toml:2:1", "unknown key `profile`"),
        (
            "[profile.ci.run]\nallow-disruption = true\n",
            "evictlab.toml:2:1",
            "`allow-disruption` is a permission",
        ),
        ("[profile.default.gc]\nforce = true\n", "evictlab.toml:2:1", "state --force on the command line"),
        ("[profile.ci.run]\nkubeconfig = 'kc'\n", "evictlab.toml:2:1", "`kubeconfig` selects a cluster"),
        ("[profile.ci.gc]\ncontext = 'a'\n", "evictlab.toml:2:1", "`context` selects a cluster"),
        ("[profile.ci.watch]\nnode-selector = 'a'\n", "evictlab.toml:2:1", "`node-selector` selects nodes"),
        ("[profile.ci.run]\nkind-config = 'a'\n", "evictlab.toml:2:1", "can mount files of this machine"),
        ("[profile.ci.bisect]\nbuild = 'a'\n", "evictlab.toml:2:1", "state --build on the command line"),
        ("[profile.ci.bisect]\ngit = '.'\n", "evictlab.toml:2:1", "`git` runs the build"),
        (
            "[profile.ci.bisect]\nkubelet-path = 'a'\n",
            "evictlab.toml:2:1",
            "`kubelet-path` selects a program",
        ),
        (
            "[profile.ci.run]\nkubelet = 'evictlab.toml'\n",
            "evictlab.toml:2:11",
            "`kubelet` in a profile is a version",
        ),
        (
            "[profile.ci.run]\nkubelet = ['v1.32', 'v1.32.11=a:b']\n",
            "evictlab.toml:2:21",
            "state --kubelet on the command line",
        ),
        (
            "[profile.ci.run]\nnode-image = 'v1.32.11=a'\n",
            "evictlab.toml:2:1",
            "`node-image` selects an image",
        ),
        ("[profile.ci.run]\nimage-lock = 'a'\n", "evictlab.toml:2:1", "`image-lock` selects images"),
        ("[profile.ci.run]\nrerun-failed = 'a'\n", "evictlab.toml:2:1", "`rerun-failed` selects a run"),
        ("[profile.ci.run]\nkeep-runs = 1\n", "evictlab.toml:2:1", "`keep-runs` deletes runs"),
        ("[profile.ci.bisect]\nresume = 'a'\n", "evictlab.toml:2:1", "`resume` selects a run"),
        (
            "[profile.ci.report]\noutput = '/tmp/a.html'\n",
            "evictlab.toml:2:10",
            "`output` cannot write to `/tmp/a.html`: the path is not below the directory of this file",
        ),
        ("[profile.ci.run]\nrecord = 'a/../../b'\n", "evictlab.toml:2:10", "the path contains `..`"),
        ("[profile.ci.run]\noutput-dir = '.git/a'\n", "evictlab.toml:2:14", "is in the directory of git"),
        ("[profile.ci.run]\nwrite-baseline = 'link/a'\n", "evictlab.toml:2:18", "has a symbolic link"),
        ("[profile.ci.job.manifest]\napply = true\n", "evictlab.toml:2:1", "`apply` changes a cluster"),
        (
            "[profile.default.run]\nbackend = 'kind'\n",
            "evictlab.toml:2:11",
            "profile `default` applies without being selected, and cannot set `backend`",
        ),
        ("[profile.default.gc]\nbackend = 'existing'\n", "evictlab.toml:2:11", "cannot set `backend`"),
        ("[profile.ci.run]\n\nrepeat = true\n", "evictlab.toml:3:10", "expected a string or a number"),
        ("[profile.ci.run]\nquiet = 'yes'\n", "evictlab.toml:2:9", "expected true or false"),
        ("[profile.ci.run]\nbackend = ['kind']\n", "evictlab.toml:2:11", "found a value of the type array"),
        ("[profile.ci.run]\nbaseline = ''\n", "evictlab.toml:2:12", "it is empty"),
        ("[profile.ci.run]\nbaseline = ''\n", "evictlab.toml:2:12", "write `baseline = true` for --baseline"),
        (
            "[profile.ci.run]\nbaseline = ['a']\n",
            "evictlab.toml:2:12",
            "expected a string, a number, true or false",
        ),
        ("[profile.ci.run]\nrepeat = 0\n", "evictlab.toml:2:10", "0 is not in 1.."),
        ("[profile.ci.run]\ntimeout = 'soon'\n", "evictlab.toml:2:11", "invalid value of `timeout`"),
        ("[profile.ci.run]\nfocus = ['a', 'b', '(']\n", "evictlab.toml:2:20", "invalid value of `focus`"),
        ("[profile.ci.run]\nfocus = ['a', true]\n", "evictlab.toml:2:15", "expected a string or a number\n"),
        ("[profile.ci.run]\nbackend = 'docker'\n", "evictlab.toml:2:11", "valid: embedded, kind, existing"),
        ("[profile.ci.cluster.create]\nnods = 2\n", "evictlab.toml:2:1", "did you mean `nodes`?"),
        ("[profile.ci.run\n", "evictlab.toml:1:16", "invalid TOML"),
    ];
    for (text, position, expected) in rows {
        let root = repository(text);
        symlink("..", root.path().join("link")).unwrap();
        let (status, _, err) = evictlab(root.path(), None, &["list"]);
        assert!(status == 2 && err.contains(position) && err.contains(expected), "{text}: {err}");
    }
    let root = repository(FILE);
    let (status, _, err) = evictlab(root.path(), Some("cii"), &["list"]);
    assert!(status == 2 && err.contains("failed to find profile `cii` in evictlab.toml"), "{err}");
    assert!(err.contains("its profiles are ci, default"), "{err}");
}

#[test]
fn a_file_runs_no_program_and_writes_nothing_elsewhere() {
    let root = repository("");
    let outside = tempfile::tempdir().unwrap();
    let (victim, ran) = (outside.path().join("victim"), root.path().join("ran"));
    fs::write(&victim, "mine").unwrap();
    symlink(&victim, root.path().join("link")).unwrap();
    let program = root.path().join("kubelet");
    fs::write(&program, "#!/bin/sh\ntouch ran\necho Kubernetes v1.32.11\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let run = ["run", "requests-decide", "--kubelet", "v1.32"];
    let file = root.path().join("evictlab.toml");
    assert_eq!(evictlab(root.path(), None, &run).0, 0);
    let kind = ["run", "requests-decide", "--backend", "kind", "--dry-run"];
    let absolute = format!("'{}'", victim.display());
    let relative = format!("'../{}/victim'", outside.path().file_name().unwrap().display());
    let rows: [(&str, &str, &[&str]); 5] = [
        ("run", "kubelet = './kubelet'", &kind),
        ("report", &format!("output = {absolute}"), &["report"]),
        ("report", &format!("output = {relative}"), &["report"]),
        ("report", "output = 'link'", &["report"]),
        ("run", &format!("write-baseline = {absolute}"), &run),
    ];
    for (command, option, arguments) in rows {
        fs::write(&file, format!("[profile.default.{command}]\n{option}\n")).unwrap();
        let (status, _, err) = evictlab(root.path(), None, arguments);
        assert_eq!(status, 2, "{option}: {err}");
        assert!(!ran.exists(), "{option}");
        assert_eq!(fs::read_to_string(&victim).unwrap(), "mine", "{option}");
    }
    // The command line writes there, and a profile to the repository.
    fs::write(&file, "[profile.default.report]\noutput = 'a/page.html'\n").unwrap();
    assert_eq!(evictlab(root.path(), None, &["report"]).0, 0);
    assert!(root.path().join("a/page.html").exists());
    let output = victim.to_str().unwrap();
    assert_eq!(evictlab(root.path(), None, &["report", "--output", output]).0, 0);
    assert_ne!(fs::read_to_string(&victim).unwrap(), "mine");
}

/// A kubeconfig can name a command that returns credentials.
#[test]
fn a_file_runs_no_command() {
    let root = repository("[profile.default.run]\nbackend = 'existing'\nkubeconfig = 'kc'\n");
    let kubeconfig = "{apiVersion: v1, kind: Config, current-context: a, \
        clusters: [{name: a, cluster: {server: 'http://127.0.0.1:9'}}], \
        contexts: [{name: a, context: {cluster: a, user: a}}], \
        users: [{name: a, user: {exec: {apiVersion: client.authentication.k8s.io/v1, \
        interactiveMode: Never, command: touch, args: [ran]}}}]}";
    fs::write(root.path().join("kc"), kubeconfig).unwrap();
    let ran = root.path().join("ran");
    let run = ["run", "requests-decide", "--dry-run"];
    assert_eq!(evictlab(root.path(), None, &run).0, 2);
    assert!(!ran.exists());
    // The command line runs it.
    fs::remove_file(root.path().join("evictlab.toml")).unwrap();
    let access = ["--backend", "existing", "--kubeconfig", "kc"];
    let (status, _, err) = evictlab(root.path(), None, &[&run[..], &access].concat());
    assert!(status != 0 && ran.exists(), "{status} {err}");
}

#[test]
fn an_argument_precedes_conflicting_options_of_a_profile() {
    let root = repository(
        "[profile.default.run]\nquiet = true\njson = true\n\n[profile.ci.run]\nformat = 'plain'\nverbose = true\n",
    );
    // Lines of a verbose run, of a quiet one, and the events of a run.
    let (verbose, quiet, json) = ("  observe  ", "1 passed", "\"type\":\"run-started\"");
    let rows: [(&[&str], &str); 4] = [
        (&["--format", "plain"], quiet),
        (&["--format", "plain", "-v"], verbose),
        (&["--profile", "ci"], verbose),
        (&[], json),
    ];
    for (arguments, expected) in rows {
        let run = ["run", "requests-decide", "--kubelet", "v1.32"];
        let (status, out, err) = evictlab(root.path(), None, &[&run, arguments].concat());
        assert_eq!(status, 0, "{arguments:?}: {err}");
        for line in [verbose, quiet, json] {
            // The totals are in the output of every verbosity.
            let is_expected = line == expected || (line == quiet && expected == verbose);
            assert_eq!(out.contains(line), is_expected, "{arguments:?}: {out}");
        }
    }
    // An option with the value `false` does not conflict.
    let text = "[profile.default.run]\nquiet = false\nverbose = true\nkeep = false\n";
    fs::write(root.path().join("evictlab.toml"), text).unwrap();
    assert_eq!(planned(root.path(), None, &["run", "--kubelet", "v1.32"]).0, 1);
}

#[test]
fn an_error_names_the_file_that_states_the_option() {
    let rows: [(&str, &[&str], &str); 6] = [
        (
            "backend = 'kind'\nkeep = true",
            &["--backend", "embedded"],
            "help: evictlab.toml states keep: unset it with --no-keep, or add --backend kind",
        ),
        (
            "backend = 'kind'\nkeep = true",
            &["--backend", "embedded", "--keep"],
            "help: remove --keep, or add",
        ),
        (
            "cluster = 'lab'",
            &[],
            "help: evictlab.toml states cluster: remove it there, or add --backend kind",
        ),
        ("seed = 3", &["--backend", "kind"], "help: evictlab.toml states seed: remove it there, or add"),
        (
            "kubelet = 'v1.32'",
            &["--backend", "existing"],
            "help: evictlab.toml states kubelet: remove it there, and select nodes of the existing cluster",
        ),
        ("seed = 3", &["--keep"], "help: remove --keep, or add --backend kind"),
    ];
    for (options, arguments, help) in rows {
        let root = repository(&format!("[profile.ci.run]\n{options}\n"));
        let run = ["run", "requests-decide", "--dry-run"];
        let (status, _, err) = evictlab(root.path(), Some("ci"), &[&run, arguments].concat());
        assert!(status == 2 && err.contains(help), "{options} {arguments:?}: {err}");
    }
    let root = repository("[profile.ci.run]\nbackend = 'kind'\nkeep = true\n");
    assert_eq!(planned(root.path(), Some("ci"), &["run", "--backend", "embedded", "--no-keep"]).0, 1);
}

/// A value that the option accepts may be wrong for the command.
#[test]
fn an_error_of_the_command_names_the_place_of_the_value() {
    let not_modelled = "failed to model kubelet v1.99: ";
    let rows = [
        ("kubelet = 'v1.99'", not_modelled, (2, 11)),
        ("kubelet = 1.99", not_modelled, (2, 11)),
        ("kubelet = ['v1.32', 'v1.99']", not_modelled, (2, 21)),
        ("kubelet = 'v1.32, v1.99'", not_modelled, (2, 11)),
        // The error also names v1.37, the newest modelled kubelet.
        ("kubelet = ['v1.37', 'v1.99']", not_modelled, (2, 21)),
        ("baseline = 'v1.99'\nkubelet = 'v1.99'", not_modelled, (3, 11)),
        ("baseline = 'nosuch.json'", "failed to read baseline nosuch.json: ", (2, 12)),
        ("output-dir = 'a'\nwrite-baseline = 'nosuch/a'", "failed to write a baseline to nosuch: ", (3, 18)),
        ("cases = 'nosuch'\nfocus = 'nosuch'", "failed to read folder: ", (2, 9)),
        ("focus = 'nosuch'\nlabel-filter = 'nosuch'", "the label filter `nosuch` matches none", (3, 16)),
        ("focus = 'nosuch'", "failed to select cases: ", (2, 9)),
        ("skip = ['.', 'decide']", "failed to select cases: ", (2, 9)),
        ("upstream = 1", "none of 1 cases refers to kubernetes/kubernetes#1\n", (2, 12)),
        ("shard = '2/2'", "failed to select shard 2/2: ", (2, 9)),
        ("node-memory = '1'", "failed to apply --node-memory: ", (2, 15)),
    ];
    for (options, problem, (line, column)) in rows {
        let root = repository(&format!("[profile.default.run]\n{options}\n"));
        let (status, _, err) = evictlab(root.path(), None, &["run", "requests-decide"]);
        let text = options.lines().nth(line - 2).unwrap();
        let place = format!("--> evictlab.toml:{line}:{column}\n  |\n{line} | {text}\n  | ");
        assert!(status == 2 && err.contains(problem) && err.contains(&place), "{options}: {err}");
    }
    // Options of other commands.
    let rows = [
        ("before = 'v1.32'\nafter = 'v1.99'", &["verify", "requests-decide"][..], (3, 9)),
        ("good = 'v1.32'\nbad = 'v1.99'", &["bisect", "requests-decide"], (3, 7)),
        ("compare = ['nosuch', 'nosuch-b']", &["report"], (2, 12)),
        ("eviction-hard = 'nosuch<1Gi'", &["cluster", "create", "--backend", "embedded"], (2, 17)),
    ];
    for (options, arguments, (line, column)) in rows {
        let command = arguments.iter().take_while(|word| !word.starts_with('-') && !word.contains("decide"));
        let table = command.copied().collect::<Vec<_>>().join(".");
        let root = repository(&format!("[profile.default.{table}]\n{options}\n"));
        let (status, _, err) = evictlab(root.path(), None, arguments);
        let place = format!("--> evictlab.toml:{line}:{column}\n");
        assert!(status == 2 && err.contains(&place), "{options}: {err}");
    }
    // The command line states another value.
    let root = repository("[profile.default.run]\nkubelet = 'v1.99'\n");
    let (status, _, err) = evictlab(root.path(), None, &["run", "requests-decide", "-k", "v1.98"]);
    assert!(status == 2 && err.contains("kubelet v1.98: ") && !err.contains("-->"), "{err}");
}

/// `true` is the option without its value, and `false` leaves it out.
#[test]
fn an_optional_value_may_be_true_or_false() {
    let root = repository("[profile.default.run]\nbaseline = true\n\n[profile.ci.run]\nbaseline = false\n");
    for (profile, is_compared) in [("default", true), ("ci", false)] {
        let run = ["run", "requests-decide", "--kubelet", "v1.32", "--profile", profile];
        let (status, out, err) = evictlab(root.path(), None, &run);
        assert!(status == 0 && out.contains("Since the baseline: ") == is_compared, "{profile}: {out}{err}");
    }
}
