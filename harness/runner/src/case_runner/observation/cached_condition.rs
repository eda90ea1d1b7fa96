//! Conditions of a case that are evaluated only when their variables may have changed.

use evictlab_case::expression::{Expression, ExpressionError, Variable};
use evictlab_evidence::Scope;

/// An expression with its last result.
///
/// A watch delivers many changes that an expression does not depend on; those reuse the result.
pub(crate) struct CachedCondition<'a> {
    expression: &'a Expression,
    last_result: Option<bool>,
}

impl<'a> CachedCondition<'a> {
    pub(crate) fn new(expression: &'a Expression) -> Self {
        Self { expression, last_result: None }
    }

    /// Returns whether the expression holds after the variables in `changed` may have changed. The
    /// time `t` always changes.
    ///
    /// # Errors
    /// The expression is too costly.
    pub(crate) fn holds(&mut self, changed: &[Variable], scope: &Scope<'_>) -> Result<bool, ExpressionError> {
        let is_referenced = |variable: &Variable| self.expression.references(*variable);
        let is_stale = is_referenced(&Variable::T) || changed.iter().any(is_referenced);
        let result = match self.last_result {
            Some(result) if !is_stale => result,
            _ => self.expression.holds(scope)?,
        };
        self.last_result = Some(result);
        Ok(result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evictlab_evidence::{LiveState, Observations, Recorded};
    use serde_json::json;

    #[test]
    fn reuses_the_result_until_a_referenced_variable_changes() {
        let observations = Observations::default();
        let mut live = LiveState::new();
        let expression: Expression = "size(events) > 0".parse().unwrap();
        let mut condition = CachedCondition::new(&expression);
        let mut holds = |changed: &[Variable], live: &LiveState| {
            condition.holds(changed, &Scope::live(&observations, 1.0, live)).unwrap()
        };
        assert!(!holds(&[], &live));
        live.record_event(Recorded::decode(json!({"metadata": {"uid": "1"}})).unwrap());
        assert!(
            !holds(&[Variable::Pods, Variable::Samples], &live),
            "`events` is not among the changed variables"
        );
        assert!(holds(&[Variable::Events], &live));
    }

    #[test]
    fn evaluates_an_expression_over_time_without_a_change() {
        let (observations, live) = (Observations::default(), LiveState::new());
        let expression: Expression = "t > 5.0".parse().unwrap();
        let mut condition = CachedCondition::new(&expression);
        let mut holds = |t| condition.holds(&[], &Scope::live(&observations, t, &live)).unwrap();
        assert_eq!([holds(1.0), holds(6.0)], [false, true]);
    }
}
