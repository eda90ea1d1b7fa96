//! The options that the profiles of a file state.

use std::borrow::Cow;
use std::iter;
use std::slice;

use clap::error::{ContextKind, ErrorKind};
use clap::{Arg, ArgAction, Command};
use evictlab_case::{SourceSpan, did_you_mean};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::ProfileError;
use super::file::ProfileFile;
use super::permitted::{Permitted, allowed_values, command_line_only};
use crate::args::kubelet_versions::is_version_list;

/// Profile whose values every other profile has, too.
pub(super) const DEFAULT: &str = "default";

/// A key of a table.
type Key<'i> = Spanned<Cow<'i, str>>;

/// Returns the options that a profile may contain, by their long names.
pub(super) fn keys(command: &Command) -> impl Iterator<Item = (&str, &Arg)> {
    let named = command.get_arguments().filter_map(|arg| Some((arg.get_long()?, arg)));
    named.filter(|(long, arg)| allowed_values(long).is_some() && !arg.is_hide_set())
}

/// Returns the option with this long name, which may be a former one.
fn find_option<'a>(command: &'a Command, name: &str) -> Option<&'a Arg> {
    let has_name = |arg: &&Arg| {
        let former = arg.get_all_aliases().unwrap_or_default();
        arg.get_long() == Some(name) || former.contains(&name)
    };
    command.get_arguments().find(has_name).filter(|arg| arg.get_long().and_then(allowed_values).is_some())
}

/// Returns the items of a list; the value itself if it is not a list.
fn items<'a, 'i>(value: &'a Spanned<DeValue<'i>>) -> &'a [Spanned<DeValue<'i>>] {
    match value.get_ref() {
        DeValue::Array(list) => list,
        _ => slice::from_ref(value),
    }
}

/// Returns whether the values of an option are `true` and `false`.
pub(super) fn is_flag(arg: &Arg) -> bool {
    !arg.get_action().takes_values()
}

/// Returns whether an option may be stated without its value, as `--baseline`.
pub(super) fn has_optional_value(arg: &Arg) -> bool {
    !is_flag(arg) && arg.get_num_args().is_some_and(|count| count.min_values() == 0)
}

/// Returns the values of an option that is stated without one. Only a parser reveals them.
fn values_without_value(command: &Command, arg: &Arg) -> Vec<String> {
    let option = format!("--{}", arg.get_long().unwrap_or_default());
    let words = [command.get_name(), option.as_str()];
    // The command line may have the other arguments of the command.
    let Ok(matches) = command.clone().ignore_errors(true).try_get_matches_from(words) else {
        return Vec::new();
    };
    let values = matches.get_raw(arg.get_id().as_str()).into_iter().flatten();
    values.map(|value| value.to_string_lossy().into_owned()).collect()
}

/// Returns the subcommand with these names.
pub(super) fn subcommand_at<'a>(command: &'a Command, path: &[String]) -> Option<&'a Command> {
    path.iter().try_fold(command, |command, name| command.find_subcommand(name))
}

/// Returns whether two arguments of a command, by their IDs, exclude each other.
pub(super) fn are_exclusive(command: &Command, one: &str, other: &str) -> bool {
    let excludes = |one: &str, other: &str| {
        let arg = command.get_arguments().find(|arg| arg.get_id().as_str() == one);
        let conflicts = arg.map(|arg| command.get_arg_conflicts_with(arg)).unwrap_or_default();
        conflicts.iter().any(|arg| arg.get_id().as_str() == other)
    };
    excludes(one, other) || excludes(other, one)
}

/// An option that a profile states.
pub(super) struct Setting {
    /// Names of the subcommands to which the option belongs.
    pub(super) path: Vec<String>,
    /// ID of the argument.
    pub(super) id: String,
    /// Long name.
    pub(super) long: String,
    pub(super) is_flag: bool,
    /// The values as the command line has them; none if the profile leaves the option out, as by
    /// `false`.
    pub(super) values: Vec<String>,
    /// The places of the values in the file.
    pub(super) places: Vec<SourceSpan>,
}

impl Setting {
    /// Returns whether this setting selects a backend with real kubelets: there, cases, kubelets
    /// and images of the repository could run as privileged containers.
    fn leaves_the_model(&self) -> bool {
        self.long == "backend" && self.values.iter().any(|value| value != "embedded")
    }

