//! The JSON Schema of a case file, for editors and other tools.

use schemars::generate::SchemaSettings;
use serde_json::Value;

use super::schema::Case;

/// The schema, draft 2020-12, as it is checked in.
pub fn json_schema() -> Value {
    SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<Case>().to_value()
}
