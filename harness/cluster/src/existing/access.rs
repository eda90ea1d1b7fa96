//! Access to a cluster like kubectl: by kubeconfig and context, or from a pod of the cluster.

use std::env;
use std::fs;
use std::io;
use std::path::PathBuf;

use evictlab_case::document_problem;
use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};

use super::client::{ClusterClient, limited_client};
use crate::error::ExistingError;

/// Environment variable that Kubernetes sets in every container.
const IN_CLUSTER_VARIABLE: &str = "KUBERNETES_SERVICE_HOST";

/// Name of the cluster of the pod in which this process runs.
const IN_CLUSTER: &str = "in-cluster";

/// Kubeconfig and context of a cluster.
#[derive(Clone, Debug, Default)]
pub struct ClusterAccess {
    /// Path of the kubeconfig. By default the files in `KUBECONFIG`, then the default file of the
    /// user, then the service account of the pod.
    pub kubeconfig: Option<PathBuf>,
    /// Name of the context; by default the current context.
    pub context: Option<String>,
}

impl ClusterAccess {
    /// Creates a client of the cluster. Sends no request yet.
    ///
    /// # Errors
    /// The kubeconfig is missing or invalid, or does not have the context; the pod has no service
    /// account token.
    pub async fn connect(&self) -> Result<ClusterClient, ExistingError> {
        let kubeconfig = self.read()?;
        let is_kubeconfig = kubeconfig.is_some();
        let (name, config) = match kubeconfig {
            // The client reads the token again before it expires.
            None => (IN_CLUSTER.to_owned(), Config::incluster().map_err(ExistingError::service_account)?),
            Some(kubeconfig) => {
                self.check_is_kubeconfig(&kubeconfig)?;
                let name = self.context_name(&kubeconfig)?;
                let options =
                    KubeConfigOptions { context: Some(name.clone()), ..KubeConfigOptions::default() };
                let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
                (name, config.map_err(ExistingError::kubeconfig)?)
            }
        };
        let server = config.cluster_url.to_string().trim_end_matches('/').to_owned();
        let client = limited_client(config).map_err(|error| {
            if is_kubeconfig {
                ExistingError::kubeconfig(error)
            } else {
                ExistingError::service_account(error)
            }
        })?;
        Ok(ClusterClient { name, server, client })
    }

    /// Reads the kubeconfig; `None` if none is named, the default one does not exist, and this
    /// process runs in a pod.
    fn read(&self) -> Result<Option<Kubeconfig>, ExistingError> {
        if let Some(path) = &self.kubeconfig {
            return Kubeconfig::read_from(path).map(Some).map_err(|error| self.unreadable(error));
        }
        match Kubeconfig::read() {
            Ok(kubeconfig) => Ok(Some(kubeconfig)),
            Err(error) if is_missing(&error) && self.context.is_none() && is_in_pod() => Ok(None),
            Err(error) => Err(self.unreadable(error)),
        }
    }

    /// Describes why a kubeconfig cannot be read, with its path.
    fn unreadable(&self, error: KubeconfigError) -> ExistingError {
        let problem = match &error {
            KubeconfigError::ReadConfig(error, path) => {
                Some(format!("failed to read {}: {error}", path.display()))
            }
            KubeconfigError::Parse(_) => self.paths().iter().find_map(|path| {
                let shown = path.display().to_string();
                let problem = document_problem::<Kubeconfig>(&shown, &fs::read_to_string(path).ok()?)?;
                // The line itself may be a secret.
                let mark = problem.spans.first()?.mark.as_ref()?;
                Some(format!("{shown}:{}:{}: {}", mark.line, mark.column, problem.message))
            }),
            _ => None,
        };
        problem.map_or_else(|| ExistingError::kubeconfig(error), ExistingError::Kubeconfig)
    }

