//! A cluster that lives: the model, moved on by Tokio's clock.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::api::{self, Access};
use crate::options::{Options, OptionsError};
use crate::time::Time;
use crate::world::World;

/// A cluster. Its time is Tokio's: with a paused clock it goes as fast as the work allows, else with the wall's.
#[derive(Clone)]
pub struct Cluster {
    world: Arc<Mutex<World>>,
    began: Instant,
    /// Something may be due earlier than it was.
    sooner: Arc<Notify>,
}

impl Cluster {
    /// A cluster that begins now.
    pub fn new(options: Options) -> Result<Self, OptionsError> {
        Ok(Self {
            world: Arc::new(Mutex::new(World::new(options)?)),
            began: Instant::now(),
            sooner: Arc::new(Notify::new()),
        })
    }

    /// The model's moment.
    pub fn now(&self) -> Time {
        Time::after(self.began.elapsed())
    }

    /// Works on the model as it is now.
    pub fn with<T>(&self, work: impl FnOnce(&mut World) -> T) -> T {
        let mut world = self.locked();
        world.run(self.now());
        let done = work(&mut world);
        drop(world);
        self.sooner.notify_one();
        done
    }

    /// Moves the model on for as long as it is polled. Without it, time stands still between requests.
    pub async fn live(&self) {
        loop {
            let next = {
                let mut world = self.locked();
                world.run(self.now());
                world.next()
            };
            let sooner = self.sooner.notified();
            match next {
                Some(next) => {
                    tokio::select! {
                        biased;
                        () = sleep_until(self.began + next.since_start()) => {}
                        () = sooner => {}
                    }
                }
                None => sooner.await,
            }
        }
    }

    /// The API, as a service within the process: it knows no token.
    pub fn router(&self) -> Router {
        api::router(self)
    }

    /// Serves the API to those who know the token, until it is dropped.
    pub async fn serve(&self, listener: TcpListener, access: &Access) -> io::Result<()> {
        api::serve(self, listener, access).await
    }

    fn locked(&self) -> MutexGuard<'_, World> {
        // A panic while it was held is a bug that was told already; what the model holds is still the best there is.
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
