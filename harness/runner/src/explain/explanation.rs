//! What there is to say of one pod.

use evictlab_rules::KubeletVersion;
use evictlab_rules::quantity::Quantity;
use jiff::Timestamp;
use serde::Serialize;

/// Why a pod went, and how far what is said of it can be relied on. Prints as text for a person.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// `namespace/name`, if the input names it.
    pub pod: Option<String>,
    /// Its node, if the input names it.
    pub node: Option<String>,
    /// When the kubelet said so, if the input tells.
    pub at: Option<Timestamp>,
    /// The kubelet, if it is known.
    pub kubelet: Option<KubeletVersion>,
    /// What was said, as it was; none where no eviction message is there.
    pub message: Option<String>,
    /// Why it went, in sentences.
    pub why: Vec<String>,
    /// Who was named and who was not.
    pub containers: Vec<ContainerTold>,
    /// Whether message, status, condition and annotations agree.
    pub witnesses: Vec<Witness>,
    /// Known bugs that show in it, or would explain it.
    pub bugs: Vec<Bug>,
    /// What would tell more.
    pub ask: Vec<String>,
}

/// In which list of a pod a container is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// `containers`.
    Regular,
    /// `initContainers`, with `restartPolicy: Always`.
    Sidecar,
    /// `initContainers`, others.
    Init,
    /// `ephemeralContainers`.
    Ephemeral,
}

impl Kind {
    /// The field's term.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Regular => "regular",
            Self::Sidecar => "sidecar",
            Self::Init => "init",
            Self::Ephemeral => "ephemeral",
        }
    }
}

/// A container, and what the message makes of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ContainerTold {
    /// Its name.
    pub name: String,
    /// What it is; none without its pod's spec.
    pub kind: Option<Kind>,
    /// Whether the message names it.
    pub named: bool,
    /// What it used, as the message has it.
    pub usage: Option<Quantity>,
    /// What it asked for: as the message has it, or else its spec.
    pub request: Option<Quantity>,
    /// Why it is named, or not.
    pub why: String,
}

/// Something that should agree with something else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Witness {
    /// Whether it does.
    pub agrees: bool,
    /// In a sentence.
    pub says: String,
}

/// A known bug.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Bug {
    /// Where upstream tracks it, as `owner/repository#number`; none where nobody filed it.
    pub upstream: Option<&'static str>,
    /// What it is.
    pub about: &'static str,
    /// Why it fits.
    pub because: String,
    /// The case that shows it: `evictlab run CASE`.
    pub case: &'static str,
}
