//! Use of a profile: its values become the defaults of options.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;

use clap::error::{ContextKind, ErrorKind};
use clap::{Arg, ArgAction, Command};
use evictlab_case::did_you_mean;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::ProfileError;
use super::file::ProfileFile;
use super::negation::{unset_flags, with_negations};

/// Profile whose values every other profile has, too.
const DEFAULT: &str = "default";
/// Options that a profile cannot contain.
const EXCLUDED: [&str; 3] = ["profile", "help", "version"];
/// Options that permit to disturb or to delete what others use. They are given for one command: a
/// file in a directory, which may come from somebody else, does not permit anything.
const PERMISSIONS: [&str; 8] = [
    "allow-control-plane",
    "allow-disruption",
    "allow-other-pods",
    "allow-privileged",
    "force",
    "kept",
    "max-starved-nodes",
    "pressure-cap",
];

/// Returns the command with the defaults of a profile: that of `--profile`, else of
/// `EVICTLAB_PROFILE`, else `default`. `--no-FLAG` among the arguments unsets a flag of the
/// profile.
///
/// # Errors
/// The file is invalid, or does not have the profile.
pub(crate) fn with_profile(
    command: Command,
    arguments: &[OsString],
    environment: Option<String>,
) -> Result<Command, ProfileError> {
    with_defaults(command, arguments, environment).map(with_negations)
}

fn with_defaults(
    command: Command,
    arguments: &[OsString],
    environment: Option<String>,
) -> Result<Command, ProfileError> {
    let name = option(arguments).or(environment.filter(|name| !name.is_empty()));
    let Some(file) = ProfileFile::find()? else {
        return match name.filter(|name| name != DEFAULT) {
            Some(name) => Err(ProfileError::NoFile(name)),
            None => Ok(command),
        };
    };
    let name = name.unwrap_or_else(|| DEFAULT.to_owned());
    let table = file.table()?;
    let unset = unset_flags(arguments);
    let applied = Profile { file: &file, unset: &unset };
    let mut selected: BTreeMap<&str, &DeTable<'_>> = BTreeMap::new();
    for (key, profiles) in &table {
        if key.get_ref() != "profile" {
            return Err(unknown_key(&file, key, &["profile"]));
        }
        for (profile, commands) in file.table_of("profile", profiles)? {
            // All profiles are checked, not only the selected ones.
            let commands = file.table_of(profile.get_ref(), commands)?;
            applied.apply(command.clone(), commands)?;
            selected.insert(profile.get_ref(), commands);
        }
    }
    if name != DEFAULT && !selected.contains_key(name.as_str()) {
        let all = selected.keys().copied().collect::<Vec<_>>().join(", ");
        let profiles = Some(all).filter(|all| !all.is_empty());
        return Err(ProfileError::Unknown { name, file: file.shown.clone(), profiles });
    }
    let mut layers = [DEFAULT, &name].into_iter().filter_map(|layer| selected.get(layer));
    layers.try_fold(command, |command, layer| applied.apply(command, layer))
}

/// Returns the options that a profile may contain, by their long names.
pub(super) fn keys(command: &Command) -> impl Iterator<Item = (&str, &Arg)> {
    let named = command.get_arguments().filter_map(|arg| Some((arg.get_long()?, arg)));
    named.filter(|(long, arg)| is_allowed(long) && !arg.is_hide_set())
}

fn is_allowed(long: &str) -> bool {
    !EXCLUDED.contains(&long) && !PERMISSIONS.contains(&long)
}

/// Returns the option with this long name, which may be a former one.
fn find_option<'a>(command: &'a Command, name: &str) -> Option<&'a Arg> {
    let has_name = |arg: &&Arg| {
        let former = arg.get_all_aliases().unwrap_or_default();
        arg.get_long() == Some(name) || former.contains(&name)
    };
    command.get_arguments().find(has_name).filter(|arg| arg.get_long().is_some_and(is_allowed))
}

/// Returns whether the values of an option are `true` and `false`.
pub(super) fn is_flag(arg: &Arg) -> bool {
    !arg.get_action().takes_values()
}

/// Returns the value of `--profile` among the arguments.
fn option(arguments: &[OsString]) -> Option<String> {
    let words: Vec<&str> =
        arguments.iter().map_while(|word| word.to_str().filter(|word| *word != "--")).collect();
    let separate = words.windows(2).find(|pair| pair[0] == "--profile").map(|pair| pair[1]);
    let joined = words.iter().find_map(|word| word.strip_prefix("--profile="));
    separate.or(joined).map(str::to_owned)
}

fn unknown_key(file: &ProfileFile, key: &Spanned<std::borrow::Cow<'_, str>>, known: &[&str]) -> ProfileError {
    let note = did_you_mean(key.get_ref(), known.iter().copied())
        .unwrap_or_else(|| format!("valid: {}", known.join(", ")));
    file.problem(key.span(), format!("unknown key `{}`", key.get_ref()), note)
}

