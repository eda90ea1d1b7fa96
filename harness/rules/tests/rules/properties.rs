//! Properties: messages and annotations round-trip, and quantities print as a second, independent
//! implementation of the text rules prints them.

use std::collections::BTreeMap;

use evictlab_rules::message::{Annotations, EvictionMessage, NodePressure, Offender, ThresholdClause};
use evictlab_rules::quantity::Quantity;
use evictlab_rules::threshold::{NodeCondition, Resource};
use proptest::prelude::*;

fn name() -> impl Strategy<Value = String> {
    proptest::string::string_regex("[a-z0-9]([-a-z0-9.]{0,12}[a-z0-9])?").unwrap()
}

fn quantity() -> impl Strategy<Value = Quantity> {
    prop_oneof![
        any::<i64>().prop_map(Quantity::from_bytes),
        (0..1_000_000i64).prop_map(|kibi| Quantity::from_bytes(kibi * 1024)),
        any::<i64>().prop_map(Quantity::from_count),
        quantity_text().prop_filter_map("not a quantity", |text| text.parse().ok()),
    ]
}

fn offender() -> impl Strategy<Value = Offender> {
    (name(), quantity(), quantity()).prop_map(|(name, usage, request)| Offender { name, usage, request })
}

fn resource() -> impl Strategy<Value = Resource> {
    proptest::sample::select(&Resource::ALL[..])
}

fn pressure() -> impl Strategy<Value = NodePressure> {
    let clause =
        (quantity(), quantity()).prop_map(|(quantity, available)| ThresholdClause { quantity, available });
    let containers = proptest::collection::vec(offender(), 0..5);
    (resource(), proptest::option::of(clause), proptest::option::of(offender()), containers).prop_map(
        |(resource, threshold, pod, containers)| NodePressure { resource, threshold, pod, containers },
    )
}

fn message() -> impl Strategy<Value = EvictionMessage> {
    let conditions = proptest::sample::select(
        &[NodeCondition::MemoryPressure, NodeCondition::DiskPressure, NodeCondition::PidPressure][..],
    );
    prop_oneof![
        4 => pressure().prop_map(EvictionMessage::NodePressure),
        1 => (name(), quantity()).prop_map(|(volume, limit)| EvictionMessage::EmptyDirLimit { volume, limit }),
        1 => quantity().prop_map(|limit| EvictionMessage::PodLimit { limit }),
        1 => (name(), quantity()).prop_map(|(container, limit)| EvictionMessage::ContainerLimit { container, limit }),
        1 => (proptest::collection::vec(conditions, 1..4), any::<bool>())
            .prop_map(|(conditions, in_status)| EvictionMessage::Rejected { conditions, in_status }),
    ]
}

/// Texts that are quantities or nearly so, within the greatest representable number.
fn quantity_text() -> impl Strategy<Value = String> {
    let suffix = proptest::sample::select(
        &[
            "", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e3", "E-2",
            "e", "x",
        ][..],
    );
    let whole = proptest::string::string_regex("[-+]?0{0,2}[0-9]{0,7}(000)?").unwrap();
    let fraction = proptest::string::string_regex("(\\.[0-9]{0,11})?").unwrap();
    (whole, fraction, suffix).prop_map(|(whole, fraction, suffix)| format!("{whole}{fraction}{suffix}"))
}

