//! Reads the file that `uturn lb run -f` takes: documents of the kinds LoadBalancer, DataPlane and
//! SecurityGroup. `docs/lb.md` describes every field, and a test compares it with this reader.
//!
//! ```yaml
//! apiVersion: uturn.dev/v1alpha1
//! kind: LoadBalancer
//! metadata: {name: web}
//! spec:
//!   vip: 10.0.0.100
//!   listeners:
//!   - port: 80
//!     protocol: HTTP              # TCP, UDP, TCP_SSL, HTTP, HTTPS
//!     rules:
//!     - host: shop.example.com    # left out: every host
//!       path: /                   # or {path: /, type: Exact}
//!       targets: ["10.0.0.11:30080", {address: "10.0.0.12:30080", weight: 20}]
//! ```
//!
//! The lab writes such documents too ([`write_load_balancers`]), from what a cluster's cloud makes
//! of its objects. They are marked as `derived`, and are not checked for what only people get
//! wrong: a rule without targets is the cluster's, and belongs in the lab.

mod across;
mod balancer;
mod change;
mod data_plane;
mod form;
mod listener;
mod probe;
mod profile;
mod rule;
mod settings;
mod target;
#[cfg(test)]
mod tests;
mod values;
mod wire;
mod write;

use std::cell::RefCell;

use uturn_document::{Fault, Faults, Source};
use uturn_lb::config::{Config, ProcessSettings};
use uturn_model::{LoadBalancer, Origin};

use crate::documents::{OURS as VERSION, each_document, each_item};

use across::Across;
use form::Form;

pub use across::RunningBalancer;
pub use change::read_lb_change;
pub use wire::LbFile;
pub use write::{write_lb_config, write_load_balancers};

/// Reads the configuration of a data plane.
///
/// # Errors
/// All faults of all sources: of each field, and of fields that do not go together.
pub fn read_lb_config(sources: Vec<Source>) -> Result<Config, Vec<Fault>> {
    read_all(sources, Across::default(), None)
}

/// Reads a new configuration for a running data plane, from a client of its admin address. The
/// admin address itself, its allowed callers and the access log stay as they are: only the file
/// changes them. Targets must be on other machines, unless the file allows others.
///
/// # Errors
/// Returns the same faults as [`read_lb_config`], and those of settings that only the file may
/// change.
pub fn read_lb_config_of_client(
    source: Source,
    running: &RunningBalancer<'_>,
) -> Result<Config, Vec<Fault>> {
    read_all(vec![source], Across::over_http(running), Some(&running.served.process))
}

/// Reads documents. `served` are the settings of the running process, if the documents come from a
/// client.
fn read_all(
    sources: Vec<Source>,
    mut across: Across,
    served: Option<&ProcessSettings>,
) -> Result<Config, Vec<Fault>> {
    let faults = RefCell::new(Faults::default());
    let mut config = Config::default();
    let names: Vec<_> = sources.iter().map(|source| source.name.clone()).collect();
    if let Some(served) = served {
        data_plane::keep(&mut config.process, served);
    }
    for source in sources {
        each_document(&source, false, &faults, &mut |doc| {
            each_item(doc, &mut |doc, version, kind| match (version, kind) {
                (VERSION, "LoadBalancer") => {
                    let form = Form::new(doc, balancer::is_derived(doc));
                    config.load_balancers.extend(balancer::read(&form, &mut across));
                }
                (VERSION, "DataPlane") => {
                    let form = Form::new(doc, false);
                    config.process = data_plane::read(&form, &mut across, served);
                }
                (VERSION, "SecurityGroup") => {
                    let form = Form::new(doc, false);
                    let group = data_plane::security_group(&form, &mut across);
                    config.security_groups.extend(group);
                }
                _ => {
                    let expected = "LoadBalancer, DataPlane or SecurityGroup";
                    let message = format!("expected {VERSION} {expected}, found {version} {kind}");
                    doc.fault(doc.root, message);
                }
            });
        });
    }
    let mut faults = faults.into_inner().into_vec();
    let is_empty = config.load_balancers.is_empty() && !across.has_data_plane();
    if let (true, true, Some(name)) =
        (is_empty && faults.is_empty(), served.is_some(), names.first())
    {
        faults.push(Fault::new(Origin::line_of(name.clone(), 1), "no LoadBalancer document"));
    }
    across.check_admin(&config);
    across.check(&mut faults);
    if faults.is_empty() { Ok(config) } else { Err(faults) }
}

/// Reads the load balancers of a source, without the settings that only a data plane needs.
///
/// # Errors
/// Returns the same faults as [`read_lb_config`].
pub fn read_load_balancers(source: Source) -> Result<Vec<LoadBalancer>, Vec<Fault>> {
    let config = read_lb_config(vec![source])?;
    Ok(config.load_balancers.into_iter().map(|served| served.load_balancer).collect())
}
