//! [`ResizedRequest`].

use std::str::FromStr;

use super::error::ValueError;
use super::from_text::{impl_from_text, quantity_pattern};
use super::quantity_text::QuantityText;

/// The request of a resize: an amount, or a share of what the node has for its pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResizedRequest {
    /// An amount.
    Amount(QuantityText),
    /// The allocatable amount of the node. It fits only without the requests of other pods.
    Allocatable,
    /// A percentage of the allocatable amount of the node, from 1 to 99.
    Percentage(u8),
}

impl_from_text!(ResizedRequest, concat!("^(allocatable|[1-9][0-9]?%|", quantity_pattern!(), ")$"));

impl FromStr for ResizedRequest {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        match text {
            "allocatable" => Ok(Self::Allocatable),
            share if share.ends_with('%') => {
                let percentage = share.trim_end_matches('%').parse().ok();
                let percentage = percentage.filter(|percentage| (1..100).contains(percentage));
                percentage.map(Self::Percentage).ok_or_else(|| ValueError::ResizedRequest(share.to_owned()))
            }
            word if word.starts_with(char::is_alphabetic) => Err(ValueError::ResizedRequest(word.to_owned())),
            amount => amount.parse().map(Self::Amount),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_amounts_and_shares() {
        for (text, request) in [
            ("allocatable", Some(ResizedRequest::Allocatable)),
            ("60%", Some(ResizedRequest::Percentage(60))),
            ("1%", Some(ResizedRequest::Percentage(1))),
            ("200Mi", Some(ResizedRequest::Amount("200Mi".parse().unwrap()))),
            ("100%", None),
            ("0%", None),
            ("-1%", None),
            ("1.5%", None),
            ("%", None),
            ("all", None),
        ] {
            assert_eq!(text.parse().ok(), request, "{text}");
        }
    }
}
