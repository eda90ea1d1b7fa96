//! `intstr.IntOrString` of budgets and rolling updates: a number, or a percentage of a total.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// Direction in which a percentage of a total is rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Round {
    /// To the next larger number.
    Up,
    /// To the next smaller number.
    Down,
}

/// Returns the number, or the percentage of `total` (`GetScaledValueFromIntOrPercent`). `None` for
/// a text that is not a percentage.
pub(crate) fn scaled(value: &IntOrString, total: i32, round: Round) -> Option<i32> {
    match value {
        IntOrString::Int(number) => Some(*number),
        IntOrString::String(text) => {
            let product = parse_percent(text)?.checked_mul(total)?;
            Some(match round {
                Round::Up => (product + 99).div_euclid(100),
                Round::Down => product.div_euclid(100),
            })
        }
    }
}

/// Parses a percentage such as `30%`.
fn parse_percent(text: &str) -> Option<i32> {
    let digits = text.strip_suffix('%')?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_percentages() {
        for (value, total, up, down) in [
            (IntOrString::Int(3), 10, Some(3), Some(3)),
            (IntOrString::String("25%".to_owned()), 3, Some(1), Some(0)),
            (IntOrString::String("50%".to_owned()), 4, Some(2), Some(2)),
            (IntOrString::String("x".to_owned()), 4, None, None),
            (IntOrString::String("%".to_owned()), 4, None, None),
        ] {
            assert_eq!(scaled(&value, total, Round::Up), up, "{value:?} of {total}");
            assert_eq!(scaled(&value, total, Round::Down), down, "{value:?} of {total}");
        }
    }
}