fn permission(file: &ProfileFile, key: &Spanned<std::borrow::Cow<'_, str>>) -> ProfileError {
    let message = format!("`{}` is a permission, which a profile cannot give", key.get_ref());
    file.problem(key.span(), message, format!("state --{} on the command line", key.get_ref()))
}

/// The values of a profile.
struct Profile<'a> {
    file: &'a ProfileFile,
    /// Flags that the command line unsets.
    unset: &'a BTreeSet<&'a str>,
}

impl Profile<'_> {
    /// Sets the defaults of the subcommands and options that are the keys of a table.
    fn apply(&self, mut command: Command, table: &DeTable<'_>) -> Result<Command, ProfileError> {
        for (key, value) in table {
            let name: &str = key.get_ref();
            if let Some(subcommand) = command.find_subcommand(name).filter(|_| value.get_ref().is_table()) {
                let table = self.file.table_of(name, value)?;
                let applied = self.apply(subcommand.clone(), table)?;
                let name = subcommand.get_name().to_owned();
                command = command.mut_subcommand(name, |_| applied);
                continue;
            }
            let Some(arg) = find_option(&command, name) else {
                if PERMISSIONS.contains(&name) {
                    return Err(permission(self.file, key));
                }
                let subcommands = command.get_subcommands().map(Command::get_name);
                let options = keys(&command).map(|(long, _)| long);
                let known: Vec<&str> = subcommands.filter(|name| *name != "help").chain(options).collect();
                return Err(unknown_key(self.file, key, &known));
            };
            let values = self.values(arg, value)?;
            self.check(&command, name, value, (arg, &values))?;
            if is_flag(arg) && self.unset.contains(name) {
                continue;
            }
            command = set_default(command.clone(), arg.get_id().as_str(), values);
        }
        Ok(command)
    }

    /// Returns the values as the command line has them.
    fn values(&self, arg: &Arg, value: &Spanned<DeValue<'_>>) -> Result<Vec<String>, ProfileError> {
        let is_flag = is_flag(arg);
        let is_list = matches!(arg.get_action(), ArgAction::Append);
        let expected = match (is_flag, is_list) {
            (true, _) => "true or false",
            (false, true) => "a string, a number, or a list of them",
            (false, false) => "a string or a number",
        };
        let one = |value: &DeValue<'_>| match value {
            DeValue::Boolean(value) if is_flag => Some(value.to_string()),
            DeValue::String(value) if !is_flag => Some(value.to_string()),
            DeValue::Integer(value) if !is_flag => Some(value.to_string()),
            DeValue::Float(value) if !is_flag => Some(value.to_string()),
            _ => None,
        };
        let values: Option<Vec<String>> = match value.get_ref() {
            DeValue::Array(list) if is_list => list.iter().map(|item| one(item.get_ref())).collect(),
            value => one(value).map(|value| vec![value]),
        };
        values.ok_or_else(|| {
            let found = value.get_ref().type_str();
            let long = arg.get_long().unwrap_or_default();
            let message = format!("invalid value of `{long}`: found a value of the type {found}");
            self.file.problem(value.span(), message, format!("expected {expected}"))
        })
    }

    /// Checks values with the parser of the option.
    fn check(
        &self,
        command: &Command,
        name: &str,
        value: &Spanned<DeValue<'_>>,
        (arg, values): (&Arg, &[String]),
    ) -> Result<(), ProfileError> {
        if is_flag(arg) {
            return Ok(());
        }
        let words = values.iter().map(|value| format!("--{name}={value}"));
        let words = std::iter::once(command.get_name().to_owned()).chain(words);
        let Err(error) = command.clone().try_get_matches_from(words) else { return Ok(()) };
        // Others are about arguments that the command line may have.
        if !matches!(error.kind(), ErrorKind::InvalidValue | ErrorKind::ValueValidation) {
            return Ok(());
        }
        let valid = error.get(ContextKind::ValidValue).map(|valid| format!("valid: {valid}"));
        let cause = std::error::Error::source(&error).map(ToString::to_string);
        let message = match &cause {
            Some(cause) => format!("invalid value of `{name}`: {cause}"),
            None => format!("invalid value of `{name}`"),
        };
        Err(self.file.problem(value.span(), message, valid.unwrap_or_default()))
    }
}

/// Sets the default of an argument, which then need not be given.
fn set_default(mut command: Command, id: &str, values: Vec<String>) -> Command {
    let groups: Vec<String> = command
        .get_groups()
        .filter(|group| group.is_required_set() && group.get_args().any(|arg| arg.as_str() == id))
        .map(|group| group.get_id().to_string())
        .collect();
    for group in groups {
        command = command.mut_group(group, |group| group.required(false));
    }
    command.mut_arg(id, |arg| arg.required(false).default_values(values))
}
