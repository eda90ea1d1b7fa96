//! The options that a profile may state. The file may come from another user, as that of a cloned
//! repository: it permits nothing, runs no program and no image, writes only below its directory,
//! and does not choose a cluster or its nodes. An option that is not in a list is not allowed.

/// The values of an option that a profile may state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Permitted {
    /// All that the option has.
    All,
    /// Versions of kubelets, but no programs and images.
    Versions,
    /// Files and directories to write, below the directory of the file.
    PathsBelow,
}

use Permitted::{All, PathsBelow, Versions};

/// The options that a profile may state, by long name.
const ALLOWED: [(&str, Permitted); 71] = [
    ("after", Versions),
    ("all", All),
    ("architecture", All),
    ("backend", All),
    ("bad", Versions),
    ("bad-if", All),
    ("baseline", All),
    ("before", Versions),
    ("case", All),
    ("cases", All),
    ("cgroup", All),
    ("cluster", All),
    ("color", All),
    ("compare", All),
    ("defect", All),
    ("detach", All),
    ("dry-run", All),
    ("eviction-hard", All),
    ("eviction-pressure-transition-period", All),
    ("eviction-soft", All),
    ("eviction-soft-grace-period", All),
    ("evidence", All),
    ("exit-code", All),
    ("fail-fast", All),
    ("fault", All),
    ("first-parent", All),
    ("flaky-result", All),
    ("focus", All),
    ("format", All),
    ("full", All),
    ("good", Versions),
    ("history", All),
    ("indexes", All),
    ("interval", All),
    ("json", All),
    ("keep", All),
    ("keep-on-failure", All),
    ("kubelet", Versions),
    ("label-filter", All),
    ("name", All),
    ("namespace", All),
    ("no-wait", All),
    ("node-disk", All),
    ("node-memory", All),
    ("node-pids", All),
    ("nodes", All),
    ("nodes-per-version", All),
    ("once", All),
    ("output", PathsBelow),
    ("output-dir", PathsBelow),
    ("parallelism", All),
    ("pods", All),
    ("quiet", All),
    ("real-results", PathsBelow),
    ("recent", All),
    ("record", PathsBelow),
    ("repeat", All),
    ("retries", All),
    ("run", All),
    ("runs", All),
    ("seed", All),
    ("shard", All),
    ("signal", All),
    ("sizes", All),
    ("skip", All),
    ("target", All),
    ("timeout", All),
    ("until-failure", All),
    ("upstream", All),
    ("verbose", All),
    ("write-baseline", PathsBelow),
];

/// Options that only the command line can state, with the reason.
const COMMAND_LINE_ONLY: [(&str, &str); 31] = [
    ("allow-control-plane", PERMISSION),
    ("allow-disruption", PERMISSION),
    ("allow-other-pods", PERMISSION),
    ("allow-privileged", PERMISSION),
    ("apply", "changes a cluster"),
    ("build", "runs a command on this machine"),
    ("checkout", "selects a directory of this machine"),
    ("context", "selects a cluster"),
    ("force", PERMISSION),
    ("from", "selects the images of nodes"),
    ("git", "runs the build of a repository on this machine"),
    ("image", "selects an image"),
    ("image-lock", "selects images"),
    ("keep-runs", "deletes runs"),
    ("kept", PERMISSION),
    ("kind-config", "can mount files of this machine"),
    // A kubeconfig can also name a command that returns credentials.
    ("kubeconfig", "selects a cluster"),
    ("kubelet-path", "selects a program"),
    ("max-starved-nodes", PERMISSION),
    ("metrics", "opens a port of this machine"),
    ("node-image", "selects an image"),
    ("node-selector", "selects nodes of a cluster"),
    ("pressure-cap", PERMISSION),
    ("priority-class", "can preempt pods of others"),
    ("rerun-failed", "selects a run"),
    ("results", "deletes runs"),
    ("resume", "selects a run"),
    ("termination-message", "selects a file of this machine"),
    ("timelines", "selects files of this machine"),
    ("tolerate", "selects nodes of a cluster"),
    ("verdicts", "selects files of this machine"),
];

const PERMISSION: &str = "is a permission";

/// Returns the values of an option, by its long name, that a profile may state; `None` if it cannot
/// state the option.
pub(super) fn allowed_values(long: &str) -> Option<Permitted> {
    ALLOWED.iter().find(|(name, _)| *name == long).map(|(_, values)| *values)
}

/// Returns the reason why only the command line can state an option.
pub(super) fn command_line_only(long: &str) -> Option<&'static str> {
    COMMAND_LINE_ONLY.iter().find(|(name, _)| *name == long).map(|(_, reason)| *reason)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::{Command, CommandFactory};

    use super::*;

    /// Options that concern the profile itself, and those of clap.
    const EXCLUDED: [&str; 3] = ["help", "profile", "version"];

    fn options(command: &Command) -> BTreeSet<String> {
        let own = command.get_arguments().filter_map(|arg| arg.get_long().map(str::to_owned));
        own.chain(command.get_subcommands().flat_map(options)).collect()
    }

    #[test]
    fn every_option_is_in_one_list() {
        let lists = ALLOWED.map(|(name, _)| name).into_iter();
        let lists = lists.chain(COMMAND_LINE_ONLY.map(|(name, _)| name)).chain(EXCLUDED);
        let listed: Vec<&str> = lists.collect();
        let unique: BTreeSet<String> = listed.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(unique.len(), listed.len(), "an option is in two lists");
        let mut command = crate::Cli::command();
        command.build();
        assert_eq!(unique, options(&command));
    }
}
