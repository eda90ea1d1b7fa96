//! Label selectors of requests (`labels.Parse`).

use serde_json::Value;

/// Requirements on labels, all of which must be met.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LabelSelector(Vec<Requirement>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    operator: Operator,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Operator {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    DoesNotExist,
    GreaterThan(i64),
    LessThan(i64),
}

impl LabelSelector {
    /// Parses a selector such as `app=a,tier in (x, y),!gone`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let requirements = split(text)?;
        requirements.iter().map(|part| Requirement::parse(part)).collect::<Result<_, _>>().map(Self)
    }

    /// Returns true if there are no requirements.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if labels meet all requirements.
    pub(crate) fn matches(&self, labels: &Value) -> bool {
        self.0.iter().all(|requirement| requirement.is_met(labels[requirement.key.as_str()].as_str()))
    }
}

impl Requirement {
    fn parse(part: &str) -> Result<Self, String> {
        let part = part.trim();
        let (key, operator) = if let Some(key) = part.strip_prefix('!') {
            (key, Operator::DoesNotExist)
        } else if let Some((key, value)) = part.split_once("!=") {
            (key, Operator::NotIn(vec![parse_value(value)?]))
        } else if let Some((key, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
            (key, Operator::In(vec![parse_value(value)?]))
        } else if let Some((key, limit)) = part.split_once('>') {
            (key, Operator::GreaterThan(parse_number(limit)?))
        } else if let Some((key, limit)) = part.split_once('<') {
            (key, Operator::LessThan(parse_number(limit)?))
        } else if let Some((head, values)) = part.strip_suffix(')').and_then(|part| part.split_once('(')) {
            let values = values.split(',').map(parse_value).collect::<Result<_, _>>()?;
            match head.split_whitespace().collect::<Vec<_>>()[..] {
                [key, "in"] => (key, Operator::In(values)),
                [key, "notin"] => (key, Operator::NotIn(values)),
                _ => return Err(format!("unable to parse requirement: found {part:?}, expected: in, notin")),
            }
        } else {
            (part, Operator::Exists)
        };
        Ok(Self { key: parse_key(key)?, operator })
    }

    fn is_met(&self, value: Option<&str>) -> bool {
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match &self.operator {
            Operator::In(values) => value.is_some_and(|value| values.iter().any(|other| other == value)),
            Operator::NotIn(values) => value.is_none_or(|value| values.iter().all(|other| other != value)),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::GreaterThan(limit) => number().is_some_and(|number| number > *limit),
            Operator::LessThan(limit) => number().is_some_and(|number| number < *limit),
        }
    }
}

/// Splits at commas outside of parentheses.
fn split(text: &str) -> Result<Vec<String>, String> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let mut parts = vec![String::new()];
    let mut in_parentheses = false;
    for character in text.chars() {
        match character {
            '(' if in_parentheses => {
                return Err(format!("unable to parse requirement: found '(' twice in {text:?}"));
            }
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
        return Err(format!("unable to parse requirement: expected ')' in {text:?}"));
    }
    Ok(parts)
}

/// Parses a key: an optional DNS subdomain and a name of at most 63 characters
/// (`validation.IsQualifiedName`).
fn parse_key(text: &str) -> Result<String, String> {
    let text = text.trim();
    let name = text.rsplit('/').next().unwrap_or_default();
    if name.is_empty()
        || name.len() > 63
        || text.matches('/').count() > 1
        || !text.chars().all(is_label_character)
    {
        return Err(format!(
            "unable to parse requirement: <nil>: Invalid value: {text:?}: name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
        ));
    }
    Ok(text.to_owned())
}

fn parse_value(text: &str) -> Result<String, String> {
    let text = text.trim();
    if text.len() > 63 || !text.chars().all(|character| is_label_character(character) && character != '/') {
        return Err(format!(
            "unable to parse requirement: values[0][]: Invalid value: {text:?}: a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
        ));
    }
    Ok(text.to_owned())
}

fn parse_number(text: &str) -> Result<i64, String> {
    let text = text.trim();
    text.parse().map_err(|_| {
        format!("unable to parse requirement: values[0]: Invalid value: {text:?}: for 'Gt', 'Lt' operators, the value must be an integer")
    })
}

fn is_label_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || "-_./".contains(character)
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
