//! Parses messages.

use std::str::FromStr;

use super::{EvictionMessage, NodePressure, Offender, ThresholdClause};
use crate::quantity::Quantity;
use crate::threshold::{NodeCondition, Resource};

/// The text is not an eviction message of kubelets 1.26 to 1.37.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "not an eviction message: at byte {offset}, after {:?}, expected {expected}, found {}",
    self.before(),
    self.found()
)]
pub struct MessageParseError {
    /// Byte offset of the first unexpected character.
    pub offset: usize,
    /// Description of the text expected at the offset.
    pub expected: String,
    /// The parsed text.
    pub text: String,
}

impl MessageParseError {
    /// Returns up to 40 characters before the offset.
    fn before(&self) -> String {
        let before: Vec<char> = self.text[..self.offset].chars().collect();
        before[before.len().saturating_sub(40)..].iter().collect()
    }

    /// Returns up to 40 characters from the offset on.
    fn found(&self) -> String {
        let rest: String = self.text[self.offset..].chars().take(40).collect();
        if rest.is_empty() { "the end".to_owned() } else { format!("{rest:?}") }
    }
}

impl FromStr for EvictionMessage {
    type Err = MessageParseError;

    /// Parses a message. Quantities keep their text, so that the message prints as parsed.
    fn from_str(text: &str) -> Result<Self, MessageParseError> {
        let mut parser = Parser { text, offset: 0 };
        let message = parser.message()?;
        if parser.rest().is_empty() { Ok(message) } else { Err(parser.error("the end")) }
    }
}

/// A text and the offset of its unparsed rest.
struct Parser<'a> {
    text: &'a str,
    offset: usize,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.offset..]
    }

    fn error(&self, expected: impl Into<String>) -> MessageParseError {
        MessageParseError { offset: self.offset, expected: expected.into(), text: self.text.to_owned() }
    }

    /// Skips `literal` if the rest begins with `literal`, and returns whether it does.
    fn skip(&mut self, literal: &str) -> bool {
        let found = self.rest().starts_with(literal);
        if found {
            self.offset += literal.len();
        }
        found
    }

    /// Parses the token before `stop` and skips both. `what` describes the token in errors.
    ///
    /// Names and quantities contain neither spaces nor quotes, so a token ends there at the latest.
    fn token<T>(
        &mut self,
        stop: &str,
        what: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, MessageParseError> {
        let rest = self.rest();
        let Some(end) = rest.find(stop) else { return Err(self.error(format!("{what}, then {stop:?}"))) };
        let token = &rest[..end];
        if token.is_empty() || token.contains(|c: char| c.is_whitespace() || c == '"') {
            return Err(self.error(format!("{what}, then {stop:?}")));
        }
        let Some(value) = parse(token) else { return Err(self.error(what)) };
        self.offset += end + stop.len();
        Ok(value)
    }

    fn name(&mut self, what: &str, stop: &str) -> Result<String, MessageParseError> {
        self.token(stop, what, |token| Some(token.to_owned()))
    }

    fn quantity(&mut self, stop: &str) -> Result<Quantity, MessageParseError> {
        self.token(stop, "a quantity", |token| Quantity::parse_verbatim(token).ok())
    }

    fn message(&mut self) -> Result<EvictionMessage, MessageParseError> {
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

    fn pressure(&mut self) -> Result<NodePressure, MessageParseError> {
        let resource = self.token(". ", "memory, ephemeral-storage, inodes or pids", Resource::from_name)?;
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

    fn offender(&mut self, what: &str, resource: Resource) -> Result<Offender, MessageParseError> {
        let name = self.name(what, " was using ")?;
        let usage = self.quantity(", request is ")?;
        let request = self.quantity(", has larger consumption of ")?;
        self.token(". ", resource.as_str(), |token| (token == resource.as_str()).then_some(()))?;
        Ok(Offender { name, usage, request })
    }

    fn conditions(&mut self) -> Result<Vec<NodeCondition>, MessageParseError> {
        const WHAT: &str = "MemoryPressure, DiskPressure or PIDPressure";
        let mut conditions = vec![];
        loop {
            let rest = self.rest();
            let last = rest.find("]. ").ok_or_else(|| self.error(format!("{WHAT}, then \"]. \"")))?;
            let stop = if rest[..last].contains(' ') { " " } else { "]. " };
            conditions.push(self.token(stop, WHAT, NodeCondition::from_name)?);
            if stop != " " {
                return Ok(conditions);
            }
        }
    }
}
