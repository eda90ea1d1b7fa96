//! Deserialization of values from their text.

/// Implements deserialization from text for a type with `FromStr`, and a JSON Schema with this
/// pattern.
macro_rules! impl_from_text {
    ($type:ident, $pattern:expr) => {
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <String as serde::Deserialize>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }

        impl schemars::JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "pattern": $pattern })
            }
        }
    };
}

/// Regular expression of a quantity, for JSON Schemas.
macro_rules! quantity_pattern {
    () => {
        r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?"
    };
}

pub(super) use {impl_from_text, quantity_pattern};

/// Checks that valid texts are printed as they were written, and that invalid texts are rejected.
#[cfg(test)]
pub(super) fn check_texts<T>(valid: &[&str], invalid: &[&str])
where
    T: std::str::FromStr<Err = super::ValueError> + std::fmt::Display,
{
    for text in valid {
        let read = text.parse::<T>().unwrap_or_else(|why| panic!("{why}"));
        assert_eq!(&read.to_string(), text);
    }
    for text in invalid {
        if let Ok(read) = text.parse::<T>() {
            panic!("{text:?} was parsed as {read}");
        }
    }
}
