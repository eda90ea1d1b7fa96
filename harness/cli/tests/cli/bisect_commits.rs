//! `evictlab bisect --git`: the kubelets of commits are modelled by the versions that they report.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Write as _};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::documents::parse;

const GOOD: &str = "v1.32.13";
const BAD: &str = "v1.31.14";
/// A version of a commit that does not build.
const BROKEN: &str = "broken";

/// Builds a kubelet that reports the version in the file `version`. Adds the subject of the commit
/// to the file `$BUILD_LOG`, and `overlap` while another build runs. From `$BUILD_HOLD_FROM` builds
/// on, waits while the file `$BUILD_HOLD` exists.
const BUILD: &str = r#"
trap 'exit 1' TERM
mkdir "$BUILD_LOG.lock" || echo overlap >> "$BUILD_LOG"
trap 'rmdir "$BUILD_LOG.lock"' EXIT
git log -1 --format=%s >> "$BUILD_LOG"
while [ -e "$BUILD_HOLD" ] && [ "$(wc -l < "$BUILD_LOG")" -ge "$BUILD_HOLD_FROM" ]; do sleep 0.1; done
version=$(cat version)
if [ "$version" = broken ]; then echo 'undefined: evictionMessage' >&2; exit 2; fi
mkdir -p _output/bin
printf '#!/bin/sh\necho Kubernetes %s\n' "$version" > _output/bin/kubelet
chmod +x _output/bin/kubelet
"#;

/// A commit of a repository to create.
struct NewCommit {
    message: String,
    parents: Vec<usize>,
    version: &'static str,
}

/// A repository with a build script, the directory of evictlab, and the log of the builds.
struct BisectTest {
    folder: TempDir,
}

impl BisectTest {
    /// Creates a repository with these commits, the last one checked out.
    fn new(commits: &[NewCommit]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let test = Self { folder };
        fs::create_dir(test.repository()).unwrap();
        test.git(&["init", "--quiet", "--initial-branch=main"]);
        let mut stream = String::new();
        for (number, commit) in commits.iter().enumerate() {
            let _ = write!(
                stream,
                "commit refs/heads/main\nmark :{}\ncommitter A. Author <a@example.org> {} +0000\ndata {}\n{}\n",
                number + 1,
                1_760_000_000 + number * 60,
                commit.message.len(),
                commit.message
            );
            for (nth, parent) in commit.parents.iter().enumerate() {
                let _ = writeln!(stream, "{} :{}", if nth == 0 { "from" } else { "merge" }, parent + 1);
            }
            for (file, text) in [("build.sh", BUILD), ("version", commit.version)] {
                let _ = write!(stream, "M 100644 inline {file}\ndata {}\n{text}\n", text.len());
            }
        }
        let mut import = test.git_command(&["fast-import", "--quiet", "--force"]);
        let mut import = import.stdin(Stdio::piped()).spawn().unwrap();
        import.stdin.take().unwrap().write_all(stream.as_bytes()).unwrap();
        assert!(import.wait().unwrap().success());
        test.git(&["reset", "--quiet", "--hard", "main"]);
        test.git(&["remote", "add", "origin", "git@github.com:kubernetes/kubernetes.git"]);
        test
    }

    /// Forty commits: a branch of eight, whose fourth is bad, is merged as the 24th commit.
    fn with_a_branch() -> Self {
        let commit = |message: String, parents: &[usize], version| NewCommit {
            message,
            parents: parents.to_vec(),
            version,
        };
        let mut commits = vec![commit("main 1".to_owned(), &[], GOOD)];
        // Index of the last commit of the main branch.
        let mut main = 0;
        for number in 2..=15 {
            commits.push(commit(format!("main {number}"), &[main], GOOD));
            main = commits.len() - 1;
        }
        let mut branch = 9;
        for number in 1..=8 {
            let version = if number < 4 { GOOD } else { BAD };
            commits.push(commit(format!("branch {number}"), &[branch], version));
            branch = commits.len() - 1;
        }
        let message = "Merge pull request #12345 from author/branch\n\nRank by usage".to_owned();
        commits.push(commit(message, &[main, branch], BAD));
        for number in 17..=32 {
            commits.push(commit(format!("main {number}"), &[commits.len() - 1], BAD));
        }
        assert_eq!(commits.len(), 40);
        Self::new(&commits)
    }

