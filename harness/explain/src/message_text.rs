//! Eviction messages in texts: between other words, shortened, wrapped, or of old kubelets.

use std::ops::Range;
use std::sync::LazyLock;

use evictlab_rules::message::{EvictionMessage, MessageParseError, NodePressure, Offender, ThresholdClause};
use evictlab_rules::quantity::Quantity;
use evictlab_rules::threshold::{NodeCondition, Resource};
use regex::Regex;

use crate::text_cursor::TextCursor;

/// An eviction message in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FoundMessage {
    /// The complete sentences of the message.
    pub message: EvictionMessage,
    pub end: MessageEnd,
    /// Position of the message in the text, with the sentences that could not be read.
    pub range: Range<usize>,
}

/// The end of a message in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MessageEnd {
    /// All sentences were read.
    Whole,
    /// The text ends within a sentence.
    Shortened,
    /// The sentences from this text on could not be read.
    Unread(String),
}

/// First characters of eviction messages.
const FIRST: [char; 4] = ['T', 'U', 'P', 'C'];
/// Beginnings of the sentences after the first one.
const SENTENCES: [&str; 3] = [" Threshold quantity: ", " Pod ", " Container "];
/// Conditions of nodes that reject pods.
const CONDITIONS: [NodeCondition; 3] =
    [NodeCondition::MemoryPressure, NodeCondition::DiskPressure, NodeCondition::PidPressure];
/// Names of resources in messages of kubelets before 1.19.
const OLD_NAMES: [(&str, Resource); 4] = [
    ("nodefsInodes", Resource::Inodes),
    ("imagefsInodes", Resource::Inodes),
    ("nodefs", Resource::EphemeralStorage),
    ("imagefs", Resource::EphemeralStorage),
];
/// Maximum number of characters of a sentence that is wrapped and cannot be read.
const MAX_SENTENCE: usize = 400;
/// Words of the sentences after the first one. The first alternative is within one sentence.
static SENTENCE_WORDS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r"(?i)\b(?:container|pod)\b(?:[^.]|\.\S)*?\bwas\s+using\b|\brequest\s+is\b|\bexceeds\s+its\s+request\b|\blarger\s+consumption\s+of\b|,\s+available:",
    )
    .expect("the pattern is valid")
});

/// Finds the eviction messages of a text. Each of them may be wrapped over several lines.
pub(crate) fn find_messages(text: &str) -> Vec<FoundMessage> {
    let mut found = Vec::new();
    // Positions up to which the sentences after a message could be read.
    let mut stops = Vec::new();
    let mut from = 0;
    while let Some(at) = text[from..].find(FIRST).map(|at| from + at) {
        let mut parser =
            MessageParser { cursor: TextCursor { text, at }, is_shortened: false, stopped_at: None };
        let message = parser.message();
        let MessageParser { cursor, is_shortened, stopped_at } = parser;
        from = at + 1;
        if let Some(message) = message {
            from = cursor.at;
            let end = if is_shortened { MessageEnd::Shortened } else { MessageEnd::Whole };
            found.push(FoundMessage { message, end, range: at..cursor.at });
            stops.push(stopped_at.unwrap_or(cursor.at));
        }
    }
    let starts = found.iter().skip(1).map(|found| found.range.start);
    let limits: Vec<usize> = starts.chain([text.len()]).collect();
    for ((found, stop), limit) in found.iter_mut().zip(stops).zip(limits) {
        if matches!(found.message, EvictionMessage::NodePressure(_))
            && let Some(end) = end_of_unread(text, found.range.end, stop..limit)
        {
            let words = text[found.range.end..end].split_whitespace();
            found.end = MessageEnd::Unread(words.collect::<Vec<_>>().join(" "));
            found.range.end = end;
        }
    }
    found
}

