//! The small values of a case file: each is read from text, and refuses what it is not in words a person can act on.

use std::fmt;
use std::str::FromStr;

use evictlab_rules::KubeletVersion;
use evictlab_rules::quantity::{Quantity, QuantityError};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use semver::{Version, VersionReq};
use serde::{Deserialize, Deserializer, de};

/// A value of a case file that does not read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// Not a DNS label.
    #[error(
        "{0:?} is no name: lower-case letters, digits and `-`, a letter or digit at both ends, at most 63 of them"
    )]
    Name(String),
    /// Not a Kubernetes quantity.
    #[error(transparent)]
    Quantity(#[from] QuantityError),
    /// Kubernetes takes `Mi` for nothing; who writes it in a case has lost a number.
    #[error("{0:?} is no quantity here: it has no number; write it like 200Mi, 1.5Gi or 500M")]
    NoNumber(String),
    /// Not a bound.
    #[error("{0:?} is no bound: write one of >=, >, <=, < and =, then a quantity, such as \">=200Mi\"")]
    Bound(String),
    /// Not a duration.
    #[error("{text:?} is no duration: {why}; write it like 15s, 500ms or 2m")]
    Duration {
        /// What was written.
        text: String,
        /// What is wrong with it.
        why: String,
    },
    /// Not a requirement on the kubelet's version.
    #[error(
        "{text:?} is no range of kubelets: {why}; write it like \">=1.29\", \"<1.32\" or \">=1.29, <1.32\""
    )]
    Kubelet {
        /// What was written.
        text: String,
        /// What is wrong with it.
        why: String,
    },
    /// Not a regular expression.
    #[error("{text:?} is no regular expression: {why}")]
    Matching {
        /// What was written.
        text: String,
        /// What is wrong with it.
        why: String,
    },
    /// Not a reference to an issue or a pull request.
    #[error(
        "{0:?} is no reference to GitHub: write owner/repository#number, such as kubernetes/kubernetes#124938"
    )]
    Upstream(String),
}

/// Reads the type from text, and describes it to JSON Schema as text of this pattern.
macro_rules! read_from_text {
    ($type:ident, $pattern:literal) => {
        read_from_text!($type, "string", $pattern);
    };
    ($type:ident, $json:tt, $pattern:literal) => {
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
                json_schema!({ "type": $json, "pattern": $pattern })
            }
        }
    };
}

/// The name of a case, a pod, a container or a volume: a DNS label.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(String);

read_from_text!(Name, "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$");

impl Name {
    /// The name as text.
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

/// A Kubernetes quantity and its text: what is compared with what a kubelet prints is the text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct QuantityText {
    text: String,
    quantity: Quantity,
}

read_from_text!(QuantityText, r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$");

impl QuantityText {
    /// The text as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The amount.
    pub fn quantity(&self) -> &Quantity {
        &self.quantity
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

/// How a usage compares with the quantity of its bound.
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
    /// Longer signs first, so that `>=` is not read as `>`.
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
    /// How the usage must compare.
    pub comparison: Comparison,
    /// With what.
    pub quantity: QuantityText,
}

read_from_text!(
    UsageBound,
    r"^(>=|<=|>|<|=) *[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$"
);

impl UsageBound {
    /// Whether a usage is within the bound.
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

/// A length of time, such as `15s`, `500ms` or `1m 30s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Duration(std::time::Duration);

read_from_text!(Duration, r"^([0-9]+ *[a-zA-Z]+ *)+$|^0$");

impl Duration {
    /// The same as the standard library has it.
    pub fn get(self) -> std::time::Duration {
        self.0
    }
}

impl FromStr for Duration {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let why = |error: humantime::DurationError| ValueError::Duration {
            text: text.to_owned(),
            why: error.to_string().lines().next().unwrap_or_default().to_owned(),
        };
        humantime::parse_duration(text).map(Self).map_err(why)
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        humantime::format_duration(self.0).fmt(f)
    }
}

/// The kubelets that something holds for, such as `>=1.29` or `>=1.29, <1.32`. A pre-release counts as its release:
/// `v1.37.0-rc.1` is a `>=1.37`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KubeletReq(VersionReq);

read_from_text!(
    KubeletReq,
    r"^ *(>=|<=|>|<|=|~) *1(\.[0-9]+){0,2} *(, *(>=|<=|>|<|=|~) *1(\.[0-9]+){0,2} *)*$"
);

impl KubeletReq {
    /// Whether a kubelet is one of them.
    pub fn matches(&self, kubelet: &KubeletVersion) -> bool {
        let [major, minor, patch] = [kubelet.major, kubelet.minor, kubelet.patch].map(u64::from);
        self.0.matches(&Version::new(major, minor, patch))
    }

    /// Whether every kubelet is one of them.
    pub fn is_any(&self) -> bool {
        self.0.comparators.is_empty()
    }
}

impl FromStr for KubeletReq {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let error = |why: &str| ValueError::Kubelet { text: text.to_owned(), why: why.to_owned() };
        if let Some(bare) =
            text.split(',').map(str::trim).find(|part| part.starts_with(|c: char| c.is_ascii_digit()))
        {
            return Err(error(&format!("`{bare}` alone says neither \"from\" nor \"only\"")));
        }
        let range = VersionReq::parse(text).map_err(|why| error(&why.to_string()))?;
        match range.comparators.as_slice() {
            [] => Err(error("every kubelet is in it, which is said by leaving `kubelet` out")),
            all if all.iter().any(|one| one.major != 1) => Err(error("kubelets are 1.x")),
            all if all.iter().any(|one| !one.pre.is_empty()) => {
                Err(error("a pre-release counts as its release"))
            }
            _ => Ok(Self(range)),
        }
    }
}

impl fmt::Display for KubeletReq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_any() { f.write_str("any") } else { self.0.fmt(f) }
    }
}

