//! The load balancer of an object: its creation and its settings.

use serde_json::Value;
use uturn_cloud_api::clb::{CreateLoadBalancerRequest, TagInfo};
use uturn_clouds::cloud::Owner;
use uturn_clouds::cloud::tke::annotations as keys;
use uturn_model::{Family, Ingress};

use super::{Maker, OwnerNote, parameters};
use crate::clb::{BalancerSettings, SnatAddress};
use crate::tags::{CLUSTER, CREATED, CREATED_BY, INGRESS_UID, SERVICE_UID};

/// The longest name of a load balancer.
const MAX_NAME: usize = 80;
/// The longest client token.
const MAX_TOKEN: usize = 64;

/// Returns whether the object's controller is stopped.
pub(super) fn is_skipped(owner: Owner<'_>) -> bool {
    owner.annotations().is(of(owner, keys::MODE, keys::INGRESS_MODE), "skip")
}

/// Returns whether an Ingress shares its load balancer with others.
pub(super) fn is_grouped(ingress: &Ingress) -> bool {
    ingress.annotations.is(keys::GROUP, "true")
}

/// Returns the load balancer that an object uses, as its controller recorded it in an annotation.
pub(super) fn current(owner: Owner<'_>) -> Option<String> {
    let key = of(owner, keys::CURRENT, keys::INGRESS_CURRENT);
    owner.annotations().get(key).filter(|id| !id.is_empty()).map(str::to_owned)
}

/// Returns the settings of the load balancer in annotations.
pub(super) fn settings(owner: Owner<'_>) -> BalancerSettings {
    let written = owner.annotations();
    let passes = written.get(of(owner, keys::PASS_TO_TARGET, keys::INGRESS_PASS_TO_TARGET));
    let groups = written.get(of(owner, keys::SECURITY_GROUPS, keys::INGRESS_SECURITY_GROUPS));
    let group = |text: &str| {
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    };
    BalancerSettings {
        passes_to_target: passes.and_then(|text| text.parse().ok()),
        security_groups: groups.map(|text| text.split(',').filter_map(group).collect()),
        snat_addresses: snat_addresses(owner),
    }
}

/// Returns the addresses that replace clients' addresses, from the JSON
/// `{"snatIps":[{"subnetId":…}]}`.
fn snat_addresses(owner: Owner<'_>) -> Option<Vec<SnatAddress>> {
    let text =
        owner.annotations().get(of(owner, keys::SNAT_ADDRESSES, keys::INGRESS_SNAT_ADDRESSES))?;
    let stated: Value = serde_json::from_str(text).ok()?;
    let address = |stated: &Value| {
        let text = |key: &str| stated.get(key).and_then(Value::as_str).map(str::to_owned);
        Some(SnatAddress { subnet: text("subnetId")?, address: text("ip") })
    };
    stated.get("snatIps")?.as_array()?.iter().map(address).collect()
}

/// Returns whether the object's annotation with these addresses can be read, or is absent.
pub(super) fn has_readable_snat(owner: Owner<'_>) -> bool {
    let key = of(owner, keys::SNAT_ADDRESSES, keys::INGRESS_SNAT_ADDRESSES);
    owner.annotations().get(key).is_none() || snat_addresses(owner).is_some()
}

/// Returns the key for a Service or the one for an Ingress.
fn of<'k>(owner: Owner<'_>, service: &'k str, ingress: &'k str) -> &'k str {
    match owner {
        Owner::Service(_) => service,
        Owner::Ingress(_) => ingress,
    }
}

/// Returns the IP family of an object's load balancer.
pub(super) fn family(owner: Owner<'_>) -> Family {
    let Owner::Service(service) = owner else { return Family::V4 };
    let of_address = || service.cluster_ips.first().map(|ip| Family::of(*ip));
    service.families.first().copied().or_else(of_address).unwrap_or(Family::V4)
}

impl Maker<'_> {
    /// Returns the request that creates the load balancer of an object.
    ///
    /// # Errors
    ///
    /// Returns which part of the object's request cannot be created.
    pub(super) fn creation(
        &self,
        owner: Owner<'_>,
        note: &OwnerNote,
    ) -> Result<CreateLoadBalancerRequest, String> {
        if family(owner) == Family::V6 {
            return Err("load balancers with IPv6 addresses are not created: name an existing \
                        one"
            .to_owned());
        }
        let asked = self.model.request(owner);
        let subnet = asked.subnet.filter(|subnet| !subnet.is_empty());
        let name = owner.name();
        let mut name = format!("{}_{}_{}", self.environment.cluster, name.namespace, name.name);
        name.truncate(MAX_NAME);
        let mut token = note.uid.clone();
        token.truncate(MAX_TOKEN);
        let mut request = CreateLoadBalancerRequest {
            load_balancer_type: if subnet.is_some() { "INTERNAL" } else { "OPEN" }.to_owned(),
            load_balancer_name: Some(name),
            vpc_id: Some(self.environment.network.clone()).filter(|id| !id.is_empty()),
            subnet_id: subnet.map(|subnet| subnet.to_string()),
            client_token: Some(token),
            ..CreateLoadBalancerRequest::default()
        };
        let key = of(owner, keys::PARAMETERS, keys::INGRESS_PARAMETERS);
        if let Some(text) = owner.annotations().get(key) {
            request = parameters::add(request, text)
                .map_err(|error| format!("the annotation {key} cannot be used: {error}"))?;
        }
        request.tags.get_or_insert_default().extend(self.tags(note));
        Ok(request)
    }

    /// Returns the tags by which the controllers find their load balancers again.
    fn tags(&self, note: &OwnerNote) -> Vec<TagInfo> {
        let uid_key = if note.is_ingress { INGRESS_UID } else { SERVICE_UID };
        [(CREATED_BY, CREATED), (CLUSTER, &self.environment.cluster), (uid_key, &note.uid)]
            .map(|(key, value)| TagInfo { tag_key: key.to_owned(), tag_value: value.to_owned() })
            .to_vec()
    }
}
