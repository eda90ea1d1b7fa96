//! Conversion from JSON to CEL values, when an expression first reads them. Integers become `int`,
//! as literals in an expression do; CEL maps are unordered.

use std::collections::HashMap;
use std::sync::OnceLock;

use cel::common::traits::{Adder, Container, Indexer, Iterable, Sizer, Zeroer};
use cel::common::types::{
    CelBool, CelDouble, CelInt, CelList, CelMap, CelMapKey, CelNull, CelString, DYN_TYPE, LIST_TYPE,
    MAP_TYPE, Type,
};
use cel::common::value::{Builtin, BuiltinRef, Val};
use evictlab_case::expression::CelValue;
use serde_json::{Number, Value as Json};

use crate::sample_text::SampleText;

/// Converts JSON. Strings are borrowed, and the items of lists and objects are converted when they
/// are read.
pub(crate) fn borrowed(json: &Json) -> CelValue<'_> {
    match json {
        Json::Array(_) | Json::Object(_) => Box::new(LazyValue::new(Source::Json(json))),
        scalar => convert(scalar),
    }
}

/// Converts JSON, but not the items of its items.
fn convert(json: &Json) -> CelValue<'_> {
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

pub(crate) fn cel_list<'v>(values: impl Iterator<Item = CelValue<'v>>) -> CelValue<'v> {
    Box::new(CelList::from(values.collect::<Vec<_>>()))
}

fn cel_number(number: &Number) -> CelValue<'static> {
    match number.as_i64() {
        Some(integer) => Box::new(CelInt::from(integer)),
        None => Box::new(CelDouble::from(number.as_f64().unwrap_or(f64::NAN))),
    }
}

/// A list or a map that is converted when it is first read: its items stay as they are until they
/// are read themselves, since an expression reads few values of an object.
#[derive(Debug)]
pub(crate) struct LazyValue<'v> {
    source: Source<'v>,
    converted: OnceLock<CelValue<'v>>,
}

#[derive(Clone, Copy, Debug)]
enum Source<'v> {
    /// An array or an object.
    Json(&'v Json),
    /// An object.
    Sample(&'v SampleText),
}

static ANY: Type = DYN_TYPE;

impl<'v> LazyValue<'v> {
    /// The value of a sample.
    pub(crate) fn of_sample(sample: &'v SampleText) -> Self {
        Self::new(Source::Sample(sample))
    }

    fn new(source: Source<'v>) -> Self {
        Self { source, converted: OnceLock::new() }
    }

    fn get(&self) -> &CelValue<'v> {
        self.converted.get_or_init(|| self.source.convert())
    }

    fn into_converted(self) -> CelValue<'v> {
        let Self { source, converted } = self;
        converted.into_inner().unwrap_or_else(|| source.convert())
    }
}

impl<'v> Source<'v> {
    fn convert(self) -> CelValue<'v> {
        match self {
            Self::Json(json) => convert(json),
            Self::Sample(sample) => {
                let parsed = sample.parsed_for_expressions();
                parsed.map_or_else(|| owned(sample.parse_for_expressions()), convert)
            }
        }
    }
}

/// Every operation is that of the converted value.
impl Val for LazyValue<'_> {
    fn get_type(&self) -> &Type {
        match self.source {
            Source::Json(Json::Array(_)) => &LIST_TYPE,
            Source::Json(Json::Object(_)) => &MAP_TYPE,
            Source::Json(_) | Source::Sample(_) => self.get().get_type(),
        }
    }

    fn cel_type() -> &'static Type {
        &ANY
    }

    fn as_adder<'b, 'w>(&'b self) -> Option<&'b (dyn Adder + 'w)>
    where
        Self: 'w,
    {
        self.get().as_adder()
    }

    fn as_container(&self) -> Option<&dyn Container> {
        self.get().as_container()
    }

    fn as_indexer<'b, 'w>(&'b self) -> Option<&'b (dyn Indexer + 'w)>
    where
        Self: 'w,
    {
        self.get().as_indexer()
    }

    fn into_indexer<'w>(self: Box<Self>) -> Option<Box<dyn Indexer + 'w>>
    where
        Self: 'w,
    {
        self.into_converted().into_indexer()
    }

    fn as_iterable<'b, 'w>(&'b self) -> Option<&'b (dyn Iterable + 'w)>
    where
        Self: 'w,
    {
        self.get().as_iterable()
    }

    fn as_sizer(&self) -> Option<&dyn Sizer> {
        self.get().as_sizer()
    }

    fn as_zeroer(&self) -> Option<&dyn Zeroer> {
        self.get().as_zeroer()
    }

    fn equals(&self, other: &dyn Val) -> bool {
        self.get().equals(other)
    }

    fn clone_as_boxed<'w>(&self) -> Box<dyn Val + 'w>
    where
        Self: 'w,
    {
        Box::new(Self::new(self.source))
    }

    fn as_builtin<'b, 'w>(&'b self) -> BuiltinRef<'b, 'w>
    where
        Self: 'w,
    {
        self.get().as_builtin()
    }

    fn into_builtin<'w>(self: Box<Self>) -> Option<Builtin<'w>>
    where
        Self: 'w,
    {
        self.into_converted().into_builtin()
    }
}