    /// Commits in a row with these versions; `change N`, or the message of a squashed pull request.
    fn in_a_row(versions: &[&'static str]) -> Self {
        let commit = |(index, version): (usize, &&'static str)| NewCommit {
            message: format!("change {index} (#{})", 100 + index),
            parents: index.checked_sub(1).into_iter().collect(),
            version,
        };
        Self::new(&versions.iter().enumerate().map(commit).collect::<Vec<_>>())
    }

    fn repository(&self) -> PathBuf {
        self.folder.path().join("kubernetes")
    }

    fn git_command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("git");
        command.current_dir(self.repository()).args(arguments);
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
        command
    }

    fn git(&self, arguments: &[&str]) -> String {
        let output = self.git_command(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_evictlab"));
        command.current_dir(self.folder.path()).arg("bisect").args(arguments);
        command.env_remove("EVICTLAB_CASES").env_remove("ARTIFACTS_DIR").env_remove("EVICTLAB_PROFILE");
        command.env("EVICTLAB_CACHE_DIR", self.folder.path().join("cache"));
        command.env("BUILD_LOG", self.build_log()).env("BUILD_HOLD_FROM", "4");
        command.env("BUILD_HOLD", self.hold());
        command
    }

    /// Exit status and output of a search on the model.
    fn bisect(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let output = self.command(&[&SEARCH[..], arguments].concat()).output().unwrap();
        let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        (output.status.code(), text.concat())
    }

    /// Result of a search as JSON, with its exit status.
    fn json(&self, arguments: &[&str]) -> (Option<i32>, Value) {
        let (status, text) = self.bisect(&[arguments, &["--json"]].concat());
        (status, parse("bisect-git", text))
    }

    fn build_log(&self) -> PathBuf {
        self.folder.path().join("build.log")
    }

    fn hold(&self) -> PathBuf {
        self.folder.path().join("hold")
    }

    /// Subjects of the commits that were built, in order.
    fn builds(&self) -> Vec<String> {
        let log = fs::read_to_string(self.build_log()).unwrap_or_default();
        log.lines().map(str::to_owned).collect()
    }

    /// Starts a search whose fourth build waits, and returns in that build.
    fn search_until_the_fourth_build(&self) -> Child {
        fs::write(self.hold(), "").unwrap();
        let mut command = self.command(&[&SEARCH[..], &ENDS].concat());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let began = Instant::now();
        while self.builds().len() < 4 {
            assert!(child.try_wait().unwrap().is_none(), "the search has ended");
            assert!(began.elapsed() < Duration::from_secs(300), "no fourth build");
            std::thread::sleep(Duration::from_millis(20));
        }
        child
    }
}

/// Exit status and standard error of a process; `None` if it does not end in a time that no machine
/// needs.
fn end_within_limits(mut child: Child) -> (Option<i32>, String) {
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if began.elapsed() > Duration::from_secs(120) {
            child.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let output = child.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

const SEARCH: [&str; 8] = [
    "sidecars-are-named",
    "--backend",
    "embedded",
    "--git",
    "kubernetes",
    "--build",
    "sh build.sh",
    "--quiet",
];
const ENDS: [&str; 4] = ["--good", "main~31", "--bad", "main"];

#[test]
fn finds_a_commit_of_a_branch_with_few_builds() {
    let test = BisectTest::with_a_branch();
    // The checkout of the user, with a hook.
    fs::write(test.repository().join("version"), "changed").unwrap();
    let hook = test.repository().join(".git/hooks/post-checkout");
    fs::write(&hook, "#!/bin/sh\ntouch \"$BUILD_LOG.hook\"\n").unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    let state = |test: &BisectTest| {
        (
            test.git(&["status", "--porcelain"]),
            test.git(&["rev-parse", "HEAD"]),
            test.git(&["worktree", "list"]),
        )
    };
    let before = state(&test);
    let (status, text) = test.bisect(&ENDS);
    assert_eq!(status, Some(0), "{text}");
    let culprit = test.git(&["log", "--all", "--format=%H", "--grep=^branch 4$"]);
    let culprit = culprit.trim();
    for part in [
        &format!("**{}** is the first commit on which message/sidecars-are-named is bad.", &culprit[..12]),
        &format!("- commit: {culprit}\n- subject: `branch 4`\n- author: `A. Author`, 2025-10-09T"),
        "- pull request: https://github.com/kubernetes/kubernetes/pull/12345\n",
        "38 commits left, about 6 steps: ",
        "Confidence: ",
        "The kubelets were modelled by the versions that they report",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let run = test.folder.path().join("results/latest/artifacts").join(&culprit[..12]);
    let events = fs::read_to_string(run.join("artifacts/events.jsonl")).unwrap();
    let on_kind = "evictlab bisect sidecars-are-named --good 'main~31' --bad main --git kubernetes --build 'sh build.sh' --kubelet-path _output/bin/kubelet --repeat 1 --bad-if any --backend kind";
    assert!(events.contains(on_kind), "{events}");
    // Both ends, and the logarithm of the 38 commits between them.
    let builds = test.builds();
    assert!(builds.len() <= 2 + 6, "{builds:?}");
    assert_eq!(state(&test), before);
    assert_eq!(fs::read_to_string(test.repository().join("version")).unwrap(), "changed");
    assert!(!test.folder.path().join("build.log.hook").exists(), "a hook of the user was run");
    assert!(!test.folder.path().join("results/latest/worktree").exists());
    // The second search finds the kubelets in the cache.
    let (status, json) = test.json(&ENDS);
    assert_eq!((status, &json["outcome"], &json["builds"]), (Some(0), &"found".into(), &0.into()), "{json}");
    assert_eq!(json["culprit"]["commit"], culprit);
    assert_eq!(test.builds(), builds);
    let (status, json) = test.json(&[&ENDS[..], &["--first-parent"]].concat());
    assert_eq!(status, Some(0), "{json}");
    assert_eq!(json["culprit"]["subject"], "Merge pull request #12345 from author/branch");
}

#[test]
fn skips_commits_that_do_not_build() {
    let mut versions = vec![GOOD; 9];
    versions.extend([BAD; 31]);
    for broken in &mut versions[12..28] {
        *broken = BROKEN;
    }
    let test = BisectTest::in_a_row(&versions);
    let ends = ["--good", "main~39", "--bad", "main"];
    let (status, json) = test.json(&ends);
    assert_eq!((status, &json["culprit"]["subject"]), (Some(0), &"change 9 (#109)".into()), "{json}");
    assert_eq!(json["culprit"]["pullRequest"], "https://github.com/kubernetes/kubernetes/pull/109");
    let not_built = |json: &Value| {
        let tested = json["tested"].as_array().unwrap();
        tested.iter().filter_map(|tested| tested["result"]["not-built"].as_str()).map(str::to_owned).collect()
    };
    let skipped: Vec<String> = not_built(&json);
    assert!(!skipped.is_empty() && skipped.len() <= 6, "{skipped:?}");
    let reason = "the build ended with exit status: 2: undefined: evictionMessage";
    assert!(skipped.iter().all(|skipped| skipped == reason), "{skipped:?}");
    // The first bad commit is among those that do not build.
    let test = BisectTest::in_a_row(&[GOOD, GOOD, BROKEN, BROKEN, BAD, BAD]);
    let ends = ["--good", "main~5", "--bad", "main"];
    let (status, text) = test.bisect(&ends);
    assert_eq!(status, Some(3), "{text}");
    assert!(
        text.contains("is one of **") && text.contains("all of them but the last were skipped"),
        "{text}"
    );
    let (_, json) = test.json(&ends);
    let candidates: Vec<&str> =
        json["commits"].as_array().unwrap().iter().map(|id| id.as_str().unwrap()).collect();
    let of = |revision: &str| test.git(&["rev-parse", revision]).trim().to_owned();
    assert_eq!(candidates.last(), Some(&of("main~1").as_str()));
    let mut sorted = candidates[..2].to_vec();
    sorted.sort_unstable();
    let mut expected = [of("main~2"), of("main~3")];
    expected.sort();
    assert_eq!(sorted, expected);
}

#[test]
fn finds_the_first_good_commit_and_checks_the_ends() {
    let test = BisectTest::in_a_row(&[BAD, BAD, BAD, GOOD, GOOD]);
    let (status, json) = test.json(&["--bad", "main~4", "--good", "main"]);
    assert_eq!((status, &json["culprit"]["subject"]), (Some(0), &"change 3 (#103)".into()), "{json}");
    let (status, text) = test.bisect(&["--good", "main~4", "--bad", "main~2"]);
    assert_eq!(status, Some(1), "{text}");
    assert!(text.contains("was given as good and is bad: no search is possible between"), "{text}");
    let test = BisectTest::in_a_row(&[GOOD, BAD, BROKEN]);
    let (status, text) = test.bisect(&["--good", "main~2", "--bad", "main"]);
    assert_eq!(status, Some(3), "{text}");
    assert!(text.contains("was skipped: no search is possible between"), "{text}");
}

#[test]
fn an_interrupted_search_continues() {
    let test = BisectTest::with_a_branch();
    let child = test.search_until_the_fourth_build();
    let second = test.command(&[&SEARCH[..], &ENDS, &["--resume"]].concat()).stderr(Stdio::piped()).spawn();
    let (status, text) = end_within_limits(second.unwrap());
    assert_eq!(status, Some(2), "{text}");
    assert!(text.contains("another process continues its search"), "{text}");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{stderr}");
    assert!(stderr.contains("repeat the command with --resume=results/"), "{stderr}");
    let interrupted = test.builds();
    let file = fs::read_to_string(test.folder.path().join("results/latest/bisect.json")).unwrap();
    let file = parse("bisect.json", file);
    assert_eq!(file["tested"].as_array().unwrap().len(), 3, "{file}");
    fs::remove_file(test.hold()).unwrap();
    // Kubelets of the cache would hide that a commit is tested again.
    fs::remove_dir_all(test.folder.path().join("cache")).unwrap();
    let (status, text) = test.bisect(&[&ENDS[..], &["--resume", "--repeat", "2"]].concat());
    assert_eq!(status, Some(2), "{text}");
    assert!(text.contains("its search has another tries, 1"), "{text}");
    let (status, json) = test.json(&[&ENDS[..], &["--resume"]].concat());
    assert_eq!((status, &json["culprit"]["subject"]), (Some(0), &"branch 4".into()), "{json}");
    let builds = test.builds();
    // Only the interrupted build is repeated.
    assert_eq!(builds[..5], [&interrupted[..], &interrupted[3..]].concat());
    let mut distinct = builds.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), builds.len() - 1, "{builds:?}");
    assert_eq!(json["tested"].as_array().unwrap().len(), distinct.len(), "{json}");
}

/// The directory of a search may be untrusted: git and evictlab run no command that it names,
/// and write no file elsewhere.
#[test]
fn the_directory_of_a_search_runs_no_command_and_writes_nothing_elsewhere() {
    let test = BisectTest::with_a_branch();
    let child = test.search_until_the_fourth_build();
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    child.wait_with_output().unwrap();
    fs::remove_file(test.hold()).unwrap();
    let root = test.folder.path();
    let dir = root.join("results/latest").canonicalize().unwrap();
    let resume = || test.bisect(&[&ENDS[..], &["--resume"]].concat());

    // An id of a commit that is an option of git.
    let victim = root.join("victim");
    fs::write(&victim, "mine").unwrap();
    let file = fs::read_to_string(dir.join("bisect.json")).unwrap();
    let mut search: Value = serde_json::from_str(&file).unwrap();
    search["tested"][0]["commit"] = format!("--output={}", victim.display()).into();
    fs::write(dir.join("bisect.json"), search.to_string()).unwrap();
    let (status, text) = resume();
    assert!(status == Some(2) && text.contains("for the id of a commit"), "{text}");
    fs::write(dir.join("bisect.json"), file).unwrap();

    // A worktree of a repository in the directory, whose configuration names a command.
    let (inner, ran) = (dir.join("inner"), root.join("ran"));
    test.git(&["clone", "--quiet", "--bare", ".", inner.to_str().unwrap()]);
    let monitor = format!("touch {}; false", ran.display());
    test.git(&["-C", inner.to_str().unwrap(), "config", "core.fsmonitor", &monitor]);
    test.git(&["-C", inner.to_str().unwrap(), "config", "core.bare", "false"]);
    fs::remove_dir_all(dir.join("worktree")).unwrap();
    fs::create_dir(dir.join("worktree")).unwrap();
    fs::write(dir.join("worktree/.git"), format!("gitdir: {}\n", inner.display())).unwrap();
    let (status, text) = resume();
    assert_eq!(status, Some(0), "{text}");
    assert!(!ran.exists(), "{text}");
    assert_eq!(fs::read_to_string(&victim).unwrap(), "mine");
}

#[test]
fn a_search_continues_after_a_kill_when_the_last_build_has_ended() {
    let test = BisectTest::with_a_branch();
    let mut child = test.search_until_the_fourth_build();
    kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
    child.wait().unwrap();
    // A killed git leaves its lock.
    fs::write(test.repository().join(".git/worktrees/worktree/index.lock"), "").unwrap();
    let mut command = test.command(&[&SEARCH[..], &ENDS, &["--resume"]].concat());
    // In a job of Prow, the variable has the same value in every command.
    command.env("ARTIFACTS_DIR", test.folder.path().join("artifacts"));
    let mut resumed = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(resumed.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.starts_with("building, output in ")), "no build");
    // It waits for the build of the killed process. One that does not wait overlaps with it by now.
    std::thread::sleep(Duration::from_secs(1));
    fs::remove_file(test.hold()).unwrap();
    let text = lines.collect::<Vec<_>>().join("\n");
    assert_eq!(resumed.wait().unwrap().code(), Some(0), "{text}");
    assert!(text.contains("- subject: `branch 4`\n"), "{text}");
    let builds = test.builds();
    assert!(builds.iter().all(|build| build != "overlap"), "{builds:?}");
    assert_eq!(builds[3], builds[4], "the build of the killed process does not count");
}

/// A case whose tries differ on some kubelets, by the random uid of its pod.
fn unsteady_case(other_kubelets: &str) -> String {
    format!(
        "
name: unsteady
about: A try is bad or good by chance before 1.32.
pods: [{{metadata: {{name: p}}, spec: {{containers: [{{name: c, image: pause}}]}}}}]
until: t > 5.0
expect:
  evicted: []
  that:
    - {{what: the uid is low, value: created.p.metadata.uid, matches: '^[0-7]', kubelet: '<1.32'}}
    - {{what: the name, value: created.p.metadata.name, is: {other_kubelets}, kubelet: '>=1.32'}}
"
    )
}

#[test]
fn tries_decide_a_case_that_is_bad_sometimes() {
    let test = BisectTest::in_a_row(&[GOOD, GOOD, GOOD, BAD, BAD, BAD]);
    fs::create_dir(test.folder.path().join("mine")).unwrap();
    let search = |case: &str, arguments: &[&str]| {
        fs::write(test.folder.path().join("mine/unsteady.yaml"), case).unwrap();
        let words = [&["mine/unsteady.yaml"], &SEARCH[1..], &["--tries", "8", "--json"], arguments].concat();
        let output = test.command(&words).output().unwrap();
        let stdout = String::from_utf8(output.stdout).unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        let json: Value =
            serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stdout}{stderr}"));
        (output.status.code(), json)
    };
    // Never bad on the old commits, sometimes on the new ones.
    let good_before = unsteady_case("p");
    let ends = ["--good", "main~5", "--bad", "main"];
    let (status, json) = search(&good_before, &ends);
    assert_eq!((status, &json["culprit"]["subject"]), (Some(0), &"change 3 (#103)".into()), "{json}");
    let tries = &json["tested"][0]["result"]["conclusive"]["tries"];
    let (good, bad) = (tries["good"].as_u64().unwrap(), tries["bad"].as_u64().unwrap());
    assert!(good > 0 && bad > 0 && good + bad == 8, "{tries}");
    // The formula in the guide, from the tries of the bad commits.
    let confidence = &json["confidence"];
    let of_bad = json["tested"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|tested| tested["result"]["conclusive"]["term"] == "bad");
    let of_bad = of_bad.count() as u64;
    assert_eq!(
        (&confidence["tries"], &confidence["agreeing"]),
        (&(of_bad * 8).into(), &(of_bad * bad).into())
    );
    let rate = (of_bad * bad + 1) as f64 / (of_bad * 8 + 2) as f64;
    let expected = 1.0 - (1.0 - rate).powi(8);
    assert!((confidence["confidence"].as_f64().unwrap() - expected).abs() < 1e-9, "{confidence}");
    let (status, json) = search(&good_before, &[&ends[..], &["--bad-if", "all"]].concat());
    assert_eq!((status, &json["outcome"]), (Some(1), &"end-mismatch".into()), "{json}");
    // Sometimes bad on the new commits, always on the old ones.
    let bad_before = unsteady_case("q");
    let ends = ["--bad", "main~5", "--good", "main"];
    let (status, json) = search(&bad_before, &[&ends[..], &["--bad-if", "all"]].concat());
    assert_eq!((status, &json["culprit"]["subject"]), (Some(0), &"change 3 (#103)".into()), "{json}");
    let (status, json) = search(&bad_before, &ends);
    assert_eq!((status, &json["outcome"]), (Some(1), &"end-mismatch".into()), "{json}");
}

