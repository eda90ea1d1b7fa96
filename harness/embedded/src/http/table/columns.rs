//! Column definitions of tables.

use serde_json::{Value, json};

use crate::resource::Kind;

/// A column.
pub(crate) struct Column {
    name: &'static str,
    kind: &'static str,
    /// `name` for the name of the object, else empty.
    format: &'static str,
    /// 1 for columns of `-o wide`, else 0.
    priority: u8,
}

impl Column {
    /// Returns the `TableColumnDefinition`.
    pub(crate) fn definition(&self) -> Value {
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

/// Columns of resources without their own table.
const DEFAULT: &[Column] = &[NAME, AGE];

const PODS: &[Column] = &[
    NAME,
    text("Ready"),
    text("Status"),
    text("Restarts"),
    AGE,
    wide("IP"),
    wide("Node"),
    wide("Nominated Node"),
    wide("Readiness Gates"),
];

const NODES: &[Column] = &[
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
];

const EVENTS: &[Column] = &[
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
];

const NAMESPACES: &[Column] = &[NAME, text("Status"), AGE];

const BUDGETS: &[Column] =
    &[NAME, text("Min Available"), text("Max Unavailable"), number("Allowed Disruptions"), AGE];

/// Returns the columns of a kind.
pub(crate) fn columns(kind: Kind) -> &'static [Column] {
    match kind {
        Kind::Pod => PODS,
        Kind::Node => NODES,
        Kind::Event => EVENTS,
        Kind::Namespace => NAMESPACES,
        Kind::PodDisruptionBudget => BUDGETS,
        _ => DEFAULT,
    }
}
