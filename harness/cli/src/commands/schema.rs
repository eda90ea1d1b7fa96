//! `evictlab schema`

use std::process::ExitCode;

use clap::Command;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use evictlab_tools::documents::{DOCUMENTS, Document};

use crate::failure::Failure;
use crate::output::print;
use crate::profile::{FILE, profile_schema};

/// Print the JSON Schema of case files, or of another document
///
/// A document has the name of its file, or of the command whose `--json` prints it. The schema
/// describes every key; later versions of evictlab may add keys to the documents that they write.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  evictlab schema > case.schema.json
  evictlab schema events.jsonl
  evictlab schema evictlab.toml
  evictlab schema dry-run")]
pub(crate) struct Args {
    /// Name of the document
    #[arg(value_name = "DOCUMENT", default_value = "case", value_parser = document())]
    document: Described,
}

/// Subject of a schema.
#[derive(Clone, Copy, Debug)]
enum Described {
    /// A document.
    Document(&'static Document),
    /// The file of the profiles.
    Profiles,
}

/// Accepts the names of documents, and of the file of the profiles.
fn document() -> impl TypedValueParser<Value = Described> {
    let value = |document: &Document| PossibleValue::new(document.name).help(document.about);
    let profiles = PossibleValue::new(FILE).help("Profiles: defaults of options");
    let names = PossibleValuesParser::new(DOCUMENTS.iter().map(value).chain([profiles]));
    names.try_map(|name| match name.as_str() {
        FILE => Ok(Described::Profiles),
        _ => Document::named(&name).map(Described::Document).ok_or("unknown document"),
    })
}

/// Prints the schema. That of the profiles describes the options of `command`.
pub(crate) fn run(args: &Args, command: &Command) -> Result<ExitCode, Failure> {
    let schema = match args.document {
        Described::Document(document) => document.schema(),
        Described::Profiles => profile_schema(command),
    };
    print(format!("{schema:#}"))?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use evictlab_tools::documents::DOCUMENTS;

    /// Returns the commands that have `--json`.
    fn with_json(command: &clap::Command, name: &str) -> Vec<String> {
        let has_json = command.get_arguments().any(|argument| argument.get_long() == Some("json"));
        let below = command
            .get_subcommands()
            .flat_map(|below| with_json(below, &format!("{name} {}", below.get_name())));
        has_json.then(|| name.to_owned()).into_iter().chain(below).collect()
    }

    #[test]
    fn the_json_of_every_command_is_a_document() {
        let commands = with_json(&crate::Cli::command(), "evictlab");
        assert!(commands.contains(&"evictlab cluster list".to_owned()), "{commands:?}");
        for command in commands {
            let is_described =
                DOCUMENTS.iter().any(|document| document.place.contains(&format!("`{command} ")));
            assert!(is_described, "no document is the output of {command} --json");
        }
    }
}
