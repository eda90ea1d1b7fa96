//! A message's text, read.

use std::str::FromStr;

use super::{EvictionMessage, NodePressure, Offender, ThresholdClause};
use crate::quantity::Quantity;
use crate::threshold::{NodeCondition, Resource};

/// The text is no eviction message of kubelets 1.26 to 1.36.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no eviction message: read {:?}, then at byte {offset} expected {expected}, found {}", self.read(), self.found())]
pub struct ReadError {
    /// Where reading stopped, in bytes.
    pub offset: usize,
    /// What could have come there.
    pub expected: String,
    /// The whole text.
    pub text: String,
}

impl ReadError {
    /// What came before, at most its last 40 characters.
    fn read(&self) -> String {
        let before: Vec<char> = self.text[..self.offset].chars().collect();
        before[before.len().saturating_sub(40)..].iter().collect()
    }

    /// What came instead, at most 40 characters.
    fn found(&self) -> String {
        let rest: String = self.text[self.offset..].chars().take(40).collect();
        if rest.is_empty() { "the end".to_owned() } else { format!("{rest:?}") }
    }
}

impl FromStr for EvictionMessage {
    type Err = ReadError;

    /// Reads a message; figures keep their text, so that it prints as it was.
    fn from_str(text: &str) -> Result<Self, ReadError> {
        let mut reader = Reader { text, at: 0 };
        let message = reader.message()?;
        if reader.rest().is_empty() { Ok(message) } else { Err(reader.error("the end")) }
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn error(&self, expected: impl Into<String>) -> ReadError {
        ReadError { offset: self.at, expected: expected.into(), text: self.text.to_owned() }
    }

    fn skip(&mut self, literal: &str) -> bool {
        let there = self.rest().starts_with(literal);
        if there {
            self.at += literal.len();
        }
        there
    }

    /// What stands before `stop`, read by `read`; `stop` is skipped. Neither names nor figures contain spaces or
    /// quotes, so that a stop is never looked for beyond them.
    fn before<T>(
        &mut self,
        stop: &str,
        what: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, ReadError> {
        let rest = self.rest();
        let Some(end) = rest.find(stop) else { return Err(self.error(format!("{what}, then {stop:?}"))) };
        let token = &rest[..end];
        if token.is_empty() || token.contains(|c: char| c.is_whitespace() || c == '"') {
            return Err(self.error(format!("{what}, then {stop:?}")));
        }
        let Some(value) = read(token) else { return Err(self.error(what)) };
        self.at += end + stop.len();
        Ok(value)
    }

    fn name(&mut self, what: &str, stop: &str) -> Result<String, ReadError> {
        self.before(stop, what, |token| Some(token.to_owned()))
    }

    fn quantity(&mut self, stop: &str) -> Result<Quantity, ReadError> {
        self.before(stop, "a quantity", |token| Quantity::printed(token).ok())
    }

    fn message(&mut self) -> Result<EvictionMessage, ReadError> {
        if self.skip("The node was low on resource: ") {
            return self.pressure().map(EvictionMessage::NodePressure);
        }
        if self.skip("Usage of EmptyDir volume \"") {
            let volume = self.name("a volume's name", "\" exceeds the limit \"")?;
            return Ok(EvictionMessage::EmptyDirLimit { volume, limit: self.quantity("\". ")? });
        }
        if self.skip("Pod ephemeral local storage usage exceeds the total limit of containers ") {
            return Ok(EvictionMessage::PodLimit { limit: self.quantity(". ")? });
        }
        if self.skip("Container ") {
            let container =
                self.name("a container's name", " exceeded its local ephemeral storage limit \"")?;
            return Ok(EvictionMessage::ContainerLimit { container, limit: self.quantity("\". ")? });
        }
        let in_status = self.skip("Pod was rejected: ");
        if self.skip("The node had condition: [") {
            return Ok(EvictionMessage::Rejected { conditions: self.conditions()?, in_status });
        }
        Err(self.error("the beginning of an eviction message"))
    }

    fn pressure(&mut self) -> Result<NodePressure, ReadError> {
        let resource = self.before(". ", "memory, ephemeral-storage, inodes or pids", Resource::named)?;
        let mut message = NodePressure { resource, threshold: None, pod: None, containers: vec![] };
        if self.skip("Threshold quantity: ") {
            let quantity = self.quantity(", available: ")?;
            message.threshold = Some(ThresholdClause { quantity, available: self.quantity(". ")? });
        }
        if self.skip("Pod ") {
            message.pod = Some(self.offender("a pod's name", resource)?);
        }
        while self.skip("Container ") {
            message.containers.push(self.offender("a container's name", resource)?);
        }
        Ok(message)
    }

    fn offender(&mut self, what: &str, resource: Resource) -> Result<Offender, ReadError> {
        let name = self.name(what, " was using ")?;
        let usage = self.quantity(", request is ")?;
        let request = self.quantity(", has larger consumption of ")?;
        self.before(". ", resource.as_str(), |token| (token == resource.as_str()).then_some(()))?;
        Ok(Offender { name, usage, request })
    }

    fn conditions(&mut self) -> Result<Vec<NodeCondition>, ReadError> {
        const WHAT: &str = "MemoryPressure, DiskPressure or PIDPressure";
        let mut conditions = vec![];
        loop {
            let rest = self.rest();
            let last = rest.find("]. ").ok_or_else(|| self.error(format!("{WHAT}, then \"]. \"")))?;
            let stop = if rest[..last].contains(' ') { " " } else { "]. " };
            conditions.push(self.before(stop, WHAT, NodeCondition::named)?);
            if stop != " " {
                return Ok(conditions);
            }
        }
    }
}
