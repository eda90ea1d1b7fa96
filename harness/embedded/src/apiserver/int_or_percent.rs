//! `intstr.IntOrString` of budgets and rolling updates: a number, or a percentage of a total.

use serde_json::Value;

/// Direction in which a percentage of a total is rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Round {
    /// To the next larger number.
    Up,
    /// To the next smaller number.
    Down,
}

/// Returns the number, or the percentage of `total` (`GetScaledValueFromIntOrPercent`). `None` for
/// any other value.
pub(crate) fn scaled(value: &Value, total: i64, round: Round) -> Option<i64> {
    match value {
        Value::Number(number) => number.as_i64(),
        Value::String(text) => {
            let product = parse_percent(text)?.checked_mul(total)?;
            Some(match round {
                Round::Up => (product + 99).div_euclid(100),
                Round::Down => product.div_euclid(100),
            })
        }
        _ => None,
    }
}

/// Parses a percentage such as `30%`.
fn parse_percent(text: &str) -> Option<i64> {
    let digits = text.strip_suffix('%')?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rounds_percentages() {
        for (value, total, up, down) in [
            (json!(3), 10, Some(3), Some(3)),
            (json!("25%"), 3, Some(1), Some(0)),
            (json!("50%"), 4, Some(2), Some(2)),
            (json!("x"), 4, None, None),
            (json!("%"), 4, None, None),
        ] {
            assert_eq!(scaled(&value, total, Round::Up), up, "{value} of {total}");
            assert_eq!(scaled(&value, total, Round::Down), down, "{value} of {total}");
        }
    }
}
