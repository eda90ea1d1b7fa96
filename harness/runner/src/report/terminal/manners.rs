//! What an output can do, and what its user wants of it.

use std::env;
use std::io::{self, IsTerminal};

/// Whether to redraw, and whether to colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Manners {
    /// Whether lines can be drawn again: on a terminal that is not dumb.
    pub live: bool,
    /// Whether to colour: where lines can be drawn again, or `CLICOLOR_FORCE` asks for it; never if `NO_COLOR`
    /// forbids it.
    pub colour: bool,
}

impl Manners {
    /// Those of standard output, by the environment.
    pub fn of_stdout() -> Self {
        Self::of(io::stdout().is_terminal(), |name| env::var(name).ok())
    }

    /// Those of an output, by the variables of an environment: <https://no-color.org>,
    /// <https://bixense.com/clicolors>.
    pub fn of(is_terminal: bool, variable: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name| variable(name).is_some_and(|value: String| !value.is_empty());
        let live = is_terminal && variable("TERM").is_none_or(|term| term != "dumb");
        let forced = set("CLICOLOR_FORCE") && variable("CLICOLOR_FORCE").as_deref() != Some("0");
        let unwanted = variable("CLICOLOR").as_deref() == Some("0");
        Self { live, colour: !set("NO_COLOR") && (forced || (live && !unwanted)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follow_the_environment() {
        for (is_terminal, variables, live, colour) in [
            (true, &[][..], true, true),
            (false, &[], false, false),
            (true, &[("TERM", "xterm")], true, true),
            (true, &[("TERM", "dumb")], false, false),
            (true, &[("NO_COLOR", "1")], true, false),
            (true, &[("NO_COLOR", "")], true, true),
            (true, &[("CLICOLOR", "0")], true, false),
            (false, &[("CLICOLOR_FORCE", "1")], false, true),
            (false, &[("CLICOLOR_FORCE", "0")], false, false),
            (true, &[("TERM", "dumb"), ("CLICOLOR_FORCE", "1")], false, true),
            (true, &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], true, false),
        ] {
            let get = |name: &str| {
                variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
            };
            assert_eq!(
                Manners::of(is_terminal, get),
                Manners { live, colour },
                "{is_terminal} {variables:?}"
            );
        }
    }
}
