//! Positions of the values of a YAML document.

use std::fmt;

pub use evictlab_api_types::PathSegment;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Location, Spanned};

/// A line and a column, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Line.
    pub line: usize,
    /// Column, in characters.
    pub column: usize,
}

impl From<Location> for Position {
    fn from(location: Location) -> Self {
        let number = |n: u64| usize::try_from(n).unwrap_or(usize::MAX).max(1);
        Self { line: number(location.line()), column: number(location.column()) }
    }
}

/// The positions of the values of a YAML document.
#[derive(Clone, Debug)]
pub struct Positions(Spanned<Node>);

#[derive(Clone, Debug)]
enum Node {
    Scalar,
    List(Vec<Spanned<Node>>),
    Map(Vec<(Spanned<String>, Spanned<Node>)>),
}

/// A path in a document: `yaml_path!["expect", "evicted", 0]`.
#[macro_export]
macro_rules! yaml_path {
    ($($segment:expr),* $(,)?) => { &[$($crate::positions::PathSegment::from($segment)),*] };
}

/// Returns the position of the first occurrence of a word at or after a position; the position
/// itself if an alias is there, or if the rest of the text does not contain the word as it is.
pub(crate) fn find_word(text: &str, from: Position, word: &str) -> Position {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    for (index, line) in text.lines().enumerate().skip(from.line - 1) {
        let skipped = if index + 1 == from.line { from.column - 1 } else { 0 };
        let start = line.char_indices().nth(skipped).map_or(line.len(), |(at, _)| at);
        if index + 1 == from.line && line[start..].starts_with('*') {
            return from;
        }
        let found = line[start..].match_indices(word).find(|(at, _)| {
            let (before, after) = line[start..].split_at(*at);
            !before.ends_with(is_part) && !after[word.len()..].starts_with(is_part)
        });
        if let Some((at, _)) = found {
            let column = line[..start + at].chars().count() + 1;
            return Position { line: index + 1, column };
        }
    }
    from
}

/// Returns the segments of a field path of Kubernetes, such as `spec.containers[0].image` or
/// `spec.containers[0].resources.limits[example.com/gpu]` (`Path.String` in
/// `staging/src/k8s.io/apimachinery/pkg/util/validation/field/path.go`).
///
/// A number in brackets is the index of an item, although it may be the key of a map:
/// [`Positions::locate`] accepts it as both.
pub fn segments_of_field(path: &str) -> Vec<PathSegment> {
    let mut segments = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        let (segment, after) = match rest.strip_prefix('[') {
            Some(bracketed) => {
                let (content, after) = bracketed.split_once(']').unwrap_or((bracketed, ""));
                (segment_in_brackets(content), after)
            }
            None => {
                let (name, after) = rest.split_at(rest.find(['.', '[']).unwrap_or(rest.len()));
                (PathSegment::from(name), after.strip_prefix('.').unwrap_or(after))
            }
        };
        rest = after;
        segments.extend((segment != PathSegment::from("")).then_some(segment));
    }
    segments
}

fn segment_in_brackets(content: &str) -> PathSegment {
    match content.parse::<usize>() {
        Ok(item) if item.to_string() == content => PathSegment::Item(item),
        _ => PathSegment::from(content),
    }
}

impl Positions {
    /// Parses the positions of a document. In a text that is not YAML, or that has keys other than
    /// strings, every path is at the start.
    pub fn read(text: &str) -> Self {
        let unknown = || Spanned::new(Node::Scalar, Location::UNKNOWN, Location::UNKNOWN);
        Self(serde_saphyr::from_str(text).unwrap_or_else(|_| unknown()))
    }

    /// Returns the start of the value at a path, or of the last existing value on the path. A map
    /// or list that is the value of a key starts at the key. In a map, an index is the key with
    /// these digits.
    pub fn locate(&self, path: &[PathSegment]) -> Position {
        let mut node = &self.0;
        let mut position = Position::from(node.referenced);
        for segment in path {
            let next = match (&node.value, segment) {
                (Node::List(items), PathSegment::Item(item)) => {
                    items.get(*item).map(|next| (next, next.referenced))
                }
                (Node::Map(entries), PathSegment::Key(name)) => value_of_key(entries, name),
                (Node::Map(entries), PathSegment::Item(item)) => value_of_key(entries, &item.to_string()),
                _ => None,
            };
            let Some((next, location)) = next else { break };
            (node, position) = (next, location.into());
        }
        position
    }
}

/// Returns the value of a key, and the position at which it starts.
fn value_of_key<'a>(
    entries: &'a [(Spanned<String>, Spanned<Node>)],
    name: &str,
) -> Option<(&'a Spanned<Node>, Location)> {
    let (key, value) = entries.iter().find(|(key, _)| key.value == name)?;
    let location = if matches!(value.value, Node::Scalar) { value.referenced } else { key.referenced };
    Some((value, location))
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;

        /// Implements the methods for scalars, which all have the same result.
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
    fn locates_scalars_items_and_keys() {
        let text = "a: 1\nlist:\n  - {name: x, of: [p, q]}\n  - name: y\n    deep: {k: v}\n";
        let positions = Positions::read(text);
        let rows: [(&[PathSegment], (usize, usize)); 8] = [
            (yaml_path![], (1, 1)),
            (yaml_path!["a"], (1, 4)),
            (yaml_path!["list"], (2, 1)),
            (yaml_path!["list", 0], (3, 5)),
            (yaml_path!["list", 0, "of", 1], (3, 23)),
            (yaml_path!["list", 1, "deep", "k"], (5, 15)),
            // A missing value is at its parent.
            (yaml_path!["list", 1, "missing", 3], (4, 5)),
            (yaml_path!["missing"], (1, 1)),
        ];
        for (path, expected) in rows {
            let at = positions.locate(path);
            assert_eq!((at.line, at.column), expected, "{path:?}");
        }
    }

    #[test]
    fn texts_without_positions_are_at_the_start() {
        for text in ["", "a: [", "? [a]\n: b\n"] {
            assert_eq!(
                Positions::read(text).locate(yaml_path!["a", 0]),
                Position { line: 1, column: 1 },
                "{text:?}"
            );
        }
    }

    #[test]
    fn splits_field_paths_of_the_api() {
        let rows: [(&str, &[PathSegment]); 7] = [
            ("", yaml_path![]),
            ("spec.containers[0].image", yaml_path!["spec", "containers", 0, "image"]),
            ("limits[example.com/gpu].x", yaml_path!["limits", "example.com/gpu", "x"]),
            ("metadata.annotations[a.b/c][d]", yaml_path!["metadata", "annotations", "a.b/c", "d"]),
            // Outside of brackets, a number is a key.
            ("data.8080", yaml_path!["data", "8080"]),
            ("data[007]", yaml_path!["data", "007"]),
            ("a..[].b[c", yaml_path!["a", "b", "c"]),
        ];
        for (path, segments) in rows {
            assert_eq!(segments_of_field(path), segments, "{path}");
        }
    }

    #[test]
    fn locates_the_keys_in_brackets() {
        let positions = Positions::read("limits:\n  example.com/gpu: lots\ndata:\n  \"8080\": x\n");
        for (path, line) in [("limits[example.com/gpu]", 2), ("data[8080]", 4), ("data.8080", 4)] {
            assert_eq!(positions.locate(&segments_of_field(path)).line, line, "{path}");
        }
    }
}
