//! [`ValueError`].

use evictlab_rules::quantity::QuantityError;

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
    #[error(
        "invalid request {0:?}: must be `allocatable`, a percentage of it, such as 60%, or a quantity, such as 200Mi"
    )]
    ResizedRequest(String),
    /// Not a bound on a usage.
    #[error(
        "invalid bound {0:?}: must be one of >=, >, <=, < and =, followed by a quantity, such as \">=200Mi\""
    )]
    Bound(String),
    /// Not a duration.
    #[error("invalid duration {text:?}: {why}")]
    Duration {
        /// The text.
        text: String,
        /// The cause.
        why: String,
    },
    /// A duration with a fraction of a second, where the API has whole seconds.
    #[error("invalid duration {0:?}: it must be in whole seconds; examples: 1s, 30s, 2m")]
    WholeSeconds(String),
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
