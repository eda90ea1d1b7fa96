//! From JSON to CEL: what is whole is an `int`, as it is in an expression's own text. Maps have no order in CEL.

use std::collections::HashMap;

use cel::common::types::{CelBool, CelDouble, CelInt, CelList, CelMap, CelMapKey, CelNull, CelString};
use cel::common::value::Val;
use serde_json::{Number, Value as Json};

/// A value of CEL that may borrow its texts.
pub(super) type Boxed<'v> = Box<dyn Val + 'v>;

/// The same value in CEL. Texts are borrowed: what is asked for is little, and asked for often.
pub(super) fn value(json: &Json) -> Boxed<'_> {
    match json {
        Json::Null => Box::new(CelNull),
        Json::Bool(is) => Box::new(CelBool::from(*is)),
        Json::Number(number) => a_number(number),
        Json::String(text) => Box::new(CelString::from(text.as_str())),
        Json::Array(list) => values(list),
        Json::Object(map) => named(map.iter().map(|(key, of)| (key.as_str(), value(of)))),
    }
}

/// The same for a value that nobody else has.
pub(super) fn owned(json: Json) -> Boxed<'static> {
    match json {
        Json::Null => Box::new(CelNull),
        Json::Bool(is) => Box::new(CelBool::from(is)),
        Json::Number(number) => a_number(&number),
        Json::String(text) => Box::new(CelString::from(text)),
        Json::Array(list) => a_list(list.into_iter().map(owned)),
        Json::Object(map) => named(map.into_iter().map(|(key, of)| (key, owned(of)))),
    }
}

/// A list of values.
pub(super) fn values<'v>(list: impl IntoIterator<Item = &'v Json>) -> Boxed<'v> {
    a_list(list.into_iter().map(value))
}

/// A map of values by name; the last of a name counts.
pub(super) fn named<'v, K>(entries: impl Iterator<Item = (K, Boxed<'v>)>) -> Boxed<'v>
where
    CelMapKey<'v>: From<K>,
{
    let entries = entries.map(|(key, of)| (CelMapKey::from(key), of));
    Box::new(CelMap::from(entries.collect::<HashMap<_, _>>()))
}

fn a_list<'v>(values: impl Iterator<Item = Boxed<'v>>) -> Boxed<'v> {
    Box::new(CelList::from(values.collect::<Vec<_>>()))
}

fn a_number(number: &Number) -> Boxed<'static> {
    match number.as_i64() {
        Some(whole) => Box::new(CelInt::from(whole)),
        None => Box::new(CelDouble::from(number.as_f64().unwrap_or(f64::NAN))),
    }
}
