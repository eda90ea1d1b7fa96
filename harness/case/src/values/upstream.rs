//! [`Upstream`].

use std::fmt;
use std::str::FromStr;

use super::error::ValueError;
use super::from_text::impl_from_text;

/// An issue or a pull request on GitHub, as `owner/repository#number`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    repository: String,
    number: u32,
}

impl_from_text!(
    Upstream,
    concat!(
        r"^([A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9._-]+#[1-9][0-9]*",
        r"|https://github\.com/[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9._-]+/(issues|pull)/[1-9][0-9]*/?)$"
    )
);

impl Upstream {
    /// Returns the URL. GitHub redirects the URL of an issue to the pull request with the same
    /// number.
    pub fn link(&self) -> String {
        format!("https://github.com/{}/issues/{}", self.repository, self.number)
    }
}

impl FromStr for Upstream {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        // The URL of an issue or a pull request, as `list --json` prints it.
        let url = text.strip_prefix("https://github.com/").map(|path| path.trim_end_matches('/'));
        let path = url.map(|path| path.replacen("/issues/", "#", 1).replacen("/pull/", "#", 1));
        let read = || {
            let (repository, number) = path.as_deref().unwrap_or(text).split_once('#')?;
            let (owner, name) = repository.split_once('/')?;
            let is_valid = |text: &str, more: &str| {
                !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(c))
            };
            let number = number.parse().ok().filter(|number| *number > 0)?;
            (is_valid(owner, "-") && is_valid(name, "-._"))
                .then(|| Self { repository: repository.to_owned(), number })
        };
        read().ok_or_else(|| ValueError::Upstream(text.to_owned()))
    }
}

impl fmt::Display for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.repository, self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::from_text::check_texts;

    #[test]
    fn an_upstream_reference_has_an_owner_a_repository_and_a_number() {
        check_texts::<Upstream>(
            &["kubernetes/kubernetes#124938", "kubernetes-sigs/kind#1", "a/b.c_d#7"],
            &[
                "https://github.com/a/b",
                "https://github.com/a/b/issues/x",
                "",
                "124938",
                "#124938",
                "kubernetes#1",
                "a/b/c#1",
                "a/b#",
                "a/b#0",
                "a/b#x",
                "/b#1",
                "a/#1",
            ],
        );
    }

    #[test]
    fn an_upstream_reference_has_a_link() {
        let upstream: Upstream = "kubernetes/kubernetes#124938".parse().unwrap();
        let link = upstream.link();
        assert_eq!(link, "https://github.com/kubernetes/kubernetes/issues/124938");
        for url in [&link, &link.replace("issues", "pull"), &format!("{link}/")] {
            assert_eq!(url.parse(), Ok(upstream.clone()));
        }
    }
}
