//! [`ResizedRequest`].

use std::str::FromStr;

use super::error::ValueError;
use super::from_text::{impl_from_text, quantity_pattern};
use super::quantity_text::QuantityText;

/// The request of a resize: an amount, or what the node has for its pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResizedRequest {
    /// An amount.
    Amount(QuantityText),
    /// The allocatable amount of the node. It fits only without the requests of other pods.
    Allocatable,
}

impl_from_text!(ResizedRequest, concat!("^(allocatable|", quantity_pattern!(), ")$"));

impl FromStr for ResizedRequest {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        match text {
            "allocatable" => Ok(Self::Allocatable),
            word if word.starts_with(char::is_alphabetic) => Err(ValueError::ResizedRequest(word.to_owned())),
            amount => amount.parse().map(Self::Amount),
        }
    }
}