    /// Paths of the kubeconfigs that are read, as of kubectl.
    fn paths(&self) -> Vec<PathBuf> {
        match (&self.kubeconfig, env::var_os("KUBECONFIG").filter(|paths| !paths.is_empty())) {
            (Some(path), _) => vec![path.clone()],
            (None, Some(paths)) => env::split_paths(&paths).collect(),
            (None, None) => env::home_dir().map(|home| home.join(".kube/config")).into_iter().collect(),
        }
    }

    /// Rejects a YAML file that is not a kubeconfig, such as a manifest.
    fn check_is_kubeconfig(&self, kubeconfig: &Kubeconfig) -> Result<(), ExistingError> {
        let Kubeconfig { clusters, auth_infos, contexts, kind, .. } = kubeconfig;
        if !(clusters.is_empty() && auth_infos.is_empty() && contexts.is_empty()) {
            return Ok(());
        }
        let paths: Vec<String> = self.paths().iter().map(|path| path.display().to_string()).collect();
        let reason = match kind.as_deref() {
            Some(kind) if kind != "Config" => format!("its kind is {kind}"),
            _ => "it has no clusters, users and contexts".to_owned(),
        };
        Err(ExistingError::Kubeconfig(format!("{} is not a kubeconfig: {reason}", paths.join(", "))))
    }

    fn context_name(&self, kubeconfig: &Kubeconfig) -> Result<String, ExistingError> {
        let available = || kubeconfig.contexts.iter().map(|context| context.name.clone()).collect::<Vec<_>>();
        let named = self.context.clone().or_else(|| kubeconfig.current_context.clone());
        match named.filter(|name| !name.is_empty()) {
            Some(name) if available().contains(&name) => Ok(name),
            named => Err(ExistingError::NoContext { named, available: available() }),
        }
    }
}

fn is_missing(error: &KubeconfigError) -> bool {
    match error {
        KubeconfigError::FindPath => true,
        KubeconfigError::ReadConfig(error, _) => error.kind() == io::ErrorKind::NotFound,
        _ => false,
    }
}

fn is_in_pod() -> bool {
    env::var_os(IN_CLUSTER_VARIABLE).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_is_not_a_kubeconfig() {
        let access = ClusterAccess { kubeconfig: Some("dir/file.yaml".into()), ..ClusterAccess::default() };
        for (text, problem) in [
            ("{apiVersion: v1, kind: Pod, metadata: {name: web}}", Some("its kind is Pod")),
            ("pods: [1]", Some("it has no clusters, users and contexts")),
            ("{kind: Config, contexts: []}", Some("it has no clusters, users and contexts")),
            ("{contexts: [{name: a}]}", None),
        ] {
            let checked = access.check_is_kubeconfig(&Kubeconfig::from_yaml(text).unwrap());
            let expected = problem.map(|problem| {
                format!(
                    "failed to load the kubeconfig: dir/file.yaml is not a kubeconfig: {problem}\n\
                     help: name it with --kubeconfig, or set KUBECONFIG"
                )
            });
            assert_eq!(checked.err().map(|error| error.to_string()), expected, "{text}");
        }
    }

    #[test]
    fn uses_the_named_or_the_current_context() {
        let kubeconfig = |current: &str| {
            let text = format!("{{current-context: '{current}', contexts: [{{name: a}}, {{name: b}}]}}");
            Kubeconfig::from_yaml(&text).unwrap()
        };
        let named = |context: Option<&str>, current: &str| {
            let access = ClusterAccess { context: context.map(str::to_owned), ..ClusterAccess::default() };
            access.context_name(&kubeconfig(current)).map_err(|error| error.to_string())
        };
        assert_eq!(named(None, "a").as_deref(), Ok("a"));
        assert_eq!(named(Some("b"), "a").as_deref(), Ok("b"));
        let error = named(Some("c"), "a").unwrap_err();
        assert!(error.contains("has no context c; it has a, b"), "{error}");
        let error = named(None, "").unwrap_err();
        assert!(error.contains("has no current context; it has a, b"), "{error}");
    }
}
