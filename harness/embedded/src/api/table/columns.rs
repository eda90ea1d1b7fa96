//! The columns of each table.

use serde_json::{Value, json};

use crate::api::resource::Source;
use crate::store::Kind;

/// A column.
pub struct Column {
    name: &'static str,
    kind: &'static str,
    /// `name` where it is the object's.
    format: &'static str,
    /// 1 where only `-o wide` shows it.
    priority: u8,
}

impl Column {
    /// `TableColumnDefinition`
    pub fn object(&self) -> Value {
        json!({
            "name": self.name,
            "type": self.kind,
            "format": self.format,
            "description": "",
            "priority": self.priority,
        })
    }
}

const fn text(name: &'static str) -> Column {
    Column { name, kind: "string", format: "", priority: 0 }
}

const fn wide(name: &'static str) -> Column {
    Column { priority: 1, ..text(name) }
}

const fn number(name: &'static str) -> Column {
    Column { kind: "integer", ..text(name) }
}

const NAME: Column = Column { format: "name", ..text("Name") };
const AGE: Column = text("Age");

/// The columns of a resource.
pub fn of(source: Source) -> &'static [Column] {
    match source {
        Source::Stored(kind) => stored(kind),
        Source::NewEvents => stored(Kind::Event),
        Source::NodeMetrics => const { &[NAME, text("cpu"), text("memory"), text("Window")] },
        Source::DaemonSets => {
            const {
                &[
                    NAME,
                    number("Desired"),
                    number("Current"),
                    number("Ready"),
                    number("Up-to-date"),
                    number("Available"),
                    text("Node Selector"),
                    AGE,
                ]
            }
        }
        Source::PodMetrics | Source::Bindings | Source::AccessReviews => {
            const { &[NAME, Column { kind: "date", ..text("Created At") }] }
        }
    }
}

fn stored(kind: Kind) -> &'static [Column] {
    match kind {
        Kind::Pod => {
            const {
                &[
                    NAME,
                    text("Ready"),
                    text("Status"),
                    text("Restarts"),
                    AGE,
                    wide("IP"),
                    wide("Node"),
                    wide("Nominated Node"),
                    wide("Readiness Gates"),
                ]
            }
        }
        Kind::Node => {
            const {
                &[
                    NAME,
                    text("Status"),
                    text("Roles"),
                    AGE,
                    text("Version"),
                    wide("Internal-IP"),
                    wide("External-IP"),
                    wide("OS-Image"),
                    wide("Kernel-Version"),
                    wide("Container-Runtime"),
                ]
            }
        }
        Kind::Event => {
            const {
                &[
                    text("Last Seen"),
                    text("Type"),
                    text("Reason"),
                    text("Object"),
                    wide("Subobject"),
                    wide("Source"),
                    text("Message"),
                    wide("First Seen"),
                    wide("Count"),
                    Column { priority: 1, ..NAME },
                ]
            }
        }
        Kind::Namespace => const { &[NAME, text("Status"), AGE] },
        Kind::ServiceAccount => const { &[NAME, AGE] },
        Kind::ConfigMap => const { &[NAME, text("Data"), AGE] },
        Kind::PriorityClass => {
            const {
                &[
                    NAME,
                    number("Value"),
                    Column { kind: "boolean", ..text("Global-Default") },
                    AGE,
                    Column { priority: 1, ..text("PreemptionPolicy") },
                ]
            }
        }
        Kind::PodDisruptionBudget => {
            const { &[NAME, text("Min Available"), text("Max Unavailable"), number("Allowed Disruptions"), AGE] }
        }
        Kind::Lease => const { &[NAME, text("Holder"), AGE] },
        Kind::Deployment => {
            const {
                &[
                    NAME,
                    text("Ready"),
                    text("Up-to-date"),
                    text("Available"),
                    AGE,
                    wide("Containers"),
                    wide("Images"),
                    wide("Selector"),
                ]
            }
        }
        Kind::ReplicaSet => {
            const {
                &[
                    NAME,
                    number("Desired"),
                    number("Current"),
                    number("Ready"),
                    AGE,
                    wide("Containers"),
                    wide("Images"),
                    wide("Selector"),
                ]
            }
        }
        Kind::Job => {
            const {
                &[
                    NAME,
                    text("Status"),
                    text("Completions"),
                    text("Duration"),
                    AGE,
                    wide("Containers"),
                    wide("Images"),
                    wide("Selector"),
                ]
            }
        }
    }
}
