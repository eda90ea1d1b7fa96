//! Removal of credentials from everything that is written to a file.
//!
//! Evidence contains no credentials by design: pods refer to service account tokens, and the
//! kubelet masks its own. This module is a second safeguard.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use regex::{Captures, Regex};
use serde_json::{Map, Value};

use crate::run_event::RunEventKind;
use crate::text::visible;
use evictlab_judge::{CaseResult, Check, EvictionRecord};

/// Replacement for a credential.
const REDACTED: &str = "(redacted)";

/// Annotation of `kubectl apply` with the complete manifest.
const APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Keys whose string values are always credentials: of kubeconfigs, registries, and users.
const SECRET_KEYS: [&str; 14] = [
    "access-token",
    "auth",
    "authorization",
    "certificate-authority-data",
    "client-certificate-data",
    "client-key-data",
    "client-secret",
    "id-token",
    "password",
    "refresh-token",
    "secret",
    "tls.key",
    "token",
    "tokendata",
];

/// Ends of the names of variables and headers with credentials, without `_` and `-`.
const SECRET_NAME_ENDS: [&str; 9] = [
    "password",
    "passwd",
    "mysqlpwd",
    "passphrase",
    "apikey",
    "accesskey",
    "privatekey",
    "secretkey",
    "connectionstring",
];

