//! Shell scripts.

use std::time::Duration;

use crate::machine::types::OutputStream;
use crate::sim::SimTime;
use crate::{CgroupVersion, NodeOptions};

use super::lab::{Lab, options, sh, spec};

/// Runs a script; returns its output, with `|` for newlines, and its exit status.
fn run(script: &str) -> (String, Option<i32>) {
    let mut lab = Lab::script(script);
    lab.seconds(30);
    (lab.log("c").join("|"), lab.code("c"))
}

#[test]
fn scripts_print_and_exit_as_in_ash() {
    for (script, output, code) in [
        ("echo a b; exit 3", "a b", Some(3)),
        ("false", "", Some(1)),
        ("true && echo yes || echo no", "yes", Some(0)),
        ("false && echo yes || echo no", "no", Some(0)),
        ("if [ 1 -gt 2 ]; then echo a; elif [ x = x ]; then echo b; else echo c; fi", "b", Some(0)),
        ("if false; then echo a; fi", "", Some(0)),
        ("for i in 1 2 3; do echo $i; done", "1|2|3", Some(0)),
        ("i=0; while [ $i -lt 3 ]; do i=$(($i+1)); echo $i; done", "1|2|3", Some(0)),
        ("x=1; (x=2; echo $x); echo $x", "2|1", Some(0)),
        ("echo a > /f; echo b >> /f; while read l; do echo got $l; done < /f", "got a|got b", Some(0)),
        ("echo $(dd if=/dev/zero bs=1M count=3 status=none; echo end)", "end", Some(0)),
        ("x=$(echo inner; echo more); echo \"[$x]\"; echo [$x]", "[inner|more]|[inner more]", Some(0)),
        ("echo $(echo $(echo nested))", "nested", Some(0)),
        ("x=$(false); echo $?", "1", Some(0)),
        ("echo $((2+3*4)) $((7/2)) $((1<2)) $((-3 % 2)) $((!0 && 0))", "14 3 1 -1 0", Some(0)),
        ("echo $((1/0)); echo never", "sh: divide by zero", Some(2)),
        ("x=word; echo $((x+1)); echo never", "sh: arithmetic syntax error", Some(2)),
        ("printf '%s-%d\\n' a 1 b 2", "a-1|b-2", Some(0)),
        ("echo -n x; echo -e 'y\\tz'", "xy\tz", Some(0)),
        ("echo a > /tmp/f; echo b >> /tmp/f; cat /tmp/f; cat < /tmp/f", "a|b|a|b", Some(0)),
        ("echo 5 6 > /tmp/f; read a b < /tmp/f; echo $b $a", "6 5", Some(0)),
        (
            "mkdir -p /a/b; echo > /a/b/1; echo > /a/b/2; ls /a/b; [ -e /c ] || echo missing",
            "1|2|missing",
            Some(0),
        ),
        ("echo x > /nowhere/f; echo $?", "sh: can't create /nowhere/f: nonexistent directory|1", Some(0)),
        ("cat /missing; echo $?", "cat: can't open '/missing': No such file or directory|1", Some(0)),
        ("echo quoted \"a  b\" 'c  d' e\\ f", "quoted a  b c  d e f", Some(0)),
        ("sh -c 'echo inner; exit 7'; echo $?", "inner|7", Some(0)),
        ("echo a; # a comment\necho b", "a|b", Some(0)),
        ("exec sleep .1", "", Some(0)),
        ("x='a b'; for w in $x; do echo $w; done", "a|b", Some(0)),
        ("sleep 1 & wait $!; echo $?", "0", Some(0)),
        ("sh -c 'exit 5' & wait $!; echo $?", "5", Some(0)),
        ("if", "sh: syntax error", Some(2)),
        ("n=3; while [ \"$n\" -gt 0 ]; do n=$((n-1)); done; echo $n", "0", Some(0)),
        ("[ a = [ ] || echo brackets", "brackets", Some(0)),
        ("dd if=/dev/zero of=/dev/null bs=1 count=0 status=none; echo $?", "0", Some(0)),
    ] {
        assert_eq!(run(script), (output.to_owned(), code), "{script}");
    }
}

