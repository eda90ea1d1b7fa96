//! [`ValueShape`].

/// The shape of the value that a type has at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueShape {
    /// An object with these fields.
    Object(&'static [&'static str]),
    /// A list.
    List,
    /// A map with any keys.
    Map,
    /// A value without parts, or nothing.
    Other,
}
