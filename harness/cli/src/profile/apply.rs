//! Use of a profile: its values become the defaults of options.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, Command, Id};
use clap_complete::engine::CompletionCandidate;

use super::error::ProfileError;
use super::file::ProfileFile;
use super::origin;
use super::settings::{DEFAULT, Profile, Setting, are_exclusive, subcommand_at, unknown_key};

/// Start of the option that unsets a flag, as in cargo and nextest.
const PREFIX: &str = "no-";

/// Returns the command with the defaults of a profile: that of `--profile`, else of
/// `EVICTLAB_PROFILE`, else `default`. An argument precedes the options of the profile with which
/// it cannot be used, and `--no-FLAG` unsets a flag of the profile.
///
/// # Errors
/// The file is invalid, or does not have the profile.
pub(crate) fn with_profile(
    command: Command,
    arguments: &[OsString],
    environment: Option<String>,
) -> Result<Command, ProfileError> {
    let Some((file, mut settings)) = selected(&command, arguments, environment)? else {
        return Ok(with_negations(command));
    };
    let stated = StatedArguments::of(&command, arguments);
    settings.retain(|setting| !stated.precede(&command, setting));
    let effective = settings.iter().filter(|setting| stated.0.contains_key(&setting.path));
    let effective = effective.filter(|setting| !setting.values.is_empty());
    origin::record(file, effective);
    let command = settings
        .iter()
        .fold(command, |command, setting| with_default(command, &setting.path, &setting.id, &setting.values));
    Ok(with_negations(command))
}

/// Returns the names of the profiles for the shell's completion; none of an invalid file.
pub(crate) fn candidates() -> Vec<CompletionCandidate> {
    let Ok(Some(file)) = ProfileFile::find() else { return Vec::new() };
    let Ok(table) = file.table() else { return Vec::new() };
    let profiles = table.get("profile").and_then(|profiles| profiles.get_ref().as_table());
    let names = profiles.into_iter().flat_map(|profiles| profiles.keys());
    names.map(|name| CompletionCandidate::new(name.get_ref().to_string())).collect()
}

/// Returns the file of the profiles as the user opens it, and the options of the selected profile.
/// `None` if the file does not exist.
fn selected(
    command: &Command,
    arguments: &[OsString],
    environment: Option<String>,
) -> Result<Option<(String, Vec<Setting>)>, ProfileError> {
    let name = option(arguments).or(environment.filter(|name| !name.is_empty()));
    let Some(file) = ProfileFile::find()? else {
        return match name.filter(|name| name != DEFAULT) {
            Some(name) => Err(ProfileError::NoFile(name)),
            None => Ok(None),
        };
    };
    let name = name.unwrap_or_else(|| DEFAULT.to_owned());
    let table = file.table()?;
    let mut profiles: BTreeMap<&str, Vec<Setting>> = BTreeMap::new();
    for (key, value) in &table {
        if key.get_ref() != "profile" {
            return Err(unknown_key(&file, key, &["profile"]));
        }
        for (profile, commands) in file.table_of("profile", value)? {
            // All profiles are checked, not only the selected ones.
            let commands = file.table_of(profile.get_ref(), commands)?;
            let reader = Profile { file: &file, name: profile.get_ref() };
            profiles.insert(profile.get_ref(), reader.settings(command, &[], commands)?);
        }
    }
    if name != DEFAULT && !profiles.contains_key(name.as_str()) {
        let all = profiles.keys().copied().collect::<Vec<_>>().join(", ");
        let profiles = Some(all).filter(|all| !all.is_empty());
        return Err(ProfileError::Unknown { name, file: file.shown.clone(), profiles });
    }
    let mut settings = profiles.remove(DEFAULT).unwrap_or_default();
    for setting in profiles.remove(name.as_str()).unwrap_or_default() {
        settings.retain(|lower| !setting.replaces(command, lower));
        settings.push(setting);
    }
    Ok(Some((file.shown.clone(), settings)))
}

/// Returns the value of `--profile` among the arguments.
fn option(arguments: &[OsString]) -> Option<String> {
    let words: Vec<&str> =
        arguments.iter().map_while(|word| word.to_str().filter(|word| *word != "--")).collect();
    let separate = words.windows(2).find(|pair| pair[0] == "--profile").map(|pair| pair[1]);
    let joined = words.iter().find_map(|word| word.strip_prefix("--profile="));
    separate.or(joined).map(str::to_owned)
}

/// The IDs of the arguments that the command line or the environment states, by the names of their
/// subcommands.
struct StatedArguments(BTreeMap<Vec<String>, BTreeSet<String>>);

impl StatedArguments {
    /// Returns those of a command line: up to a mistake in it, which the later parser reports.
    fn of(command: &Command, arguments: &[OsString]) -> Self {
        let parser = with_negations(command.clone()).ignore_errors(true);
        let mut stated = BTreeMap::new();
        let Ok(matches) = parser.try_get_matches_from(arguments) else { return Self(stated) };
        let (mut path, mut level) = (Vec::new(), &matches);
        loop {
            let is_stated = |id: &&str| {
                let source = level.value_source(id);
                matches!(source, Some(ValueSource::CommandLine | ValueSource::EnvVariable))
            };
            let ids = level.ids().map(Id::as_str).filter(is_stated).map(str::to_owned).collect();
            stated.insert(path.clone(), ids);
            let Some((name, below)) = level.subcommand() else { return Self(stated) };
            path.push(name.to_owned());
            level = below;
        }
    }

    /// Returns whether one of the arguments is the option of a setting, its negation, or cannot be
    /// used with it.
    fn precede(&self, command: &Command, setting: &Setting) -> bool {
        let Some(ids) = self.0.get(&setting.path) else { return false };
        let Some(command) = subcommand_at(command, &setting.path) else { return false };
        ids.contains(&setting.id)
            || ids.contains(&negation(&setting.long))
            || ids.iter().any(|id| are_exclusive(command, &setting.id, id))
    }
}

/// Sets the default of an argument of the subcommand at `path`.
fn with_default(command: Command, path: &[String], id: &str, values: &[String]) -> Command {
    match path.split_first() {
        _ if values.is_empty() => command,
        Some((name, path)) => command.mut_subcommand(name, |below| with_default(below, path, id, values)),
        None => set_default(command, id, values.to_vec()),
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

/// Returns the name of the option that unsets a flag, which is also its ID.
fn negation(long: &str) -> String {
    format!("{PREFIX}{long}")
}

/// Adds `--no-FLAG` for every flag of the command and its subcommands. The last one of a flag and
/// its negation applies. Without a profile that sets the flag, its negation has no other effect.
fn with_negations(mut command: Command) -> Command {
    let is_flag = |arg: &&Arg| matches!(arg.get_action(), ArgAction::SetTrue);
    let flags: Vec<(String, String)> = command
        .get_arguments()
        .filter(is_flag)
        .filter_map(|arg| Some((arg.get_id().to_string(), negation(arg.get_long()?))))
        .collect();
    for (flag, negation) in flags {
        let id = negation.clone();
        let negation = Arg::new(id.clone()).long(negation).action(ArgAction::SetTrue).hide(true);
        command =
            command.arg(negation.overrides_with(flag.clone())).mut_arg(flag, |arg| arg.overrides_with(id));
    }
    command.mut_subcommands(with_negations)
}