proptest! {
    #[test]
    fn durations_are_those_that_go_reads(nanos in 0..i64::MAX) {
        let text = evictlab_rules::format_go_duration(std::time::Duration::from_nanos(nanos.unsigned_abs()));
        let read = evictlab_rules::parse_go_duration(&text).unwrap();
        prop_assert_eq!(read.as_nanos(), i128::from(nanos), "{}", text);
    }

    #[test]
    fn messages_round_trip(message in message()) {
        let text = message.to_string();
        let read: EvictionMessage = text.parse().unwrap();
        prop_assert_eq!(&read, &message);
        prop_assert_eq!(read.to_string(), text);
    }

    #[test]
    fn truncated_messages_are_rejected_or_parse_as_shorter_ones(message in message(), cut in any::<prop::sample::Index>()) {
        let text = message.to_string();
        let cut = &text[..cut.index(text.len())];
        match cut.parse::<EvictionMessage>() {
            Ok(shorter) => prop_assert_eq!(shorter.to_string(), cut),
            Err(error) => prop_assert!(error.offset <= cut.len() && error.to_string().contains("expected")),
        }
    }

    #[test]
    fn annotations_round_trip(message in pressure()) {
        let annotations = Annotations::new(message.resource, message.pod.as_ref(), &message.containers);
        prop_assert_eq!(Annotations::from_map(&annotations.to_map()).unwrap(), Some(annotations));
        prop_assert_eq!(Annotations::from_map(&BTreeMap::new()).unwrap(), None);
    }

    #[test]
    fn quantities_print_as_in_the_second_implementation(text in quantity_text()) {
        let expected = second_implementation::print(&text);
        let printed = text.parse::<Quantity>().ok().map(|quantity| quantity.to_string());
        prop_assert_eq!(printed, expected, "{}", text);
    }

    #[test]
    fn canonical_form_parses_to_the_same_quantity(quantity in quantity()) {
        let again: Quantity = quantity.canonical().parse().unwrap();
        prop_assert_eq!(&again, &quantity);
        // Sums are exact.
        let doubled = quantity.clone() + &quantity;
        prop_assert_eq!(doubled - &quantity, quantity);
    }
}

/// The text rules on decimal digits as text, without any integer wider than a digit and its carry.
mod second_implementation {
    /// Returns the print of a quantity's text; `None` if the text is not a quantity.
    pub fn print(text: &str) -> Option<String> {
        let parts = split(text)?;
        if text == "0" {
            return Some("0".to_owned());
        }
        let (sign, whole, fraction, suffix) = parts;
        let whole = whole.trim_start_matches('0');
        let digits = format!("{}{fraction}", if whole.is_empty() { "0" } else { whole });
        let significant = whole.len().max(1);
        let binary = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"].iter().position(|known| *known == suffix);
        if let Some(index) = binary {
            let power = index + 1;
            let room = 15 - significant as i64 - 3 * power as i64 - 1;
            let fast_path = fraction.is_empty() && room >= 0;
            let low_bits =
                digits.bytes().fold(0u8, |low, digit| (low.wrapping_mul(10).wrapping_add(digit - b'0')) & 7);
            if fast_path && low_bits != 0 {
                return Some(text.to_owned());
            }
            let scaled = (0..power * 10).fold(digits, |digits, _| double(&digits));
            let nanos = nanos(&scaled, fraction.len() as i64, 0);
            let cap = "9223372036854775807000000000";
            let nanos = if greater(&nanos, cap) { cap.to_owned() } else { nanos };
            let whole = nanos.strip_suffix("000000000").filter(|whole| greater(whole, "1023"));
            return Some(match whole {
                Some(whole) => signed(sign, &binary_print(whole)),
                None => signed(sign, &decimal_print(&nanos, false)),
            });
        }
        let (power, exponential) = match suffix {
            "" => (0, false),
            "n" | "u" | "m" | "k" | "M" | "G" | "T" | "P" | "E" => {
                (3 * ("num kMGTPE".find(suffix)? as i64 - 3), false)
            }
            _ => (suffix[1..].parse::<i64>().ok()?, true),
        };
        let scale = power - fraction.len() as i64;
        let plain = format!("{}{fraction}", if whole.is_empty() { "0" } else { whole });
        if plain.len() <= 18
            && scale >= -9
            && scale % 3 == 0
            && !plain.ends_with("000")
            && !plain.starts_with('0')
        {
            return Some(text.to_owned());
        }
        Some(signed(sign, &decimal_print(&nanos(&plain, fraction.len() as i64, power), exponential)))
    }

    /// Sign, whole part, fraction and suffix.
    type Parts<'a> = (&'a str, &'a str, &'a str, &'a str);

