//! Shell scripts, as the cases use them.

use std::time::Duration;

use evictlab_embedded::time::Time;
use evictlab_embedded::{CgroupVersion, NodeOptions};

use crate::lab::{Lab, options, sh, spec};

/// What a script says and with what it ends.
fn run(script: &str) -> (String, Option<i32>) {
    let mut lab = Lab::script(script);
    lab.seconds(30);
    (lab.log("c").join("|"), lab.code("c"))
}

#[test]
fn scripts_say_and_end_as_in_a_shell() {
    for (script, said, code) in [
        ("echo a b; exit 3", "a b", Some(3)),
        ("false", "", Some(1)),
        ("true && echo yes || echo no", "yes", Some(0)),
        ("false && echo yes || echo no", "no", Some(0)),
        ("! false && echo inverted", "inverted", Some(0)),
        ("if [ 1 -gt 2 ]; then echo a; elif [ x = x ]; then echo b; else echo c; fi", "b", Some(0)),
        ("if false; then echo a; fi", "", Some(0)),
        ("for i in 1 2 3; do echo $i; done", "1|2|3", Some(0)),
        ("for i in 1 2 3 4; do [ $i = 2 ] && continue; [ $i = 4 ] && break; echo $i; done", "1|3", Some(0)),
        ("i=0; while [ $i -lt 3 ]; do i=$(($i+1)); echo $i; done", "1|2|3", Some(0)),
        ("i=0; until [ $i -ge 2 ]; do i=$((i+1)); done; echo $i", "2", Some(0)),
        ("case abc in x*) echo x;; a*|b*) echo a;; esac", "a", Some(0)),
        ("case abc in x) echo x;; *) echo any;; esac", "any", Some(0)),
        ("f() { echo $1-$#; return 4; }; f one two; echo $?", "one-2|4", Some(0)),
        ("x=1; (x=2; echo $x); echo $x", "2|1", Some(0)),
        ("{ echo a; echo b; } | while read l; do echo got $l; done", "got a|got b", Some(0)),
        ("x=$(echo inner; echo more); echo \"[$x]\"; echo [$x]", "[inner|more]|[inner more]", Some(0)),
        ("echo `echo back`", "back", Some(0)),
        ("x=$(false); echo $?", "1", Some(0)),
        ("echo ${y:-default} ${HOME:+set} ${#z}", "default 0", Some(0)),
        (
            "p=/a/b.tar.gz; echo ${p##*/} ${p%.gz} ${p%%.*} ${p#/}",
            "b.tar.gz /a/b.tar /a/b a/b.tar.gz",
            Some(0),
        ),
        ("x=a.b.c; echo ${x:2:3}", "b.c", Some(0)),
        ("echo $((2+3*4)) $((7/2)) $((1<2)) $((x=5)) $x", "14 3 1 5 5", Some(0)),
        ("((3 > 2)) && echo bigger", "bigger", Some(0)),
        ("[[ abc == a* && -n x ]] && echo matched", "matched", Some(0)),
        ("printf '%s-%d\\n' a 1 b 2", "a-1|b-2", Some(0)),
        ("echo -n x; echo -e 'y\\tz'", "xy\tz", Some(0)),
        ("seq 3 | while read n; do echo $((n*n)); done", "1|4|9", Some(0)),
        ("i=$(expr 4 + 5); echo $i", "9", Some(0)),
        ("set -e; true; false; echo never", "", Some(1)),
        ("set -e; false || true; if false; then :; fi; echo here", "here", Some(0)),
        ("echo a > /tmp/f; echo b >> /tmp/f; cat /tmp/f; cat < /tmp/f | head -n 1", "a|b|a", Some(0)),
        ("echo 5 6 > /tmp/f; read a b < /tmp/f; echo $b $a", "6 5", Some(0)),
        ("cat <<EOF\nx $((1+1))\nEOF\n", "x 2", Some(0)),
        (
            "mkdir -p /a/b; touch /a/b/1 /a/b/2; for f in /a/b/*; do echo $f; done; rm -r /a; [ -e /a ] || echo gone",
            "/a/b/1|/a/b/2|gone",
            Some(0),
        ),
        ("echo x > /nowhere/f; echo $?", "sh: can't create /nowhere/f: nonexistent directory|1", Some(0)),
        ("cat /missing; echo $?", "cat: can't open '/missing': No such file or directory|1", Some(0)),
        ("echo quoted \"a  b\" 'c  d' e\\ f", "quoted a  b c  d e f", Some(0)),
        ("set -- a b c; shift; echo $# $1 \"$@\"", "2 b b c", Some(0)),
        ("eval 'x=5; echo $x'; echo after $x", "5|after 5", Some(0)),
        ("sh -c 'echo inner $0 $1; exit 7' zero one; echo $?", "inner zero one|7", Some(0)),
        ("echo a; # a comment\necho b", "a|b", Some(0)),
        ("exec sleep .1", "", Some(0)),
        ("x='a b'; for w in $x; do echo $w; done", "a|b", Some(0)),
        ("echo ${x:?missing}; echo never", "sh: x: missing", Some(2)),
        ("trap 'echo bye' EXIT; echo hi; exit 4", "hi|bye", Some(4)),
        ("sleep 1 & wait $!; echo $?", "0", Some(0)),
        ("sleep 100 & kill $!; wait $!; echo $?", "143", Some(0)),
        ("sleep 100 & kill -9 %1; wait %1; echo $?", "137", Some(0)),
        ("for ((i=0; i<3; i++)); do echo $i; done", "0|1|2", Some(0)),
        ("if", "sh: syntax error", Some(2)),
        ("echo 'a' | cat | cat", "a", Some(0)),
        ("yes | head -n 3", "y|y|y", Some(0)),
        ("cd /tmp; touch here; [ -f /tmp/here ] && pwd", "/tmp", Some(0)),
        ("n=3; while [ \"$n\" -gt 0 ]; do n=$((n-1)); done; echo $n", "0", Some(0)),
        ("head -c 5 /dev/zero | wc -c", "5", Some(0)),
        ("touch /tmp/a /tmp/b; ls /tmp | wc -l", "2", Some(0)),
        ("yes | head -c 21 | wc -l", "10", Some(0)),
        ("[ a = [ ] || echo brackets", "brackets", Some(0)),
        ("mkfifo /tmp/p; echo through > /tmp/p & cat /tmp/p", "through", Some(0)),
        ("dd if=/dev/zero of=/dev/null bs=1 count=0 status=none; echo $?", "0", Some(0)),
    ] {
        assert_eq!(run(script), (said.to_owned(), code), "{script}");
    }
}