/// A regular expression.
#[derive(Clone, Debug)]
pub struct Matching(regex::Regex);

read_from_text!(Matching, "");

impl Matching {
    /// Whether it matches somewhere in a text.
    pub fn is_match(&self, text: &str) -> bool {
        self.0.is_match(text)
    }
}

impl FromStr for Matching {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let why = |error: regex::Error| ValueError::Matching {
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

impl fmt::Display for Matching {
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

read_from_text!(Upstream, r"^[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9._-]+#[1-9][0-9]*$");

impl Upstream {
    /// Where to read it. GitHub leads on from an issue's address to the pull request of that number.
    pub fn link(&self) -> String {
        format!("https://github.com/{}/issues/{}", self.repository, self.number)
    }
}

impl FromStr for Upstream {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let read = || {
            let (repository, number) = text.split_once('#')?;
            let (owner, name) = repository.split_once('/')?;
            let plain = |text: &str, more: &str| {
                !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(c))
            };
            let number = number.parse().ok().filter(|number| *number > 0)?;
            (plain(owner, "-") && plain(name, "-._"))
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

    /// Whether each text reads as the type and prints as it was written.
    fn check<T: FromStr<Err = ValueError> + fmt::Display>(right: &[&str], wrong: &[&str]) {
        for text in right {
            let read = text.parse::<T>().unwrap_or_else(|why| panic!("{why}"));
            assert_eq!(&read.to_string(), text);
        }
        for text in wrong {
            if let Ok(read) = text.parse::<T>() {
                panic!("{text:?} was read as {read}");
            }
        }
    }

    #[test]
    fn each_reads_what_it_is_and_refuses_what_it_is_not() {
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
        check::<Duration>(&["15s", "500ms", "5m", "1h 30m", "0s"], &["", "15", "s", "-1s", "1 parsec"]);
        check::<KubeletReq>(
            &[">=1.29", "<1.32", ">=1.29, <1.32", "=1.32", "~1.31.4"],
            &["", "*", "1.29", "v1.29", ">=1.29 <1.32", ">=1.37.0-rc.1", ">=2", ">=", ">=1.29, 1.30"],
        );
        check::<Upstream>(
            &["kubernetes/kubernetes#124938", "kubernetes-sigs/kind#1", "a/b.c_d#7"],
            &["", "124938", "#124938", "kubernetes#1", "a/b/c#1", "a/b#", "a/b#0", "a/b#x", "/b#1", "a/#1"],
        );
    }

    #[test]
    fn a_range_holds_for_kubelets_and_their_pre_releases() {
        let rows = [
            (">=1.29", "v1.29.0", true),
            (">=1.29", "v1.28.15", false),
            ("<1.32", "v1.31.14", true),
            ("<1.32", "v1.32.0", false),
            (">=1.37", "v1.37.0-rc.1", true),
            ("<1.37", "v1.37.0-alpha.1", false),
            ("=1.31", "v1.31.14+k3s1", true),
        ];
        for (range, kubelet, holds) in rows {
            let range: KubeletReq = range.parse().unwrap();
            assert_eq!(range.matches(&kubelet.parse().unwrap()), holds, "{range} {kubelet}");
        }
        assert!(KubeletReq::default().matches(&KubeletVersion::minor(26)));
        assert_eq!(KubeletReq::default().to_string(), "any");
    }

    #[test]
    fn an_upstream_reference_is_a_link() {
        let upstream: Upstream = "kubernetes/kubernetes#124938".parse().unwrap();
        assert_eq!(upstream.link(), "https://github.com/kubernetes/kubernetes/issues/124938");
    }

    #[test]
    fn a_bound_holds_as_its_sign_says() {
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
