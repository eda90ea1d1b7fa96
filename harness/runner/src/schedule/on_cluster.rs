//! One cluster of a run: made or taken, its nodes prepared, used, and deleted or left as it was found.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use futures::future::try_join_all;
use serde_json::Value;

use super::lease::{Images, Leased};
use super::run::Shared;
use super::{Clusters, DEADLINE, Keep};
use crate::case::LoadedCase;
use crate::cluster::{self, Cluster, ClusterError, Kubelet, Record, label_value};
use crate::images;
use crate::report::What;
use crate::reset::CANARY;

/// How often a cluster is tried whose host is too slow for kind.
const ATTEMPTS: u32 = 3;

impl Shared {
    /// One cluster from its beginning to its end.
    pub(super) async fn on_cluster(self: Arc<Self>, group: usize) {
        let name = self.name(group);
        let began = Instant::now();
        let kubelets = &self.request.groups[group].kubelets;
        let reused = matches!(self.request.clusters, Clusters::Kept(_));
        self.events.send(What::ClusterStarted {
            cluster: name.clone(),
            kubelets: kubelets.iter().map(|kubelet| kubelet.label.clone()).collect(),
            reused,
        });
        let mut cluster = None;
        let prepared = match self.cluster(group, &name).await {
            Ok(made) => self.prepared(cluster.insert(made), kubelets).await,
            Err(error) => Err(error.to_string()),
        };
        match prepared {
            Ok(leased) => {
                self.events.send(What::ClusterReady {
                    cluster: name.clone(),
                    seconds: began.elapsed().as_secs_f64(),
                    nodes: leased
                        .iter()
                        .map(|leased| (leased.node.name.clone(), leased.node.version.to_string()))
                        .collect(),
                });
                self.cases(group, &leased).await;
            }
            Err(error) => {
                self.failed.store(true, Ordering::Relaxed);
                if !self.cancel.is_cancelled() {
                    self.events.send(What::ClusterFailed {
                        cluster: name.clone(),
                        seconds: began.elapsed().as_secs_f64(),
                        error,
                    });
                }
                // One of before is put in order all the same; a new one without use is not kept.
                cluster = cluster.filter(|_| reused);
            }
        }
        self.end(&name, cluster).await;
    }

    async fn cluster(&self, group: usize, name: &str) -> Result<Cluster, ClusterError> {
        let group = &self.request.groups[group];
        let (docker, state) = (&self.docker, &self.state);
        match &self.request.clusters {
            Clusters::Kept(_) => {
                let mut cluster = Cluster::open(docker, state, name, &group.kubelets).await?;
                cluster.take(self.request.owner.clone()).await?;
                Ok(cluster)
            }
            Clusters::New { base, nodes, .. } => {
                let kubelets = group.kubelets.iter().map(|kubelet| kubelet.label.clone()).collect();
                let owner = self.request.owner.clone();
                let record = Record::new(name, &self.request.run, owner, kubelets, DEADLINE);
                cluster::claim(docker, state, &record).await?;
                let step = |text: &str| self.cluster_step(name, text);
                for _ in 1..ATTEMPTS {
                    let plan = (group, base, *nodes);
                    match Cluster::create(docker, state, record.clone(), plan, &self.cancel, step).await {
                        Err(ClusterError::Exists(name)) => {
                            state.forget(&name)?;
                            return Err(ClusterError::Exists(name));
                        }
                        Err(ClusterError::Kind(error)) if error.too_slow() => {
                            step("the nodes did not start within kind's 30 s; trying again");
                            cluster::delete(docker, state, name).await?;
                            state.write(&record)?;
                        }
                        made => return made,
                    }
                }
                Cluster::create(docker, state, record, (group, base, *nodes), &self.cancel, step).await
            }
        }
    }

    fn cluster_step(&self, cluster: &str, text: &str) {
        self.events.send(What::ClusterStep { cluster: cluster.to_owned(), text: text.to_owned() });
    }

