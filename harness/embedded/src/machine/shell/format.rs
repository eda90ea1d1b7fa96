//! `echo` and `printf`.

/// Returns what `echo` prints.
pub(super) fn echo(arguments: &[String]) -> String {
    let (mut newline, mut escapes) = (true, false);
    let mut rest = arguments;
    while let Some((first, others)) = rest.split_first() {
        match first.as_str() {
            "-n" => newline = false,
            "-e" => escapes = true,
            "-ne" | "-en" => (newline, escapes) = (false, true),
            _ => break,
        }
        rest = others;
    }
    let mut text = rest.join(" ");
    if escapes {
        text = unescape(&text);
    }
    if newline {
        text.push('\n');
    }
    text
}

/// Returns what `printf` prints: the format, repeated until all arguments are used.
///
/// # Errors
/// A message about a format that is missing or not supported.
pub(super) fn printf(arguments: &[String]) -> Result<String, String> {
    let Some((format, arguments)) = arguments.split_first() else {
        return Err("missing format".to_owned());
    };
    let mut rest = arguments.iter();
    let mut output = String::new();
    loop {
        let before = rest.len();
        let mut parts = format.split('%');
        output.push_str(&unescape(parts.next().unwrap_or_default()));
        while let Some(part) = parts.next() {
            let mut text = part.chars();
            match text.next() {
                // `%%` leaves an empty part.
                None => output.push_str(&format!("%{}", unescape(parts.next().unwrap_or_default()))),
                Some('s') => output.push_str(rest.next().map_or("", String::as_str)),
                Some('d') => {
                    let number = rest.next().and_then(|text| text.trim().parse::<i64>().ok());
                    output.push_str(&number.unwrap_or_default().to_string());
                }
                Some(other) => return Err(format!("%{other} is not supported by this model")),
            }
            output.push_str(&unescape(text.as_str()));
        }
        if rest.len() == 0 || rest.len() == before {
            return Ok(output);
        }
    }
}

/// Replaces the escape sequences for a newline, a tab and a backslash.
fn unescape(text: &str) -> String {
    let mut output = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        match (char, chars.as_str().chars().next()) {
            ('\\', Some('n')) => output.push('\n'),
            ('\\', Some('t')) => output.push('\t'),
            ('\\', Some('\\')) => output.push('\\'),
            (char, _) => {
                output.push(char);
                continue;
            }
        }
        chars.next();
    }
    output
}

#[cfg(test)]
mod tests {
    use super::*;

    fn print(words: &[&str]) -> Result<String, String> {
        printf(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn printf_repeats_its_format() {
        assert_eq!(print(&["%s-%d\\n", "a", "7", "b", "12"]), Ok("a-7\nb-12\n".to_owned()));
        assert_eq!(print(&["plain", "unused"]), Ok("plain".to_owned()));
        assert_eq!(print(&["100%% of %s", "it"]), Ok("100% of it".to_owned()));
    }

    #[test]
    fn printf_rejects_unsupported_formats() {
        assert_eq!(print(&["%x", "7"]), Err("%x is not supported by this model".to_owned()));
        assert_eq!(print(&["%03d", "7"]), Err("%0 is not supported by this model".to_owned()));
        assert_eq!(print(&[]), Err("missing format".to_owned()));
    }
}
