//! Commands built on runs: verify, bisect, mutants, parity, bench, export, job, watch and doctor.
//!
//! Each module is one command without its command line, which is in the crate `evictlab`. For
//! example, [`bisect::KubeletSearch`] finds the first kubelet with another verdict, given a
//! function that tests kubelets:
//!
//! ```
//! use evictlab_tools::bisect::{
//!     BisectTerm, KubeletCandidate, KubeletSearch, KubeletSearchOutcome, ProbeOutcome,
//!     SearchRange,
//! };
//!
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! let candidate = |name: &str| -> Result<KubeletCandidate, Box<dyn std::error::Error>> {
//!     Ok(KubeletCandidate { name: name.to_owned(), spec: name.parse()?, version: name.parse()? })
//! };
//! let (bad, good) = (candidate("v1.31.14")?, candidate("v1.33.1")?);
//! let range = SearchRange::between(good, bad, vec![candidate("v1.32.13")?])?;
//! let mut search = KubeletSearch::new(range);
//! let outcome = search
//!     .run(async |_cluster, candidates: &[KubeletCandidate]| {
//!         let test = |candidate: &KubeletCandidate| match candidate.version.minor {
//!             ..32 => ProbeOutcome::Conclusive(BisectTerm::Bad, "reproduced".to_owned()),
//!             _ => ProbeOutcome::Conclusive(BisectTerm::Good, "passed".to_owned()),
//!         };
//!         Ok::<_, std::convert::Infallible>(candidates.iter().map(test).collect())
//!     })
//!     .await?;
//! assert_eq!(outcome, KubeletSearchOutcome::Found { last_old: 0, first_new: 1 });
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```

#![deny(unreachable_pub)]

pub mod bench;
pub mod bisect;
pub mod book;
pub mod doctor;
pub mod documents;
pub mod dry_run;
pub mod export;
pub mod gc_report;
pub mod git_bisect;
pub mod job;
pub mod lint;
pub mod mutants;
pub mod parity;
pub mod verify;
pub mod watch;

#[cfg(test)]
mod error_texts;
