//! No credential gets into a file. The evidence holds none by design: pods hold service account tokens by
//! reference only, the kubelet masks its own. This is the second lock on that door.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use regex::Regex;
use serde_json::{Map, Value};

use super::What;
use crate::judge::{Check, Judgement, Testimony};

/// What stands where a credential stood.
const LEFT_OUT: &str = "(left out: a credential)";

/// Keys whose text is a credential whatever it looks like: of a kubeconfig, of a registry's or a user's login.
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

/// Credentials by their looks, in any text: PEM keys, JSON web tokens, kubeconfig fields, bearer and basic
/// authorization, the password in a URL.
static CREDENTIAL: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r#"(?xis)
        -----BEGIN\ [A-Z\ ]*PRIVATE\ KEY-----.*?(-----END\ [A-Z\ ]*PRIVATE\ KEY-----|\z)
        | \beyJ[\w-]{8,}\.eyJ[\w-]+\.[\w-]*
        | \b(client-key-data|client-certificate-data|certificate-authority-data)\b["']?\s*:\s*["']?[\w+/=-]+
        | \b(bearer|basic)\s+[\w.~+/-]{16,}=*
        | (?P<before>\w://)[^\s/:@]+:[^\s/@]+@
        "#,
    )
    .ok()
});

/// `text` without what looks like a credential.
pub(super) fn redacted_text(text: &str) -> Cow<'_, str> {
    match &*CREDENTIAL {
        Some(credential) => credential.replace_all(text, format!("${{before}}{LEFT_OUT}")),
        None => Cow::Borrowed(LEFT_OUT),
    }
}

/// Takes what looks like a credential out of every text of an event; its evidence stays as it is.
pub(super) fn redact_event(what: &mut What) {
    match what {
        What::ClusterStep { text, .. }
        | What::ClusterFailed { error: text, .. }
        | What::CaseStep { text, .. }
        | What::CaseProgress { text, .. } => redact_text(text),
        What::ClusterDeleted { kept, error, .. } => kept.iter_mut().chain(error).for_each(redact_text),
        What::CaseEnded { judgement, .. } => {
            let judgement = Arc::make_mut(judgement);
            let Judgement {
                why,
                known_bug,
                checks,
                testimony,
                diff,
                verdict: _,
                doubt: _,
                phase: _,
                rate: _,
            } = judgement;
            [why, diff].into_iter().chain(known_bug).for_each(redact_text);
            for Check { expected, observed, name: _, holds: _ } in checks {
                [expected, observed].into_iter().for_each(redact_text);
            }
            for Testimony { events, status, condition, annotations, pod: _ } in testimony {
                events.iter_mut().chain(status).chain(condition).for_each(redact_text);
                *annotations = annotations.take().map(redacted_object);
            }
        }
        What::RunStarted { .. }
        | What::ClusterStarted { .. }
        | What::ClusterReady { .. }
        | What::CaseStarted { .. }
        | What::Interrupted { .. }
        | What::RunEnded { .. } => {}
    }
}

fn redact_text(text: &mut String) {
    if let Cow::Owned(clean) = redacted_text(text) {
        *text = clean;
    }
}

/// `value` without credentials: Secrets lose what they hold, texts under a credential's key are replaced, and so is
/// what looks like one in any other text.
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
        fields.insert("data".to_owned(), LEFT_OUT.into());
        return fields;
    }
    // An environment variable, or a header: the key is the value of `name`.
    let named = fields.get("name").and_then(Value::as_str).is_some_and(secret_name);
    fields
        .into_iter()
        .map(|(key, value)| {
            let hides = is_secret_key(&key) || (named && key == "value");
            let value = if hides && value.is_string() { LEFT_OUT.into() } else { redacted(value) };
            (key, value)
        })
        .collect()
}

fn is_secret_key(key: &str) -> bool {
    SECRET_KEYS.contains(&key.to_ascii_lowercase().as_str())
}

/// `REGISTRY_PASSWORD`, `GITHUB_TOKEN`, `Authorization`.
fn secret_name(name: &str) -> bool {
    name.split(['_', '-']).any(is_secret_key)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::judge::Verdict;
    use crate::report::story;

    const JWT: &str = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJzeXN0ZW06c2EifQ.c2lnbmF0dXJl";

    #[test]
    fn credentials_are_left_out_wherever_they_are() {
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
            assert!(text.contains(LEFT_OUT), "{what}: {text}");
        }
        assert_eq!(redacted_text(&format!("token {JWT}, see")), format!("token {LEFT_OUT}, see"));
    }

    #[test]
    fn events_carry_none_to_any_report() {
        let text = || format!("the API server said {JWT}");
        let step = |text| What::ClusterStep { cluster: "c".to_owned(), text };
        let failed = |error| What::ClusterFailed { cluster: "c".to_owned(), seconds: 1.0, error };
        let testimony = Testimony { status: Some(text()), events: vec![text()], ..Testimony::default() };
        let check = Check { name: "says".to_owned(), holds: false, expected: text(), observed: text() };
        let mut ended = story::case_ended("message", "a", "v1.32.13", 1, Verdict::Failed, &text());
        if let What::CaseEnded { judgement, .. } = &mut ended {
            let judgement = Arc::make_mut(judgement);
            judgement.checks.push(check);
            judgement.testimony.push(testimony);
            judgement.diff = text();
        }
        for (mut what, credentials) in [(step(text()), 1), (failed(text()), 1), (ended, 6)] {
            redact_event(&mut what);
            let written = serde_json::to_string(&what).unwrap();
            assert!(!written.contains("eyJ"), "{written}");
            assert_eq!(written.matches(LEFT_OUT).count(), credentials, "{written}");
        }
    }

    #[test]
    fn what_is_no_credential_stays() {
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