#[test]
fn unsupported_syntax_is_rejected_before_the_script_runs() {
    for (script, construct) in [
        ("echo never; case a in a) echo a;; esac", "`case`"),
        ("f() { echo a; }; f", "a function"),
        ("[[ a == a ]]", "`[[`"),
        ("((1 > 0))", "`((`"),
        ("for ((i=0; i<3; i++)); do echo $i; done", "`for ((`"),
        ("for i; do echo $i; done", "`for` without `in`"),
        ("until true; do echo a; done", "`until`"),
        ("cat <<EOF\nx\nEOF\n", "a here-document or `&>`"),
        ("cat <<< x", "a here-document or `&>`"),
        ("echo a &> /f", "a here-document or `&>`"),
        ("cat <(echo x)", "process substitution"),
        ("echo `echo a`", "a command substitution in backquotes"),
        ("echo ${x:2:3}", "this parameter expansion"),
        ("echo ${x:-default}", "this parameter expansion"),
        ("echo ${x%.gz}", "this parameter expansion"),
        ("echo ${x:?missing}", "this parameter expansion"),
        ("echo $1", "a positional parameter or array"),
        ("echo \"$@\"", "a positional parameter or array"),
        ("echo ~/f", "tilde expansion"),
        ("echo $'a'", "`$` before a quote"),
        ("ls /tmp/*", "pathname expansion"),
        ("for f in /tmp/?; do echo $f; done", "pathname expansion"),
        ("x+=a", "an array or `+=`"),
        ("IFS=,; read a b", "IFS"),
        ("echo a | cat", "a pipeline"),
        ("time true", "`time`"),
        ("! false", "`!`"),
        ("echo $(($(echo 1) + 1))", "an expansion other than a variable in arithmetic"),
    ] {
        let message = format!(
            "evictlab: this model does not run \"sh -c {script}\" ({construct}): the container idles"
        );
        assert_eq!(run(script), (message.trim_end().replace('\n', "|"), None), "{script}");
    }
}

#[test]
fn unsupported_expressions_and_options_are_reported() {
    for (script, output, code) in [
        ("x='*'; echo $x", "sh: pathname expansion is not supported by this model", Some(2)),
        ("echo $((i++))", "sh: this arithmetic expression is not supported by this model", Some(2)),
        ("echo $((2 ** 3))", "sh: this arithmetic operator is not supported by this model", Some(2)),
        ("trap 'echo bye' EXIT", "sh: a trap of EXIT is not supported by this model", Some(2)),
        ("trap 'case a in a) ;; esac' TERM", "sh: `case` is not supported by this model", Some(2)),
        ("wait %1", "sh: job control is not supported by this model", Some(2)),
        ("read -t 1 x", "sh: an option of `read` is not supported by this model", Some(2)),
        ("printf %x 7; echo $?", "sh: printf: %x is not supported by this model|2", Some(0)),
        ("[ a -nt b ]; echo $?", "sh: [: this operator is not supported by this model|2", Some(0)),
        ("ls -l /; echo $?", "ls: -l is not supported by this model|1", Some(0)),
        ("mkdir -m 700 /d; echo $?", "mkdir: -m is not supported by this model|1", Some(0)),
    ] {
        assert_eq!(run(script), (output.to_owned(), code), "{script}");
    }
}

#[test]
fn scripts_detect_the_cgroup_version() {
    for (cgroup, code) in [(CgroupVersion::V1, 1), (CgroupVersion::V2, 0)] {
        let mut lab = Lab::of(&NodeOptions { cgroup, ..options() });
        lab.start("c", sh("p", "[ -e /sys/fs/cgroup/cgroup.controllers ]"));
        lab.seconds(5);
        assert_eq!(lab.code("c"), Some(code), "{cgroup:?}");
    }
}

#[test]
fn unknown_commands_and_images_idle_and_report_that() {
    for (script, command) in [
        ("foo --bar; echo never", "\"foo --bar\""),
        ("set -e; echo never", "\"set -e\""),
        ("grep a /f; echo never", "\"grep a /f\""),
        ("/opt/tool x", "\"/opt/tool x\""),
        ("stress --vm 1 --vm-bytes 1G", "\"stress --vm 1 --vm-bytes 1G\""),
    ] {
        let (output, code) = run(script);
        assert_eq!(output, format!("evictlab: this model does not run {command}: the container idles"));
        assert_eq!(code, None);
    }
    let mut lab = Lab::new();
    lab.start("a", spec("p", &["nosuch"]));
    let mut unknown = spec("p", &[]);
    unknown.image = "nginx".to_owned();
    lab.start("b", unknown);
    lab.seconds(1);
    assert_eq!(lab.log("a"), ["evictlab: this model does not run \"nosuch\": the container idles"]);
    assert_eq!(lab.log("b"), ["evictlab: this model does not run the image \"nginx\": the container idles"]);
    assert_eq!(lab.exit("a"), None);
}

#[test]
fn sleep_accepts_units() {
    for (time, millis) in [("2", 2000), ("2s", 2000), (".1", 100), ("0.5", 500), ("1m", 60_000)] {
        let mut lab = Lab::new();
        lab.start("c", spec("p", &["sleep", time]));
        lab.seconds(100);
        let (code, _, at) = lab.exit("c").unwrap();
        assert_eq!((code, at), (0, SimTime::from_start(Duration::from_millis(millis + 1))), "{time}");
    }
    let mut lab = Lab::new();
    lab.start("c", spec("p", &["sleep", "infinity"]));
    lab.seconds(100_000);
    assert_eq!(lab.code("c"), None);
}

