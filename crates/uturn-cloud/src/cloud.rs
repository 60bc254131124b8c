//! The cloud as a whole: takes a request as it was received and returns the body of its answer.
//!
//! A request passes these steps, and the first one that fails answers it: its size and method,
//! its signature, its action, its region, its parameters, and what the action does. A request
//! without a valid signature learns nothing else.

mod route;
mod work;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use ipnet::IpNet;
use jiff::Timestamp;
use serde_json::{Map, Value};
use tokio::sync::watch;

pub(crate) use self::route::MAX_BODY;
use self::route::Route;
pub use self::work::{FinishedTask, ServingTask, Work};
use crate::actions;
use crate::credentials::Credentials;
use crate::health::{HealthView, NoDataPlane};
use crate::ids::IdSource;
use crate::inventory::Inventory;
use crate::quotas::Quotas;
use crate::state::{Account, Changes, Context, Place, Transaction};
use crate::wire::authorization::{self, Received};
use crate::wire::envelope;
use crate::wire::error::{ApiError, ErrorCode};

/// Keeps records where they survive the process.
pub trait Storage: Send + Sync {
    /// Writes all of these changes or none of them, and returns when they are durable.
    ///
    /// # Errors
    ///
    /// Returns why they could not be written, for instance a full disk.
    fn commit(&self, place: &Place, changes: &Changes) -> Result<(), StorageError>;
}

/// Why records could not be written or read.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct StorageError(pub String);

/// How a cloud behaves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// How long a task takes; `None` for as long as the data plane needs.
    pub task_time: Option<Duration>,
    /// How much an account may have.
    pub quotas: Quotas,
    /// The range whose first address replaces clients' addresses in the data plane; `None` for
    /// the cloud's own.
    pub snat_range: Option<IpNet>,
}

/// The cloud.
pub struct Cloud {
    credentials: Credentials,
    inventory: Inventory,
    settings: Settings,
    storage: Box<dyn Storage>,
    health: Arc<dyn HealthView>,
    ids: IdSource,
    accounts: Mutex<HashMap<Place, Account>>,
    /// How many changes there were; it changes while `accounts` is locked.
    changes: watch::Sender<u64>,
}

impl fmt::Debug for Cloud {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Cloud").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Cloud {
    /// A cloud with these resources.
    pub fn new(
        credentials: Credentials,
        inventory: Inventory,
        settings: Settings,
        storage: Box<dyn Storage>,
        ids: IdSource,
        accounts: HashMap<Place, Account>,
    ) -> Self {
        let (health, accounts) = (Arc::new(NoDataPlane), Mutex::new(accounts));
        let changes = watch::Sender::new(1);
        Self { credentials, inventory, settings, storage, health, ids, accounts, changes }
    }

    /// The same, which asks this view how targets are.
    #[must_use]
    pub fn with_health(self, health: Arc<dyn HealthView>) -> Self {
        Self { health, ..self }
    }

    /// The id of a request that is refused before it is answered.
    pub(crate) fn new_request_id(&self) -> String {
        self.ids.request()
    }

    /// Answers a request.
    pub fn answer(&self, request: &Received<'_>, now: Timestamp) -> Vec<u8> {
        let request_id = self.ids.request();
        match self.perform(request, &request_id, now) {
            Ok(members) => envelope::success(members, &request_id),
            Err(error) => envelope::failure(&error, &request_id),
        }
    }

    fn perform(
        &self,
        request: &Received<'_>,
        request_id: &str,
        now: Timestamp,
    ) -> Result<Map<String, Value>, ApiError> {
        route::check_size(request)?;
        let caller = authorization::verify(request, &self.credentials, now)?;
        let route = Route::of(request, &caller)?;
        let region = route.region(request, &self.inventory)?;
        let parameters = route.parameters(request)?;

        let place = Place { account: caller.account, region: region.to_owned() };
        let mut accounts = self.accounts();
        let account = accounts.entry(place.clone()).or_default();
        let context = Context {
            now,
            request_id,
            region,
            inventory: &self.inventory,
            quotas: &self.settings.quotas,
            health: &*self.health,
            task_time: self.settings.task_time,
            ids: &self.ids,
        };
        let mut transaction = Transaction::new(account, context);
        let members =
            actions::perform(&mut transaction, &route.service.name, route.action, parameters)?;
        let changes = transaction.into_changes();
        if !changes.is_empty() {
            self.storage.commit(&place, &changes).map_err(|error| {
                let message = format!("the change could not be stored: {error}");
                ApiError::new(ErrorCode::InternalError, message)
            })?;
            for (key, record) in changes {
                account.apply(key, record);
            }
            self.changes.send_modify(|count| *count += 1);
        }
        Ok(members)
    }

    fn accounts(&self) -> MutexGuard<'_, HashMap<Place, Account>> {
        // A panic in an action leaves the accounts as they were: changes are applied at the end.
        self.accounts.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}
