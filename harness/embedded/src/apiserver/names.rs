//! Syntax of names, labels and keys, with the messages of apimachinery's `util/validation`.

const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN: &str = r"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const NAME_PART: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
/// Message for several slashes. Kubernetes 1.36 begins it with `a valid label key`.
const QUALIFIED_NAME: &str = "a qualified name must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// A check of a name: returns the messages of the violated rules.
pub(super) type NameRule = fn(&str) -> Vec<String>;

/// Checks a DNS label (RFC 1123), such as the name of a container.
pub(super) fn dns_label(text: &str) -> Vec<String> {
    let mut messages = check_length(text, 63);
    if !is_dns_label(text) {
        messages.push(LABEL.to_owned());
    }
    messages
}

/// Checks a DNS subdomain, such as the name of a pod.
pub(super) fn dns_subdomain(text: &str) -> Vec<String> {
    let mut messages = check_length(text, 253);
    if !text.split('.').all(is_dns_label) {
        messages.push(SUBDOMAIN.to_owned());
    }
    messages
}

/// Checks a qualified name: the key of a label (`IsQualifiedName`).
pub(crate) fn qualified_name(text: &str) -> Vec<String> {
    let mut messages = Vec::new();
    let name = match text.split('/').collect::<Vec<_>>()[..] {
        [name] => name,
        [prefix, name] => {
            if prefix.is_empty() {
                messages.push("prefix part must be non-empty".to_owned());
            } else {
                messages.extend(dns_subdomain(prefix).into_iter().map(|text| format!("prefix part {text}")));
            }
            name
        }
        _ => return vec![QUALIFIED_NAME.to_owned()],
    };
    if name.is_empty() {
        messages.push("name part must be non-empty".to_owned());
    } else {
        messages.extend(check_length(name, 63).into_iter().map(|text| format!("name part {text}")));
    }
    if !is_name_part(name) {
        messages.push(NAME_PART.to_owned());
    }
    messages
}

/// Checks the value of a label.
pub(crate) fn label_value(text: &str) -> Vec<String> {
    let mut messages = check_length(text, 63);
    if !text.is_empty() && !is_name_part(text) {
        messages.push(LABEL_VALUE.to_owned());
    }
    messages
}

/// Returns whether a resource is outside of Kubernetes' own domains (`IsExtendedResourceName`).
pub(crate) fn is_extended_resource(name: &str) -> bool {
    name.contains('/') && !name.contains("kubernetes.io/") && !name.starts_with("requests.")
}

fn check_length(text: &str, limit: usize) -> Vec<String> {
    if text.len() > limit { vec![format!("must be no more than {limit} bytes")] } else { Vec::new() }
}

fn is_dns_label(text: &str) -> bool {
    let is_alphanumeric = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    bytes.first().is_some_and(|&first| is_alphanumeric(first))
        && bytes.last().is_some_and(|&last| is_alphanumeric(last))
        && bytes.iter().all(|&byte| is_alphanumeric(byte) || byte == b'-')
}

fn is_name_part(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn qualified_names_have_one_slash_at_most() {
        for (text, starts) in [
            ("a", &[][..]),
            ("example.com/a", &[]),
            ("/a", &["prefix part must be non-empty"]),
            ("a/", &["name part must be non-empty", "name part must consist of"]),
            ("A/b", &["prefix part a lowercase RFC 1123 subdomain must consist of"]),
            ("a/b/c", &["a qualified name must consist of"]),
            ("a/b/", &["a qualified name must consist of"]),
        ] {
            let messages = qualified_name(text);
            let matches = messages.iter().zip(starts).all(|(message, start)| message.starts_with(start));
            assert!(messages.len() == starts.len() && matches, "{text}: {messages:?}");
        }
    }
}
