//! What the controllers would call, from what the API says now.

use std::io;

use uturn_cloud::client::{CallError, Client, ClientSettings};
use uturn_model::Cluster;

use crate::environment::Environment;
use crate::observed::observe;
use crate::plan::{Plan, plan, suppose};
use crate::rehearsal::{Request, requests};
use crate::run::RunError;
use crate::wanted::{self, OtherCloud};

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
    /// The cluster is another cloud's.
    #[error(transparent)]
    OtherCloud(#[from] OtherCloud),
    /// A call has no request.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// Asks the API what is there, and returns what would be called. Nothing is written. Where the
/// environment has no record of a load balancer, the controllers' listeners on ports that objects
/// want are taken for this cluster's.
///
/// # Errors
///
/// Returns why the API could not be asked.
pub fn dry_run(
    settings: ClientSettings,
    cluster: &Cluster,
    environment: &Environment,
) -> Result<DryRun, DryRunError> {
    let client = Client::new(settings)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut wanted = wanted::wanted(cluster, environment)?;
        let mut environment = environment.clone();
        let observed = observe(&client, &environment, &wanted).await?;
        if let Some(ledger) = suppose(&wanted, &observed, &environment) {
            environment.ledger = ledger;
            wanted = wanted::wanted(cluster, &environment)?;
        }
        let plan = plan(&wanted, &observed, &environment);
        let mut all = Vec::new();
        for balancer in &plan.balancers {
            all.push(requests(balancer).await?);
        }
        Ok(DryRun { plan, requests: all })
    })
}
