//! Steps of a case in their order, and the condition that the next one waits for.

use std::time::Duration;

use evictlab_case::expression::{ExpressionError, Variable};
use evictlab_case::{Action, Step};
use evictlab_evidence::Scope;
use tokio::time::Instant;

use crate::case_runner::observation::cached_condition::CachedCondition;

/// Steps that are not yet done.
pub(crate) struct StepQueue<'a> {
    steps: &'a [Step],
    /// The next step's `when`.
    condition: Option<CachedCondition<'a>>,
    /// Time since which the condition holds; the next step's `wait` is counted from then.
    since: Option<Instant>,
}

impl<'a> StepQueue<'a> {
    pub(crate) fn new(steps: &'a [Step]) -> Self {
        let condition = steps.first().and_then(|step| step.when.as_ref());
        Self { steps, condition: condition.map(CachedCondition::new), since: None }
    }

    /// Removes and returns the next step if it is due, after the variables in `changed` may have
    /// changed.
    ///
    /// # Errors
    /// The condition of the next step is too costly.
    pub(crate) fn pop_due(
        &mut self,
        changed: &[Variable],
        scope: &Scope<'_>,
    ) -> Result<Option<&'a Step>, ExpressionError> {
        let Some((step, rest)) = self.steps.split_first() else { return Ok(None) };
        if self.since.is_none()
            && let Some(condition) = &mut self.condition
            && !condition.holds(changed, scope)?
        {
            return Ok(None);
        }
        let since = *self.since.get_or_insert_with(Instant::now);
        if since.elapsed() < step.wait.map_or(Duration::ZERO, |wait| wait.get()) {
            return Ok(None);
        }
        *self = Self::new(rest);
        Ok(Some(step))
    }

    /// Returns whether no step remains.
    pub(crate) fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Returns whether the next step's condition holds and its `wait` elapses.
    pub(crate) fn is_waiting(&self) -> bool {
        self.since.is_some()
    }

    /// Describes the next step and its condition.
    pub(crate) fn describe_next(&self) -> Option<String> {
        let step = self.steps.first()?;
        let description = describe_step(step);
        Some(match &step.when {
            Some(condition) => format!("{description}, when {condition}"),
            None => description,
        })
    }
}

/// Returns the step's `about`, else its action.
pub(crate) fn describe_step(step: &Step) -> String {
    let action = step.action.as_ref().map_or("continuing", Action::field);
    step.about.clone().unwrap_or_else(|| action.to_owned())
}
