//! What dead runs left in somebody else's cluster. Only what bears a run's label is looked at.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use super::sweep::sweep;
use super::{Access, ExistingError, Reached};
use crate::cluster::{DEADLINE, Owner};
use crate::stage::{Marked, Namespace};

/// The namespaces of one run.
#[derive(Clone, Debug)]
pub struct Leftover {
    /// The run.
    pub run: String,
    /// How many there are.
    pub namespaces: usize,
    /// Why they are left alone; none for a dead run's.
    pub left_alone: Option<&'static str>,
}

/// The runs that have namespaces in a cluster, and its name.
pub async fn leftovers(access: &Access) -> Result<(String, Vec<Leftover>), ExistingError> {
    let reached = access.reach().await?;
    let found = found(&reached).await?;
    Ok((reached.name, found))
}

/// Removes the namespaces of a dead run; returns how many there were.
pub async fn collect_leftovers(access: &Access, run: &str) -> Result<usize, ExistingError> {
    let reached = access.reach().await?;
    sweep(&reached.client, &reached.name, run).await
}

pub(super) async fn found(reached: &Reached) -> Result<Vec<Leftover>, ExistingError> {
    let mut runs: BTreeMap<String, Vec<Marked>> = BTreeMap::new();
    for marked in Namespace::marked(&reached.client).await? {
        runs.entry(marked.run.clone()).or_default().push(marked);
    }
    let now = Timestamp::now();
    let leftover = |(run, marked): (String, Vec<Marked>)| Leftover {
        run,
        namespaces: marked.len(),
        left_alone: marked.iter().find_map(|marked| standing(marked.owner.as_ref(), marked.made, now)),
    };
    Ok(runs.into_iter().map(leftover).collect())
}

/// Why a run's namespace is left alone: its owner lives, or cannot be asked and may.
fn standing(owner: Option<&Owner>, made: Option<Timestamp>, now: Timestamp) -> Option<&'static str> {
    let old =
        made.is_some_and(|made| Duration::try_from(now.duration_since(made)).is_ok_and(|age| age > DEADLINE));
    match owner {
        Some(owner) if owner.is_here() => owner.alive().then_some("its run goes on"),
        _ if old => None,
        Some(_) => Some("its run is on another host, and less than 12 hours old"),
        None => Some("nobody has signed it, and it is less than 12 hours old"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_live_is_left_alone() {
        let here = Owner::this();
        let dead = Owner { started: "earlier".to_owned(), ..here.clone() };
        let elsewhere = Owner { host: "another".to_owned(), ..here.clone() };
        let now = Timestamp::now();
        let hours = |hours: i64| Some(now - jiff::SignedDuration::from_hours(hours));
        assert_eq!(standing(Some(&here), hours(20), now), Some("its run goes on"));
        assert_eq!(standing(Some(&dead), hours(0), now), None);
        assert!(standing(Some(&elsewhere), hours(11), now).unwrap().contains("another host"));
        assert_eq!(standing(Some(&elsewhere), hours(13), now), None);
        assert!(standing(None, hours(1), now).unwrap().contains("nobody has signed"));
        assert!(standing(None, None, now).is_some(), "its age is not known");
        assert_eq!(standing(None, hours(13), now), None);
    }
}
