//! Checks of the results that `evictlab run --rerun-failed` reads: they may be untrusted.

use std::path::Path;

use evictlab_case::Name;
use evictlab_report::BackendName;
use evictlab_report::text::evictlab_command;

use crate::args::values::option_args;
use crate::failure::Failure;

/// Returns whether a text of results can only select a case of the suites, as `suite/case`: a path
/// of an existing file or directory would select the cases there.
pub(super) fn is_case_id(text: &str) -> bool {
    let is_name = |name: &str| name.parse::<Name>().is_ok();
    let parts = text.split_once('/').filter(|(suite, _)| !suite.is_empty() && !suite.starts_with('.'));
    parts.is_some_and(|(_, case)| is_name(case)) && !Path::new(text).exists()
}

/// Returns the error of results in `dir` that name files, programs or images, with the command that
/// runs them.
pub(super) fn untrusted_run(
    dir: &Path,
    backend: BackendName,
    kubelets: &[String],
    [cases, paths]: [Vec<String>; 2],
) -> Failure {
    let named = [&paths, kubelets].concat().join(", ");
    let mut words = ["evictlab", "run", "--backend", backend.as_str()].map(str::to_owned).to_vec();
    words.extend(kubelets.iter().flat_map(|kubelet| option_args("--kubelet", kubelet)));
    words.push("--".to_owned());
    words.extend(cases.into_iter().chain(paths));
    Failure::bad_input(format_args!(
        "failed to run the cases of {} again: its results name files, programs or images, which --rerun-failed does not use: {named}\nhelp: if these are yours, repeat the options of that run: {}",
        dir.display(),
        evictlab_command(&words)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_cases_of_suites_are_selected() {
        for (text, expected) in [
            ("message/requests-decide", true),
            ("My_Suite/a", true),
            // This directory exists.
            ("src/commands", false),
            ("/etc", false),
            ("./a", false),
            ("../a", false),
            ("a/b/c", false),
            ("a/b.yaml", false),
            ("a", false),
            ("-", false),
        ] {
            assert_eq!(is_case_id(text), expected, "{text}");
        }
    }
}
