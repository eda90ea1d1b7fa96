//! Eviction messages in texts: between other words, shortened, wrapped, or of old kubelets.

use std::ops::Range;

use evictlab_rules::message::{EvictionMessage, MessageParseError, NodePressure, Offender, ThresholdClause};
use evictlab_rules::quantity::Quantity;
use evictlab_rules::threshold::{NodeCondition, Resource};

use crate::text_cursor::TextCursor;

/// An eviction message in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FoundMessage {
    /// The complete sentences of the message.
    pub message: EvictionMessage,
    /// True if the text ends within a sentence of the message.
    pub is_shortened: bool,
    /// Position of the message in the text.
    pub range: Range<usize>,
}

/// First characters of eviction messages.
const FIRST: [char; 4] = ['T', 'U', 'P', 'C'];

/// Finds the eviction messages of a text. Each of them may be wrapped over several lines.
pub(crate) fn find_messages(text: &str) -> Vec<FoundMessage> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = text[from..].find(FIRST).map(|at| from + at) {
        let mut parser = MessageParser { cursor: TextCursor { text, at }, is_shortened: false };
        let message = parser.message();
        let MessageParser { cursor, is_shortened } = parser;
        from = at + 1;
        if let Some(message) = message {
            from = cursor.at;
            found.push(FoundMessage { message, is_shortened, range: at..cursor.at });
        }
    }
    found
}

/// Reads a text that is an eviction message and contains nothing else, such as `status.message`.
/// Copied objects may lack the space at its end.
///
/// # Errors
/// The text is not a message of a kubelet.
pub(crate) fn parse_message(text: &str) -> Result<EvictionMessage, MessageParseError> {
    let error = match text.parse() {
        Ok(message) => return Ok(message),
        Err(error) => error,
    };
    let found = find_messages(text).into_iter().next().filter(|found| {
        let before = text[..found.range.start].trim();
        let is_whole = !found.is_shortened && text[found.range.end..].trim().is_empty();
        is_whole && (before.is_empty() || before == "Pod")
    });
    found.map(|found| found.message).ok_or(error)
}

/// Describes why a text that seems to contain an eviction message is not one; `None` if it does not
/// contain the beginning of a message.
pub(crate) fn message_error(text: &str) -> Option<MessageParseError> {
    const BEGINNINGS: [&str; 4] = [
        "The node was low on resource: ",
        "Usage of EmptyDir volume ",
        "Pod ephemeral local storage usage exceeds ",
        "The node had condition: ",
    ];
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ") + " ";
    let container = words.match_indices("Container ").map(|(at, _)| at).find(|at| {
        let mut after = words[at + "Container ".len()..].split(' ').skip(1);
        matches!((after.next(), after.next()), (Some("exceeded"), Some("its")) | (Some("was"), Some("using")))
    });
    let from = BEGINNINGS.iter().filter_map(|beginning| words.find(beginning)).chain(container).min()?;
    words[from..].parse::<EvictionMessage>().err()
}

/// Joins the lines of wrapped messages, and writes each of them in the form of new kubelets.
pub(crate) fn join_lines(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    let mut from = 0;
    for found in find_messages(text).into_iter().filter(|found| text[found.range.clone()].contains('\n')) {
        joined.push_str(&text[from..found.range.start]);
        joined.push_str(found.message.to_string().trim_end());
        if found.is_shortened {
            joined.push('…');
        }
        from = found.range.end;
    }
    joined + &text[from..]
}

/// Parses a message at the position of a cursor.
struct MessageParser<'a> {
    cursor: TextCursor<'a>,
    is_shortened: bool,
}

