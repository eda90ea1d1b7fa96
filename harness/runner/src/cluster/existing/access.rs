//! Reaching a cluster the way kubectl does: by kubeconfig and context, or from within it.

use std::path::PathBuf;

use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};

use super::{ExistingError, Reached};
use crate::cluster::ready::SILENCE;

/// The variable that Kubernetes sets in every container.
const WITHIN: &str = "KUBERNETES_SERVICE_HOST";

/// How a cluster is found.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// The kubeconfig; if none is stated, the files of `KUBECONFIG`, else the user's own, else what a pod has.
    pub kubeconfig: Option<PathBuf>,
    /// The context; if none is stated, the kubeconfig's current one.
    pub context: Option<String>,
}

impl Access {
    /// A client for the cluster. Nothing is asked of it yet.
    ///
    /// # Errors
    /// A kubeconfig that is missing or wrong, or has no such context.
    pub async fn reach(&self) -> Result<Reached, ExistingError> {
        let (name, mut config) = match self.read()? {
            None => ("in-cluster".to_owned(), Config::incluster().map_err(ExistingError::kubeconfig)?),
            Some(kubeconfig) => {
                let name = self.named(&kubeconfig)?;
                let options =
                    KubeConfigOptions { context: Some(name.clone()), ..KubeConfigOptions::default() };
                let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
                (name, config.map_err(ExistingError::kubeconfig)?)
            }
        };
        config.read_timeout = Some(SILENCE);
        // A refused eviction (429) is an answer, which kube would take minutes to give.
        config.default_retry = false;
        let server = config.cluster_url.to_string().trim_end_matches('/').to_owned();
        let client = Client::try_from(config).map_err(ExistingError::kubeconfig)?;
        Ok(Reached { name, server, client })
    }

    /// The kubeconfig; none where there is none and this process runs in a pod.
    fn read(&self) -> Result<Option<Kubeconfig>, ExistingError> {
        if let Some(path) = &self.kubeconfig {
            return Kubeconfig::read_from(path).map(Some).map_err(ExistingError::kubeconfig);
        }
        match Kubeconfig::read() {
            Ok(kubeconfig) => Ok(Some(kubeconfig)),
            Err(KubeconfigError::ReadConfig(..) | KubeconfigError::FindPath)
                if self.context.is_none() && std::env::var_os(WITHIN).is_some() =>
            {
                Ok(None)
            }
            Err(error) => Err(ExistingError::kubeconfig(error)),
        }
    }

    fn named(&self, kubeconfig: &Kubeconfig) -> Result<String, ExistingError> {
        let has = || kubeconfig.contexts.iter().map(|context| context.name.clone()).collect::<Vec<_>>();
        let named = self.context.clone().or_else(|| kubeconfig.current_context.clone());
        match named.filter(|name| !name.is_empty()) {
            Some(name) if has().contains(&name) => Ok(name),
            named => Err(ExistingError::NoContext { named, has: has() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_is_the_one_asked_for_or_the_current_one() {
        let kubeconfig = |current: &str| {
            let text = format!("{{current-context: '{current}', contexts: [{{name: a}}, {{name: b}}]}}");
            Kubeconfig::from_yaml(&text).unwrap()
        };
        let named = |context: Option<&str>, current: &str| {
            let access = Access { context: context.map(str::to_owned), ..Access::default() };
            access.named(&kubeconfig(current)).map_err(|error| error.to_string())
        };
        assert_eq!(named(None, "a").as_deref(), Ok("a"));
        assert_eq!(named(Some("b"), "a").as_deref(), Ok("b"));
        let error = named(Some("c"), "a").unwrap_err();
        assert!(error.contains("no context named c; it has a, b"), "{error}");
        let error = named(None, "").unwrap_err();
        assert!(error.contains("names no current context; it has a, b"), "{error}");
    }
}
