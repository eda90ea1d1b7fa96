//! Label selectors of requests (`labels.Parse`).

use serde_json::Value;

use super::error::SelectorError;
use crate::apiserver::{label_value, qualified_name};
use crate::resource::label_selector::Operator;

/// Requirements on labels, all of which must be met.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LabelSelector(Vec<Requirement>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    operator: Operator,
    values: Vec<String>,
}

impl LabelSelector {
    /// Parses a selector such as `app=a,tier in (x, y),!gone`.
    pub(crate) fn parse(text: &str) -> Result<Self, SelectorError> {
        let requirements = split(text)?;
        requirements.iter().map(|part| Requirement::parse(part)).collect::<Result<_, _>>().map(Self)
    }

    /// Returns whether labels meet all requirements.
    pub(crate) fn matches(&self, labels: &Value) -> bool {
        self.0.iter().all(|Requirement { key, operator, values }| {
            operator.is_met(labels[key.as_str()].as_str(), values.iter().map(String::as_str))
        })
    }
}

impl Requirement {
    fn parse(part: &str) -> Result<Self, SelectorError> {
        let part = part.trim();
        let (key, operator, values) = if let Some(key) = part.strip_prefix('!') {
            (key, Operator::DoesNotExist, Vec::new())
        } else if let Some((key, value)) = part.split_once("!=") {
            (key, Operator::NotIn, vec![parse_value(value)?])
        } else if let Some((key, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
            (key, Operator::In, vec![parse_value(value)?])
        } else if let Some((key, limit)) = part.split_once('>') {
            (key, Operator::Gt, vec![parse_number(limit)?])
        } else if let Some((key, limit)) = part.split_once('<') {
            (key, Operator::Lt, vec![parse_number(limit)?])
        } else if let Some((head, values)) = part.strip_suffix(')').and_then(|part| part.split_once('(')) {
            let values = values.split(',').map(parse_value).collect::<Result<_, _>>()?;
            match head.split_whitespace().collect::<Vec<_>>()[..] {
                [key, "in"] => (key, Operator::In, values),
                [key, "notin"] => (key, Operator::NotIn, values),
                _ => return Err(SelectorError::LabelOperator(part.to_owned())),
            }
        } else {
            (part, Operator::Exists, Vec::new())
        };
        Ok(Self { key: parse_key(key)?, operator, values })
    }
}

/// Splits at commas outside of parentheses.
fn split(text: &str) -> Result<Vec<String>, SelectorError> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let mut parts = vec![String::new()];
    let mut in_parentheses = false;
    for character in text.chars() {
        match character {
            '(' if in_parentheses => return Err(SelectorError::NestedParenthesis(text.to_owned())),
            '(' => in_parentheses = true,
            ')' => in_parentheses = false,
            ',' if !in_parentheses => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(part) = parts.last_mut() {
            part.push(character);
        }
    }
    if in_parentheses {
        return Err(SelectorError::UnclosedParenthesis(text.to_owned()));
    }
    Ok(parts)
}

fn parse_key(text: &str) -> Result<String, SelectorError> {
    let text = text.trim();
    match qualified_name(text).first() {
        None => Ok(text.to_owned()),
        Some(problem) => Err(SelectorError::LabelKey { key: text.to_owned(), problem: problem.clone() }),
    }
}

fn parse_value(text: &str) -> Result<String, SelectorError> {
    let text = text.trim();
    match label_value(text).first() {
        None => Ok(text.to_owned()),
        Some(problem) => Err(SelectorError::LabelValue { value: text.to_owned(), problem: problem.clone() }),
    }
}

fn parse_number(text: &str) -> Result<String, SelectorError> {
    let text = text.trim();
    match text.parse::<i64>() {
        Ok(number) => Ok(number.to_string()),
        Err(_) => Err(SelectorError::LabelNumber(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn supports_every_operator() {
        let labels = json!({"app": "a", "tier": "db", "n": "7"});
        let matches = |text: &str| LabelSelector::parse(text).unwrap().matches(&labels);
        for text in
            ["", "app=a", "app == a", "app!=b", "gone!=b", "app", "!gone", "tier in (db, web)", "n>6,n<8"]
        {
            assert!(matches(text), "{text}");
        }
        for text in ["app=b", "app!=a", "gone", "!app", "tier notin (db,web)", "app=a,tier=x", "n>7", "app>1"]
        {
            assert!(!matches(text), "{text}");
        }
        assert!(matches("gone notin (x)") && !matches("gone in (x)"));
        assert!(!LabelSelector::parse("app=").unwrap().matches(&labels));
    }

    #[test]
    fn rejects_invalid_selectors() {
        for text in ["a b", "app=a b", "x in (a", "=a", "app,,b", "n>x", "x on (a)"] {
            assert!(LabelSelector::parse(text).is_err(), "{text}");
        }
    }
}
