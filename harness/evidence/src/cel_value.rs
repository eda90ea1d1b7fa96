//! Conversion from JSON to CEL values. Integers become `int`, as literals in an expression do; CEL
//! maps are unordered.

use std::collections::HashMap;

use cel::common::types::{CelBool, CelDouble, CelInt, CelList, CelMap, CelMapKey, CelNull, CelString};
use cel::common::value::Val;
use serde_json::{Number, Value as Json};

/// A CEL value that may borrow its strings.
pub(crate) type CelValue<'v> = Box<dyn Val + 'v>;

/// Converts JSON. Strings are borrowed: expressions read few values, but read them often.
pub(crate) fn borrowed(json: &Json) -> CelValue<'_> {
    match json {
        Json::Null => Box::new(CelNull),
        Json::Bool(is) => Box::new(CelBool::from(*is)),
        Json::Number(number) => cel_number(number),
        Json::String(text) => Box::new(CelString::from(text.as_str())),
        Json::Array(list) => borrowed_list(list),
        Json::Object(map) => cel_map(map.iter().map(|(key, value)| (key.as_str(), borrowed(value)))),
    }
}

/// Converts JSON and takes its strings.
pub(crate) fn owned(json: Json) -> CelValue<'static> {
    match json {
        Json::Null => Box::new(CelNull),
        Json::Bool(is) => Box::new(CelBool::from(is)),
        Json::Number(number) => cel_number(&number),
        Json::String(text) => Box::new(CelString::from(text)),
        Json::Array(list) => cel_list(list.into_iter().map(owned)),
        Json::Object(map) => cel_map(map.into_iter().map(|(key, value)| (key, owned(value)))),
    }
}

/// Converts a list of JSON values; see [`borrowed`].
pub(crate) fn borrowed_list<'v>(list: impl IntoIterator<Item = &'v Json>) -> CelValue<'v> {
    cel_list(list.into_iter().map(borrowed))
}

/// Builds a map; the last entry of a key wins.
pub(crate) fn cel_map<'v, K>(entries: impl Iterator<Item = (K, CelValue<'v>)>) -> CelValue<'v>
where
    CelMapKey<'v>: From<K>,
{
    let entries = entries.map(|(key, value)| (CelMapKey::from(key), value));
    Box::new(CelMap::from(entries.collect::<HashMap<_, _>>()))
}

fn cel_list<'v>(values: impl Iterator<Item = CelValue<'v>>) -> CelValue<'v> {
    Box::new(CelList::from(values.collect::<Vec<_>>()))
}

fn cel_number(number: &Number) -> CelValue<'static> {
    match number.as_i64() {
        Some(integer) => Box::new(CelInt::from(integer)),
        None => Box::new(CelDouble::from(number.as_f64().unwrap_or(f64::NAN))),
    }
}
