//! One cluster of a run: made or taken, its nodes prepared, used, and deleted or left as it was found.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures::future::try_join_all;
use tokio::time::Instant;

use super::images::images_of;
use super::lease::{Images, Leased};
use super::run::Shared;
use crate::cluster::{Ended, Ending, Opened, Plan};
use crate::report::What;
use crate::reset::CANARY;

impl Shared {
    /// One cluster from its beginning to its end.
    pub(super) async fn on_cluster(self: Rc<Self>, plan: &Plan) {
        let name = &plan.name;
        let began = Instant::now();
        self.events.send(What::ClusterStarted {
            cluster: name.clone(),
            kubelets: plan.kubelets.iter().map(|kubelet| kubelet.label.clone()).collect(),
            reused: plan.reused,
        });
        let mut cluster = None;
        let step = |text: &str| self.cluster_step(name, text);
        let images = self.images_of_cases();
        let prepared = match self.request.backend.open(plan, &images, &self.cancel, &step).await {
            Ok(opened) => self.prepared(name, &**cluster.insert(opened)).await,
            Err(error) => Err(error.to_string()),
        };
        let usable = prepared.is_ok();
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
                self.cases(plan, &leased).await;
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
            }
        }
        self.end(plan, cluster, usable).await;
    }

    fn cluster_step(&self, cluster: &str, text: &str) {
        self.events.send(What::ClusterStep { cluster: cluster.to_owned(), text: text.to_owned() });
    }

    /// Every node tuned and proved.
    async fn prepared(&self, name: &str, cluster: &dyn Opened) -> Result<Vec<Arc<Leased>>, String> {
        let work = async {
            self.cluster_step(name, "preparing the nodes");
            let lock = self.request.lock.clone();
            let images: Images = Arc::new(move |name: &str| lock.case_image(name));
            let prepared = cluster
                .nodes()
                .iter()
                .map(|node| Leased::prepare(node.clone(), &self.request.run, images.clone()));
            let leased = try_join_all(prepared).await.map_err(|error| error.to_string())?;
            // A host that does not tell is taken for a small one.
            if let Some(first) = leased.first().filter(|_| self.request.backend.is_one_host())
                && let Ok(available) = first.node.host_memory().await
            {
                self.host.has(available);
            }
            Ok(leased.into_iter().map(Arc::new).collect())
        };
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err("interrupted".to_owned()),
            prepared = work => prepared,
        }
    }

    fn images_of_cases(&self) -> Vec<String> {
        let mut all: Vec<String> = self.request.cases.iter().flat_map(|case| images_of(&case.case)).collect();
        all.push(CANARY.to_owned());
        all.iter_mut().for_each(|image| *image = self.request.lock.case_image(image));
        all.sort();
        all.dedup();
        all
    }

    /// Deletes the cluster, or puts its nodes back and leaves it; clears away what there is of one that was not opened.
    pub(super) async fn end(&self, plan: &Plan, cluster: Option<Box<dyn Opened>>, usable: bool) {
        let began = Instant::now();
        let ending = Ending {
            usable,
            failed: self.failed.load(Ordering::Relaxed),
            interrupted: self.cancel.is_cancelled(),
        };
        let ended = match cluster {
            Some(cluster) => cluster.end(ending).await,
            None => self.request.backend.clear(plan, ending).await,
        };
        let Some(Ended { kept, error }) = ended else { return };
        self.events.send(What::ClusterDeleted {
            cluster: plan.name.clone(),
            seconds: began.elapsed().as_secs_f64(),
            kept: kept.map(str::to_owned),
            error: error.map(|error| error.to_string()),
        });
    }
}