impl MessageParser<'_> {
    /// Parses a message; afterwards, the cursor is at its end.
    fn message(&mut self) -> Option<EvictionMessage> {
        let cursor = &mut self.cursor;
        if cursor.skip("The node was low on resource: ") {
            return self.pressure().map(EvictionMessage::NodePressure);
        }
        if cursor.skip("Usage of EmptyDir volume ") {
            let volume = cursor.quoted_name(" exceeds the limit ")?;
            let limit = cursor.quoted_quantity()?;
            return Some(EvictionMessage::EmptyDirLimit { volume, limit });
        }
        if cursor.skip("Pod ephemeral local storage usage exceeds the total limit of containers ") {
            let limit = self.last_quantity()?;
            return Some(EvictionMessage::PodLimit { limit });
        }
        if cursor.skip("Container ") {
            let container = cursor.name(" exceeded its local ephemeral storage limit ")?;
            let limit = cursor.quoted_quantity()?;
            return Some(EvictionMessage::ContainerLimit { container, limit });
        }
        let in_status = cursor.skip("Pod was rejected: ");
        let conditions = cursor.skip("The node had condition: [").then(|| self.conditions())??;
        Some(EvictionMessage::Rejected { conditions, in_status })
    }

    fn pressure(&mut self) -> Option<NodePressure> {
        let cursor = &mut self.cursor;
        let resource = Resource::ALL.into_iter().find(|resource| cursor.skip(resource.as_str()))?;
        if !cursor.skip(".") {
            return None;
        }
        let mut message = NodePressure { resource, threshold: None, pod: None, containers: vec![] };
        while self.sentence(&mut message) {}
        self.is_shortened |= self.cursor.is_at_ellipsis();
        if self.is_shortened {
            self.cursor.skip_ellipsis();
        }
        Some(message)
    }

    /// Parses a sentence after the first one. At the end of the message, returns false and does not
    /// move the cursor.
    fn sentence(&mut self, message: &mut NodePressure) -> bool {
        let start = self.cursor.at;
        let parsed = match message {
            NodePressure { threshold: None, pod: None, containers, .. }
                if containers.is_empty() && self.begins(" Threshold quantity: ") =>
            {
                message.threshold = self.threshold();
                message.threshold.is_some()
            }
            NodePressure { pod: None, containers, .. } if containers.is_empty() && self.begins(" Pod ") => {
                message.pod = self.offender(message.resource);
                message.pod.is_some()
            }
            _ if self.begins(" Container ") => {
                let offender = self.offender(message.resource);
                let found = offender.is_some();
                message.containers.extend(offender);
                found
            }
            _ => false,
        };
        if !parsed {
            self.cursor.at = start;
        }
        parsed
    }

    /// Skips the beginning of a sentence. If the text ends within it, the message is shortened.
    fn begins(&mut self, words: &str) -> bool {
        let skipped = self.cursor.skip(words);
        self.is_shortened |= !skipped && self.cursor.ends_within(words);
        skipped
    }

    fn threshold(&mut self) -> Option<ThresholdClause> {
        let quantity = self.cursor.quantity(", available: ");
        let clause = quantity
            .and_then(|quantity| Some(ThresholdClause { quantity, available: self.last_quantity()? }));
        self.is_shortened |= clause.is_none();
        clause
    }

    /// Parses the rest of `Container NAME was using …`; that of a pod is the same.
    fn offender(&mut self, resource: Resource) -> Option<Offender> {
        let Some(name) = self.cursor.name(" was using ") else {
            // Other words may follow a message.
            self.is_shortened |= self.cursor.ends_within_name(" was using ");
            return None;
        };
        let offender =
            self.usage_and_request(resource).map(|(usage, request)| Offender { name, usage, request });
        self.is_shortened |= offender.is_none();
        offender
    }

    fn usage_and_request(&mut self, resource: Resource) -> Option<(Quantity, Quantity)> {
        let usage = self.cursor.quantity(", ")?;
        // Kubelets before 1.26.
        if self.cursor.skip("which exceeds its request of ") {
            return Some((usage, self.last_quantity()?));
        }
        let request = self.cursor.skip("request is ").then(|| self.cursor.quantity(", "))??;
        let is_whole = self.cursor.skip("has larger consumption of ") && self.cursor.skip(resource.as_str());
        self.cursor.skip(".");
        is_whole.then_some((usage, request))
    }

    /// Parses the quantity at the end of a sentence. Without a full stop, it may be shortened,
    /// unless it ends with a unit such as `Mi`.
    fn last_quantity(&mut self) -> Option<Quantity> {
        let quantity = self.cursor.quantity("")?;
        let is_whole = self.cursor.skip(".") || quantity.to_string().ends_with('i');
        is_whole.then_some(quantity)
    }

    fn conditions(&mut self) -> Option<Vec<NodeCondition>> {
        const ALL: [NodeCondition; 3] =
            [NodeCondition::MemoryPressure, NodeCondition::DiskPressure, NodeCondition::PidPressure];
        let cursor = &mut self.cursor;
        let mut conditions = Vec::new();
        while let Some(condition) = ALL.into_iter().find(|condition| cursor.skip(condition.as_str())) {
            conditions.push(condition);
            cursor.skip(" ");
        }
        let is_whole = cursor.skip("]") && !conditions.is_empty();
        cursor.skip(".");
        is_whole.then_some(conditions)
    }
}
