//! Scalar values of a case file. Each is parsed from text, with errors that explain the syntax.

use std::fmt;
use std::str::FromStr;

use evictlab_rules::KubeletVersion;
use evictlab_rules::quantity::{Quantity, QuantityError};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use semver::{Version, VersionReq};
use serde::{Deserialize, Deserializer, de};

/// A value of a case file that cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// Not a DNS label.
    #[error(
        "invalid name {0:?}: must have 1 to 63 lower-case letters, digits and `-`, with a letter or digit at both ends"
    )]
    Name(String),
    /// Not a Kubernetes quantity.
    #[error(transparent)]
    Quantity(#[from] QuantityError),
    /// A quantity without a number, such as `Mi`. Kubernetes parses it as 0; in a case file it is
    /// a mistake.
    #[error("invalid quantity {0:?}: it has no number; examples: 200Mi, 1.5Gi, 500M")]
    NoNumber(String),
    /// A word that is not the request of a resize.
    #[error("invalid request {0:?}: must be `allocatable` or a quantity, such as 200Mi")]
    ResizedRequest(String),
    /// Not a bound on a usage.
    #[error(
        "invalid bound {0:?}: must be one of >=, >, <=, < and =, followed by a quantity, such as \">=200Mi\""
    )]
    Bound(String),
    /// Not a duration.
    #[error("invalid duration {text:?}: {why}; examples: 15s, 500ms, 2m")]
    Duration {
        /// The text.
        text: String,
        /// The cause.
        why: String,
    },
    /// Not a range of kubelet versions.
    #[error(
        "invalid range of kubelet versions {text:?}: {why}; examples: \">=1.29\", \"<1.32\", \">=1.29, <1.32\", \">=1.29.3, <1.30 || >=1.31\""
    )]
    Kubelet {
        /// The text.
        text: String,
        /// The cause.
        why: String,
    },
    /// Not a regular expression.
    #[error("invalid regular expression {text:?}: {why}")]
    Pattern {
        /// The text.
        text: String,
        /// The cause.
        why: String,
    },
    /// Not a reference to an issue or a pull request.
    #[error(
        "invalid GitHub reference {0:?}: must be owner/repository#number, such as kubernetes/kubernetes#124938"
    )]
    Upstream(String),
}

/// Implements deserialization from text, and a JSON Schema with this pattern.
macro_rules! impl_from_text {
    ($type:ident, $pattern:expr) => {
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
            }
        }

        impl JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "pattern": $pattern })
            }
        }
    };
}

/// Regular expression of a quantity, for JSON Schemas.
macro_rules! quantity_pattern {
    () => {
        r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?"
    };
}

/// Name of a case, a pod, a container or a volume: a DNS label.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(String);

impl_from_text!(Name, "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$");

impl Name {
    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Name {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let ends = |c: char| inner(c) && c != '-';
        let label = (1..=63).contains(&text.len())
            && text.chars().all(inner)
            && text.starts_with(ends)
            && text.ends_with(ends);
        if label { Ok(Self(text.to_owned())) } else { Err(ValueError::Name(text.to_owned())) }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl PartialEq<str> for Name {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

impl std::borrow::Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// A Kubernetes quantity with its text, because the kubelet's output is compared as text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct QuantityText {
    text: String,
    quantity: Quantity,
}

impl_from_text!(QuantityText, concat!("^", quantity_pattern!(), "$"));

impl QuantityText {
    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the amount.
    pub fn quantity(&self) -> &Quantity {
        &self.quantity
    }

    /// Returns the amount as an unsigned number, 0 for a negative one.
    pub fn amount(&self) -> u64 {
        u64::try_from(self.quantity.value()).unwrap_or(0)
    }
}

impl FromStr for QuantityText {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let quantity = text.parse()?;
        if !text.contains(|c: char| c.is_ascii_digit()) {
            return Err(ValueError::NoNumber(text.to_owned()));
        }
        Ok(Self { text: text.to_owned(), quantity })
    }
}

impl fmt::Display for QuantityText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The request of a resize: an amount, or what the node has for its pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResizedRequest {
    /// An amount.
    Amount(QuantityText),
    /// The allocatable amount of the node. There is room for it only without the requests of other
    /// pods.
    Allocatable,
}

impl_from_text!(ResizedRequest, concat!("^(allocatable|", quantity_pattern!(), ")$"));

impl FromStr for ResizedRequest {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        match text {
            "allocatable" => Ok(Self::Allocatable),
            word if word.starts_with(char::is_alphabetic) => Err(ValueError::ResizedRequest(word.to_owned())),
            amount => amount.parse().map(Self::Amount),
        }
    }
}

