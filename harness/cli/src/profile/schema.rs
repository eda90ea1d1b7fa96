//! JSON Schema of `evictlab.toml`, for editors.

use clap::{Arg, ArgAction, Command};
use serde_json::{Map, Value, json};

use super::settings::{has_optional_value, is_flag, keys};

/// Returns the schema (draft 2020-12): the options of this command and its subcommands are the keys
/// of a profile.
pub(crate) fn profile_schema(command: &Command) -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": super::file::FILE,
        "description": "Defaults of options, by profile and command.",
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "profile": {
                "description": "The profiles by name. `default` applies without `--profile`, and below every other profile.",
                "type": "object",
                "additionalProperties": { "$ref": "#/$defs/profile" },
            },
        },
        "$defs": { "profile": table(command) },
    })
}

/// Returns the schema of the table of a command.
fn table(command: &Command) -> Value {
    let options = keys(command).map(|(long, arg)| (long.to_owned(), option(arg)));
    let subcommands = command.get_subcommands().map(|below| (below.get_name().to_owned(), table(below)));
    let properties: Map<String, Value> = options.chain(subcommands).collect();
    let about = command.get_about().map(ToString::to_string);
    described(json!({ "type": "object", "additionalProperties": false, "properties": properties }), about)
}

/// Returns the schema of the values of an option.
fn option(arg: &Arg) -> Value {
    let valid: Vec<String> = arg
        .get_possible_values()
        .into_iter()
        .filter(|value| !value.is_hide_set())
        .map(|value| value.get_name().to_owned())
        .collect();
    let one =
        if valid.is_empty() { json!({ "type": ["string", "number"] }) } else { json!({ "enum": valid }) };
    let values = if is_flag(arg) {
        json!({ "type": "boolean" })
    } else if has_optional_value(arg) {
        json!({ "anyOf": [{ "type": "boolean" }, one] })
    } else if matches!(arg.get_action(), ArgAction::Append) {
        json!({ "anyOf": [one, { "type": "array", "items": one }] })
    } else {
        one
    };
    described(values, arg.get_help().map(ToString::to_string))
}

fn described(mut schema: Value, about: Option<String>) -> Value {
    if let (Some(keys), Some(about)) = (schema.as_object_mut(), about) {
        keys.insert("description".to_owned(), about.into());
    }
    schema
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_keys_are_the_options_of_the_commands() {
        let schema = profile_schema(&crate::Cli::command());
        let run = &schema["$defs"]["profile"]["properties"]["run"]["properties"];
        assert_eq!(run["quiet"]["type"], "boolean");
        assert_eq!(run["backend"]["enum"], json!(["embedded", "kind", "existing"]));
        assert_eq!(run["baseline"]["anyOf"][0]["type"], "boolean");
        assert_eq!(run["kubelet"]["anyOf"][1]["items"]["type"], json!(["string", "number"]));
        assert!(run.get("profile").is_none() && run.get("help").is_none(), "{run}");
        let create = &schema["$defs"]["profile"]["properties"]["cluster"]["properties"]["create"];
        assert!(create["properties"]["nodes"]["description"].is_string(), "{create}");
    }
}