#[test]
fn sleep_rejects_wrong_operands() {
    for (script, output) in
        [("sleep; echo $?", "Usage: sleep [N]...|1"), ("sleep 1 x 2; echo $?", "sleep: invalid number 'x'|1")]
    {
        assert_eq!(run(script), (output.to_owned(), Some(0)), "{script}");
    }
}

#[test]
fn init_without_a_handler_ignores_sigterm() {
    for command in [vec!["sleep", "infinity"], vec!["sh", "-c", "sleep infinity"]] {
        let mut lab = Lab::new();
        lab.start("c", spec("p", &command));
        lab.seconds(1);
        lab.term("c");
        lab.seconds(30);
        assert_eq!(lab.code("c"), None, "{command:?}");
        lab.machine.signal("c", crate::machine::SIGKILL, lab.now);
        lab.seconds(1);
        assert_eq!(lab.code("c"), Some(137), "{command:?}");
    }
}

#[test]
fn traps_run_after_the_foreground_command_or_during_wait() {
    // `wait` returns immediately.
    let mut lab = Lab::script("trap 'echo got SIGTERM; sleep 1; exit 0' TERM; sleep infinity & wait");
    lab.seconds(5);
    lab.term("c");
    lab.seconds(5);
    let (code, _, at) = lab.exit("c").unwrap();
    assert_eq!((code, lab.log("c")), (0, vec!["got SIGTERM".to_owned()]));
    assert_eq!(at.since_start().as_secs(), 6);

    // The action runs after the foreground command.
    let mut lab = Lab::script("trap 'echo TERM' TERM; while true; do sleep 4; done");
    lab.seconds(5);
    lab.term("c");
    lab.seconds(2);
    assert!(lab.log("c").is_empty());
    lab.seconds(2);
    assert_eq!(lab.log("c"), ["TERM"]);
    assert_eq!(lab.code("c"), None);

    // An ignored signal has no effect.
    let mut lab = Lab::script("trap '' TERM; sleep 3; echo done");
    lab.seconds(1);
    lab.term("c");
    lab.seconds(5);
    assert_eq!((lab.log("c"), lab.code("c")), (vec!["done".to_owned()], Some(0)));
}

#[test]
fn exit_of_the_first_process_kills_the_others() {
    let mut lab = Lab::script("sleep 100 & sleep 100 & exit 5");
    lab.seconds(1);
    assert_eq!((lab.code("c"), lab.processes("c")), (Some(5), 0));
}

#[test]
fn loops_without_sleep_take_cpu_time() {
    let mut lab = Lab::script("while true; do :; done");
    lab.seconds(20);
    assert_eq!(lab.code("c"), None);
    let mut lab = Lab::script("i=0; while true; do mkdir /tmp/f$i; i=$((i+1)); done");
    lab.seconds(2);
    let inodes = lab.machine.layer("c").inodes;
    assert!((1000..3000).contains(&inodes), "{inodes} files in two seconds");
}

#[test]
fn runs_the_loops_of_upstreams_tests() {
    let mut lab = Lab::script(
        "i=0; while [ $i -lt 5000 ]; do dd if=/dev/urandom of=/tmp/file${i} bs=1048576 count=1 2>/dev/null; sleep .1; \
         i=$(($i+1)); done; while true; do sleep 5; done",
    );
    lab.seconds(100);
    let written = lab.machine.layer("c").bytes >> 20;
    assert!((850..1000).contains(&written), "{written} MiB in 100 s");
    assert!(lab.log("c").is_empty());
}

#[test]
fn too_long_values_end_a_script() {
    let (output, code) = run("a=x; while true; do a=$a$a; done");
    assert_eq!((output.as_str(), code), ("sh: a: value exceeds the model's limit of 1 MiB", Some(2)));
}

#[test]
fn log_lines_have_their_stream() {
    let mut lab = Lab::new();
    lab.start("c", sh("p", "echo out; echo err >&2; { echo both; echo x >&2; } 2>&1; sleep 1"));
    lab.seconds(2);
    let lines: Vec<(&str, OutputStream)> =
        lab.machine.log("c").iter().map(|line| (line.text.as_str(), line.stream)).collect();
    let (stdout, stderr) = (OutputStream::Stdout, OutputStream::Stderr);
    assert_eq!(lines, [("out", stdout), ("err", stderr), ("both", stdout), ("x", stdout)]);
}
