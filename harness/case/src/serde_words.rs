//! Serde's words for types and values, in words of YAML.

/// Types as serde and the types of the API name them, and as users do.
const TYPES: [(&str, &str); 23] = [
    ("i8", WHOLE_NUMBER),
    ("i16", WHOLE_NUMBER),
    ("i32", WHOLE_NUMBER),
    ("i64", WHOLE_NUMBER),
    ("u8", WHOLE_NUMBER),
    ("u16", WHOLE_NUMBER),
    ("u32", WHOLE_NUMBER),
    ("u64", WHOLE_NUMBER),
    ("usize", WHOLE_NUMBER),
    ("a 32-bit integer", WHOLE_NUMBER),
    ("f32", NUMBER),
    ("f64", NUMBER),
    ("a boolean", BOOLEAN),
    ("bool", BOOLEAN),
    ("a string", TEXT),
    ("string", TEXT),
    ("a sequence", "a list"),
    ("a map", "a mapping"),
    ("unit", "nothing"),
    ("null", "nothing"),
    ("IntOrString", "a whole number or text"),
    ("Quantity", "a quantity, such as 200Mi"),
    ("a timestamp string", TIME),
];

/// Starts of the errors of the base64 decoder.
const BASE64_ERRORS: [&str; 5] =
    ["Invalid symbol", "Invalid byte", "Invalid input length", "Invalid last symbol", "Invalid padding"];

const WHOLE_NUMBER: &str = "a whole number";
const NUMBER: &str = "a number";
const BOOLEAN: &str = "true or false";
const TEXT: &str = "text";
const TIME: &str = "a time, such as 2026-01-31T12:00:00Z";

/// Returns a type as a user names it, such as `a whole number` for `i32`.
fn expected_type(serde: &str) -> &str {
    match TYPES.iter().find(|(name, _)| *name == serde) {
        Some((_, words)) => words,
        // The name of a type of the API, such as `EnvVar`.
        None if serde.starts_with(|c: char| c.is_ascii_uppercase()) || serde.starts_with("struct ") => {
            "a mapping"
        }
        None => serde,
    }
}

/// Returns the text between two quotes that a description of a value ends with.
fn quoted<'a>(serde: &'a str, kind: &str, quote: char) -> Option<&'a str> {
    serde.strip_prefix(kind)?.trim_start().strip_prefix(quote)?.strip_suffix(quote)
}

/// Describes a value that does not have the type of its key, with advice that may be empty. The
/// arguments are the words of serde, such as ``integer `5` `` and `a string`.
pub(crate) fn wrong_value(unexpected: &str, expected: &str) -> (String, String) {
    let expected = expected_type(expected);
    let integer = quoted(unexpected, "integer", '`');
    let scalar = integer
        .or_else(|| quoted(unexpected, "floating point", '`'))
        .or_else(|| quoted(unexpected, "boolean", '`'));
    let text = quoted(unexpected, "string", '"');
    if let (Some(number), WHOLE_NUMBER) = (integer, expected) {
        return (format!("the number {number} is out of range"), String::new());
    }
    let found = match unexpected {
        "map" => "a mapping".to_owned(),
        "sequence" => "a list".to_owned(),
        "null" | "unit" | "unit value" => "nothing".to_owned(),
        other => scalar.or(text.and(Some(other.trim_start_matches("string ")))).unwrap_or(other).to_owned(),
    };
    let is_expected = |text: &str| match expected {
        WHOLE_NUMBER => text.parse::<i128>().is_ok(),
        NUMBER => text.parse::<f64>().is_ok(),
        BOOLEAN => text.parse::<bool>().is_ok(),
        _ => false,
    };
    let note = match (scalar, text) {
        (Some(scalar), _) if expected == TEXT => format!("quotes make it text: \"{scalar}\""),
        (_, Some(text)) if is_expected(text) => format!("remove the quotes: {text}"),
        _ => String::new(),
    };
    (format!("expected {expected}, found {found}"), note)
}

/// Describes an error of a field of a Kubernetes object, with advice that may be empty.
pub(crate) fn api_error(field: &str, error: &str) -> (String, String) {
    let mismatch = error.strip_prefix("invalid type: ").or_else(|| error.strip_prefix("invalid value: "));
    if let Some((unexpected, expected)) = mismatch.and_then(|text| text.rsplit_once(", expected ")) {
        return wrong_value(unexpected, expected);
    }
    if let Some(missing) = error.strip_prefix("missing field ") {
        return (format!("{missing} is missing"), "required in this mapping".to_owned());
    }
    if BASE64_ERRORS.iter().any(|start| error.starts_with(start)) {
        return ("the value is not base64".to_owned(), "`stringData` of a Secret has plain text".to_owned());
    }
    if field.ends_with("Time") || field.ends_with("Timestamp") {
        return (format!("expected {TIME}"), String::new());
    }
    (error.to_owned(), String::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_and_values_have_the_words_of_yaml() {
        for (field, error, message, note) in [
            (
                "containerPort",
                "invalid type: string \"80\", expected i32",
                "expected a whole number, found \"80\"",
                "remove the quotes: 80",
            ),
            (
                "containerPort",
                "invalid type: string \"a, expected b\", expected i32",
                "expected a whole number, found \"a, expected b\"",
                "",
            ),
            (
                "containerPort",
                "invalid type: floating point `80.5`, expected i32",
                "expected a whole number, found 80.5",
                "",
            ),
            (
                "containerPort",
                "invalid value: integer `99999999999`, expected i32",
                "the number 99999999999 is out of range",
                "",
            ),
            (
                "command",
                "invalid type: string \"pause\", expected a sequence",
                "expected a list, found \"pause\"",
                "",
            ),
            (
                "args",
                "invalid type: integer `5`, expected a string",
                "expected text, found 5",
                "quotes make it text: \"5\"",
            ),
            (
                "stdin",
                "invalid type: sequence, expected a boolean",
                "expected true or false, found a list",
                "",
            ),
            (
                "stdin",
                "invalid type: string \"true\", expected a boolean",
                "expected true or false, found \"true\"",
                "remove the quotes: true",
            ),
            ("labels", "invalid type: null, expected a string", "expected text, found nothing", ""),
            ("limits", "invalid type: sequence, expected a map", "expected a mapping, found a list", ""),
            ("env", "invalid type: map, expected a sequence", "expected a list, found a mapping", ""),
            ("env", "invalid type: string \"a\", expected EnvVar", "expected a mapping, found \"a\"", ""),
            (
                "port",
                "invalid type: boolean `true`, expected IntOrString",
                "expected a whole number or text, found true",
                "",
            ),
            ("share", "invalid type: map, expected f64", "expected a number, found a mapping", ""),
            (
                "creationTimestamp",
                "expected four digit year (or leading sign for six digit year), but found end of input",
                "expected a time, such as 2026-01-31T12:00:00Z",
                "",
            ),
            (
                "a",
                "Invalid symbol 33, offset 0.",
                "the value is not base64",
                "`stringData` of a Secret has plain text",
            ),
            ("type", "missing field `type`", "`type` is missing", "required in this mapping"),
        ] {
            assert_eq!(api_error(field, error), (message.to_owned(), note.to_owned()), "{error}");
        }
    }
}
