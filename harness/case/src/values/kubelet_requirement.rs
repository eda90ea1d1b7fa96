//! [`KubeletRequirement`].

use std::fmt;
use std::str::FromStr;

use evictlab_rules::KubeletVersion;
use semver::{Op, Version, VersionReq};

use super::error::ValueError;
use super::from_text::impl_from_text;

/// Ranges of kubelet versions, such as `>=1.29`, `>=1.29, <1.32`, or, for a fix that was
/// backported, `>=1.29.3, <1.30 || >=1.31`.
///
/// A pre-release counts as its release: `>=1.37` includes `v1.37.0-rc.1`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KubeletRequirement {
    /// Ranges of which one must include the version; all versions if it is empty.
    alternatives: Vec<VersionReq>,
}

impl_from_text!(
    KubeletRequirement,
    r"^ *(>=|<=|>|<|=|~) *1(\.[0-9]+){0,2} *((,|\|\|) *(>=|<=|>|<|=|~) *1(\.[0-9]+){0,2} *)*$"
);

impl KubeletRequirement {
    /// Returns whether the range includes the version.
    pub fn matches(&self, kubelet: &KubeletVersion) -> bool {
        let [major, minor, patch] = [kubelet.major, kubelet.minor, kubelet.patch].map(u64::from);
        let version = Version::new(major, minor, patch);
        self.is_any() || self.alternatives.iter().any(|range| range.matches(&version))
    }

    /// Returns patch versions such that the range is constant between neighbours: 0, and those next
    /// to the patch versions that the range states.
    pub(crate) fn patch_bounds(&self) -> impl Iterator<Item = u64> {
        let comparators = self.alternatives.iter().flat_map(|range| &range.comparators);
        let stated = comparators.filter_map(|one| one.patch);
        std::iter::once(0)
            .chain(stated.flat_map(|patch| [patch.saturating_sub(1), patch, patch.saturating_add(1)]))
    }

    /// Returns whether the range includes all versions.
    pub fn is_any(&self) -> bool {
        self.alternatives.is_empty()
    }
}

impl FromStr for KubeletRequirement {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let alternatives = text.split("||").map(parse_range).collect::<Result<_, _>>()?;
        Ok(Self { alternatives })
    }
}

/// Parses a range without `||`.
fn parse_range(text: &str) -> Result<VersionReq, ValueError> {
    let text = text.trim();
    let error = |why: &str| ValueError::Kubelet { text: text.to_owned(), why: why.to_owned() };
    if let Some(bare) =
        text.split(',').map(str::trim).find(|part| part.starts_with(|c: char| c.is_ascii_digit()))
    {
        return Err(error(&format!("`{bare}` needs a comparison, such as `>=` or `=`")));
    }
    let range = VersionReq::parse(text).map_err(|why| error(&why.to_string()))?;
    match range.comparators.as_slice() {
        [] => Err(error("it includes all versions; omit `kubelet` instead")),
        all if all.iter().any(|one| one.major != 1) => Err(error("the major version of a kubelet is 1")),
        all if text.contains('*') || all.iter().any(|one| one.op == Op::Caret) => {
            Err(error("the comparisons are `>=`, `<=`, `>`, `<`, `=` and `~`"))
        }
        all if all.iter().any(|one| !one.pre.is_empty()) => {
            Err(error("it has a pre-release; a pre-release counts as its release"))
        }
        _ => Ok(range),
    }
}

impl fmt::Display for KubeletRequirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_any() {
            return f.write_str("any");
        }
        let ranges: Vec<_> = self.alternatives.iter().map(ToString::to_string).collect();
        f.write_str(&ranges.join(" || "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::from_text::check_texts;

    #[test]
    fn a_range_has_comparisons() {
        check_texts::<KubeletRequirement>(
            &[">=1.29", "<1.32", ">=1.29, <1.32", "=1.32", "~1.31.4", ">=1.29.3, <1.30 || >=1.31"],
            &[
                "",
                "*",
                "1.29",
                "v1.29",
                ">=1.29 <1.32",
                ">=1.37.0-rc.1",
                ">=2",
                ">=",
                ">=1.29, 1.30",
                "||",
                ">=1.29 ||",
                ">=1.29 | <1.27",
                ">=1.29 || 1.27",
                "^1.29",
                ">=1.29, ^1.30",
                "=1.*",
            ],
        );
    }

    #[test]
    fn a_range_includes_pre_releases_of_its_versions() {
        let rows = [
            (">=1.29", "v1.29.0", true),
            (">=1.29", "v1.28.15", false),
            ("<1.32", "v1.31.14", true),
            ("<1.32", "v1.32.0", false),
            (">=1.37", "v1.37.0-rc.1", true),
            ("<1.37", "v1.37.0-alpha.1", false),
            ("=1.31", "v1.31.14+k3s1", true),
            (">=1.29.3, <1.30 || >=1.31", "v1.29.2", false),
            (">=1.29.3, <1.30 || >=1.31", "v1.29.3", true),
            (">=1.29.3, <1.30 || >=1.31", "v1.30.9", false),
            (">=1.29.3, <1.30 || >=1.31", "v1.31.0-rc.1", true),
        ];
        for (range, kubelet, holds) in rows {
            let range: KubeletRequirement = range.parse().unwrap();
            assert_eq!(range.matches(&kubelet.parse().unwrap()), holds, "{range} {kubelet}");
        }
        assert!(KubeletRequirement::default().matches(&KubeletVersion::from_minor(26)));
        assert_eq!(KubeletRequirement::default().to_string(), "any");
    }
}
