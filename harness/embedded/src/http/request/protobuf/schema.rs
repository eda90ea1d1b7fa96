//! Fields of the supported messages.

use std::collections::BTreeMap;

const TABLE: &str = include_str!("messages.txt");

/// The fields of a message by number.
pub(crate) type Message = BTreeMap<u32, Field>;

/// A field of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    /// Name in JSON.
    pub(crate) name: &'static str,
    /// Number of occurrences.
    pub(crate) cardinality: Cardinality,
    /// Type of the value.
    pub(crate) kind: FieldType,
}

/// Number of occurrences of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cardinality {
    /// Always encoded; omitted in JSON if it is empty.
    Required,
    /// Encoded if Go's pointer is not nil.
    Optional,
    /// Any number of times.
    List,
    /// Any number of times, with keys.
    Map,
    /// Once; its fields belong to the outer message.
    Inline,
}

/// Type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldType {
    /// String
    String,
    /// Boolean
    Bool,
    /// Integer
    Int,
    /// Bytes; base64 in JSON
    Bytes,
    /// `metav1.Time` or `MicroTime`
    Time,
    /// `resource.Quantity`
    Quantity,
    /// `intstr.IntOrString`
    IntOrString,
    /// Another message
    Message(&'static str),
}

impl FieldType {
    /// Returns the name of the message.
    pub(crate) fn message(self) -> Option<&'static str> {
        match self {
            Self::Message(name) => Some(name),
            _ => None,
        }
    }

    fn parse(name: &'static str) -> Self {
        match name {
            "string" => Self::String,
            "bool" => Self::Bool,
            "int" => Self::Int,
            "bytes" => Self::Bytes,
            "time" => Self::Time,
            "quantity" => Self::Quantity,
            "intstr" => Self::IntOrString,
            name => Self::Message(name),
        }
    }
}

/// Messages by name.
pub(crate) struct Schema(BTreeMap<&'static str, Message>);

impl Schema {
    /// Parses the table `messages.txt`.
    pub(crate) fn parse() -> Self {
        let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
        Self(
            lines
                .filter_map(|line| line.split_once(": "))
                .map(|(name, fields)| (name, parse_message(fields)))
                .collect(),
        )
    }

    /// Returns a message by its name.
    pub(crate) fn message(&self, name: &str) -> Option<&Message> {
        self.0.get(name)
    }

    /// Returns all messages.
    #[cfg(test)]
    pub(crate) fn messages(&self) -> impl Iterator<Item = (&'static str, &Message)> {
        self.0.iter().map(|(name, message)| (*name, message))
    }
}

fn parse_message(fields: &'static str) -> Message {
    let field = |text: &'static str| {
        let [number, name, kind] = text.split(' ').collect::<Vec<_>>()[..] else { return None };
        let marks = [
            ("[]", Cardinality::List),
            ("{}", Cardinality::Map),
            ("*", Cardinality::Optional),
            ("^", Cardinality::Inline),
        ];
        let marked =
            marks.into_iter().find_map(|(mark, cardinality)| Some((cardinality, kind.strip_prefix(mark)?)));
        let (cardinality, kind) = marked.unwrap_or((Cardinality::Required, kind));
        Some((number.parse().ok()?, Field { name, cardinality, kind: FieldType::parse(kind) }))
    };
    fields.split(", ").filter_map(field).collect()
}
