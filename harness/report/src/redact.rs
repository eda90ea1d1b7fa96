//! Removal of credentials from everything that is written to a file.
//!
//! Evidence contains no credentials by design: pods refer to service account tokens, and the
//! kubelet masks its own. This module is a second safeguard.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use regex::Regex;
use serde_json::{Map, Value};

use crate::stream::RunEventKind;
use crate::words::visible;
use evictlab_judge::{CaseResult, Check, EvictionRecord};

/// Replacement for a credential.
const REDACTED: &str = "(redacted)";

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

/// Patterns of credentials in any text: PEM keys, JSON web tokens, kubeconfig fields, bearer and
/// basic authorization, and passwords in URLs.
static CREDENTIAL: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r#"(?xis)
        -----BEGIN\ [A-Z\ ]*PRIVATE\ KEY-----.*?(-----END\ [A-Z\ ]*PRIVATE\ KEY-----|\z)
        | \beyJ[\w-]{8,}\.eyJ[\w-]+\.[\w-]*
        | \b(client-key-data|client-certificate-data|certificate-authority-data)\b["']?\s*:\s*["']?[\w+/=-]+
        | \b(bearer|basic)\s+[\w.~+/-]{16,}=*
        | (?P<before>\w://)[^\s/:@]+:[^\s/@]+@
        # Access keys of AWS, GitHub, GitLab, Slack, npm, PyPI, Google, Stripe, and Azure storage.
        | \b(?-i:(AKIA|ASIA)[A-Z0-9]{16})\b
        | \b(gh[pousr]_[a-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{20,}|xox[abeoprs]-[\w-]{10,})
        | \b(npm_[a-z0-9]{30,}|pypi-[\w-]{16,}|(?-i:AIza)[\w-]{30,}|[rs]k_live_[a-z0-9]{16,})
        | \bAccountKey=[\w+/=]{20,}
        # Assignments in scripts and options: DB_PASSWORD=…, --api-key …, secret_access_key: ….
        | (?P<name>(password|passwd|secret|secret_access_key|secret[_-]?key|api[_-]?key|access[_-]?token|auth[_-]?token)["']?\s*[=:]\s*["']?)[^\s"'(){}\[\]&,;]{6,}
        "#,
    )
    .ok()
});

/// Replaces credentials in `text`.
pub(super) fn redacted_text(text: &str) -> Cow<'_, str> {
    match &*CREDENTIAL {
        Some(credential) => credential.replace_all(text, format!("${{before}}${{name}}{REDACTED}")),
        None => Cow::Borrowed(REDACTED),
    }
}

/// Replaces credentials in every text of an event. Its evidence is redacted when it is written.
pub(super) fn redact_event(what: &mut RunEventKind) {
    match what {
        RunEventKind::ClusterStep { text, .. }
        | RunEventKind::ClusterFailed { error: text, .. }
        | RunEventKind::CaseStep { text, .. }
        | RunEventKind::CaseProgress { text, .. } => redact_text(text),
        RunEventKind::ClusterDeleted { kept, error, .. } => {
            kept.iter_mut().chain(error).for_each(redact_text)
        }
        RunEventKind::CaseRetried { judgement, .. } | RunEventKind::CaseEnded { judgement, .. } => {
            let judgement = Arc::make_mut(judgement);
            let CaseResult {
                why,
                known_bug,
                checks,
                testimony,
                diff,
                earlier_tries,
                verdict: _,
                doubt: _,
                phase: _,
                rate: _,
            } = judgement;
            let of_tries = earlier_tries.iter_mut().map(|earlier| &mut earlier.why);
            [why, diff].into_iter().chain(known_bug).chain(of_tries).for_each(redact_text);
            for Check { expected, observed, name: _, holds: _ } in checks {
                [expected, observed].into_iter().for_each(redact_text);
            }
            for EvictionRecord { events, status, condition, annotations, pod: _ } in testimony {
                events.iter_mut().chain(status).chain(condition).for_each(redact_text);
                *annotations = annotations.take().map(redacted_object);
            }
        }
        RunEventKind::RunStarted { .. }
        | RunEventKind::ClusterStarted { .. }
        | RunEventKind::ClusterReady { .. }
        | RunEventKind::CaseStarted { .. }
        | RunEventKind::Interrupted { .. }
        | RunEventKind::TimedOut
        | RunEventKind::RunEnded { .. } => {}
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

/// Replaces credentials in `value`: the data of Secrets, values of [`SECRET_KEYS`], and patterns in
/// all other texts.
pub(super) fn redacted(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(redacted_text(&text).into_owned()),
        Value::Array(items) => items.into_iter().map(redacted).collect(),
        Value::Object(fields) => Value::Object(redacted_object(fields)),
        other => other,
    }
}

fn redacted_object(mut fields: Map<String, Value>) -> Map<String, Value> {
    if fields.get("kind").and_then(Value::as_str).is_some_and(|kind| matches!(kind, "Secret" | "SecretList"))
    {
        fields.retain(|key, _| matches!(key.as_str(), "apiVersion" | "kind"));
        fields.insert("data".to_owned(), REDACTED.into());
        return fields;
    }
    // In environment variables and headers, `name` holds the key and `value` the value.
    let named = fields.get("name").and_then(Value::as_str).is_some_and(is_secret_name);
    fields
        .into_iter()
        .map(|(key, value)| {
            let hides = is_secret_key(&key) || (named && key == "value");
            let value = if hides && value.is_string() { REDACTED.into() } else { redacted(value) };
            (key, value)
        })
        .collect()
}

fn is_secret_key(key: &str) -> bool {
    SECRET_KEYS.contains(&key.to_ascii_lowercase().as_str())
}

/// Returns whether a variable or header holds a credential: `GITHUB_TOKEN`, `Authorization`.
fn is_secret_name(name: &str) -> bool {
    name.split(['_', '-']).any(is_secret_key)
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
            ("a header", json!({"name": "Authorization", "value": "Tm90IGE="})),
            ("a header in a log", json!("Authorization: Bearer Tm90IGE0Tm90IGE0Tm90IGE=")),
            ("a proxy", json!({"args": ["--proxy=http://me:Tm90IGE=@proxy:3128"]})),
        ] {
            let text = redacted(value).to_string();
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
        ] {
            assert_eq!(redacted_text(plain), plain);
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
        let failed = |error| RunEventKind::ClusterFailed { cluster: "c".to_owned(), seconds: 1.0, error };
        let testimony =
            EvictionRecord { status: Some(text()), events: vec![text()], ..EvictionRecord::default() };
        let check = Check { name: "says".to_owned(), holds: false, expected: text(), observed: text() };
        let mut ended = fixtures::case_ended("a", "v1.32.13", 1, Verdict::Failed, &text());
        if let RunEventKind::CaseEnded { judgement, .. } = &mut ended {
            let judgement = Arc::make_mut(judgement);
            judgement.checks.push(check);
            judgement.testimony.push(testimony);
            judgement.diff = text();
        }
        for (mut what, credentials) in [(step(text()), 1), (failed(text()), 1), (ended, 6)] {
            redact_event(&mut what);
            let written = serde_json::to_string(&what).unwrap();
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
        assert_eq!(redacted(pod.clone()), pod);
    }
}
