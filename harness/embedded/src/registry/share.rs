//! Numbers that may be shares of a whole: `intstr.IntOrString`.

use serde_json::Value;

use super::field::{Errors, Path};

/// Which way a share of a whole is rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Round {
    /// To more.
    Up,
    /// To less.
    Down,
}

/// The number that is meant: itself, or its share of a whole (`GetScaledValueFromIntOrPercent`). Nothing for what is neither.
pub(crate) fn scaled(value: &Value, whole: i64, round: Round) -> Option<i64> {
    match value {
        Value::Number(number) => number.as_i64(),
        Value::String(text) => {
            let product = i64::try_from(percent(text)?).ok()?.checked_mul(whole)?;
            Some(match round {
                Round::Up => (product + 99).div_euclid(100),
                Round::Down => product.div_euclid(100),
            })
        }
        _ => None,
    }
}

/// Checks a number or share, which may be absent.
pub(super) fn check(value: &Value, path: &Path, errors: &mut Errors) {
    match value {
        Value::Number(number) => not_negative(number.as_i64(), path, errors),
        Value::String(text) => match percent(text) {
            None => {
                let why = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";
                errors.invalid(path, text.as_str(), why);
            }
            Some(percent) if percent > 100 => {
                errors.invalid(path, text.as_str(), "must not be greater than 100%");
            }
            Some(_) => {}
        },
        _ => {}
    }
}

/// Refuses a negative number.
pub(super) fn not_negative(number: Option<i64>, path: &Path, errors: &mut Errors) {
    if let Some(number) = number.filter(|number| *number < 0) {
        errors.invalid(path, number, "must be greater than or equal to 0");
    }
}

/// A percentage such as `30%`.
fn percent(text: &str) -> Option<u64> {
    let digits = text.strip_suffix('%')?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_share_is_rounded() {
        for (value, whole, up, down) in [
            (json!(3), 10, Some(3), Some(3)),
            (json!("25%"), 3, Some(1), Some(0)),
            (json!("50%"), 4, Some(2), Some(2)),
            (json!("x"), 4, None, None),
            (json!("%"), 4, None, None),
        ] {
            assert_eq!(scaled(&value, whole, Round::Up), up, "{value} of {whole}");
            assert_eq!(scaled(&value, whole, Round::Down), down, "{value} of {whole}");
        }
    }
}
