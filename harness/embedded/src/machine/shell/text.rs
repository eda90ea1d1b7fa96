//! Escapes, `printf` and patterns.

use regex::Regex;

/// What `echo -e`, `printf` and `$'…'` make of backslashes.
pub(super) fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        if char != '\\' {
            out.push(char);
            continue;
        }
        match chars.next() {
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('r') => out.push('\r'),
            Some('a') => out.push('\u{7}'),
            Some('\\') => out.push('\\'),
            Some('0'..='7') | None => {
                // Bytes by their numbers: only how many there are matters.
                while chars.peek().is_some_and(char::is_ascii_digit) {
                    chars.next();
                }
                out.push('\0');
            }
            Some('\'') => out.push('\''),
            Some('"') => out.push('"'),
            Some(other) => {
                out.push('\\');
                out.push(other);
            }
        }
    }
    out
}

/// `printf`: the format again and again until its arguments are used up.
pub(super) fn printf(format: &str, arguments: &[String]) -> String {
    let mut out = String::new();
    let mut rest = arguments.iter();
    loop {
        let before = rest.len();
        let mut chars = format.chars().peekable();
        let mut plain = String::new();
        while let Some(char) = chars.next() {
            if char != '%' {
                plain.push(char);
                continue;
            }
            out.push_str(&unescape(&std::mem::take(&mut plain)));
            let mut width = String::new();
            while chars.peek().is_some_and(|char| char.is_ascii_digit() || "-+ .0*".contains(*char)) {
                width.extend(chars.next());
            }
            let value = match chars.next() {
                Some('%') => {
                    out.push('%');
                    continue;
                }
                Some('b') => rest.next().map(|text| unescape(text)).unwrap_or_default(),
                Some('d' | 'i' | 'u') => {
                    let number =
                        rest.next().and_then(|text| text.trim().parse::<i64>().ok()).unwrap_or_default();
                    number.to_string()
                }
                Some('x') => {
                    let number =
                        rest.next().and_then(|text| text.trim().parse::<i64>().ok()).unwrap_or_default();
                    format!("{number:x}")
                }
                Some('c') => {
                    rest.next().and_then(|text| text.chars().next()).map(String::from).unwrap_or_default()
                }
                _ => rest.next().cloned().unwrap_or_default(),
            };
            pad(&mut out, &value, &width);
        }
        out.push_str(&unescape(&plain));
        // Without any argument used, once is enough.
        if rest.len() == 0 || rest.len() == before {
            return out;
        }
    }
}

fn pad(out: &mut String, value: &str, width: &str) {
    let (left, digits) = match width.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, width),
    };
    let wanted: usize = digits.split('.').next().and_then(|digits| digits.parse().ok()).unwrap_or_default();
    // A script may ask for much: that much is one fill of memory, not more.
    let missing = wanted.min(1 << 20).saturating_sub(value.chars().count());
    let fill = if digits.starts_with('0') { "0" } else { " " };
    if left {
        out.push_str(value);
        out.push_str(&" ".repeat(missing));
    } else {
        out.push_str(&fill.repeat(missing));
        out.push_str(value);
    }
}

/// A pattern of a shell, ready to be compared.
pub(super) enum Pattern {
    Text(String),
    Regex(Box<Regex>),
}

impl Pattern {
    /// `path` says whether a slash is special.
    pub fn new(pattern: &str, path: bool) -> Self {
        if !pattern.contains(['*', '?', '[', '\\']) {
            return Self::Text(pattern.to_owned());
        }
        let expression = brush_parser::pattern::pattern_to_regex_str(pattern, false).ok().and_then(|text| {
            let text = if path { text.replace(".*", "[^/]*") } else { text };
            Regex::new(&format!("(?s)^(?:{text})$")).ok()
        });
        expression.map_or_else(|| Self::Text(pattern.to_owned()), |regex| Self::Regex(Box::new(regex)))
    }

    pub fn matches(&self, text: &str) -> bool {
        match self {
            Self::Text(own) => own == text,
            Self::Regex(regex) => regex.is_match(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printf_repeats_its_format() {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        assert_eq!(printf("%s-%03d\\n", &words(&["a", "7", "b", "12"])), "a-007\nb-012\n");
        assert_eq!(printf("plain", &words(&["unused"])), "plain");
        assert_eq!(printf("%5s|%-3s|", &words(&["x", "y"])), "    x|y  |");
    }

    #[test]
    fn patterns_compare_as_a_shell_does() {
        assert!(Pattern::new("file*", true).matches("file12"));
        assert!(!Pattern::new("/tmp/*", true).matches("/tmp/a/b"));
        assert!(Pattern::new("[0-9]?", false).matches("4x"));
        assert!(Pattern::new("a\\*", false).matches("a*"));
        assert!(!Pattern::new("a\\*", false).matches("ab"));
    }
}
