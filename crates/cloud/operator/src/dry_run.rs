//! The calls that the controllers would make in the API's current state.

use std::io;

use uturn_cloud_api::client::{CallError, Client, ClientSettings};
use uturn_model::Cluster;

use crate::environment::Environment;
use crate::observed::observe;
use crate::plan::{Plan, plan, suppose};
use crate::rehearsal::{Request, requests};
use crate::run::RunError;
use crate::wanted::{self, OtherCloud};

/// The result of a dry run.
#[derive(Clone, Debug, PartialEq)]
pub struct DryRun {
    /// The plan.
    pub plan: Plan,
    /// The requests for each of the plan's load balancers, one for each call.
    pub requests: Vec<Vec<Request>>,
}

/// The reason why a dry run failed.
#[derive(Debug, thiserror::Error)]
pub enum DryRunError {
    /// The async runtime cannot be set up.
    #[error("cannot start the async runtime: {0}")]
    Runtime(#[from] io::Error),
    /// The state of the load balancers could not be read.
    #[error("the API cannot be called: {0}")]
    Observe(#[from] CallError),
    /// The cluster is another cloud's.
    #[error(transparent)]
    OtherCloud(#[from] OtherCloud),
    /// A call has no request.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// Reads the state from the API, and returns the calls that would be made. Nothing is written. If
/// the environment has no record of a load balancer, the controllers' listeners on ports that
/// objects want are assumed to be this cluster's.
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
