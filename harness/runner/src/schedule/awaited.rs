//! An expression that is waited for.

use crate::cel::{Expression, Scope};

/// It is asked again only when something that it speaks of may have changed: a case is told of much that does not concern it.
pub(super) struct Awaited<'a> {
    expression: &'a Expression,
    held: Option<bool>,
}

impl<'a> Awaited<'a> {
    pub fn new(expression: &'a Expression) -> Self {
        Self { expression, held: None }
    }

    /// Whether it holds, after these variables may have changed. Time always goes on.
    pub fn holds(&mut self, changed: &[&str], scope: &Scope<'_>) -> bool {
        let speaks_of = |variable: &&str| self.expression.speaks_of(variable);
        let known = self.held.filter(|_| !speaks_of(&"t") && !changed.iter().any(speaks_of));
        *self.held.insert(known.unwrap_or_else(|| self.expression.holds(scope)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::{Observations, Watched};
    use serde_json::json;

    #[test]
    fn what_it_does_not_speak_of_does_not_make_it_ask() {
        let seen = Observations::default();
        let mut watched = Watched::new();
        let expression: Expression = "size(events) > 0".parse().unwrap();
        let mut awaited = Awaited::new(&expression);
        let mut holds =
            |changed: &[&str], watched: &Watched| awaited.holds(changed, &Scope::live(&seen, 1.0, watched));
        assert!(!holds(&[], &watched));
        watched.event(json!({"metadata": {"uid": "1"}}));
        assert!(!holds(&["pods", "samples"], &watched), "it was asked for nothing");
        assert!(holds(&["events"], &watched));
    }

    #[test]
    fn time_goes_on_without_news() {
        let (seen, watched) = (Observations::default(), Watched::new());
        let expression: Expression = "t > 5.0".parse().unwrap();
        let mut awaited = Awaited::new(&expression);
        let mut holds = |t| awaited.holds(&[], &Scope::live(&seen, t, &watched));
        assert_eq!([holds(1.0), holds(6.0)], [false, true]);
    }
}