/// Returns the end of the sentences from `from` on that belong to a message and could not be read;
/// `None` if other text follows. `rest`: from the first character that could not be read to the
/// next message.
fn end_of_unread(text: &str, from: usize, rest: Range<usize>) -> Option<usize> {
    let start = rest.start;
    let rest = text.get(rest)?;
    // Only a sentence that begins like one of a message may be on the next line.
    let is_sentence = SENTENCES.iter().any(|words| TextCursor { text, at: from }.skip(words));
    let limit = if is_sentence {
        let paragraph = rest.find("\n\n").unwrap_or(rest.len());
        rest.char_indices().nth(MAX_SENTENCE).map_or(paragraph, |(at, _)| paragraph.min(at))
    } else {
        rest.find('\n').unwrap_or(rest.len())
    };
    let read = SENTENCE_WORDS.find(&rest[..limit])?.end();
    let more = rest[read..].find(['\n', '"']).unwrap_or(rest.len() - read);
    Some(start + read + more)
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
        let is_whole = found.end == MessageEnd::Whole && text[found.range.end..].trim().is_empty();
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

/// Returns the last word of a text that ends within the first sentence of a message; `None` for
/// other texts.
pub(crate) fn cut_after(text: &str) -> Option<String> {
    text.match_indices(FIRST).find_map(|(from, _)| {
        let mut cursor = TextCursor { text, at: from };
        if !ends_within_first_sentence(&mut cursor) {
            return None;
        }
        // Other messages contain quotes.
        let stops: &[char] = if text[from..].starts_with("The ") { &['\n', '"'] } else { &['\n'] };
        let end = text[cursor.at..].find(stops).map_or(text.len(), |length| cursor.at + length);
        let is_of_word = |c: char| c.is_alphanumeric() || c == ':';
        let words = text[from..end].trim_end_matches(|c| !is_of_word(c));
        let last = words.split_whitespace().last()?;
        Some(last.trim_start_matches(|c| !is_of_word(c)).to_owned())
    })
}

/// Skips the words of a first sentence; returns whether the text ends within it.
fn ends_within_first_sentence(cursor: &mut TextCursor<'_>) -> bool {
    const RESOURCE: &str = " on resource: ";
    const VOLUME: &str = " exceeds the limit ";
    const CONTAINER: &str = " local ephemeral storage limit ";
    if cursor.skip("The node was low") {
        if !cursor.skip(RESOURCE) {
            return cursor.is_at_end() || cursor.ends_within(RESOURCE);
        }
        return cursor.is_at_end() || Resource::ALL.into_iter().any(|name| ends_with(*cursor, name.as_str()));
    }
    if cursor.skip("Usage of EmptyDir volume ") {
        let has_name = cursor.name("").is_some();
        cursor.skip_marks();
        return if has_name { ends_within_limit(cursor, VOLUME) } else { cursor.is_at_end() };
    }
    if cursor.skip("Pod ephemeral local storage usage exceeds the total limit of containers ") {
        return cursor.ends_within_word();
    }
    if cursor.skip("Container ") {
        return cursor.name(" exceeded its").is_some() && ends_within_limit(cursor, CONTAINER);
    }
    if cursor.skip("The node had condition: [") {
        while CONDITIONS.iter().any(|name| cursor.skip(name.as_str())) {
            cursor.skip(" ");
        }
        return cursor.is_at_end() || CONDITIONS.iter().any(|name| cursor.ends_within(name.as_str()));
    }
    false
}

/// Returns whether a text ends within these words, or within the limit after them.
fn ends_within_limit(cursor: &mut TextCursor<'_>, words: &str) -> bool {
    if cursor.skip(words) {
        cursor.ends_within_word()
    } else {
        cursor.is_at_end() || cursor.ends_within(words)
    }
}

/// Returns whether a text ends with this word, or with a part of it.
fn ends_with(mut cursor: TextCursor<'_>, word: &str) -> bool {
    cursor.skip_marks();
    cursor.ends_within(word) || (cursor.skip(word) && cursor.is_at_end())
}

/// Joins the lines of wrapped messages, and writes each of them in the form of new kubelets.
pub(crate) fn join_lines(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    let mut from = 0;
    for found in find_messages(text).into_iter().filter(|found| text[found.range.clone()].contains('\n')) {
        joined.push_str(&text[from..found.range.start]);
        joined.push_str(found.message.to_string().trim_end());
        match &found.end {
            MessageEnd::Whole => {}
            MessageEnd::Shortened => joined.push('…'),
            MessageEnd::Unread(rest) => {
                joined.push(' ');
                joined.push_str(rest);
            }
        }
        from = found.range.end;
    }
    joined + &text[from..]
}

/// Parses a message at the position of a cursor.
struct MessageParser<'a> {
    cursor: TextCursor<'a>,
    is_shortened: bool,
    /// Position within the first sentence that could not be read, if its beginning could be.
    stopped_at: Option<usize>,
}

impl MessageParser<'_> {
    /// Parses a message; afterwards, the cursor is at its end.
    fn message(&mut self) -> Option<EvictionMessage> {
        let cursor = &mut self.cursor;
        if cursor.skip("The node was low on resource: ") {
            // Kubelets before 1.10 rejected pods with these words.
            if cursor.skip("[") {
                let conditions = self.conditions()?;
                return Some(EvictionMessage::Rejected { conditions, in_status: false });
            }
            return self.pressure().map(EvictionMessage::NodePressure);
        }
        if cursor.skip("Usage of EmptyDir volume ") {
            let volume = cursor.name(" exceeds the limit ")?;
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
        cursor.skip_marks();
        let new = Resource::ALL.into_iter().find(|resource| cursor.skip(resource.as_str()));
        let old = || OLD_NAMES.into_iter().find_map(|(name, resource)| cursor.skip(name).then_some(resource));
        let resource = new.or_else(old)?;
        if !cursor.skip_after_marks(".") {
            self.is_shortened = cursor.is_at_end();
            if !self.is_shortened {
                return None;
            }
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
        if clause.is_none() {
            self.stop();
        }
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
        if offender.is_none() {
            self.stop();
        }
        offender
    }

    /// Ends the message within a sentence.
    fn stop(&mut self) {
        self.is_shortened = true;
        self.stopped_at = Some(self.cursor.at);
    }

    fn usage_and_request(&mut self, resource: Resource) -> Option<(Quantity, Quantity)> {
        let usage = self.cursor.quantity(", ")?;
        // Kubelets before 1.26.
        if self.cursor.skip("which exceeds its request of ") {
            return Some((usage, self.last_quantity()?));
        }
        let request = self.cursor.skip("request is ").then(|| self.cursor.quantity(", "))??;
        let is_whole =
            self.cursor.skip("has larger consumption of ") && self.cursor.skip_after_marks(resource.as_str());
        self.cursor.skip_after_marks(".");
        is_whole.then_some((usage, request))
    }

    /// Parses the quantity at the end of a sentence. Without a full stop, it may be shortened,
    /// unless it ends with a unit such as `Mi`.
    fn last_quantity(&mut self) -> Option<Quantity> {
        let quantity = self.cursor.quantity("")?;
        let is_whole = self.cursor.skip_after_marks(".") || quantity.to_string().ends_with('i');
        is_whole.then_some(quantity)
    }

    fn conditions(&mut self) -> Option<Vec<NodeCondition>> {
        let cursor = &mut self.cursor;
        let mut conditions = Vec::new();
        while let Some(condition) = CONDITIONS.into_iter().find(|condition| cursor.skip(condition.as_str())) {
            conditions.push(condition);
            cursor.skip(" ");
        }
        let is_whole = cursor.skip("]") && !conditions.is_empty();
        cursor.skip(".");
        is_whole.then_some(conditions)
    }
}
