//! The cloud as a whole: answers requests as they were received.
//!
//! A request passes these steps in order, and the first one that fails answers it: size and method,
//! signature, action, rate, region, parameters, and the action itself. The answer to a request
//! without a valid signature tells nothing else.

mod accounts;
mod first;
mod rate;
mod replays;
mod route;
mod work;

use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use jiff::Timestamp;
use serde_json::{Map, Value};
use uturn_cloud_api::wire::envelope;
use uturn_cloud_api::wire::error::{ApiError, ErrorCode};
use uturn_model::lb::PathNormalization;

use self::accounts::SharedAccounts;
pub use self::first::FirstError;
use self::rate::Rates;
use self::replays::Replays;
pub(crate) use self::route::MAX_BODY;
use self::route::Route;
pub use self::work::{FinishedTask, ServingTask, Work};
use crate::actions;
use crate::authorization::{self, Received, Signed};
use crate::credentials::Credentials;
use crate::health::{HealthView, NoDataPlane};
use crate::ids::IdSource;
use crate::inventory::Inventory;
use crate::quotas::Quotas;
use crate::refused_targets::RefusedTargets;
pub use crate::state::Batch;
use crate::state::{Accounts, Context, Place, Transaction};

/// Durable storage of records.
pub trait Storage: Send + Sync {
    /// Writes all of these changes or none of them, and returns when they are durable.
    ///
    /// # Errors
    ///
    /// Returns why they could not be written, for instance a full disk.
    fn commit(&self, batch: &Batch) -> Result<(), StorageError>;
}

/// The reason why records could not be written or read.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct StorageError(pub String);

impl From<StorageError> for ApiError {
    fn from(error: StorageError) -> Self {
        let message = format!("the change could not be stored: {error}");
        Self::new(ErrorCode::InternalError, message)
    }
}

/// The settings of a cloud.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The duration of a task; `None` for as long as the data plane needs.
    pub task_time: Option<Duration>,
    /// The most resources that an account may have.
    pub quotas: Quotas,
    /// The most requests per second of an account for each action; `None` for no limit.
    pub rate_limit: Option<NonZeroU32>,
    /// The range whose first address replaces clients' addresses in the data plane; `None` for
    /// the cloud's own.
    pub snat_range: Option<IpNet>,
    /// The way in which data planes normalize paths that have several forms.
    pub path_normalization: PathNormalization,
    /// The targets that are refused; none by default.
    pub refused_targets: RefusedTargets,
    /// Whether a write is refused if its signature was used before. Servers refuse it; tests with a
    /// fixed clock do not, because there all equal requests have equal signatures.
    pub refuses_replays: bool,
    /// Whether a signature has to cover the action and the body.
    pub demands_signed_action: bool,
}

/// The cloud.
pub struct Cloud {
    credentials: Credentials,
    inventory: Inventory,
    settings: Settings,
    storage: Box<dyn Storage>,
    health: Arc<dyn HealthView>,
    ids: IdSource,
    accounts: SharedAccounts,
    rates: Rates,
    replays: Option<Replays>,
}

impl fmt::Debug for Cloud {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Cloud").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Cloud {
    /// Returns a cloud with these resources.
    pub fn new(
        credentials: Credentials,
        inventory: Inventory,
        settings: Settings,
        storage: Box<dyn Storage>,
        ids: IdSource,
        accounts: Accounts,
    ) -> Self {
        let (health, accounts) = (Arc::new(NoDataPlane), SharedAccounts::new(accounts));
        let rates = Rates::new(settings.rate_limit);
        let replays = settings.refuses_replays.then(|| Replays::new(Timestamp::now()));
        Self { credentials, inventory, settings, storage, health, ids, accounts, rates, replays }
    }

    /// Returns the cloud with this view of the health of targets.
    #[must_use]
    pub fn with_health(self, health: Arc<dyn HealthView>) -> Self {
        Self { health, ..self }
    }

    /// Returns an id for a request that is refused before it is processed.
    pub(crate) fn new_request_id(&self) -> String {
        self.ids.request()
    }

    /// Refuses a request whose head shows that its signature cannot be valid, before its body is read.
    ///
    /// # Errors
    ///
    /// Returns the error to answer with.
    pub(crate) fn check_head(&self, head: &Received<'_>, now: Timestamp) -> Result<(), ApiError> {
        route::check_method(head)?;
        authorization::check_head(head, &self.credentials, now)
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
        if self.settings.demands_signed_action {
            check_cover(&caller.signed)?;
        }
        let route = Route::of(request, &caller)?;
        self.rates.count(&caller.account, &route, now)?;
        let region = route.region(request, &self.inventory)?;
        let parameters = route.parameters(request)?;

        let run = |accounts: &Accounts, parameters: Value| {
            let context = Context {
                now,
                request_id,
                account: &caller.account,
                region,
                inventory: &self.inventory,
                quotas: &self.settings.quotas,
                health: &*self.health,
                task_time: self.settings.task_time,
                refused_targets: &self.settings.refused_targets,
                ids: &self.ids,
            };
            let mut transaction = Transaction::new(accounts, context);
            let members =
                actions::perform(&mut transaction, &route.service.name, route.action, parameters)?;
            Ok((transaction.into_changes(), members))
        };
        let account = caller.account.as_str();
        if route.only_reads() {
            if let Some(replays) = &self.replays {
                replays.reads(account, &caller.signed, request, now);
            }
            let (batch, members) =
                self.accounts.read(|accounts| run(accounts, parameters.clone()))?;
            if batch.is_empty() {
                return Ok(members);
            }
        }
        let place = Place { account: account.to_owned(), region: region.to_owned() };
        let replays = self.replays.as_ref().filter(|_| !route.only_reads());
        let replays = replays.filter(|_| !self.stands_for_what_is_there(&place, &parameters));
        let admission = replays.map(|replays| replays.admit(account, &caller.signed, request, now));
        let admission = admission.transpose()?;
        let changed =
            self.accounts.change(Some(now), &*self.storage, |accounts| run(accounts, parameters));
        if let (Err(_), Some(admission)) = (&changed, admission) {
            admission.failed();
        }
        changed
    }

    /// Returns whether a request names a client token whose load balancers exist, so that it
    /// creates nothing.
    fn stands_for_what_is_there(&self, place: &Place, parameters: &Value) -> bool {
        let Some(token) = parameters["ClientToken"].as_str() else { return false };
        self.accounts.read(|accounts| {
            let Some(account) = accounts.get(place) else { return false };
            let created = account.client_tokens.get(token).into_iter().flatten();
            created.into_iter().any(|id| account.load_balancers.contains_key(id))
        })
    }
}

/// Refuses a signature that does not cover the action and the body.
fn check_cover(signed: &Signed) -> Result<(), ApiError> {
    let lacks = match (signed.covers_action, signed.covers_payload) {
        (true, true) => return Ok(()),
        (false, _) => "SignedHeaders has to name x-tc-action",
        (true, false) => "the body has to be signed",
    };
    let message = format!("{lacks}: this server demands that the action is signed");
    Err(ApiError::new(ErrorCode::InvalidAuthorization, message))
}