    /// Images in every node, and every node tuned and proved.
    async fn prepared(&self, cluster: &Cluster, kubelets: &[Kubelet]) -> Result<Vec<Arc<Leased>>, String> {
        let work = async {
            let nodes: Vec<&str> = cluster.nodes.iter().map(|node| node.name.as_str()).collect();
            let step = |text: &str| self.cluster_step(&cluster.name, text);
            step("bringing the images");
            images::bring(&self.docker, &nodes, &self.images_of_cases(), &step)
                .await
                .map_err(|error| error.to_string())?;
            step("preparing the nodes");
            let lock = self.request.lock.clone();
            let images: Images = Arc::new(move |name: &str| lock.case_image(name));
            try_join_all(cluster.nodes.iter().map(|node| {
                let mut node = node.clone();
                // Reports speak of kubelets as they were asked for.
                if let Some(asked) =
                    kubelets.iter().find(|kubelet| label_value(&kubelet.label) == node.kubelet)
                {
                    node.kubelet = asked.label.clone();
                }
                Leased::prepare(node, &self.request.run, images.clone())
            }))
            .await
            .map(|leased| leased.into_iter().map(Arc::new).collect())
            .map_err(|error| error.to_string())
        };
        tokio::select! {
            prepared = work => prepared,
            () = self.cancel.cancelled() => Err("interrupted".to_owned()),
        }
    }

    fn images_of_cases(&self) -> Vec<String> {
        let containers = |case: &LoadedCase| -> Vec<String> {
            let in_pods = case.case.pods.iter().flat_map(|pod| {
                ["initContainers", "containers"]
                    .into_iter()
                    .filter_map(|list| pod.get("spec")?.get(list)?.as_array())
            });
            let in_pods = in_pods.flatten().filter_map(Value::as_object);
            let late = case.case.ephemeral_containers.iter().map(|late| &late.container);
            in_pods
                .chain(late)
                // A case that says where its image comes from is taken at its word.
                .filter(|container| !container.contains_key("imagePullPolicy"))
                .filter_map(|container| Some(container.get("image")?.as_str()?.to_owned()))
                .collect()
        };
        let mut all: Vec<String> = self.request.cases.iter().flat_map(|case| containers(case)).collect();
        all.push(CANARY.to_owned());
        all.iter_mut().for_each(|image| *image = self.request.lock.case_image(image));
        all.sort();
        all.dedup();
        all
    }

    /// Deletes the cluster, or puts its nodes back and leaves it.
    pub(super) async fn end(&self, name: &str, cluster: Option<Cluster>) {
        let reused = matches!(self.request.clusters, Clusters::Kept(_));
        // Another has taken the name in the meantime, or nothing was begun.
        if !reused && self.state.read(name).is_none_or(|record| record.run != self.request.run) {
            return;
        }
        let began = Instant::now();
        let failed = self.failed.load(Ordering::Relaxed);
        let kept = match self.request.keep {
            _ if reused => Some("it was there before"),
            Keep::Always => Some("--keep"),
            Keep::OnFailure if failed => Some("--keep-on-failure"),
            _ => None,
        };
        // An interrupted run leaves nothing of its own.
        let kept = kept.filter(|_| reused || cluster.is_some() && !self.cancel.is_cancelled());
        let error = match (kept, cluster) {
            (Some(_), Some(mut cluster)) => {
                let back = cluster.sweep(Some(&self.request.run)).await;
                // One that was lent for a test run stays the test run's.
                let signed = if reused { Ok(()) } else { cluster.keep().await };
                let errors =
                    [back.err().map(|error| error.to_string()), signed.err().map(|error| error.to_string())];
                errors.into_iter().flatten().next()
            }
            // What cannot be used any more but was there before is its owner's to judge.
            (Some(_), None) if reused => None,
            _ => cluster::delete(&self.docker, &self.state, name).await.err().map(|error| error.to_string()),
        };
        self.events.send(What::ClusterDeleted {
            cluster: name.to_owned(),
            seconds: began.elapsed().as_secs_f64(),
            kept: kept.map(str::to_owned),
            error,
        });
    }
}