    fn split(text: &str) -> Option<Parts<'_>> {
        if text.is_empty() {
            return None;
        }
        let sign = if text.starts_with(['-', '+']) { &text[..1] } else { "" };
        let rest = &text[sign.len()..];
        let whole = &rest[..rest.len() - rest.trim_start_matches(char::is_numeric).len()];
        let rest = &rest[whole.len()..];
        let (fraction, suffix) = match rest.strip_prefix('.') {
            Some(rest) => rest.split_at(rest.len() - rest.trim_start_matches(char::is_numeric).len()),
            None => ("", rest),
        };
        let known = ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
        let exponent = suffix.strip_prefix(['e', 'E']).is_some_and(|power| power.parse::<i32>().is_ok());
        (known.contains(&suffix) || exponent).then_some((sign, whole, fraction, suffix))
    }

    /// Returns `digits` × 10^(`power` − `fraction`) in nanos, rounded up.
    fn nanos(digits: &str, fraction: i64, power: i64) -> String {
        let shift = power - fraction + 9;
        let amount = if shift >= 0 {
            format!("{digits}{}", "0".repeat(shift as usize))
        } else {
            let keep = digits.len().saturating_sub(-shift as usize);
            let (kept, lost) = digits.split_at(keep);
            let kept = if kept.is_empty() { "0" } else { kept };
            if lost.bytes().any(|digit| digit != b'0') { increment(kept) } else { kept.to_owned() }
        };
        let trimmed = amount.trim_start_matches('0');
        if trimmed.is_empty() { "0".to_owned() } else { trimmed.to_owned() }
    }

    fn increment(digits: &str) -> String {
        let mut carry = 1;
        let mut all: Vec<u8> = digits.bytes().rev().collect();
        for digit in &mut all {
            let sum = *digit - b'0' + carry;
            *digit = sum % 10 + b'0';
            carry = sum / 10;
        }
        if carry > 0 {
            all.push(b'1');
        }
        all.into_iter().rev().map(char::from).collect()
    }

    fn double(digits: &str) -> String {
        let mut carry = 0;
        let mut all: Vec<u8> = vec![];
        for digit in digits.bytes().rev() {
            let sum = 2 * (digit - b'0') + carry;
            all.push(sum % 10 + b'0');
            carry = sum / 10;
        }
        if carry > 0 {
            all.push(carry + b'0');
        }
        all.into_iter().rev().map(char::from).collect()
    }

    /// Returns half of an even number.
    fn half(digits: &str) -> Option<String> {
        let mut carry = 0;
        let mut all = String::new();
        for digit in digits.bytes() {
            let value = 10 * carry + digit - b'0';
            all.push(char::from(value / 2 + b'0'));
            carry = value % 2;
        }
        let trimmed = all.trim_start_matches('0');
        (carry == 0 && !trimmed.is_empty()).then(|| trimmed.to_owned())
    }

    fn greater(left: &str, right: &str) -> bool {
        (left.len(), left) > (right.len(), right)
    }

    fn binary_print(whole: &str) -> String {
        let mut rest = whole.to_owned();
        for suffix in ["", "Ki", "Mi", "Gi", "Ti", "Pi"] {
            match (0..10).try_fold(rest.clone(), |rest, _| half(&rest)) {
                Some(less) => rest = less,
                None => return format!("{rest}{suffix}"),
            }
        }
        format!("{rest}Ei")
    }

    fn decimal_print(nanos: &str, exponential: bool) -> String {
        if nanos == "0" {
            return "0".to_owned();
        }
        let mut rest = nanos;
        let mut power = -9;
        while let Some(less) = rest.strip_suffix("000") {
            rest = less;
            power += 3;
        }
        let index = usize::try_from((power + 9) / 3).unwrap();
        match "num kMGTPE".chars().nth(index) {
            Some(' ') => rest.to_owned(),
            Some(suffix) if !exponential => format!("{rest}{suffix}"),
            _ => format!("{rest}e{power}"),
        }
    }

    fn signed(sign: &str, amount: &str) -> String {
        if sign == "-" && amount != "0" { format!("-{amount}") } else { amount.to_owned() }
    }
}