#[test]
fn rejects_invalid_input_before_the_search() {
    let test = BisectTest::with_a_branch();
    let base = test.git(&["rev-parse", "--short=12", "main~22"]);
    let help = format!(
        "neither is an ancestor of the other\nhelp: search from the commit where their branches parted: --good {}",
        base.trim()
    );
    let rows: [(&[&str], &str); 8] = [
        (&["--good", "v9", "--bad", "main"], "failed to find revision v9 in "),
        (&["--good=--all", "--bad", "main"], "failed to find revision --all in "),
        (&["--good", "main", "--bad", "HEAD"], "failed to search: --good and --bad are both "),
        (&["--good", "main~17", "--bad", "main~16^2"], &help),
        (&["--good", "main~31", "--bad", "main", "--kubelet", "v1.32"], "cannot be used with"),
        (
            &["--good", "main~31", "--bad", "main", "--kubelet-path", "../kubelet"],
            "it is not in the worktree",
        ),
        (&["--good", "main~31", "--bad", "main", "--repeat", "0"], "0 is not in 1..=1000"),
        (
            &["--good", "main~31", "--bad", "main", "--resume=nowhere"],
            "failed to resume nowhere: it has no bisect.json",
        ),
    ];
    for (arguments, why) in rows {
        let (status, text) = test.bisect(arguments);
        assert_eq!(status, Some(2), "{text}");
        assert!(text.contains(why), "{why}\n{text}");
    }
    let ends = ["sidecars-are-named", "--good", "v1.31", "--bad", "v1.32"];
    for (arguments, why) in [
        (&["--build", "make"][..], "--git <DIR>"),
        (&["--git", "nowhere"], "failed to open git repository nowhere: it is not a directory"),
        (&["--git", "."], "failed to open git repository .: fatal: not a git repository"),
    ] {
        let mut command = test.command(&[&ends, &["--backend", "embedded"][..], arguments].concat());
        let output = command.env("GIT_CEILING_DIRECTORIES", test.folder.path()).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(why), "{why}\n{stderr}");
    }
    let mut without_git = test.command(&[&SEARCH[..], &ENDS].concat());
    let output = without_git.env("PATH", test.folder.path()).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("failed to run git: it is not installed"), "{stderr}");
    assert!(test.builds().is_empty() && !test.folder.path().join("results").exists());
}

#[test]
fn names_the_log_if_neither_end_builds() {
    let test = BisectTest::in_a_row(&[GOOD, BAD]);
    let ends = ["--good", "main~1", "--bad", "main"];
    let (status, text) = test.bisect(&[&ends[..], &["--kubelet-path", "kubelet"]].concat());
    assert_eq!(status, Some(2), "{text}");
    let reason = "the build wrote no kubelet: kubelet does not exist\nhelp: check --build and --kubelet-path; the output of the builds is in results/";
    assert!(text.contains(reason), "{text}");
}