    /// Returns whether this setting, of a more specific profile, replaces another one.
    pub(super) fn replaces(&self, evictlab: &Command, other: &Self) -> bool {
        let conflicts = |command| self.conflicts_with(command, other);
        self.path == other.path
            && (self.id == other.id || subcommand_at(evictlab, &self.path).is_some_and(conflicts))
    }

    /// Returns whether two options of a command cannot be used together.
    fn conflicts_with(&self, command: &Command, other: &Self) -> bool {
        let are_present = !self.values.is_empty() && !other.values.is_empty();
        are_present && are_exclusive(command, &self.id, &other.id)
    }
}

/// A profile of a file.
pub(super) struct Profile<'a> {
    pub(super) file: &'a ProfileFile,
    pub(super) name: &'a str,
}

impl Profile<'_> {
    /// Returns the options in the table of a command, which is below the subcommands `path`.
    ///
    /// # Errors
    /// A key is unknown, a value is invalid, or two options exclude each other.
    pub(super) fn settings(
        &self,
        command: &Command,
        path: &[String],
        table: &DeTable<'_>,
    ) -> Result<Vec<Setting>, ProfileError> {
        let mut own: Vec<Setting> = Vec::new();
        let mut below = Vec::new();
        for (key, value) in table {
            let name: &str = key.get_ref();
            if let Some(subcommand) = command.find_subcommand(name).filter(|_| value.get_ref().is_table()) {
                let path = [path, &[subcommand.get_name().to_owned()]].concat();
                below.extend(self.settings(subcommand, &path, self.file.table_of(name, value)?)?);
                continue;
            }
            let Some(arg) = find_option(command, name) else {
                return Err(self.unknown(command, path, (key, value)));
            };
            let setting = Setting {
                path: path.to_vec(),
                id: arg.get_id().to_string(),
                long: arg.get_long().unwrap_or_default().to_owned(),
                is_flag: is_flag(arg),
                values: self.values(command, arg, (name, value))?,
                places: items(value).iter().map(|item| self.file.place(item.span(), "")).collect(),
            };
            if self.name == DEFAULT && setting.leaves_the_model() {
                let message =
                    format!("profile `{DEFAULT}` applies without being selected, and cannot set `{name}`");
                let note =
                    "put it into a profile with another name, for --profile, or state it on the command line";
                return Err(self.file.problem(value.span(), message, note));
            }
            self.check_permitted(&setting, value)?;
            if let Some(other) = own.iter().find(|other| setting.conflicts_with(command, other)) {
                let message = format!("`{name}` cannot be used with `{}`", other.long);
                return Err(self.file.problem(key.span(), message, "state one of them"));
            }
            own.push(setting);
        }
        own.extend(below);
        Ok(own)
    }

    /// Returns the values as the command line has them.
    fn values(
        &self,
        command: &Command,
        arg: &Arg,
        (name, value): (&str, &Spanned<DeValue<'_>>),
    ) -> Result<Vec<String>, ProfileError> {
        let (is_flag, is_optional) = (is_flag(arg), has_optional_value(arg));
        if let DeValue::Boolean(is_stated) = value.get_ref()
            && (is_flag || is_optional)
        {
            return Ok(match (*is_stated, is_flag) {
                (false, _) => Vec::new(),
                (true, true) => vec!["true".to_owned()],
                (true, false) => values_without_value(command, arg),
            });
        }
        let is_list = matches!(arg.get_action(), ArgAction::Append);
        let is_item = is_list && value.get_ref().is_array();
        let expected = match (is_flag, is_list && !is_item, is_optional) {
            (true, _, _) => "true or false",
            (false, true, _) => "a string, a number, or a list of them",
            (false, false, true) => "a string, a number, true or false",
            (false, false, false) => "a string or a number",
        };
        let one = |value: &DeValue<'_>| match value {
            DeValue::String(value) if !is_flag => Some(value.to_string()),
            DeValue::Integer(value) if !is_flag => Some(value.to_string()),
            DeValue::Float(value) if !is_flag => Some(value.to_string()),
            _ => None,
        };
        let items = if is_list { items(value) } else { slice::from_ref(value) };
        let text = |item: &Spanned<DeValue<'_>>| {
            let text = one(item.get_ref()).ok_or_else(|| {
                let found = item.get_ref().type_str();
                let message = format!("invalid value of `{name}`: found a value of the type {found}");
                self.file.problem(item.span(), message, format!("expected {expected}"))
            })?;
            self.check(command, arg, (name, item), &text)?;
            Ok(text)
        };
        items.iter().map(text).collect()
    }

    /// Rejects values that only the command line can state.
    fn check_permitted(&self, setting: &Setting, value: &Spanned<DeValue<'_>>) -> Result<(), ProfileError> {
        let long = &setting.long;
        let refused = |text: &String| match allowed_values(long)? {
            Permitted::All => None,
            Permitted::Versions => (!is_version_list(text))
                .then(|| format!("`{long}` in a profile is a version such as v1.32.11, not `{text}`")),
            Permitted::PathsBelow => {
                let reason = self.file.unsafe_path(text)?;
                Some(format!("`{long}` cannot write to `{text}`: the path {reason}"))
            }
        };
        let mut texts = setting.values.iter().zip(items(value));
        match texts.find_map(|(text, item)| Some((refused(text)?, item.span()))) {
            Some((message, span)) => {
                Err(self.file.problem(span, message, format!("state --{long} on the command line")))
            }
            None => Ok(()),
        }
    }

    /// Checks a value, or an item of a list, with the parser of the option.
    fn check(
        &self,
        command: &Command,
        arg: &Arg,
        (name, item): (&str, &Spanned<DeValue<'_>>),
        text: &str,
    ) -> Result<(), ProfileError> {
        let words = [command.get_name().to_owned(), format!("--{name}={text}")];
        let Err(error) = command.clone().try_get_matches_from(words) else { return Ok(()) };
        // Others are about arguments that the command line may have.
        if !matches!(error.kind(), ErrorKind::InvalidValue | ErrorKind::ValueValidation) {
            return Ok(());
        }
        let cause = std::error::Error::source(&error).map(ToString::to_string);
        let message = match cause.or(text.is_empty().then(|| "it is empty".to_owned())) {
            Some(cause) => format!("invalid value of `{name}`: {cause}"),
            None => format!("invalid value of `{name}`"),
        };
        let valid = error.get(ContextKind::ValidValue).map(ToString::to_string);
        let note = match valid.filter(|valid| !valid.is_empty()) {
            Some(valid) => format!("valid: {valid}"),
            None if has_optional_value(arg) => format!("write `{name} = true` for --{name} without a value"),
            None => String::new(),
        };
        Err(self.file.problem(item.span(), message, note))
    }

    /// Returns the error of a key that is not an option of the command.
    fn unknown(
        &self,
        command: &Command,
        path: &[String],
        (key, value): (&Key<'_>, &Spanned<DeValue<'_>>),
    ) -> ProfileError {
        let name: &str = key.get_ref();
        if let Some(reason) = command_line_only(name) {
            let message = format!("`{name}` {reason}: a profile cannot contain it");
            return self.file.problem(key.span(), message, format!("state --{name} on the command line"));
        }
        if let Some(subcommand) = command.find_subcommand(name) {
            let found = value.get_ref().type_str();
            let message = format!("invalid value of `{name}`: found a value of the type {found}");
            let table = self.table_name(path, subcommand.get_name());
            return self.file.problem(value.span(), message, format!("expected a table of options: {table}"));
        }
        let owners = command.get_subcommands().filter(|below| find_option(below, name).is_some());
        let owners: Vec<&str> = owners.map(Command::get_name).collect();
        if let Some(owner) = owners.iter().find(|owner| **owner == "run").or(owners.first()) {
            let note = format!("put the options of {owner} under {}", self.table_name(path, owner));
            return self.file.problem(key.span(), format!("unknown key `{name}`"), note);
        }
        let subcommands = command.get_subcommands().map(Command::get_name);
        let options = keys(command).map(|(long, _)| long);
        let known: Vec<&str> = subcommands.filter(|name| *name != "help").chain(options).collect();
        unknown_key(self.file, key, &known)
    }

    /// Returns the header of the table of a subcommand.
    fn table_name(&self, path: &[String], subcommand: &str) -> String {
        let names = iter::once(self.name).chain(path.iter().map(String::as_str)).chain([subcommand]);
        format!("[profile.{}]", names.collect::<Vec<_>>().join("."))
    }
}

/// Returns the error of an unknown key.
pub(super) fn unknown_key(file: &ProfileFile, key: &Key<'_>, known: &[&str]) -> ProfileError {
    let note = did_you_mean(key.get_ref(), known.iter().copied())
        .unwrap_or_else(|| format!("valid: {}", known.join(", ")));
    file.problem(key.span(), format!("unknown key `{}`", key.get_ref()), note)
}