/// Comparison of a usage with the quantity of a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `>=`
    AtLeast,
    /// `>`
    MoreThan,
    /// `<=`
    AtMost,
    /// `<`
    LessThan,
    /// `=`
    Exactly,
}

impl Comparison {
    /// Longer signs first, because `>` is a prefix of `>=`.
    const SIGNS: [(&'static str, Self); 5] = [
        (">=", Self::AtLeast),
        ("<=", Self::AtMost),
        (">", Self::MoreThan),
        ("<", Self::LessThan),
        ("=", Self::Exactly),
    ];

    fn holds(self, ordering: std::cmp::Ordering) -> bool {
        match self {
            Self::AtLeast => ordering.is_ge(),
            Self::MoreThan => ordering.is_gt(),
            Self::AtMost => ordering.is_le(),
            Self::LessThan => ordering.is_lt(),
            Self::Exactly => ordering.is_eq(),
        }
    }
}

/// A bound on a usage, such as `>=200Mi`, `<1Mi` or `=0`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageBound {
    /// Comparison of the usage with the quantity.
    pub comparison: Comparison,
    /// Quantity.
    pub quantity: QuantityText,
}

impl_from_text!(UsageBound, concat!("^(>=|<=|>|<|=) *", quantity_pattern!(), "$"));

impl UsageBound {
    /// Reports whether a usage satisfies the bound.
    pub fn holds(&self, usage: &Quantity) -> bool {
        self.comparison.holds(usage.cmp(self.quantity.quantity()))
    }
}

impl FromStr for UsageBound {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let read = |(sign, comparison)| Some((comparison, text.strip_prefix(sign)?));
        let (comparison, quantity) =
            Comparison::SIGNS.into_iter().find_map(read).ok_or_else(|| ValueError::Bound(text.to_owned()))?;
        Ok(Self { comparison, quantity: quantity.trim_start().parse()? })
    }
}

impl fmt::Display for UsageBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign =
            Comparison::SIGNS.into_iter().find(|(_, of)| *of == self.comparison).map_or("", |(s, _)| s);
        write!(f, "{sign}{}", self.quantity)
    }
}

/// A duration, such as `15s`, `500ms` or `1m 30s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Duration(std::time::Duration);

impl_from_text!(Duration, r"^([0-9]+ *[a-zA-Z]+ *)+$|^0$");

impl Duration {
    /// Longest duration of a case file. Sums of durations do not overflow.
    pub(crate) const MAX: std::time::Duration = std::time::Duration::from_secs(7 * 24 * 3600);

    /// Returns the duration as a type of the standard library.
    pub fn get(self) -> std::time::Duration {
        self.0
    }
}

