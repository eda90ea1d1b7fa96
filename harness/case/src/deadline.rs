//! Maximum duration of a case's observation; slow nodes multiply it.

use std::time::Duration;

use evictlab_rules::parse_go_duration;
use serde_json::{Map, Value};

use crate::action::{Action, ApiRequest, NodeChange};
use crate::schema::Case;
use crate::step::Step;
use crate::values::MAX_DURATION;

/// Time for the pods to start, the kubelet to evict and the containers to terminate.
const BASE_DEADLINE: Duration = Duration::from_secs(120);

impl Case {
    /// Returns the maximum time from the first pod to the end of the observation on a fast node:
    /// the stated `deadline`, or the sum of all times that the case states and two minutes.
    ///
    /// `timeout` counts twice: progress just before the end of the first `timeout` starts a second
    /// one. The longest deadline is 7 days.
    pub fn deadline(&self) -> Duration {
        if let Some(deadline) = self.deadline {
            return deadline.get();
        }
        let pressure = self.pressure.iter().flat_map(|pressure| [pressure.ramp, pressure.soft_grace]);
        let waits = self.steps.iter().map(|step| step.wait);
        let stated = pressure.chain(waits).chain([self.timeout, self.timeout]);
        let stated = stated.flatten().map(|duration| duration.get());
        let all = stated.chain([self.longest_grace_period(), self.longest_soft_grace_period()]);
        all.fold(BASE_DEADLINE, Duration::saturating_add).min(MAX_DURATION)
    }

    /// Returns the longest grace period of the case: `terminationGracePeriodSeconds` of a pod that
    /// it can create, or `grace-period` of a deletion.
    fn longest_grace_period(&self) -> Duration {
        let manifests = self.pods.iter().chain(self.all_static_pods()).chain(&self.objects);
        let patches = self.patches().map(|patch| &patch.patch);
        let all = manifests.chain(self.created_objects()).chain(patches);
        let seconds = all.filter_map(longest_grace_period_seconds).max();
        let of_pods = Duration::from_secs(seconds.unwrap_or(0));
        let of_deletions = self.steps.iter().filter_map(deletion_grace_period);
        of_deletions.fold(of_pods, Duration::max)
    }

    /// Returns the longest grace period of a soft threshold that `kubelet-config` or a step sets.
    fn longest_soft_grace_period(&self) -> Duration {
        let of_steps = self.node_changes().filter_map(|change| match change {
            NodeChange::Configure(fields) => Some(fields),
            NodeChange::Taint(_)
            | NodeChange::Untaint(_)
            | NodeChange::Drain
            | NodeChange::Uncordon
            | NodeChange::Pause
            | NodeChange::Resume
            | NodeChange::RestartKubelet
            | NodeChange::LoadImage(_)
            | NodeChange::CreateStaticPod(_)
            | NodeChange::DeleteStaticPod(_) => None,
        });
        let configured = of_steps.chain([&self.kubelet_config]);
        let by_signal = configured.filter_map(|fields| fields.get("evictionSoftGracePeriod")?.as_object());
        let texts = by_signal.flat_map(Map::values).filter_map(Value::as_str);
        let periods = texts.filter_map(|text| Duration::try_from(parse_go_duration(text).ok()?).ok());
        periods.max().unwrap_or_default()
    }
}

fn deletion_grace_period(step: &Step) -> Option<Duration> {
    match step.action.as_ref()? {
        Action::Api(ApiRequest::Delete(deletion)) => deletion.grace_period.map(|period| period.get()),
        Action::Api(
            ApiRequest::Create(_) | ApiRequest::Patch(_) | ApiRequest::Resize(_) | ApiRequest::Evict(_),
        )
        | Action::Node(_)
        | Action::ReadLogs(_)
        | Action::Exec(_) => None,
    }
}

/// Returns the longest `terminationGracePeriodSeconds` in a manifest or a patch, at any depth: a
/// patch need not repeat the containers by which a pod spec is found.
fn longest_grace_period_seconds(fields: &Map<String, Value>) -> Option<u64> {
    let own = fields.get("terminationGracePeriodSeconds").and_then(Value::as_u64);
    own.max(fields.values().filter_map(longest_grace_period_within).max())
}

fn longest_grace_period_within(value: &Value) -> Option<u64> {
    match value {
        Value::Object(fields) => longest_grace_period_seconds(fields),
        Value::Array(items) => items.iter().filter_map(longest_grace_period_within).max(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deadline(more: &str) -> u64 {
        let case: Case =
            serde_saphyr::from_str(&format!("name: a\nabout: b\nexpect: {{}}\n{more}")).expect("a case");
        case.deadline().as_secs()
    }

    #[test]
    fn the_deadline_follows_from_the_times_that_the_case_states() {
        assert_eq!(deadline(""), 120);
        assert_eq!(deadline("deadline: 30s"), 30);
        assert_eq!(deadline("pressure: {signal: memory.available, ramp: 15s, soft-grace: 20s}"), 155);
        assert_eq!(deadline("do: [{wait: 10s, about: a}, {wait: 5s, about: b}]"), 135);
        assert_eq!(deadline("timeout: 4m"), 600);
        assert_eq!(deadline("pods: [{spec: {terminationGracePeriodSeconds: 25}}, {spec: {}}]"), 145);
        assert_eq!(deadline("pods: [{spec: {}}]\ndo: [{delete: {pod: web, grace-period: 10m}}]"), 720);
        let soft = "{evictionSoftGracePeriod: {memory.available: 1m30s, nodefs.available: 5s}}";
        assert_eq!(deadline(&format!("kubelet-config: {soft}")), 210);
        assert_eq!(deadline(&format!("do: [{{configure: {soft}}}]")), 210);
        let template = "{kind: Deployment, spec: {template: {spec: {terminationGracePeriodSeconds: 7}}}}";
        assert_eq!(deadline(&format!("objects: [{template}]")), 127);
    }

    #[test]
    fn grace_periods_of_all_pods_count() {
        let spec = "{terminationGracePeriodSeconds: 9}";
        let job =
            format!("{{kind: CronJob, spec: {{jobTemplate: {{spec: {{template: {{spec: {spec}}}}}}}}}}}");
        let patch = format!("{{kind: Deployment, name: d, patch: {{spec: {{template: {{spec: {spec}}}}}}}}}");
        for more in [
            format!("static-pods: [{{spec: {spec}}}]"),
            format!("do: [{{create-static-pod: {{spec: {spec}}}}}]"),
            format!("objects: [{job}]"),
            format!("objects: [{{kind: List, items: [{job}]}}]"),
            format!("do: [{{create: {job}}}]"),
            format!("do: [{{patch: {patch}}}]"),
        ] {
            assert_eq!(deadline(&more), 129, "{more}");
        }
    }

    #[test]
    fn the_deadline_is_at_most_a_week() {
        const WEEK: u64 = 7 * 24 * 3600;
        assert_eq!(deadline("timeout: 5days"), WEEK);
        for seconds in [u64::MAX, i64::MAX as u64, WEEK] {
            let pod = format!("pods: [{{spec: {{terminationGracePeriodSeconds: {seconds}}}}}]");
            assert_eq!(deadline(&pod), WEEK, "{seconds}");
        }
    }
}
