//! The cloud as a whole: takes a request as it was received and returns the body of its answer.
//!
//! A request passes these steps, and the first one that fails answers it: its size and method,
//! its signature, its action, its rate, its region, its parameters, and what the action does. A
//! request without a valid signature learns nothing else.

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
use uturn_model::lb::PathNormalization;

use self::accounts::SharedAccounts;
pub use self::first::FirstError;
use self::rate::Rates;
use self::replays::Replays;
pub(crate) use self::route::MAX_BODY;
use self::route::Route;
pub use self::work::{FinishedTask, ServingTask, Work};
use crate::actions;
use crate::credentials::Credentials;
use crate::health::{HealthView, NoDataPlane};
use crate::ids::IdSource;
use crate::inventory::Inventory;
use crate::quotas::Quotas;
use crate::refused_targets::RefusedTargets;
pub use crate::state::Batch;
use crate::state::{Accounts, Context, Place, Transaction};
use crate::wire::authorization::{self, Received, Signed};
use crate::wire::envelope;
use crate::wire::error::{ApiError, ErrorCode};

/// Keeps records where they survive the process.
pub trait Storage: Send + Sync {
    /// Writes all of these changes or none of them, and returns when they are durable.
    ///
    /// # Errors
    ///
    /// Returns why they could not be written, for instance a full disk.
    fn commit(&self, batch: &Batch) -> Result<(), StorageError>;
}

/// Why records could not be written or read.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct StorageError(pub String);

impl From<StorageError> for ApiError {
    fn from(error: StorageError) -> Self {
        let message = format!("the change could not be stored: {error}");
        Self::new(ErrorCode::InternalError, message)
    }
}

/// How a cloud behaves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// How long a task takes; `None` for as long as the data plane needs.
    pub task_time: Option<Duration>,
    /// How much an account may have.
    pub quotas: Quotas,
    /// How many requests a second an account may send of each action; `None` for any number.
    pub rate_limit: Option<NonZeroU32>,
    /// The range whose first address replaces clients' addresses in the data plane; `None` for
    /// the cloud's own.
    pub snat_range: Option<IpNet>,
    /// What data planes make of paths that have several forms.
    pub path_normalization: PathNormalization,
    /// Which targets are refused; none, unless this says so.
    pub refused_targets: RefusedTargets,
    /// Whether a write is refused whose signature was used before. A server does that; with a clock
    /// that stands, as tests have it, all equal requests have equal signatures.
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
    /// A cloud with these resources.
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

    /// The same, which asks this view how targets are.
    #[must_use]
    pub fn with_health(self, health: Arc<dyn HealthView>) -> Self {
        Self { health, ..self }
    }

    /// The id of a request that is refused before it is answered.
    pub(crate) fn new_request_id(&self) -> String {
        self.ids.request()
    }

    /// Refuses a request whose head shows that its signature cannot be valid, before its body is read.
    ///
    /// # Errors
    ///
    /// Returns the answer to it.
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

    /// Whether a request names a client token whose load balancers are there: it creates nothing.
    fn stands_for_what_is_there(&self, place: &Place, parameters: &Value) -> bool {
        let Some(token) = parameters["ClientToken"].as_str() else { return false };
        self.accounts.read(|accounts| {
            let Some(account) = accounts.get(place) else { return false };
            let created = account.client_tokens.get(token).into_iter().flatten();
            created.into_iter().any(|id| account.load_balancers.contains_key(id))
        })
    }
}

/// Refuses a signature that leaves out the action or the body.
fn check_cover(signed: &Signed) -> Result<(), ApiError> {
    let lacks = match (signed.covers_action, signed.covers_payload) {
        (true, true) => return Ok(()),
        (false, _) => "SignedHeaders has to name x-tc-action",
        (true, false) => "the body has to be signed",
    };
    let message = format!("{lacks}: this server demands that the action is signed");
    Err(ApiError::new(ErrorCode::InvalidAuthorization, message))
}