#[test]
fn a_script_tells_the_kernels_cgroups() {
    for (cgroup, code) in [(CgroupVersion::V1, 1), (CgroupVersion::V2, 0)] {
        let mut lab = Lab::of(&NodeOptions { cgroup, ..options() });
        lab.start("c", sh("p", "[ -e /sys/fs/cgroup/cgroup.controllers ]"));
        lab.seconds(5);
        assert_eq!(lab.code("c"), Some(code), "{cgroup:?}");
    }
}

#[test]
fn what_is_not_understood_idles_and_says_so() {
    for (script, what) in [
        ("foo --bar; echo never", "\"foo --bar\""),
        ("cat <(echo x)", "\"sh -c cat <(echo x)\""),
        ("/opt/tool x", "\"/opt/tool x\""),
        ("stress --vm 1 --vm-bytes 1G", "\"stress --vm 1 --vm-bytes 1G\""),
    ] {
        let (said, code) = run(script);
        assert_eq!(said, format!("evictlab: this model does not run {what}: the container idles"));
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
fn sleep_understands_its_units() {
    for (time, millis) in [("2", 2000), ("2s", 2000), (".1", 100), ("0.5", 500), ("1m", 60_000)] {
        let mut lab = Lab::new();
        lab.start("c", spec("p", &["sleep", time]));
        lab.seconds(100);
        let (code, _, at) = lab.exit("c").unwrap();
        assert_eq!((code, at), (0, Time::after(Duration::from_millis(millis + 1))), "{time}");
    }
    let mut lab = Lab::new();
    lab.start("c", spec("p", &["sleep", "infinity"]));
    lab.seconds(100_000);
    assert_eq!(lab.code("c"), None);
}

#[test]
fn a_first_process_without_a_handler_ignores_the_end() {
    for command in
        [vec!["sleep", "infinity"], vec!["sh", "-c", "sleep infinity"], vec!["tail", "-f", "/dev/null"]]
    {
        let mut lab = Lab::new();
        lab.start("c", spec("p", &command));
        lab.seconds(1);
        lab.term("c");
        lab.seconds(30);
        assert_eq!(lab.code("c"), None, "{command:?}");
        lab.machine.signal("c", evictlab_embedded::machine::Signal::Kill, lab.now);
        lab.seconds(1);
        assert_eq!(lab.code("c"), Some(137), "{command:?}");
    }
}

#[test]
fn traps_run_when_the_foreground_ends_or_wait_returns() {
    // wait returns at once.
    let mut lab = Lab::script("trap 'echo got SIGTERM; sleep 1; exit 0' TERM; sleep infinity & wait");
    lab.seconds(5);
    lab.term("c");
    lab.seconds(5);
    let (code, _, at) = lab.exit("c").unwrap();
    assert_eq!((code, lab.log("c")), (0, vec!["got SIGTERM".to_owned()]));
    assert_eq!(at.since_start().as_secs(), 6);

    // A foreground command is waited for.
    let mut lab = Lab::script("trap 'echo TERM' TERM; while true; do sleep 4; done");
    lab.seconds(5);
    lab.term("c");
    lab.seconds(2);
    assert!(lab.log("c").is_empty());
    lab.seconds(2);
    assert_eq!(lab.log("c"), ["TERM"]);
    assert_eq!(lab.code("c"), None);

    // Ignored ones stay so.
    let mut lab = Lab::script("trap '' TERM; sleep 3; echo done");
    lab.seconds(1);
    lab.term("c");
    lab.seconds(5);
    assert_eq!((lab.log("c"), lab.code("c")), (vec!["done".to_owned()], Some(0)));
}

#[test]
fn the_first_process_takes_the_others_with_it() {
    let mut lab = Lab::script("sleep 100 & sleep 100 & exit 5");
    lab.seconds(1);
    assert_eq!((lab.code("c"), lab.processes("c")), (Some(5), 0));
}

#[test]
fn loops_without_sleep_take_time() {
    let mut lab = Lab::script("while true; do :; done");
    lab.seconds(20);
    assert_eq!(lab.code("c"), None);
    let mut lab = Lab::script("i=0; while true; do touch /tmp/f$i; i=$((i+1)); done");
    lab.seconds(2);
    let inodes = lab.machine.layer("c").inodes;
    assert!((1000..3000).contains(&inodes), "{inodes} files in two seconds");
}

#[test]
fn upstreams_loops_run() {
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
fn too_large_values_end_a_script() {
    let (said, code) = run("a=x; while true; do a=$a$a; done");
    assert_eq!((said.as_str(), code), ("sh: a: longer than this model keeps", Some(2)));
}

#[test]
fn output_goes_to_its_stream() {
    let mut lab = Lab::new();
    lab.start("c", sh("p", "echo out; echo err >&2; { echo both; echo x >&2; } 2>&1; sleep 1"));
    lab.seconds(2);
    let lines: Vec<(String, bool)> =
        lab.machine.log("c").iter().map(|line| (line.text.clone(), line.stderr)).collect();
    let expected = [("out", false), ("err", true), ("both", false), ("x", false)];
    assert_eq!(lines, expected.map(|(text, stderr)| (text.to_owned(), stderr)));
}
