//! Telling those who wait that there is something new.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

/// Where something new is told. Who waits is woken in the order in which he began to: Tokio's `watch` leaves that to chance (`BigNotify`), and a run
/// must happen again with its seed.
#[derive(Clone, Debug, Default)]
pub struct News(Arc<Told>);

#[derive(Debug, Default)]
struct Told {
    times: AtomicU64,
    waiting: Notify,
}

/// One who wants to know, and what he knows already.
#[derive(Clone, Debug)]
pub struct Listener {
    news: News,
    heard: u64,
}

impl News {
    /// Something is new.
    pub fn tell(&self) {
        self.0.times.fetch_add(1, Ordering::SeqCst);
        self.0.waiting.notify_waiters();
    }

    /// How often something was.
    pub fn times(&self) -> u64 {
        self.0.times.load(Ordering::SeqCst)
    }

    /// One who knows all that is old.
    pub fn listen(&self) -> Listener {
        Listener { news: self.clone(), heard: self.times() }
    }
}

impl Listener {
    /// How often something had been told when it was last listened.
    pub fn heard(&self) -> u64 {
        self.heard
    }

    /// What was told so far is old now.
    pub fn catch_up(&mut self) {
        self.heard = self.news.times();
    }

    /// Waits until there is something new.
    pub async fn next(&mut self) {
        loop {
            // Before the look: what is told after it is not missed.
            let told = self.news.0.waiting.notified();
            let times = self.news.times();
            if times != self.heard {
                self.heard = times;
                return;
            }
            told.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use tokio::task::{LocalSet, spawn_local, yield_now};

    use super::*;

    #[tokio::test]
    async fn who_waits_first_hears_first() {
        let news = News::default();
        news.tell();
        let heard = Rc::new(RefCell::new(Vec::new()));
        let listen = async {
            let all = (0..50).map(|name| {
                let (mut listener, heard) = (news.listen(), heard.clone());
                spawn_local(async move {
                    listener.next().await;
                    heard.borrow_mut().push(name);
                })
            });
            let all: Vec<_> = all.collect();
            yield_now().await;
            assert!(heard.borrow().is_empty(), "nothing is new");
            news.tell();
            for task in all {
                task.await.unwrap();
            }
        };
        LocalSet::new().run_until(listen).await;
        assert_eq!(*heard.borrow(), (0..50).collect::<Vec<_>>());
    }
}
