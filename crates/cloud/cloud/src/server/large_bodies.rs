//! Turns for large bodies: only a limited number is read at a time, with a lower limit for one
//! network.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use uturn_cloud_api::wire::error::{ApiError, ErrorCode};

/// The most large bodies that are read at a time. Further ones wait.
const ALL: usize = 8;
/// The most large bodies that are read at a time from one network.
const OF_NETWORK: usize = 4;

/// The turns, for all networks and for each.
#[derive(Clone, Debug)]
pub(super) struct LargeBodies {
    all: Arc<Semaphore>,
    networks: Arc<Mutex<HashMap<IpAddr, Arc<Semaphore>>>>,
}

/// The permission to read a large body, until this is dropped.
#[derive(Debug)]
pub(super) struct Turn {
    permits: Option<(OwnedSemaphorePermit, OwnedSemaphorePermit)>,
    network: IpAddr,
    networks: Arc<Mutex<HashMap<IpAddr, Arc<Semaphore>>>>,
}

impl Default for LargeBodies {
    fn default() -> Self {
        Self { all: Arc::new(Semaphore::new(ALL)), networks: Arc::default() }
    }
}

impl LargeBodies {
    /// Waits for a turn to read a large body from a client of this network.
    ///
    /// # Errors
    ///
    /// Returns the error to answer with if the turn does not come within the limit.
    pub(super) async fn turn(&self, network: IpAddr, limit: Duration) -> Result<Turn, ApiError> {
        let of_network = {
            let mut networks = locked(&self.networks);
            let new = || Arc::new(Semaphore::new(OF_NETWORK));
            Arc::clone(networks.entry(network).or_insert_with(new))
        };
        let mut turn = Turn { permits: None, network, networks: Arc::clone(&self.networks) };
        let permits = async {
            // The network's turn comes first, so that a client that waits for it does not block
            // other networks.
            let own = of_network.acquire_owned().await.ok()?;
            Some((own, Arc::clone(&self.all).acquire_owned().await.ok()?))
        };
        match timeout(limit, permits).await {
            Ok(Some(permits)) => {
                turn.permits = Some(permits);
                Ok(turn)
            }
            _ => {
                let message = "too many large requests are being read; send it again later";
                Err(ApiError::new(ErrorCode::RequestLimitExceeded, message))
            }
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut networks = locked(&self.networks);
        drop(self.permits.take());
        // A client that still waits has its own reference.
        if networks.get(&self.network).is_some_and(|found| Arc::strong_count(found) == 1) {
            networks.remove(&self.network);
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code that panics runs while the mutex is locked.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);

    fn network(number: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, number])
    }

    #[tokio::test(start_paused = true)]
    async fn one_network_leaves_turns_to_others() {
        let bodies = LargeBodies::default();
        let mut own = Vec::new();
        for _ in 0..OF_NETWORK {
            own.push(bodies.turn(network(1), LIMIT).await.unwrap());
        }
        let refused = bodies.turn(network(1), LIMIT).await.unwrap_err();
        assert_eq!(refused.code, ErrorCode::RequestLimitExceeded);
        let other = bodies.turn(network(2), LIMIT).await.unwrap();
        own.pop();
        own.push(bodies.turn(network(1), LIMIT).await.unwrap());
        drop((own, other));
        assert!(locked(&bodies.networks).is_empty(), "networks that are gone are forgotten");
    }

    #[tokio::test(start_paused = true)]
    async fn all_networks_together_have_a_limit() {
        let bodies = LargeBodies::default();
        let mut turns = Vec::new();
        for number in 0..ALL {
            let number = u8::try_from(number).unwrap();
            turns.push(bodies.turn(network(number), LIMIT).await.unwrap());
        }
        assert!(bodies.turn(network(99), LIMIT).await.is_err());
        turns.pop();
        assert!(bodies.turn(network(99), LIMIT).await.is_ok());
    }
}
