//! The script of an exported case.

use serde_json::{Map, Value, json};

use super::cluster::{ExportCluster, Worker};
use super::comment::comment;
use super::expectations::{expected, facts, shown_by};
use super::images::images;
use super::manifests::expand_variables;
use super::signal::{flag, sed_expression, unit};
use evictlab_case::expression::Variable;
use evictlab_case::{Case, EphemeralContainer, LoadedCase, Pressure};
use evictlab_cluster::OLDEST_KIND;
use evictlab_report::text::{shell_quote, shell_quote_list};
use evictlab_runner::pressure::{Ramp, ramp_target};

/// Maximum width of comments.
const COMMENT_WIDTH: usize = 118;
/// Removes the whitespace of a Summary.
const REMOVE_WHITESPACE: &str = "tr -d '[:space:]'";

/// Returns the text of the script, in POSIX sh.
pub(crate) fn script(
    loaded: &LoadedCase,
    cluster: &ExportCluster<'_>,
    ramp: Option<&Ramp>,
    image: &dyn Fn(&str) -> String,
) -> String {
    let case = &loaded.case;
    let workers: Vec<&str> = cluster.workers.iter().map(|worker| worker.node.as_str()).collect();
    let namespaces: Vec<&str> = cluster.workers.iter().map(|worker| worker.namespace.as_str()).collect();
    format!(
        "\
#!/bin/sh
{head}set -eu
cd \"$(dirname \"$0\")\"
export KUBECONFIG=\"$PWD/kubeconfig\"
cluster={name}
workers={workers}
namespaces={namespaces}
images={images}

! kind get clusters 2> /dev/null | grep -qx \"$cluster\" ||
  {{ echo \"the cluster already exists: kind delete cluster --name $cluster\" >&2; exit 1; }}
trap '[ -n \"${{KEEP-}}\" ] || {{ kind delete cluster --name \"$cluster\"; rm -f kubeconfig; }}' EXIT
trap 'exit 130' INT TERM
kind create cluster --name \"$cluster\" --config kind-config.yaml
kubectl wait --for=condition=Ready --timeout=5m nodes --all

# Images from Docker if present, else from their registry.
for image in $images; do
  kind load docker-image \"$image\" --name \"$cluster\" ||
    for worker in $workers; do docker exec \"$worker\" crictl pull \"$image\"; done
done
{pressure}
for namespace in $namespaces; do
  kubectl create namespace \"$namespace\"
  until kubectl -n \"$namespace\" get serviceaccount default > /dev/null 2>&1; do sleep 1; done
done
kubectl create -f manifests.yaml
{ephemeral}
{results}",
        head = header(loaded, cluster, ramp),
        name = shell_quote(std::slice::from_ref(&cluster.name)),
        workers = shell_quote_list(&workers),
        namespaces = shell_quote_list(&namespaces),
        images = shell_quote_list(&full_image_names(case, image)),
        pressure = case.pressure.as_ref().map(threshold_commands).unwrap_or_default(),
        ephemeral = ephemeral(case, ramp, image),
        results = results(case, cluster),
    )
}

/// Returns the part of the script that waits for the evictions and shows their evidence.
fn results(case: &Case, cluster: &ExportCluster<'_>) -> String {
    format!(
        "\
missing=0
{wait}
for namespace in $namespaces; do
  printf '\\n== %s: Evicted events with their annotations, and pods\\n' \"$namespace\"
  kubectl -n \"$namespace\" get events --field-selector reason=Evicted -o jsonpath='{EVENT}'
  kubectl -n \"$namespace\" get pods -o jsonpath='{{range .items[*]}}{POD}{witnesses}{ends}{{end}}'
done
{log}kubectl get nodes,pods,events --all-namespaces -o yaml > evidence.yaml
exit \"$missing\"
",
        wait = cluster.workers.iter().map(|worker| wait_command(case, worker)).collect::<String>(),
        witnesses = if shows_witnesses(case) { WITNESSES } else { "" },
        ends = if shows_ends(case) { ENDS } else { "" },
        log = if case.references(Variable::KubeletLog) { LOG } else { "" },
    )
}

/// jsonpath template of an Evicted event: time, pod, message and annotations.
const EVENT: &str = r#"{range .items[*]}{.lastTimestamp} {.involvedObject.name}: {.message}{"\n  "}{.metadata.annotations}{"\n"}{end}"#;
/// jsonpath template of the phase and reason of a pod.
const POD: &str = r#"{.metadata.name}: {.status.phase} {.status.reason}{"\n"}"#;
/// jsonpath template of the message in the status and the condition of a pod.
const WITNESSES: &str = r#"  status: {.status.message}{"\n"}{range .status.conditions[?(@.type=="DisruptionTarget")]}  DisruptionTarget {.status} {.reason}: {.message}{"\n"}{end}"#;
/// jsonpath template of the end of the containers of a pod. If a kubelet lost the state of a killed
/// container, only the condition contains the time.
const ENDS: &str = r#"{range .status.conditions[?(@.type=="ContainersReady")]}  ContainersReady {.status} since {.lastTransitionTime}{"\n"}{end}{range .status.containerStatuses[*]}  {.name}: {.state}{"\n"}{end}"#;

fn shows_witnesses(case: &Case) -> bool {
    case.expect.witnesses.is_some() || case.expect.disruption_target.is_some()
}

fn shows_ends(case: &Case) -> bool {
    case.expect.killed_within.or(case.expect.killed_after).is_some()
        || case.references(Variable::Pods)
        || case.references(Variable::PodList)
}

/// Prints the kubelet log lines of the eviction manager.
const LOG: &str = "\
for worker in $workers; do
  printf '\\n== %s: its kubelet\\n' \"$worker\"
  docker exec \"$worker\" journalctl -u kubelet -o cat --no-pager | grep -i evict || true
done
";

fn header(loaded: &LoadedCase, cluster: &ExportCluster<'_>, ramp: Option<&Ramp>) -> String {
    let case = &loaded.case;
    let mut sentences = vec![format!("{} (evictlab case {})", case.about, loaded.id())];
    if !case.upstream.is_empty() {
        let all = case.upstream.iter().map(ToString::to_string).collect::<Vec<_>>();
        sentences.push(format!("Upstream: {}", all.join(", ")));
    }
    sentences.push(format!("Expected: {}.", expected(case).join("; ")));
    for bug in &case.known_bugs {
        let here: Vec<&str> = cluster
            .workers
            .iter()
            .filter(|worker| worker.bug.is_some_and(|own| std::ptr::eq(own, bug)))
            .map(|worker| worker.kubelet.label.as_str())
            .collect();
        let here =
            if here.is_empty() { "no kubelet here".to_owned() } else { format!("here {}", here.join(", ")) };
        let cgroup = bug.cgroup.map(|cgroup| format!(" on cgroup {}", cgroup.as_str())).unwrap_or_default();
        let upstream = bug.upstream.as_ref().map(|upstream| format!(", {upstream}")).unwrap_or_default();
        let about = bug.about.as_ref().map(|about| format!(" {about}")).unwrap_or_default();
        let sometimes = if bug.sometimes { " The bug occurs at random." } else { "" };
        let shown = shown_by(bug).join("; ");
        let shown = if shown.is_empty() { String::new() } else { format!(" Result: {shown}.") };
        sentences.push(format!(
            "Known bug of kubelets {}{cgroup}{upstream}, {here}:{about}{shown}{sometimes}",
            bug.kubelet
        ));
    }
    let mut lines: Vec<String> = sentences.iter().flat_map(|text| wrap(text)).collect();
    let checked: Vec<String> = facts(case).flat_map(|fact| wrap(&format!("- {fact}"))).collect();
    if !checked.is_empty() {
        lines.push("evictlab also checks the following, which this script does not:".to_owned());
        lines.extend(checked);
    }
    let takes = ramp
        .map(|ramp| format!(" The case allocates {}Mi of memory on each worker.", ramp.case_total() >> 20));
    let takes = takes.filter(|_| {
        case.pressure.as_ref().is_some_and(|pressure| super::signal::is_per_node(pressure.signal))
    });
    lines.extend(wrap(&format!(
        "Requires Docker, kind {}.{} or newer, and kubectl.{} KEEP=1 keeps the cluster.",
        OLDEST_KIND.major,
        OLDEST_KIND.minor,
        takes.unwrap_or_default()
    )));
    lines.iter().map(|line| comment(line)).collect()
}

/// Wraps text at spaces.
fn wrap(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = vec![];
    for word in text.split_whitespace() {
        let begun = !lines.is_empty();
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= COMMENT_WIDTH => {
                *line = format!("{line} {word}");
            }
            _ => lines.push(if begun { format!("  {word}") } else { word.to_owned() }),
        }
    }
    lines
}

/// Returns the full names of all images without duplicates.
fn full_image_names(case: &Case, image: &dyn Fn(&str) -> String) -> Vec<String> {
    let mut names: Vec<String> = images(case).iter().map(|named| image(&named.name)).collect();
    names.sort();
    names.dedup();
    names
}

/// Returns the commands that set the threshold of every worker from its available amount, in the
/// flag from the kind configuration.
fn threshold_commands(pressure: &Pressure) -> String {
    let signal = pressure.signal.as_str();
    let (one, end) = unit(pressure.signal);
    let distance = ramp_target(pressure).distance / one;
    let of_unit = if one == 1 { String::new() } else { format!(" / {one}") };
    let quantity = if pressure.as_percentage {
        format!(
            "capacity=$(kubectl get node \"$worker\" -o jsonpath='{{.status.capacity.memory}}')
  share=$(((has - {distance}) * 1024 * 100000 / ${{capacity%Ki}}))
  threshold=$((share / 1000)).$(printf %03d $((share % 1000)))%"
        )
    } else {
        format!("threshold=$((has - {distance})){end}")
    };
    format!(
        "
# Set {flag} to {distance}{end} below the {signal} that each kubelet observes.
for worker in $workers; do
  has=$(( $(kubectl get --raw \"/api/v1/nodes/$worker/proxy/stats/summary\" | {REMOVE_WHITESPACE} |
    sed 's/\"pods\":\\[.*//; {available}'){of_unit} ))
  {quantity}
  echo \"$worker has {signal} ${{has}}{end}, {flag} is set to $threshold\"
  docker exec \"$worker\" timeout 120 sh -c \"
    sed -i 's/{signal}<[^ \\\"]*/{signal}<$threshold/' /var/lib/kubelet/kubeadm-flags.env
    systemctl restart kubelet
    until curl -sfo /dev/null localhost:10248/healthz; do sleep 1; done\"
done
",
        flag = flag(pressure),
        available = sed_expression(pressure.signal),
    )
}

fn ephemeral(case: &Case, ramp: Option<&Ramp>, image: &dyn Fn(&str) -> String) -> String {
    let lines = case.ephemeral_containers.iter().map(|EphemeralContainer { pod, container }| {
        let mut container = container.clone();
        let variables = ramp.map(|ramp| ramp.environment().to_vec()).unwrap_or_default();
        container.values_mut().for_each(|value| expand_variables(value, &variables));
        let debug = shell_quote(&debug_arguments(&container, image));
        format!(
            "\nfor namespace in $namespaces; do
  kubectl -n \"$namespace\" wait --for=condition=Ready --timeout=5m pod/{pod}
  kubectl -n \"$namespace\" debug {pod} {debug}
done
"
        )
    });
    lines.collect()
}

/// Returns the arguments of `kubectl debug` for an ephemeral container.
fn debug_arguments(container: &Map<String, Value>, image: &dyn Fn(&str) -> String) -> Vec<String> {
    let text = |field: &str| container.get(field).and_then(Value::as_str).unwrap_or_default();
    let none = json!([]);
    let words = |field: &str| {
        let list = container.get(field).unwrap_or(&none).as_array();
        list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>()
    };
    let mut all = vec![format!("--container={}", text("name")), format!("--image={}", image(text("image")))];
    let (command, args) = (words("command"), words("args"));
    if command.is_empty() && !args.is_empty() {
        all.push("--arguments-only".to_owned());
    }
    if !(command.is_empty() && args.is_empty()) {
        all.push("--".to_owned());
    }
    all.into_iter().chain(command).chain(args).collect()
}

/// Returns the command that waits for the evictions by this kubelet.
fn wait_command(case: &Case, worker: &Worker<'_>) -> String {
    let pods: Vec<String> = worker.evicted(case).iter().map(|pod| format!("pod/{pod}")).collect();
    let timeout = case.timeout.map_or(300, |timeout| timeout.get().as_secs().max(300));
    if pods.is_empty() {
        String::new()
    } else {
        format!(
            "kubectl -n {} wait --for=jsonpath='{{.status.reason}}'=Evicted --timeout={timeout}s {} || missing=1\n",
            worker.namespace,
            pods.join(" ")
        )
    }
}
