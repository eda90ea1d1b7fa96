//! Commands in running containers.

use crate::machine::{ExecError, ExecResult};

use super::lab::{Lab, MIB, sh, spec};

fn exec(lab: &mut Lab, id: &str, command: &[&str]) -> Result<Option<ExecResult>, ExecError> {
    let command: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
    let exec = lab.machine.exec(id, &command, lab.now)?;
    lab.seconds(3);
    Ok(lab.machine.take_exec(exec))
}

#[test]
fn a_command_has_its_own_output_and_exit_status() {
    let mut lab = Lab::script("echo first; sleep 1000");
    lab.seconds(1);
    let result = exec(&mut lab, "c", &["sh", "-c", "echo out; echo err >&2; exit 7"]).unwrap().unwrap();
    assert_eq!(result, ExecResult { code: 7, stdout: b"out\n".to_vec(), stderr: b"err\n".to_vec() });
    assert_eq!(lab.log("c"), ["first"], "the log is that of the container's own processes");
    assert_eq!(lab.code("c"), None, "the container goes on");
}

#[test]
fn files_and_memory_of_a_command_are_those_of_the_container() {
    let mut lab = Lab::new();
    lab.start("c", spec("pod", &["/agnhost", "pause"]));
    lab.seconds(1);
    let before = (lab.memory("c").rss, lab.machine.layer("c").bytes);
    let script = "dd if=/dev/zero of=/f bs=1M count=25 2>/dev/null; /agnhost stress --mem-alloc-size 50Mi --mem-total 50Mi > /dev/null 2>&1 &";
    let result = exec(&mut lab, "c", &["sh", "-c", script]).unwrap().unwrap();
    assert_eq!(result.code, 0);
    assert!(lab.memory("c").rss >= before.0 + 50 * MIB, "the process outlives the command");
    assert!(lab.machine.layer("c").bytes >= before.1 + 25 * MIB);
}

#[test]
fn a_command_ends_with_its_container() {
    let mut lab = Lab::script("sleep 2; exit 3");
    lab.seconds(1);
    let result = exec(&mut lab, "c", &["sleep", "1000"]).unwrap().unwrap();
    assert_eq!((result.code, lab.code("c")), (137, Some(3)));
    assert_eq!(exec(&mut lab, "c", &["true"]), Err(ExecError::NotRunning));
}

#[test]
fn a_running_command_has_no_result() {
    let mut lab = Lab::new();
    lab.start("c", sh("pod", "sleep 1000"));
    lab.seconds(1);
    assert_eq!(exec(&mut lab, "c", &["sleep", "1000"]), Ok(None));
    assert_eq!(exec(&mut lab, "c", &["/no/such", "program"]), Err(ExecError::UnknownProgram));
    assert_eq!(exec(&mut lab, "d", &["true"]), Err(ExecError::NotRunning));
}

#[test]
fn output_beyond_64_kib_is_dropped() {
    let mut lab = Lab::script("sleep 1000");
    lab.seconds(1);
    let script = "echo start; /stress logs --total 1Mi --step 1Mi & sleep 1";
    let output = exec(&mut lab, "c", &["sh", "-c", script]).unwrap().unwrap().stdout;
    assert_eq!(output.len(), 64 << 10);
    let text = String::from_utf8(output).unwrap();
    assert!(text.starts_with("start\nxxx") && !text.contains('\0'));
    // The last line is cut.
    assert!(text.ends_with('x') && text.lines().count() > 60);
}
