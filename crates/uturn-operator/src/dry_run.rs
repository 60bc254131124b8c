//! What the controllers would call, from what the API says now.

use std::io;

use uturn_cloud::client::{CallError, Client, ClientSettings};

use crate::environment::Environment;
use crate::observed::observe;
use crate::plan::{Plan, plan};
use crate::rehearsal::{Request, requests};
use crate::run::RunError;
use crate::wanted::Wanted;

/// What the controllers would call.
#[derive(Clone, Debug, PartialEq)]
pub struct DryRun {
    /// The plan.
    pub plan: Plan,
    /// The requests for each of its load balancers, one for each call.
    pub requests: Vec<Vec<Request>>,
}

/// Why it is not known.
#[derive(Debug, thiserror::Error)]
pub enum DryRunError {
    /// This process cannot wait for answers.
    #[error("cannot wait for answers: {0}")]
    Runtime(#[from] io::Error),
    /// What is there could not be read.
    #[error("the API cannot be asked: {0}")]
    Observe(#[from] CallError),
    /// A call has no request.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// Asks the API what is there, and returns what would be called. Nothing is written.
///
/// # Errors
///
/// Returns why the API could not be asked.
pub fn dry_run(
    settings: ClientSettings,
    wanted: &Wanted,
    environment: &Environment,
) -> Result<DryRun, DryRunError> {
    let client = Client::new(settings)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let observed = observe(&client, environment, wanted).await?;
        let plan = plan(wanted, &observed, environment);
        let mut all = Vec::new();
        for balancer in &plan.balancers {
            all.push(requests(balancer).await?);
        }
        Ok(DryRun { plan, requests: all })
    })
}
