//! `uturn operator run --dry-run`: prints the calls for manifests.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;
use serde_json::Value;
use uturn_cli::{Failure, Output, Printer, Status, faulty, print, print_counts};
use uturn_cloud_api::client::Retries;
use uturn_clouds::cloud::tke::TKE;
use uturn_model::cluster::Provider;
use uturn_model::{Cluster, Known};
use uturn_operator::clb::Certificate;
use uturn_operator::dry_run::{DryRun, DryRunError, dry_run};
use uturn_operator::environment::{CertificateSecret, Environment};
use uturn_operator::wanted;
use uturn_snapshot::Identities;

use super::settings;
use crate::cli::OperatorRun;

/// The key of a Secret with the id of a certificate.
const CERTIFICATE_KEY: &str = "qcloud_cert_id";
/// The key of a Secret with the id of the authority of clients' certificates.
const AUTHORITY_KEY: &str = "qcloud_ca_cert_id";

/// The number of times that a request is repeated: a user waits for the answer.
const MAX_RETRIES: u32 = 3;

pub(super) fn show(args: &OperatorRun, printer: &Printer) -> Result<Status, Failure> {
    let retries = Retries { most: MAX_RETRIES, ..Retries::default() };
    let settings = settings(args, retries, printer)?;
    let (cluster, environment) = cluster(args, printer)?;
    let found = dry_run(settings, &cluster, &environment).map_err(|error| match error {
        DryRunError::OtherCloud(_) => {
            Failure::usage(format!("{error}: Facts can say so (provider: {TKE})"))
        }
        DryRunError::Run(_) => Failure::usage(error.to_string()),
        DryRunError::Runtime(_) | DryRunError::Observe(_) => {
            Failure::unavailable(error.to_string())
        }
    })?;
    print(
        printer,
        args.output,
        |_| text(&found, args.output == Output::Wide),
        || Printed::of(&found),
    );
    let is_done = found.plan.is_empty() && found.plan.events.is_empty();
    Ok(if is_done { Status::Clean } else { Status::Found })
}

/// Reads the cluster that the manifests describe, and the operator's environment.
fn cluster(args: &OperatorRun, printer: &Printer) -> Result<(Cluster, Environment), Failure> {
    let inputs = &args.inputs;
    if inputs.files.is_empty() && inputs.bundles.is_empty() {
        return Err(Failure::unavailable(
            "no manifests given: name them with -f PATH or --bundle PATH",
        ));
    }
    let (manifests, faults) = inputs.gather();
    let manifests = manifests.complete_if(inputs.complete);
    let loaded = uturn_snapshot::load_gathered(manifests.clone(), faults)
        .map_err(|faults| faulty(&faults))?;
    print_counts(&loaded, printer);
    let mut cluster = loaded.cluster;
    if cluster.provider.value.cloud().is_none() {
        // If no input names a cloud, the command does.
        cluster.provider = Known::derived(Provider::Cloud(TKE), "uturn operator");
    }
    let Identities { uids, secrets } = manifests.identities(&wanted::secrets(&cluster));
    let environment = Environment {
        cluster: args.cluster_id.clone(),
        network: args.network.clone(),
        uids,
        secrets: secrets.into_iter().map(|(name, held)| (name, certificate(&held))).collect(),
        shares: args.share_load_balancer.iter().cloned().collect(),
        ..Environment::default()
    };
    Ok((cluster, environment))
}

/// Returns the TLS data that a Secret holds.
fn certificate(held: &BTreeMap<String, String>) -> CertificateSecret {
    let id = |key: &str| held.get(key).map(|id| id.trim().to_owned()).filter(|id| !id.is_empty());
    match id(CERTIFICATE_KEY) {
        Some(server) => {
            CertificateSecret::Certificate(Certificate { server, authority: id(AUTHORITY_KEY) })
        }
        None => CertificateSecret::WithoutId,
    }
}

fn text(found: &DryRun, is_wide: bool) -> String {
    let mut text = String::new();
    for (balancer, requests) in found.plan.balancers.iter().zip(&found.requests) {
        for (line, request) in balancer.to_string().lines().zip(requests) {
            let _ = writeln!(text, "{line}");
            if is_wide {
                let _ = writeln!(text, "  {}", request.parameters);
            }
        }
    }
    for event in &found.plan.events {
        let _ = writeln!(text, "{event}");
    }
    let (calls, balancers) = (found.plan.len(), found.plan.balancers.len());
    let _ = match calls {
        0 => writeln!(text, "No API call is needed."),
        _ => {
            let (of_calls, of_balancers) = (plural(calls), plural(balancers));
            writeln!(text, "{calls} call{of_calls} on {balancers} load balancer{of_balancers}.")
        }
    };
    text
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// The JSON document that is printed.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Printed<'p> {
    load_balancers: Vec<PrintedBalancer<'p>>,
    events: Vec<PrintedEvent<'p>>,
}

#[derive(Serialize)]
struct PrintedBalancer<'p> {
    /// The id of the load balancer, or `null` if the first call creates it.
    id: Option<&'p str>,
    /// The objects that the load balancer serves.
    owners: Vec<String>,
    calls: Vec<PrintedCall<'p>>,
}

#[derive(Serialize)]
struct PrintedCall<'p> {
    action: &'static str,
    parameters: &'p Value,
}

#[derive(Serialize)]
struct PrintedEvent<'p> {
    object: String,
    code: &'static str,
    message: &'p str,
}

impl<'p> Printed<'p> {
    fn of(found: &'p DryRun) -> Self {
        let balancers = found.plan.balancers.iter().zip(&found.requests);
        let load_balancers = balancers.map(|(balancer, requests)| PrintedBalancer {
            id: balancer.id.as_deref(),
            owners: balancer.owners.iter().map(ToString::to_string).collect(),
            calls: requests
                .iter()
                .map(|request| PrintedCall {
                    action: request.action,
                    parameters: &request.parameters,
                })
                .collect(),
        });
        let events = found.plan.events.iter().map(|event| PrintedEvent {
            object: event.object.to_string(),
            code: event.code,
            message: &event.message,
        });
        Self { load_balancers: load_balancers.collect(), events: events.collect() }
    }
}
