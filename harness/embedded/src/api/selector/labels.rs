//! Label selectors (`labels.Parse`).

use serde_json::Value;

/// Requirements that must all hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels(Vec<Requirement>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    needs: Needs,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Needs {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    Absent,
    Above(i64),
    Below(i64),
}

impl Labels {
    /// Reads a selector such as `app=a,tier in (x, y),!gone`.
    pub fn read(text: &str) -> Result<Self, String> {
        let requirements = split(text)?;
        requirements.iter().map(|part| requirement(part)).collect::<Result<_, _>>().map(Self)
    }

    /// Whether there are no requirements.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the labels fulfil them.
    pub fn choose(&self, labels: &Value) -> bool {
        self.0.iter().all(|requirement| requirement.holds(labels[requirement.key.as_str()].as_str()))
    }
}

impl Requirement {
    fn holds(&self, value: Option<&str>) -> bool {
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match &self.needs {
            Needs::In(values) => value.is_some_and(|value| values.iter().any(|wanted| wanted == value)),
            Needs::NotIn(values) => value.is_none_or(|value| values.iter().all(|wanted| wanted != value)),
            Needs::Exists => value.is_some(),
            Needs::Absent => value.is_none(),
            Needs::Above(limit) => number().is_some_and(|number| number > *limit),
            Needs::Below(limit) => number().is_some_and(|number| number < *limit),
        }
    }
}

/// The parts between commas; those in brackets do not count.
fn split(text: &str) -> Result<Vec<String>, String> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let mut parts = vec![String::new()];
    let mut inside = false;
    for letter in text.chars() {
        match letter {
            '(' if inside => return Err(format!("unable to parse requirement: found '(' twice in {text:?}")),
            '(' => inside = true,
            ')' => inside = false,
            ',' if !inside => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(part) = parts.last_mut() {
            part.push(letter);
        }
    }
    if inside {
        return Err(format!("unable to parse requirement: expected ')' in {text:?}"));
    }
    Ok(parts)
}

fn requirement(part: &str) -> Result<Requirement, String> {
    let part = part.trim();
    let (key, needs) = if let Some(key) = part.strip_prefix('!') {
        (key, Needs::Absent)
    } else if let Some((key, values)) = part.split_once("!=") {
        (key, Needs::NotIn(vec![value(values)?]))
    } else if let Some((key, values)) = part.split_once("==").or_else(|| part.split_once('=')) {
        (key, Needs::In(vec![value(values)?]))
    } else if let Some((key, limit)) = part.split_once('>') {
        (key, Needs::Above(number(limit)?))
    } else if let Some((key, limit)) = part.split_once('<') {
        (key, Needs::Below(number(limit)?))
    } else if let Some((head, values)) = part.strip_suffix(')').and_then(|part| part.split_once('(')) {
        let values = values.split(',').map(value).collect::<Result<_, _>>()?;
        match head.split_whitespace().collect::<Vec<_>>()[..] {
            [key, "in"] => (key, Needs::In(values)),
            [key, "notin"] => (key, Needs::NotIn(values)),
            _ => return Err(format!("unable to parse requirement: found {part:?}, expected: in, notin")),
        }
    } else {
        (part, Needs::Exists)
    };
    Ok(Requirement { key: self::key(key)?, needs })
}

/// A label's key: an optional DNS subdomain and a name of at most 63 letters (`validation.IsQualifiedName`).
fn key(text: &str) -> Result<String, String> {
    let text = text.trim();
    let name = text.rsplit('/').next().unwrap_or_default();
    if name.is_empty() || name.len() > 63 || text.matches('/').count() > 1 || !text.chars().all(is_plain) {
        return Err(format!(
            "unable to parse requirement: <nil>: Invalid value: {text:?}: name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
        ));
    }
    Ok(text.to_owned())
}

fn value(text: &str) -> Result<String, String> {
    let text = text.trim();
    if text.len() > 63 || !text.chars().all(|letter| is_plain(letter) && letter != '/') {
        return Err(format!(
            "unable to parse requirement: values[0][]: Invalid value: {text:?}: a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
        ));
    }
    Ok(text.to_owned())
}

fn number(text: &str) -> Result<i64, String> {
    let text = text.trim();
    text.parse().map_err(|_| {
        format!("unable to parse requirement: values[0]: Invalid value: {text:?}: for 'Gt', 'Lt' operators, the value must be an integer")
    })
}

fn is_plain(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "-_./".contains(letter)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn chooses_by_every_operator() {
        let labels = json!({"app": "a", "tier": "db", "n": "7"});
        let chooses = |text: &str| Labels::read(text).unwrap().choose(&labels);
        for text in
            ["", "app=a", "app == a", "app!=b", "gone!=b", "app", "!gone", "tier in (db, web)", "n>6,n<8"]
        {
            assert!(chooses(text), "{text}");
        }
        for text in ["app=b", "app!=a", "gone", "!app", "tier notin (db,web)", "app=a,tier=x", "n>7", "app>1"]
        {
            assert!(!chooses(text), "{text}");
        }
        assert!(chooses("gone notin (x)") && !chooses("gone in (x)"));
        assert!(!Labels::read("app=").unwrap().choose(&labels));
    }

    #[test]
    fn refuses_what_is_no_selector() {
        for text in ["a b", "app=a b", "x in (a", "=a", "app,,b", "n>x", "x on (a)"] {
            assert!(Labels::read(text).is_err(), "{text}");
        }
    }
}
