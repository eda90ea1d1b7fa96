//! Commands that run a case again.

use std::fmt::Write;

use crate::backend_name::BackendName;
use crate::run_event::CaseId;
use crate::run_state::RunState;
use crate::text::{STDIN, code_block, evictlab_command};

/// Writes the commands that run one case again, as a block of code.
pub(crate) fn write_repro_commands(text: &mut String, state: &RunState, id: &CaseId) {
    let backend = state.run.as_ref().map_or(BackendName::Kind, |run| run.backend);
    let mut commands = command(state, id, backend);
    if let Some(model) = state.model() {
        let gap = if model.options.is_empty() { "" } else { " " };
        let on_kind = command(state, id, BackendName::Kind);
        let _ = write!(commands, "{gap}{}\n# on a real kubelet\n{on_kind}", model.options);
    }
    let _ = writeln!(text, "\nTo reproduce:\n\n{}", code_block("sh", &commands));
}

/// Returns the command for a backend. The events may be those of another user, and the command is
/// meant to be pasted: each text of them is one quoted word, and none is an option.
fn command(state: &RunState, id: &CaseId, backend: BackendName) -> String {
    let path = state.case_info(id).and_then(|info| info.path.clone());
    let case = path.unwrap_or_else(|| id.suite_and_case());
    let argument = state.run.as_ref().and_then(|run| run.kubelet_arg(&id.kubelet));
    let kubelet = match argument.as_ref().unwrap_or(&id.kubelet) {
        option if option.starts_with('-') => vec![format!("--kubelet={option}")],
        argument => vec!["--kubelet".to_owned(), argument.clone()],
    };
    let mut words: Vec<&str> = vec!["evictlab", "run"];
    let is_option = case.starts_with('-') && case != STDIN;
    words.extend((!is_option).then_some(&*case));
    words.extend(["--backend", backend.as_str()]);
    // The nodes of an existing cluster have their kubelets.
    if backend != BackendName::Existing {
        words.extend(kubelet.iter().map(String::as_str));
    }
    words.extend(is_option.then_some(["--", &case]).into_iter().flatten());
    evictlab_command(&words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RunEventKind, fixtures};

    /// Changes the backend, the arguments of kubelets and the path of the case.
    type Change = fn(&mut RunEventKind);

    #[test]
    fn commands_select_the_case_and_its_kubelet() {
        let rows: [(Change, &str); 6] = [
            (|_| {}, "message/mine --backend kind --kubelet v1.32.13"),
            (
                |start| {
                    let RunEventKind::RunStarted { cases, .. } = start else { unreachable!("it started") };
                    cases[0].path = Some("to report/mine.yaml".to_owned());
                },
                "'to report/mine.yaml' --backend kind --kubelet v1.32.13",
            ),
            (
                |start| {
                    let RunEventKind::RunStarted { kubelet_args, .. } = start else {
                        unreachable!("it started")
                    };
                    kubelet_args.insert("v1.32.13".to_owned(), "v1.32.13=./my kubelet".to_owned());
                },
                "message/mine --backend kind --kubelet 'v1.32.13=./my kubelet'",
            ),
            (
                |start| {
                    let RunEventKind::RunStarted { backend, .. } = start else { unreachable!("it started") };
                    *backend = BackendName::Existing;
                },
                "message/mine --backend existing",
            ),
            (
                |start| {
                    let RunEventKind::RunStarted { cases, kubelet_args, .. } = start else {
                        unreachable!("it started")
                    };
                    cases[0].path = Some("--record=/home".to_owned());
                    kubelet_args.insert("v1.32.13".to_owned(), "--keep".to_owned());
                },
                "--backend kind --kubelet=--keep -- --record=/home",
            ),
            (
                |start| {
                    let RunEventKind::RunStarted { cases, .. } = start else { unreachable!("it started") };
                    cases[0].path = Some("-".to_owned());
                },
                "- --backend kind --kubelet v1.32.13 < case.yaml",
            ),
        ];
        for (change, arguments) in rows {
            let mut started = fixtures::run_started(&["v1.32.13"], &["mine"]);
            change(&mut started);
            let state = fixtures::state_after(&[fixtures::event(0.0, started)]);
            let mut text = String::new();
            write_repro_commands(&mut text, &state, &fixtures::id("message", "mine", "v1.32.13", 1));
            assert!(text.contains(&format!("\nevictlab run {arguments}\n")), "{text}");
        }
    }
}