impl FromStr for Duration {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let error = |why: &str| ValueError::Duration { text: text.to_owned(), why: why.to_owned() };
        let duration = humantime::parse_duration(text)
            .map_err(|why| error(why.to_string().lines().next().unwrap_or_default()))?;
        if duration > Self::MAX {
            return Err(error("it is longer than 7 days"));
        }
        Ok(Self(duration))
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        humantime::format_duration(self.0).fmt(f)
    }
}

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
    /// Reports whether the range includes the version.
    pub fn matches(&self, kubelet: &KubeletVersion) -> bool {
        let [major, minor, patch] = [kubelet.major, kubelet.minor, kubelet.patch].map(u64::from);
        let version = Version::new(major, minor, patch);
        self.is_any() || self.alternatives.iter().any(|range| range.matches(&version))
    }

    /// Returns 0, and the patch versions next to those that the range names: it changes only there
    /// within a minor version.
    pub(crate) fn patch_bounds(&self) -> impl Iterator<Item = u64> {
        let comparators = self.alternatives.iter().flat_map(|range| &range.comparators);
        let stated = comparators.filter_map(|one| one.patch);
        std::iter::once(0)
            .chain(stated.flat_map(|patch| [patch.saturating_sub(1), patch, patch.saturating_add(1)]))
    }

    /// Reports whether the range includes all versions.
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

/// A regular expression.
#[derive(Clone, Debug)]
pub struct Pattern(regex::Regex);

impl_from_text!(Pattern, "");

impl Pattern {
    /// Reports whether the expression matches any part of a text.
    pub fn is_match(&self, text: &str) -> bool {
        self.0.is_match(text)
    }
}

impl FromStr for Pattern {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let why = |error: regex::Error| ValueError::Pattern {
            text: text.to_owned(),
            why: error
                .to_string()
                .lines()
                .last()
                .unwrap_or_default()
                .trim_start_matches("error: ")
                .to_owned(),
        };
        regex::Regex::new(text).map(Self).map_err(why)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

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

    /// Checks that valid texts are printed as they were written, and that invalid texts are
    /// rejected.
    fn check<T: FromStr<Err = ValueError> + fmt::Display>(valid: &[&str], invalid: &[&str]) {
        for text in valid {
            let read = text.parse::<T>().unwrap_or_else(|why| panic!("{why}"));
            assert_eq!(&read.to_string(), text);
        }
        for text in invalid {
            if let Ok(read) = text.parse::<T>() {
                panic!("{text:?} was parsed as {read}");
            }
        }
    }

    #[test]
    fn parses_and_prints_valid_texts_only() {
        let long = "a".repeat(64);
        check::<Name>(&["a", "el-sidecar1", &long[1..]], &["", "-a", "a-", "A", "a.b", "a_b", &long]);
        check::<QuantityText>(
            &["0", "200Mi", "1.5Gi", "500M", "1e9", ".5", "1.", "+100Mi", "12n"],
            &["", "Mi", "200MB", "200 Mi", "1,5Gi", "1Kii", "ki", "200mi", "--1"],
        );
        check::<UsageBound>(
            &[">=200Mi", "<1Mi", "=0", ">1", "<=1.5Gi"],
            &["", "200Mi", ">=", "=>1", "!1", "==1"],
        );
        check::<Duration>(
            &["15s", "500ms", "5m", "1h 30m", "0s", "7days"],
            &["", "15", "s", "-1s", "1 parsec", "7days 1ns", "10000000000000000000s"],
        );
        check::<KubeletRequirement>(
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
            ],
        );
        check::<Upstream>(
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

    #[test]
    fn an_upstream_reference_has_a_link() {
        let upstream: Upstream = "kubernetes/kubernetes#124938".parse().unwrap();
        let link = upstream.link();
        assert_eq!(link, "https://github.com/kubernetes/kubernetes/issues/124938");
        for url in [&link, &link.replace("issues", "pull"), &format!("{link}/")] {
            assert_eq!(url.parse(), Ok(upstream.clone()));
        }
    }

    #[test]
    fn a_bound_compares_by_its_sign() {
        let rows = [
            (">=1Mi", [false, true, true]),
            (">1Mi", [false, false, true]),
            ("<=1Mi", [true, true, false]),
            ("<1Mi", [true, false, false]),
            ("=1Mi", [false, true, false]),
        ];
        for (bound, expected) in rows {
            let bound: UsageBound = bound.parse().unwrap();
            let held = ["1023Ki", "1024Ki", "1025Ki"].map(|usage| bound.holds(&usage.parse().unwrap()));
            assert_eq!(held, expected, "{bound}");
        }
    }
}
