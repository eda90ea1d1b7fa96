//! Contexts of the kubeconfig, for the shell's completion.

use kube::config::Kubeconfig;

/// Returns the contexts of the kubeconfig that the environment selects; none of an invalid one.
pub fn context_names() -> Vec<String> {
    let contexts = Kubeconfig::read().map(|kubeconfig| kubeconfig.contexts).unwrap_or_default();
    contexts.into_iter().map(|context| context.name).collect()
}
