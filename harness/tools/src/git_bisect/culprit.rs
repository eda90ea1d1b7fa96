//! The commit that a search has found, with its pull request.

use std::sync::LazyLock;

use regex::Regex;
use schemars::JsonSchema;
use serde::Serialize;

use super::repository::{Commit, GitError, Repository};

/// The commit that a search has found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Culprit {
    /// Full id.
    pub commit: String,
    /// First line of the message.
    pub subject: String,
    /// Name of the author.
    pub author: String,
    /// Date of the author.
    pub date: String,
    /// The pull request that its message names, or that of the merge that brought it in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pull_request: Option<String>,
}

impl Culprit {
    /// Reads a commit and finds its pull request. `newest`: the newer end of the search.
    ///
    /// # Errors
    /// git fails.
    pub fn find(repository: &Repository, commit: &str, newest: &str) -> Result<Self, GitError> {
        let found = repository.commit(commit)?;
        let number = match pull_request(&found) {
            Some(number) => Some(number),
            None => repository.merge_of(commit, newest)?.as_ref().and_then(pull_request),
        };
        let remote = repository.remote();
        let pull_request = number.map(|number| link(&number, remote.as_deref()));
        let Commit { id, author, date, subject, .. } = found;
        Ok(Self { commit: id, subject, author, date, pull_request })
    }
}

/// Returns the number of the pull request that a message names: `Merge pull request #1 from`, or
/// `(#1)` at the end of the subject of a squashed one.
fn pull_request(commit: &Commit) -> Option<String> {
    static MERGED: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"(?m)^Merge pull request #(\d+)\b").expect("the pattern is valid"));
    static SQUASHED: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"\(#(\d+)\)$").expect("the pattern is valid"));
    let found = MERGED.captures(&commit.message).or_else(|| SQUASHED.captures(&commit.subject))?;
    Some(found[1].to_owned())
}

/// Returns the link to a pull request on GitHub, or `#1` on other hosts.
fn link(number: &str, remote: Option<&str>) -> String {
    static REPOSITORY: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"(?:^|[/@.])github\.com[:/]/?([\w.-]+/[\w.-]+?)(?:\.git)?/?$")
            .expect("the pattern is valid")
    });
    let repository = remote.and_then(|remote| Some(REPOSITORY.captures(remote)?[1].to_owned()));
    match repository {
        Some(repository) => format!("https://github.com/{repository}/pull/{number}"),
        None => format!("#{number}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pull_requests_are_read_from_messages() {
        for (message, expected) in [
            ("kubelet: rank by usage (#12345)", Some("12345")),
            ("Merge pull request #7 from a/b\n\nrank by usage", Some("7")),
            ("Automated cherry pick\n\nMerge pull request #8 from a/b", Some("8")),
            ("kubelet: see (#1) first", None),
            ("Revert merge of pull request #3", None),
        ] {
            let subject = message.lines().next().unwrap_or_default().to_owned();
            let commit = Commit {
                id: String::new(),
                author: String::new(),
                date: String::new(),
                subject,
                message: message.to_owned(),
            };
            assert_eq!(pull_request(&commit).as_deref(), expected, "{message}");
        }
    }

    #[test]
    fn links_need_a_remote_on_github() {
        let kubernetes = "https://github.com/kubernetes/kubernetes/pull/7";
        for (remote, expected) in [
            (Some("https://github.com/kubernetes/kubernetes.git"), kubernetes),
            (Some("https://github.com/kubernetes/kubernetes"), kubernetes),
            (Some("git@github.com:kubernetes/kubernetes.git"), kubernetes),
            (Some("ssh://git@github.com/kubernetes/kubernetes/"), kubernetes),
            (Some("https://example.com/github.com"), "#7"),
            (Some("https://notgithub.com/kubernetes/kubernetes"), "#7"),
            (Some("/srv/kubernetes.git"), "#7"),
            (None, "#7"),
        ] {
            assert_eq!(link("7", remote), expected, "{remote:?}");
        }
    }
}
