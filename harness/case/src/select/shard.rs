//! Shards of a selection, to split a long run between several machines.

use std::borrow::Borrow;
use std::cmp::Reverse;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::ParsedCase;

/// A shard, such as `2/3`: the second of three. Each case of a selection is in exactly one shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Number of the shard, from 1.
    pub part: usize,
    /// Number of shards.
    pub of: usize,
}

/// A text that is not a shard.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShardError {
    /// Not two numbers.
    #[error("invalid shard {0:?}: example: 2/3, the second of three")]
    Shape(String),
    /// The shard is not between 1 and the number of shards.
    #[error("invalid shard {part} of {of}: shards are numbered from 1 to {of}")]
    OutOfRange {
        /// Shard.
        part: usize,
        /// Number of shards.
        of: usize,
    },
    /// The number of shards is 0.
    #[error("the number of shards must be at least 1")]
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
    /// Returns the cases of the shard, in their order.
    ///
    /// Cases are dealt in turn: first those with pressure, which need a node of their own, then
    /// slow ones, then the others, each with the longest deadlines first. Shards therefore take
    /// about the same time, and their content depends only on the selection.
    pub fn select<C: Borrow<ParsedCase>>(self, mut cases: Vec<Arc<C>>) -> Vec<Arc<C>> {
        let rank = |case: &Arc<C>| {
            let case: &ParsedCase = (**case).borrow();
            let slow = case.case.labels.iter().any(|label| label == "Slow");
            (case.case.pressure.is_none(), !slow, Reverse(case.case.deadline()), case.id())
        };
        let mut deck: Vec<_> = cases.iter().map(rank).collect();
        deck.sort();
        let (of, index) = (self.of, self.part - 1);
        cases.retain(|case| deck.binary_search(&rank(case)).is_ok_and(|position| position % of == index));
        cases
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LoadedCase, parse};

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
                "name: {name}\nabout: b.\n{more}pods: [{{metadata: {{name: a}}, spec: {{containers: [{{name: c, image: i{grows}}}]}}}}]\nexpect: {{evicted: []}}\n"
            );
            let file = format!("s/{name}.yaml");
            Arc::new(parse("s", &file, &file, text.as_bytes()).unwrap())
        };
        (0..20).map(case).collect()
    }

    #[test]
    fn shards_partition_the_selection_and_balance_long_cases() {
        let all = cases();
        for of in 1..=7 {
            let shards: Vec<Vec<_>> = (1..=of).map(|part| Shard { part, of }.select(all.clone())).collect();
            let mut together: Vec<String> = shards.iter().flatten().map(|case| case.id()).collect();
            together.sort();
            assert_eq!(together, all.iter().map(|case| case.id()).collect::<Vec<_>>(), "{of} shards");
            let with_pressure = |shard: &Vec<Arc<LoadedCase>>| {
                shard.iter().filter(|case| case.case.pressure.is_some()).count()
            };
            let counts: Vec<usize> = shards.iter().map(with_pressure).collect();
            assert!(counts.iter().max().unwrap() - counts.iter().min().unwrap() <= 1, "{counts:?}");
        }
    }

    #[test]
    fn parses_shards() {
        assert_eq!("2/3".parse::<Shard>().unwrap().to_string(), "2/3");
        for (text, expected) in [
            ("2", "invalid shard \"2\": example: 2/3"),
            ("a/b", "invalid shard"),
            ("-1/2", "invalid shard"),
            ("0/3", "invalid shard 0 of 3: shards are numbered from 1 to 3"),
            ("4/3", "invalid shard 4 of 3"),
            ("1/0", "the number of shards must be at least 1"),
        ] {
            let error = text.parse::<Shard>().unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
