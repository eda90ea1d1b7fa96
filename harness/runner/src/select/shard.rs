//! A part of the selected cases, so that several machines run all of them together.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::case::LoadedCase;

/// One of several parts, such as `2/3`: the second of three. All parts of one selection are the selection, and no case is in two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    part: usize,
    of: usize,
}

/// The text names no part.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShardError {
    /// No two numbers.
    #[error("{0:?} is no shard: write it like 2/3, the second of three")]
    Shape(String),
    /// Parts count from 1.
    #[error("there is no shard {part} of {of}: shards are numbered from 1 to {of}")]
    OutOfRange {
        /// The part.
        part: usize,
        /// Of how many.
        of: usize,
    },
    /// Nothing cannot be divided into.
    #[error("a selection is split into 1 shard at least")]
    None,
}

impl FromStr for Shard {
    type Err = ShardError;

    fn from_str(text: &str) -> Result<Self, ShardError> {
        let numbers =
            text.split_once('/').and_then(|(part, of)| Some((part.parse().ok()?, of.parse().ok()?)));
        match numbers.ok_or_else(|| ShardError::Shape(text.to_owned()))? {
            (_, 0) => Err(ShardError::None),
            (part, of) if part == 0 || part > of => Err(ShardError::OutOfRange { part, of }),
            (part, of) => Ok(Self { part, of }),
        }
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.part, self.of)
    }
}

impl Shard {
    /// The cases of this part, in the order that they had. They are dealt out like cards: first those that starve a node, which have it for
    /// themselves, then the slow ones, then the rest, each by suite and name. So the parts take about as long as each other, and depend on
    /// nothing but the selection.
    pub fn of(self, mut cases: Vec<Arc<LoadedCase>>) -> Vec<Arc<LoadedCase>> {
        let rank = |case: &LoadedCase| {
            let slow = case.case.labels.iter().any(|label| label == "Slow");
            (case.case.pressure.is_none(), !slow, case.id())
        };
        let mut deck: Vec<_> = cases.iter().map(|case| rank(case)).collect();
        deck.sort();
        let (of, mine) = (self.of, self.part - 1);
        cases.retain(|case| deck.binary_search(&rank(case)).is_ok_and(|place| place % of == mine));
        cases
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::parse;

    fn cases() -> Vec<Arc<LoadedCase>> {
        let case = |nth: usize| {
            let name = format!("c{nth:02}");
            let (more, grows) = match nth % 3 {
                0 => (
                    "labels: [Serial, Disruptive]\npressure: {signal: memory.available}\n",
                    ", args: [$(TOTAL)]",
                ),
                1 => ("labels: [Slow]\n", ""),
                _ => ("", ""),
            };
            let text = format!(
                "name: {name}\nabout: b.\n{more}pods: [{{metadata: {{name: a}}, spec: {{containers: [{{name: c, image: i{grows}}}]}}}}]\nexpect: {{}}\n"
            );
            let file = format!("s/{name}.yaml");
            Arc::new(parse("s", &file, &file, text.as_bytes()).unwrap())
        };
        (0..20).map(case).collect()
    }

    #[test]
    fn all_shards_are_the_selection_and_each_has_its_part_of_the_long_ones() {
        let all = cases();
        for of in 1..=7 {
            let shards: Vec<Vec<_>> = (1..=of).map(|part| Shard { part, of }.of(all.clone())).collect();
            let mut together: Vec<String> = shards.iter().flatten().map(|case| case.id()).collect();
            together.sort();
            assert_eq!(together, all.iter().map(|case| case.id()).collect::<Vec<_>>(), "{of} shards");
            let starving = |shard: &Vec<Arc<LoadedCase>>| {
                shard.iter().filter(|case| case.case.pressure.is_some()).count()
            };
            let counts: Vec<usize> = shards.iter().map(starving).collect();
            assert!(counts.iter().max().unwrap() - counts.iter().min().unwrap() <= 1, "{counts:?}");
        }
    }

    #[test]
    fn reads_what_is_a_shard() {
        assert_eq!("2/3".parse::<Shard>().unwrap().to_string(), "2/3");
        for (text, says) in [
            ("2", "\"2\" is no shard: write it like 2/3"),
            ("a/b", "is no shard"),
            ("-1/2", "is no shard"),
            ("0/3", "there is no shard 0 of 3: shards are numbered from 1 to 3"),
            ("4/3", "there is no shard 4 of 3"),
            ("1/0", "a selection is split into 1 shard at least"),
        ] {
            let error = text.parse::<Shard>().unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
