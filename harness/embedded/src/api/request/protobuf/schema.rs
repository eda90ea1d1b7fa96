//! What messages are made of.

use std::collections::BTreeMap;

const TABLE: &str = include_str!("messages.txt");

/// The fields of a message by number.
pub type Message = BTreeMap<u32, Field>;

/// A field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name in JSON.
    pub name: &'static str,
    /// How often it is there.
    pub shape: Shape,
    /// What it is.
    pub of: Type,
}

/// How often a field is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Always; as nothing if it is empty.
    Value,
    /// Where Go has a pointer that points.
    Pointer,
    /// Several times.
    List,
    /// Several times, with keys.
    Map,
    /// Its fields are the outer message's.
    Inline,
}

/// What a field is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// A text.
    Text,
    /// A truth.
    Truth,
    /// A whole number.
    Number,
    /// Bytes, base64 in JSON.
    Bytes,
    /// `metav1.Time` or `MicroTime`
    Time,
    /// `resource.Quantity`
    Quantity,
    /// `intstr.IntOrString`
    NumberOrText,
    /// A message.
    Message(&'static str),
}

impl Type {
    /// The message's name.
    pub fn message(self) -> Option<&'static str> {
        match self {
            Self::Message(name) => Some(name),
            _ => None,
        }
    }

    fn read(name: &'static str) -> Self {
        match name {
            "string" => Self::Text,
            "bool" => Self::Truth,
            "int" => Self::Number,
            "bytes" => Self::Bytes,
            "time" => Self::Time,
            "quantity" => Self::Quantity,
            "intstr" => Self::NumberOrText,
            name => Self::Message(name),
        }
    }
}

/// All messages by name.
pub struct Schema(BTreeMap<&'static str, Message>);

impl Schema {
    /// Reads the table.
    pub fn read() -> Self {
        let lines = TABLE.lines().filter(|line| !line.starts_with('#'));
        Self(
            lines
                .filter_map(|line| line.split_once(": "))
                .map(|(name, fields)| (name, message(fields)))
                .collect(),
        )
    }

    /// A message by its name.
    pub fn message(&self, name: &str) -> Option<&Message> {
        self.0.get(name)
    }

    /// All of them.
    #[cfg(test)]
    pub fn all(&self) -> impl Iterator<Item = (&'static str, &Message)> {
        self.0.iter().map(|(name, message)| (*name, message))
    }
}

fn message(fields: &'static str) -> Message {
    let field = |text: &'static str| {
        let [number, name, of] = text.split(' ').collect::<Vec<_>>()[..] else { return None };
        let shapes = [("[]", Shape::List), ("{}", Shape::Map), ("*", Shape::Pointer), ("^", Shape::Inline)];
        let shaped = shapes.into_iter().find_map(|(mark, shape)| Some((shape, of.strip_prefix(mark)?)));
        let (shape, of) = shaped.unwrap_or((Shape::Value, of));
        Some((number.parse().ok()?, Field { name, shape, of: Type::read(of) }))
    };
    fields.split(", ").filter_map(field).collect()
}
