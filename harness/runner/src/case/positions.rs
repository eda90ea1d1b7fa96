//! Where in its file each value of a case stands.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Location, Spanned};

/// A line and a column, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column, in characters.
    pub column: usize,
}

impl From<Location> for Position {
    fn from(location: Location) -> Self {
        let number = |n: u64| usize::try_from(n).unwrap_or(usize::MAX).max(1);
        Self { line: number(location.line()), column: number(location.column()) }
    }
}

/// A YAML document without its values: what is left are their places.
#[derive(Clone, Debug)]
pub struct Positions(Spanned<Node>);

#[derive(Clone, Debug)]
enum Node {
    Scalar,
    List(Vec<Spanned<Node>>),
    Map(Vec<(Spanned<String>, Spanned<Node>)>),
}

/// A step from a value into one that it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The value of a key.
    Key(String),
    /// An item of a list, from 0.
    Item(usize),
}

impl From<&str> for Step {
    fn from(key: &str) -> Self {
        Self::Key(key.to_owned())
    }
}

impl From<usize> for Step {
    fn from(item: usize) -> Self {
        Self::Item(item)
    }
}

/// A way through a document: `way!["expect", "evicted", 0]`.
macro_rules! way {
    ($($step:expr),* $(,)?) => { &[$($crate::case::positions::Step::from($step)),*] };
}
pub(crate) use way;

/// The steps of a field's path as Kubernetes writes it, such as `spec.containers[0].image`.
pub fn steps_of_field(path: &str) -> Vec<Step> {
    let step = |text: &str| match text.parse() {
        Ok(item) => Step::Item(item),
        Err(_) => Step::Key(text.to_owned()),
    };
    path.split(['.', '[', ']']).filter(|text| !text.is_empty()).map(step).collect()
}

impl Positions {
    /// Reads a document's places. Of what is no YAML, or has keys that are no text, everything is at its begin.
    pub fn read(text: &str) -> Self {
        let begin = || Spanned::new(Node::Scalar, Location::UNKNOWN, Location::UNKNOWN);
        Self(serde_saphyr::from_str(text).unwrap_or_else(|_| begin()))
    }

    /// Where the value at the end of the way begins, or the last one on the way that is there. A map or list that is
    /// the value of a key begins at the key.
    pub fn of(&self, way: &[Step]) -> Position {
        let mut here = &self.0;
        let mut position = Position::from(here.referenced);
        for step in way {
            let next = match (&here.value, step) {
                (Node::List(items), Step::Item(item)) => items.get(*item).map(|next| (next, next.referenced)),
                (Node::Map(entries), Step::Key(name)) => {
                    entries.iter().find(|(key, _)| key.value == *name).map(|(key, next)| match next.value {
                        Node::Scalar => (next, next.referenced),
                        _ => (next, key.referenced),
                    })
                }
                _ => None,
            };
            let Some((next, place)) = next else { break };
            (here, position) = (next, place.into());
        }
        position
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;

        /// One method for every scalar, all of which come to the same.
        macro_rules! scalar {
            ($($method:ident: $type:ty),*) => {
                $(fn $method<E>(self, _: $type) -> Result<Node, E> { Ok(Node::Scalar) })*
            };
        }

        impl<'de> Visitor<'de> for Any {
            type Value = Node;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("YAML")
            }

            scalar!(visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_i128: i128, visit_u128: u128);
            scalar!(visit_f64: f64, visit_str: &str, visit_bytes: &[u8]);

            fn visit_unit<E>(self) -> Result<Node, E> {
                Ok(Node::Scalar)
            }

            fn visit_none<E>(self) -> Result<Node, E> {
                Ok(Node::Scalar)
            }

            fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
                Node::deserialize(deserializer)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Node, A::Error> {
                let mut items = vec![];
                while let Some(item) = list.next_element()? {
                    items.push(item);
                }
                Ok(Node::List(items))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
                let mut entries = vec![];
                while let Some(key) = map.next_key()? {
                    entries.push((key, map.next_value()?));
                }
                Ok(Node::Map(entries))
            }

            fn visit_enum<A: serde::de::EnumAccess<'de>>(self, data: A) -> Result<Node, A::Error> {
                data.variant::<IgnoredAny>().map(|_| Node::Scalar)
            }
        }

        deserializer.deserialize_any(Any)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_scalars_items_and_keys() {
        let text = "a: 1\nlist:\n  - {name: x, of: [p, q]}\n  - name: y\n    deep: {k: v}\n";
        let positions = Positions::read(text);
        let rows: [(&[Step], (usize, usize)); 8] = [
            (way![], (1, 1)),
            (way!["a"], (1, 4)),
            (way!["list"], (2, 1)),
            (way!["list", 0], (3, 5)),
            (way!["list", 0, "of", 1], (3, 23)),
            (way!["list", 1, "deep", "k"], (5, 15)),
            // What is not there is shown where it would be.
            (way!["list", 1, "missing", 3], (4, 5)),
            (way!["missing"], (1, 1)),
        ];
        for (way, place) in rows {
            let at = positions.of(way);
            assert_eq!((at.line, at.column), place, "{way:?}");
        }
    }

    #[test]
    fn what_has_no_places_is_at_its_begin() {
        for text in ["", "a: [", "? [a]\n: b\n"] {
            assert_eq!(Positions::read(text).of(way!["a", 0]), Position { line: 1, column: 1 }, "{text:?}");
        }
    }

    #[test]
    fn a_field_path_of_the_api_is_a_way() {
        assert_eq!(steps_of_field("spec.containers[0].image"), way!["spec", "containers", 0, "image"]);
        assert_eq!(steps_of_field(""), way![]);
    }
}
