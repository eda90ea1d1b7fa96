//! What may be a name, a label, a key: apimachinery's `util/validation`, its wording included.

const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN: &str = r"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const NAME_PART: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// What is wrong with a DNS label (RFC 1123), such as a container's name.
pub(super) fn label(text: &str) -> Vec<String> {
    let mut wrong = longer(text, 63);
    if !is_label(text) {
        wrong.push(LABEL.to_owned());
    }
    wrong
}

/// What is wrong with a DNS subdomain, such as a pod's name.
pub(super) fn subdomain(text: &str) -> Vec<String> {
    let mut wrong = longer(text, 253);
    if !text.split('.').all(is_label) {
        wrong.push(SUBDOMAIN.to_owned());
    }
    wrong
}

/// What is wrong with the key of a label, an annotation, a taint or an extended resource.
pub(super) fn qualified(text: &str) -> Vec<String> {
    let (prefix, name) = match text.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, text),
    };
    let mut wrong = Vec::new();
    if let Some(prefix) = prefix {
        if prefix.is_empty() {
            wrong.push("prefix part must be non-empty".to_owned());
        } else {
            wrong.extend(subdomain(prefix).into_iter().map(|what| format!("prefix part {what}")));
        }
    }
    if name.is_empty() {
        wrong.push("name part must be non-empty".to_owned());
    } else {
        wrong.extend(longer(name, 63).into_iter().map(|what| format!("name part {what}")));
    }
    if !is_word(name) {
        wrong.push(NAME_PART.to_owned());
    }
    wrong
}

/// Whether a resource is none of Kubernetes' own (`IsExtendedResourceName`): nodes have of it what somebody says they have.
pub fn is_extended_resource(name: &str) -> bool {
    name.contains('/') && !name.contains("kubernetes.io/") && !name.starts_with("requests.")
}

/// What is wrong with the value of a label.
pub(super) fn label_value(text: &str) -> Vec<String> {
    let mut wrong = longer(text, 63);
    if !text.is_empty() && !is_word(text) {
        wrong.push(LABEL_VALUE.to_owned());
    }
    wrong
}

/// What is wrong with the name of an environment variable (relaxed since 1.32, `RelaxedEnvironmentVariableValidation`).
pub(super) fn variable(text: &str) -> Option<&'static str> {
    const WRONG: &str =
        "a valid environment variable name must consist only of printable ASCII characters other than '='";
    let fits = |letter: char| (' '..='~').contains(&letter) && letter != '=';
    (!text.chars().all(fits)).then_some(WRONG)
}

fn longer(text: &str, most: usize) -> Vec<String> {
    if text.len() > most { vec![format!("must be no more than {most} bytes")] } else { Vec::new() }
}

fn is_label(text: &str) -> bool {
    let small = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    bytes.first().is_some_and(|&first| small(first))
        && bytes.last().is_some_and(|&last| small(last))
        && bytes.iter().all(|&byte| small(byte) || byte == b'-')
}

fn is_word(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}
