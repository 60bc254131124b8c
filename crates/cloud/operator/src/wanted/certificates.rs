//! The certificates of listeners that terminate TLS. Their ids are in Secrets.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use uturn_clouds::cloud::Owner;
use uturn_clouds::cloud::tke::annotations::SPECIFY_PROTOCOL;
use uturn_model::{Cluster, Name, NamespacedName, ObjectRef, Port, Service};

use super::{Maker, owners};
use crate::clb::Certificate;
use crate::environment::{CertificateSecret, Environment};
use crate::event::Event;

/// The error for a missing certificate: a code and a message.
type Fault = (&'static str, String);

/// The certificates of a listener by the hosts that they are for.
#[derive(Clone, Debug, Default)]
pub(super) struct Certificates {
    /// Whether hosts have their own certificates.
    pub(super) sni: bool,
    default: Option<Result<Certificate, Fault>>,
    hosts: BTreeMap<String, Result<Certificate, Fault>>,
}

impl Certificates {
    /// Returns the certificates of an object's listener.
    pub(super) fn of(environment: &Environment, owner: Owner<'_>, port: Port) -> Self {
        let read = |secret: Option<&str>| read(environment, &owner.name().namespace, secret);
        let mut certificates = Self::default();
        match owner {
            Owner::Service(service) => {
                certificates.default =
                    service_secrets(service, Some(port)).first().map(|name| read(Some(name)));
            }
            Owner::Ingress(ingress) => {
                for tls in &ingress.tls {
                    let found = read(tls.secret.as_deref());
                    if tls.hosts.is_empty() {
                        certificates.default.get_or_insert(found);
                        continue;
                    }
                    certificates.sni = true;
                    for host in &tls.hosts {
                        certificates.hosts.entry(host.to_string()).or_insert(found.clone());
                    }
                }
            }
        }
        certificates
    }

    /// Returns the certificate for a host: its own, else that of a wildcard, else the default one.
    /// The empty host has the default one.
    ///
    /// # Errors
    ///
    /// Returns why there is no certificate.
    pub(super) fn of_host(&self, host: &str) -> Result<&Certificate, Fault> {
        let wildcard = || {
            let (_, rest) = host.split_once('.')?;
            self.hosts.get(&format!("*.{rest}"))
        };
        let found = self.hosts.get(host).or_else(wildcard).or(self.default.as_ref());
        match found {
            Some(found) => found.as_ref().map_err(Clone::clone),
            None if host.is_empty() => {
                Err(("E4009", "no Secret has a certificate for this listener".to_owned()))
            }
            None => Err(("E4040", format!("no certificate is for the host {host}"))),
        }
    }
}

fn read(
    environment: &Environment,
    namespace: &Name,
    secret: Option<&str>,
) -> Result<Certificate, Fault> {
    let Some(secret) = secret else {
        return Err(("E4009", "an entry of spec.tls names no Secret".to_owned()));
    };
    let name = secret.parse().map(|name| NamespacedName { namespace: namespace.clone(), name });
    match name.ok().and_then(|name| environment.secrets.get(&name)) {
        None => Err(("E4010", format!("there is no Secret {namespace}/{secret}"))),
        Some(CertificateSecret::WithoutId) => {
            Err(("E4011", format!("the Secret {namespace}/{secret} has no key qcloud_cert_id")))
        }
        Some(CertificateSecret::Certificate(certificate)) => Ok(certificate.clone()),
    }
}

/// Returns the Secrets that a Service names for all its ports, or for one of them: that of the
/// port, then those of its hosts.
fn service_secrets(service: &Service, port: Option<Port>) -> Vec<String> {
    let text = service.annotations.get(SPECIFY_PROTOCOL).unwrap_or_default();
    let stated: Value = serde_json::from_str(text).unwrap_or_default();
    let ports = stated.as_object().into_iter().flatten();
    let ports = ports.filter(|(name, _)| port.is_none_or(|port| port.to_string() == **name));
    let mut secrets = Vec::new();
    for (_, stated) in ports {
        let hosts = stated.get("hosts").and_then(Value::as_object).into_iter().flatten();
        let all = std::iter::once(stated).chain(hosts.map(|(_, host)| host));
        let named = all.filter_map(|value| value.get("tls")?.as_str());
        secrets.extend(named.map(str::to_owned));
    }
    secrets
}

/// Returns the Secrets that the controllers read: those that an object names for TLS.
pub fn secrets(cluster: &Cluster) -> BTreeSet<NamespacedName> {
    secrets_for(cluster, |_| true)
}

/// Returns the Secrets that some of a cluster's objects name for TLS.
pub fn secrets_for(
    cluster: &Cluster,
    is_meant: impl Fn(&ObjectRef) -> bool,
) -> BTreeSet<NamespacedName> {
    owners(cluster).filter(|owner| is_meant(&owner.object())).flat_map(named).collect()
}

/// Returns the Secrets that an object names for TLS.
fn named(owner: Owner<'_>) -> Vec<NamespacedName> {
    let names: Vec<String> = match owner {
        Owner::Service(service) => service_secrets(service, None),
        Owner::Ingress(ingress) => {
            let named = ingress.tls.iter().filter_map(|tls| tls.secret.as_deref());
            named.map(str::to_owned).collect()
        }
    };
    let names = names.into_iter().filter_map(|name| name.parse().ok());
    names.map(|name| NamespacedName { namespace: owner.name().namespace.clone(), name }).collect()
}

impl Maker<'_> {
    /// Returns whether the Secrets of an object can be read. Otherwise its listeners would seem to
    /// have no certificates.
    pub(super) fn is_readable(&mut self, owner: Owner<'_>) -> bool {
        let names = named(owner);
        let unreadable = names
            .iter()
            .find_map(|name| self.environment.unreadable.get(name).map(|why| (name, why)));
        let Some((name, why)) = unreadable else { return true };
        let message = format!("the Secret {name} cannot be read: {why}");
        self.events.push(Event::new(&owner.object(), "E5009", message));
        false
    }
}