/// Patterns of credentials in any text: PEM keys, JSON web tokens, kubeconfig fields, bearer and
/// basic authorization, and passwords in URLs.
static CREDENTIAL: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r#"(?xis)
        -----BEGIN\ [A-Z\ ]*PRIVATE\ KEY(\ BLOCK)?-----.*?(-----END\ [A-Z\ ]*PRIVATE\ KEY(\ BLOCK)?-----|\z)
        | \beyJ[a-z0-9_-]{8,}\.eyJ[a-z0-9_-]+\.[a-z0-9_-]*
        | \b(client-key-data|client-certificate-data|certificate-authority-data)\b["']?\s*:\s*["']?[a-z0-9_+/=-]+
        | \b(bearer|basic)\s+[a-z0-9_.~+/-]{16,}=*
        | (?P<before>[a-z0-9_]://)[^\s/:@]*:[^\s/@]+@
        # Access keys of AWS, GitHub, GitLab, Slack, npm, PyPI, Google, Stripe, and Azure storage.
        | \b(?-i:(AKIA|ASIA)[A-Z0-9]{16})\b
        | \b(gh[pousr]_[a-z0-9]{20,}|github_pat_[a-z0-9_]{20,}|gl(pat|ptt|dt|rt|soat|cbt|ft|imt|agent)-[a-z0-9_-]{20,}|(xox[abeoprs]|xapp)-[a-z0-9_-]{10,})
        | \b(npm_[a-z0-9]{30,}|pypi-[a-z0-9_-]{16,}|(?-i:AIza)[a-z0-9_-]{30,}|[rs]k_(live|test)_[a-z0-9]{16,}|whsec_[a-z0-9_+/=]{16,})
        | \b(AccountKey|SharedAccessKey)=[a-z0-9_+/=]{20,}
        # Of Hugging Face, OpenAI and alike, SendGrid, DigitalOcean, Vault, Databricks, Google, Shopify, Docker Hub, age.
        | \b(hf_[a-z0-9]{20,}|sk-(proj|ant|svcacct|or)-[a-z0-9_-]{16,}|sk-[a-z0-9]{32,}|(?-i:SG)\.[a-z0-9_-]{16,}\.[a-z0-9_-]{16,}|do[opr]_v1_[a-f0-9]{32,})
        | \b(hv[sbr]\.[a-z0-9_-]{20,}|(?-i:dapi)[a-f0-9]{32}|ya29\.[a-z0-9_-]{20,}|GOCSPX-[a-z0-9_-]{20,}|shp(at|ca|pa|ss)_[a-f0-9]{32})
        | \b(dckr_(pat|oat)_[a-z0-9_-]{20,}|AGE-SECRET-KEY-1[a-z0-9]{40,})
        | (?P<hook>hooks\.slack\.com/services/)[a-z0-9_/]{20,}
        # Signed links.
        | (?P<query>[?&](sig|signature|x-amz-signature|x-amz-credential|x-amz-security-token|x-goog-signature|token)=)[^\s&"']{8,}
        # Assignments in scripts and options: DB_PASSWORD=…, --api-key …, secret_access_key: ….
        | (?P<name>(password|passwd|mysql_pwd|secret|secret_?access_?key|secret[_-]?key|private[_-]?key|api[_-]?key|access[_-]?token|auth[_-]?token|secret_key_base|encryption[_-]?key|signing[_-]?key|passphrase|(?-i:\bPwd))["']?\s*[=:]\s*["']?)[^\s"'(){}\[\]&,;-][^\s"'(){}\[\]&,;]{5,}
        | (?P<token>token["']?\s*[=:]\s*["']?)[a-z0-9_.~+=-]{16,}
        | (?P<option>--([a-z]+-)*(password|passwd|secret|token|api-key|secret-key)\s+["']?)[^\s"'-][^\s"']{5,}
        | (?P<header>\bauthorization["']?\s*[=:]\s*["']?(bearer|basic|token|digest)\s+)[^\s"']+
        | (?P<cookie>\b(set-)?cookie:\ )[^\s"';]+=[^\s"']+
        | (?P<user>\bcurl\s[^\n]*?(-u|--user)[\s=]["']?[^\s:"']+:)[^\s"']+
        | (?P<webhook>discord(app)?\.com/api/webhooks/[0-9]+/)[a-z0-9_-]{20,}
        | (?P<netrc>\blogin\s+\S+\s+password\s+)\S+
        | (?P<docker>"auth"\s*:\s*")[a-z0-9_+/=]{8,}
        # Variables of pods in a text, as in the annotation of `kubectl apply`.
        | (?P<variable>"name"\s*:\s*"[a-z0-9_]*(password|passwd|secret|token|api_?key|access_?key)[a-z0-9_]*"\s*,\s*"value"\s*:\s*")[^"]+
        "#,
    )
    .expect("the pattern is valid")
});

/// The keys by which [`redacted`] finds credentials, in JSON text.
static SECRET_KEY: LazyLock<Regex> = LazyLock::new(|| {
    let keys: Vec<String> =
        SECRET_KEYS.iter().chain(&["kind", "spec", "value"]).map(|key| regex::escape(key)).collect();
    Regex::new(&format!(r#"(?i)"({})"\s*:"#, keys.join("|"))).expect("the pattern is valid")
});

/// Groups of [`CREDENTIAL`] that stay before the replaced part.
const KEPT_PARTS: [&str; 13] = [
    "before", "hook", "query", "name", "token", "option", "netrc", "docker", "variable", "header", "cookie",
    "user", "webhook",
];

/// Replaces credentials in `text`.
pub(super) fn redacted_text(text: &str) -> Cow<'_, str> {
    CREDENTIAL.replace_all(text, |found: &Captures<'_>| {
        let kept = KEPT_PARTS.iter().find_map(|part| found.name(part));
        format!("{}{REDACTED}", kept.map_or("", |kept| kept.as_str()))
    })
}

/// Replaces credentials in every text of an event. Its evidence is redacted when it is written.
/// Each arm names all fields, so that a new text cannot be forgotten.
pub(super) fn redact_event(kind: &mut RunEventKind) {
    match kind {
        RunEventKind::ReportFailed { error: text }
        | RunEventKind::ClusterStep { text, cluster: _ }
        | RunEventKind::ClusterWarning { text, cluster: _ }
        | RunEventKind::ClusterFailed { error: text, cluster: _, seconds: _, cause: _ }
        | RunEventKind::CaseStep { text, id: _, phase: _ }
        | RunEventKind::CaseProgress { text, id: _, phase: _ } => redact_text(text),
        RunEventKind::ClusterDeleted { kept, error, cluster: _, seconds: _ } => {
            kept.iter_mut().chain(error).for_each(redact_text)
        }
        RunEventKind::ClusterReady { nodes, cluster: _, seconds: _ } => {
            nodes.iter_mut().flat_map(|(name, version)| [name, version]).for_each(redact_text);
        }
        RunEventKind::CaseStarted { node, id: _ }
        | RunEventKind::CaseInterrupted { node, id: _, seconds: _ } => redact_text(node),
        RunEventKind::CaseRetried { text, result, id: _, try_number: _, evidence: _ } => {
            redact_text(text);
            redact_result(result);
        }
        RunEventKind::CaseEnded { node, result, id: _, seconds: _, evidence: _ } => {
            node.iter_mut().for_each(redact_text);
            redact_result(result);
        }
        // The user stated these texts: in options, and in case files.
        RunEventKind::RunStarted {
            run_id: _,
            evictlab: _,
            backend: _,
            model: _,
            kubelets: _,
            kubelet_args: _,
            cases: _,
            repeat: _,
            flaky_result: _,
            real_start: _,
            shard: _,
        }
        | RunEventKind::ClusterStarted { cluster: _, kubelets: _, reused: _ }
        | RunEventKind::Interrupted { stage: _ }
        | RunEventKind::TimedOut
        | RunEventKind::RunEnded { exit_code: _, seconds: _ } => {}
    }
}

fn redact_result(result: &mut Arc<CaseResult>) {
    let result = Arc::make_mut(result);
    let CaseResult {
        why,
        known_bug,
        checks,
        evictions,
        diff,
        earlier_tries,
        verdict: _,
        inconclusive_reason: _,
        phase: _,
        rate: _,
    } = result;
    let of_tries = earlier_tries.iter_mut().map(|earlier| &mut earlier.why);
    [why, diff].into_iter().chain(known_bug).chain(of_tries).for_each(redact_text);
    for Check { expected, observed, name, holds: _ } in checks {
        [expected, observed, name].into_iter().for_each(redact_text);
    }
    for EvictionRecord { events, status, condition, annotations, pod } in evictions {
        events.iter_mut().chain(status).chain(condition).chain([pod]).for_each(redact_text);
        *annotations = annotations.take().map(|annotations| redacted_object(annotations, None));
        annotations.iter_mut().flat_map(Map::values_mut).for_each(show_controls);
    }
}

/// Shows control characters in all texts of a value.
fn show_controls(value: &mut Value) {
    match value {
        Value::String(text) => *text = visible(text).into_owned(),
        Value::Array(items) => items.iter_mut().for_each(show_controls),
        Value::Object(fields) => fields.values_mut().for_each(show_controls),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Replaces credentials, and shows control characters: the text is printed.
fn redact_text(text: &mut String) {
    if let Cow::Owned(clean) = redacted_text(text) {
        *text = clean;
    }
    if let Cow::Owned(clean) = visible(text) {
        *text = clean;
    }
}

/// Replaces credentials in the JSON text of a value, as [`redacted`] does outside the namespace of
/// a case. A text without patterns and keys of credentials, as of almost all samples, is not
/// parsed, unless it has escapes: a pattern may not match escaped text.
pub(super) fn redacted_json(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') && !CREDENTIAL.is_match(text) && !SECRET_KEY.is_match(text) {
        return text.into();
    }
    match serde_json::from_str(text) {
        Ok(value) => redacted(value, None).to_string().into(),
        Err(_) => redacted_text(text),
    }
}

/// Replaces credentials in `value`: the data of Secrets, values of [`SECRET_KEYS`], environments of
/// pods outside the namespace `own` of the case, and patterns in all other texts.
pub(super) fn redacted(value: Value, own: Option<&str>) -> Value {
    match value {
        Value::String(text) => Value::String(redacted_text(&text).into_owned()),
        Value::Array(items) => items.into_iter().map(|item| redacted(item, own)).collect(),
        Value::Object(fields) => Value::Object(redacted_object(fields, own)),
        other => other,
    }
}

fn redacted_object(mut fields: Map<String, Value>, own: Option<&str>) -> Map<String, Value> {
    if fields.get("kind").and_then(Value::as_str).is_some_and(|kind| matches!(kind, "Secret" | "SecretList"))
    {
        fields.retain(|key, _| matches!(key.as_str(), "apiVersion" | "kind"));
        fields.insert("data".to_owned(), REDACTED.into());
        return fields;
    }
    if is_pod_of_others(&fields, own) {
        hide_environment(&mut fields);
    }
    // In environment variables and headers, `name` holds the key and `value` the value.
    let named = fields.get("name").and_then(Value::as_str).is_some_and(is_secret_name);
    fields
        .into_iter()
        .map(|(key, value)| {
            let hides = is_secret_key(&key) || (named && key == "value");
            let value = if hides && value.is_string() { REDACTED.into() } else { redacted(value, own) };
            (key, value)
        })
        .collect()
}

/// Returns whether an object is a pod in another namespace than that of the case. The items of a
/// list do not have a kind.
fn is_pod_of_others(fields: &Map<String, Value>, own: Option<&str>) -> bool {
    let namespace = fields.get("metadata").and_then(|metadata| metadata.get("namespace")?.as_str());
    let is_pod = fields.get("spec").is_some_and(|spec| spec.get("containers").is_some());
    is_pod && namespace.is_some() && namespace != own
}

/// Replaces the values of all environment variables of a pod, and the annotation with its manifest.
fn hide_environment(fields: &mut Map<String, Value>) {
    let annotations = fields.get_mut("metadata").and_then(|metadata| metadata.get_mut("annotations"));
    if let Some(applied) = annotations.and_then(|annotations| annotations.get_mut(APPLIED)) {
        *applied = REDACTED.into();
    }
    let Some(spec) = fields.get_mut("spec").and_then(Value::as_object_mut) else { return };
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            let variables = container.get_mut("env").and_then(Value::as_array_mut).into_iter().flatten();
            for value in variables.filter_map(|variable| variable.get_mut("value")) {
                *value = REDACTED.into();
            }
        }
    }
}

fn is_secret_key(key: &str) -> bool {
    SECRET_KEYS.contains(&key.to_ascii_lowercase().as_str())
}

/// Returns whether a variable or header holds a credential: `GITHUB_TOKEN`, `Authorization`.
fn is_secret_name(name: &str) -> bool {
    let joined = name.to_ascii_lowercase().replace(['_', '-'], "");
    name.split(['_', '-']).any(is_secret_key) || SECRET_NAME_ENDS.iter().any(|end| joined.ends_with(end))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fixtures;
    use evictlab_judge::Verdict;

    const JWT: &str = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJzeXN0ZW06c2EifQ.c2lnbmF0dXJl";

    #[test]
    fn replaces_credentials_everywhere() {
        let pem = "-----BEGIN RSA PRIVATE KEY-----\nTm90IGE=\n-----END RSA PRIVATE KEY-----";
        let kubeconfig = "apiVersion: v1\nkind: Config\nusers:\n- user:\n    client-key-data: Tm90IGE=\n    token: Tm90IGE=\n";
        for (what, value) in [
            (
                "a kubeconfig in a text",
                json!({"data": {"config": kubeconfig.replace("token: Tm90IGE=", "")}}),
            ),
            ("a kubeconfig's user", json!({"users": [{"user": {"client-key-data": "Tm90IGE="}}]})),
            ("a user's token", json!({"user": {"token": "Tm90IGE="}})),
            ("a Secret", json!({"apiVersion": "v1", "kind": "Secret", "data": {"any": "Tm90IGE="}})),
            ("a Secret's text", json!({"items": [{"kind": "Secret", "stringData": {"any": "Tm90IGE="}}]})),
            ("a key", json!([pem])),
            ("a key cut off", json!(pem.split("\n-----END").next())),
            ("an environment variable", json!({"env": [{"name": "DB_PASSWORD", "value": "Tm90IGE="}]})),
            ("a key of an API", json!({"env": [{"name": "STRIPE_API_KEY", "value": "Tm90IGE="}]})),
            ("a joined name", json!({"env": [{"name": "PGPASSWORD", "value": "Tm90IGE="}]})),
            ("a short header", json!({"args": ["-H", "Authorization: Basic Tm90IGE="]})),
            ("a header", json!({"name": "Authorization", "value": "Tm90IGE="})),
            ("a header in a log", json!("Authorization: Bearer Tm90IGE0Tm90IGE0Tm90IGE=")),
            ("a proxy", json!({"args": ["--proxy=http://me:Tm90IGE=@proxy:3128"]})),
        ] {
            let text = redacted(value, None).to_string();
            assert!(!text.contains("Tm90IGE"), "{what}: {text}");
            assert!(text.contains(REDACTED), "{what}: {text}");
        }
        assert_eq!(redacted_text(&format!("token {JWT}, see")), format!("token {REDACTED}, see"));
    }

    #[test]
    fn replaces_credentials_of_many_shapes() {
        let hidden = "Zm9yIGEgdGVzdCBvbmx5IQ0000000000000000";
        let rows = [
            "AWS_ACCESS_KEY_ID=AKIAZM9YIGEGDGVZ0000".replace("ZM9YIGEGDGVZ0000", "ZM9YIGEGDGVZDCBV"),
            format!("aws_secret_access_key = {hidden}"),
            format!("token ghp_{hidden} and"),
            format!("github_pat_{hidden}"),
            format!("glpat-{hidden}"),
            format!("xoxb-{hidden}"),
            format!("//registry/:_authToken=npm_{hidden}"),
            format!("pypi-{hidden}"),
            format!("AIza{hidden}"),
            format!("sk_live_{hidden}"),
            format!("DefaultEndpointsProtocol=https;AccountName=a;AccountKey={hidden};"),
            format!("export DB_PASSWORD={hidden}"),
            format!("--api-key={hidden}"),
            format!("{{\"secret_key\": \"{hidden}\"}}"),
            format!("postgres://admin:{hidden}@db:5432/app"),
            format!("Authorization: Bearer {hidden}"),
            format!("-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n{hidden}\n-----END PGP PRIVATE KEY BLOCK-----"),
            format!(r#""private_key": "-----BEGIN PRIVATE KEY-----\n{hidden}\n-----END PRIVATE KEY-----\n""#),
            format!("-----BEGIN OPENSSH PRIVATE KEY-----\n{hidden}"),
            format!("redis://:{hidden}@cache:6379/0"),
            format!("amqp://guest:{hidden}@queue/"),
            format!("https://oauth2:{hidden}@git.test/a.git"),
            format!("AWS_SECRET_ACCESS_KEY={hidden}"),
            format!(r#"{{"AccessKeyId": "a", "SecretAccessKey": "{hidden}"}}"#),
            format!("AWS_SESSION_TOKEN={hidden}"),
            format!("AZURE_CLIENT_SECRET='{hidden}'"),
            format!("Endpoint=sb://a.test/;SharedAccessKeyName=a;SharedAccessKey={hidden}"),
            format!("https://a.test/c/b?sv=2024&sig={hidden}&se=1"),
            format!("https://b.test/o?X-Amz-Credential={hidden}&X-Amz-Signature={hidden}"),
            format!("ya29.{hidden}"),
            format!("GOCSPX-{hidden}"),
            format!("https://hooks.slack.com/services/T00000000/B00000000/{hidden}"),
            format!("hf_{hidden}"),
            format!("sk-proj-{hidden}"),
            format!("sk-ant-api03-{hidden}"),
            format!("SG.{hidden}.{hidden}"),
            format!("hvs.{hidden}"),
            format!("X-Vault-Token: {hidden}"),
            format!("dckr_pat_{hidden}"),
            format!("rk_test_{hidden}"),
            format!("whsec_{hidden}"),
            format!("glptt-{hidden}"),
            format!("kubectl --token {hidden} get pods"),
            format!("kubectl --token={hidden} get pods"),
            format!("mysql --password {hidden}"),
            format!("MYSQL_PWD={hidden} mysqldump"),
            format!("machine a.test login me password {hidden}"),
            format!(r#"{{"auths": {{"a.test": {{"auth": "{hidden}"}}}}}}"#),
            format!(r#"{{"name":"DB_PASSWORD","value":"{hidden}"}}"#),
            format!("password: {hidden}"),
            format!("x-api-key: {hidden}"),
            format!("refresh_token={hidden}&grant_type=refresh_token"),
            format!("xapp-1-{hidden}"),
            format!("glcbt-{hidden}"),
            format!("Server=db;User Id=a;Password={hidden};"),
            format!("Server=db;Uid=a;Pwd={hidden};"),
            format!("mongodb+srv://a:{hidden}@db.test/app"),
            format!("SharedAccessSignature=sv=2024&sig={hidden}&se=1"),
            format!("SECRET_KEY_BASE={hidden}"),
            format!("ENCRYPTION_KEY={hidden}"),
            format!("kubectl create secret docker-registry a --docker-password {hidden}"),
            format!("curl -s -u me:{hidden} https://a.test"),
            format!("Cookie: session={hidden}"),
            format!("Authorization: token {hidden}"),
            format!(r#""authorization":"Basic {hidden}""#),
            format!("https://discord.com/api/webhooks/123/{hidden}"),
            format!(r#"{{"identitytoken": "{hidden}"}}"#),
            format!(
                r#"{{"type": "service_account", "private_key": "-----BEGIN PRIVATE KEY-----\\n{hidden}\\n-----END PRIVATE KEY-----\\n"}}"#
            ),
        ];
        for row in rows {
            let text = redacted_text(&row);
            assert!(!text.contains("Zm9yIGEgdGVzdCBvbmx5IQ") && !text.contains("AKIA"), "{row}: {text}");
            assert!(text.contains(REDACTED), "{row}: {text}");
        }
        for plain in [
            "registry.k8s.io/e2e-test-images/agnhost@sha256:0123456789012345678901234567890123456789012345678901234567890123",
            "uid 7f0a3c1e-98c1-4a53-8d0b-3f5f0d9f1c2a, quantity 23377Mi, available: 23932160Ki",
            "secret: (redacted)",
            "volumes: [{secret: {name: a}}]",
            "MountVolume.SetUp failed for volume \"token\"",
            "imagefs.available<15%,nodefs.inodesFree<5%",
            "web-abcdef.17f3a1b2c3d4e5f6: The node was low on resource: memory.",
            "path: token, secretName: a, tokens: 17",
            "--token-auth-file --password-file /etc/a",
            "task-sk-runner-with-a-long-name-and-a-suffix",
            "http://127.0.0.1:10248/healthz https://[::1]:6443",
            "PWD=/home/user/directory OLDPWD=/home/user/other",
            "Container c was using 104Mi, request is 0, has larger consumption of memory. ",
            "curl -s http://10.0.0.1:8080/metrics",
            "authorization mode: Node,RBAC; a cookie: none",
            "Usage of EmptyDir volume \"data\" exceeds the limit \"10Mi\". ",
        ] {
            assert_eq!(redacted_text(plain), plain);
        }
    }

    /// Texts with and without keys and patterns of credentials.
    #[test]
    fn json_text_is_redacted_as_its_value() {
        let hidden = "Zm9yIGEgdGVzdCBvbmx5IQ";
        let env = json!([{"name": "DB_PASSWORD", "value": "short"}, {"name": "GREETING", "value": "hello"}]);
        let rows = [
            (json!({"t": 1.5, "pods": [{"podRef": {"name": "token"}, "memory": {"usageBytes": 17}}]}), false),
            (json!({"kind": "Secret", "data": {"key": "short"}}), true),
            (json!({"volumes": [{"Token": "short"}]}), true),
            (json!({"containers": [{"env": env}]}), true),
            (json!({"metadata": {"namespace": "shop"}, "spec": {"containers": [{"env": env}]}}), true),
            (json!({"message": format!("Authorization: token {hidden}")}), true),
            // Escaped in the text.
            (json!({"message": format!("{{\"auth\": \"{hidden}\"}}")}), true),
            (json!({"message": "key\nAKIAIOSFODNN7EXAMPLE"}), true),
        ];
        for (value, has_credentials) in rows {
            let text = value.to_string();
            let clean = redacted_json(&text);
            assert_eq!(clean, redacted(value, None).to_string());
            assert_eq!(clean.contains(REDACTED), has_credentials, "{clean}");
        }
    }

    #[test]
    fn environments_of_pods_of_others_are_hidden() {
        let pod = |namespace: &str| {
            let env = json!([{"name": "GREETING", "value": "hello"}, {"name": "FROM", "valueFrom": {}}]);
            let spec = json!({"containers": [{"name": "c", "env": env}], "initContainers": [{"name": "i", "env": env}]});
            json!({"metadata": {"name": "p", "namespace": namespace}, "spec": spec})
        };
        let own = Some("evictlab-a-x7k");
        let stated = json!({"kind": "Pod", "spec": pod("evictlab-a-x7k")["spec"]});
        assert_eq!(redacted(pod("evictlab-a-x7k"), own), pod("evictlab-a-x7k"));
        assert_eq!(redacted(stated.clone(), own), stated, "as a case states it");
        // Others may choose a name that looks like that of a case.
        for other in ["shop", "evictlab-x"] {
            let theirs = redacted(json!({"kind": "PodList", "items": [pod(other)]}), own).to_string();
            assert!(!theirs.contains("hello") && theirs.contains("GREETING"), "{theirs}");
            assert_eq!(theirs.matches(REDACTED).count(), 2, "{theirs}");
        }
    }

    #[test]
    fn controls_in_events_are_visible() {
        let mut step = RunEventKind::ClusterStep { cluster: "c".to_owned(), text: "a\u{1b}[2Jb".to_owned() };
        redact_event(&mut step);
        let RunEventKind::ClusterStep { text, .. } = step else { return };
        assert_eq!(text, r"a\u{1b}[2Jb");
    }

    #[test]
    fn replaces_credentials_in_events() {
        let text = || format!("the API server returned {JWT}");
        let step = |text| RunEventKind::ClusterStep { cluster: "c".to_owned(), text };
        let failed =
            |error| RunEventKind::ClusterFailed { cluster: "c".to_owned(), seconds: 1.0, error, cause: None };
        let record =
            EvictionRecord { status: Some(text()), events: vec![text()], ..EvictionRecord::default() };
        let check = Check { name: "says".to_owned(), holds: false, expected: text(), observed: text() };
        let mut ended = fixtures::case_ended("a", "v1.32.13", 1, Verdict::Failed, &text());
        if let RunEventKind::CaseEnded { result, .. } = &mut ended {
            let result = Arc::make_mut(result);
            result.checks.push(check);
            result.evictions.push(record);
            result.diff = text();
        }
        for (mut kind, credentials) in [(step(text()), 1), (failed(text()), 1), (ended, 6)] {
            redact_event(&mut kind);
            let written = serde_json::to_string(&kind).unwrap();
            assert!(!written.contains("eyJ"), "{written}");
            assert_eq!(written.matches(REDACTED).count(), credentials, "{written}");
        }
    }

    #[test]
    fn keeps_other_text() {
        let pod = json!({
            "kind": "Pod",
            "spec": {
                "automountServiceAccountToken": true,
                "containers": [{"name": "el1", "env": [{"name": "TOTAL", "value": "400Mi"}]}],
                "volumes": [{"projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}],
                "imagePullSecrets": [{"name": "registry"}],
            },
            "config": {"tlsPrivateKeyFile": "/var/lib/kubelet/pki/kubelet.key", "image": "registry.k8s.io/pause:3.10"},
            "message": "The node was low on resource: memory. Threshold quantity: 23377Mi, available: 23932160Ki. ",
        });
        assert_eq!(redacted(pod.clone(), None), pod);
    }
}
