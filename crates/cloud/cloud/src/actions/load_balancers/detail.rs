//! `DescribeLoadBalancersDetail`: returns a row for each load balancer, listener, rule or target,
//! depending on the members that a request asks for.

use serde_json::{Map, Value};
use uturn_cloud_api::clb::{
    DescribeLoadBalancersDetailRequest, DescribeLoadBalancersDetailResponse, Filter,
    LoadBalancerDetail,
};
use uturn_cloud_api::wire::error::{ApiError, ErrorCode};

use super::{describe, view};
use crate::actions::check::parameter_error;
use crate::actions::page::Page;
use crate::actions::{check, filter, time};
use crate::state::{Context, Listener, LoadBalancer, Rule, Target, TargetHolder, Transaction};

/// The filters.
const FILTERS: [&str; 10] = [
    "loadbalancer-id",
    "project-id",
    "network",
    "vip",
    "vpcid",
    "target-ip",
    "zone",
    "tag-key",
    "tag:",
    "fuzzy-search",
];
/// The members that only listeners, only rules and only targets have.
const OF_LISTENERS: [&str; 4] = ["ListenerId", "Protocol", "Port", "SniSwitch"];
const OF_RULES: [&str; 4] = ["LocationId", "Domain", "Domains", "Url"];
const OF_TARGETS: [&str; 5] =
    ["TargetId", "TargetAddress", "TargetPort", "TargetWeight", "TargetHealth"];
/// The members that every row has.
const ALWAYS: [&str; 2] = ["LoadBalancerId", "LoadBalancerName"];

/// The kind of object that a row describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Depth {
    LoadBalancer,
    Listener,
    Rule,
    Target,
}

/// `DescribeLoadBalancersDetail`.
pub(in crate::actions) fn describe(
    transaction: &mut Transaction<'_>,
    request: &DescribeLoadBalancersDetailRequest,
) -> Result<DescribeLoadBalancersDetailResponse, ApiError> {
    let filters = request.filters.clone().unwrap_or_default();
    filter::check(&filters, &FILTERS)?;
    let page = Page::of_unsigned(request.offset, request.limit, ErrorCode::ValueRange)?;
    let fields = request.fields.clone().unwrap_or_default();
    selected(&LoadBalancerDetail::default(), &fields)?;
    let depth = depth(&fields);
    let target_type = check::given(request.target_type.as_ref());
    if let Some(target_type) = target_type {
        check::choice("TargetType", target_type, &["NODE", "GROUP"])?;
    } else if depth > Depth::LoadBalancer {
        return Err(parameter_error("the parameter `TargetType` is needed with these `Fields`"));
    }
    let mut rows = Rows { depth, has_targets: target_type != Some("GROUP"), found: Vec::new() };
    for load_balancer in transaction.load_balancers().into_values() {
        if filters.iter().all(|filter| passes(load_balancer, filter, &transaction.context)) {
            rows.add(transaction, load_balancer);
        }
    }
    let total_count = u64::try_from(rows.found.len()).ok();
    let part = page.take(rows.found).into_iter().map(|row| selected(&row, &fields));
    let part = part.collect::<Result<_, ApiError>>()?;
    Ok(DescribeLoadBalancersDetailResponse { total_count, load_balancer_detail_set: Some(part) })
}

fn depth(fields: &[String]) -> Depth {
    let any_of = |names: &[&str]| fields.iter().any(|field| names.contains(&field.as_str()));
    if any_of(&OF_TARGETS) {
        Depth::Target
    } else if any_of(&OF_RULES) {
        Depth::Rule
    } else if any_of(&OF_LISTENERS) {
        Depth::Listener
    } else {
        Depth::LoadBalancer
    }
}

/// The rows that were found.
struct Rows {
    depth: Depth,
    has_targets: bool,
    found: Vec<LoadBalancerDetail>,
}

impl Rows {
    fn add(&mut self, transaction: &Transaction<'_>, load_balancer: &LoadBalancer) {
        let row = row_of(transaction, load_balancer);
        if self.depth == Depth::LoadBalancer || load_balancer.listeners.is_empty() {
            self.found.push(row);
            return;
        }
        for listener in &load_balancer.listeners {
            self.add_listener(&transaction.context, listener, with_listener(&row, listener));
        }
    }

    fn add_listener(
        &mut self,
        context: &Context<'_>,
        listener: &Listener,
        row: LoadBalancerDetail,
    ) {
        let groups = listener.groups();
        if self.depth == Depth::Listener || groups.is_empty() {
            self.found.push(row);
            return;
        }
        for group in groups {
            let row = match group.rule {
                Some(rule) => with_rule(&row, rule),
                None => row.clone(),
            };
            if self.depth == Depth::Rule || !self.has_targets || group.targets.is_empty() {
                self.found.push(row);
                continue;
            }
            let rows = group.targets.iter().map(|target| with_target(&row, target, context));
            self.found.extend(rows);
        }
    }
}

fn row_of(transaction: &Transaction<'_>, load_balancer: &LoadBalancer) -> LoadBalancerDetail {
    let is_v6 = view::ipv6(load_balancer).is_some();
    let v4 = load_balancer.addresses.iter().find(|address| address.is_ipv4());
    let isp = load_balancer.vip_isp.clone().filter(|_| load_balancer.is_public);
    let region = transaction.context.region;
    LoadBalancerDetail {
        load_balancer_id: Some(load_balancer.id.clone()),
        load_balancer_name: Some(load_balancer.name.clone()),
        load_balancer_type: Some(network_of(load_balancer).to_owned()),
        status: Some(view::status(transaction, load_balancer)),
        address: v4.map(ToString::to_string),
        address_ipv6: view::ipv6(load_balancer),
        address_ip_version: Some(if is_v6 { "IPv6" } else { "IPv4" }.to_owned()),
        ipv6_mode: view::ipv6_mode(load_balancer),
        zone: load_balancer.zone.clone(),
        address_isp: isp.or_else(|| Some("INTERNAL".to_owned())),
        vpc_id: Some(load_balancer.vpc.clone()),
        project_id: Some(load_balancer.project),
        create_time: Some(time::written(load_balancer.created)),
        charge_type: Some(load_balancer.charge_type.clone()),
        network_attributes: view::network_attributes(load_balancer),
        prepaid_attributes: load_balancer.attributes.prepaid.clone(),
        config_id: load_balancer.custom_config.clone(),
        tags: Some(load_balancer.tags.clone()),
        isolation: Some(0),
        security_group: Some(load_balancer.security_groups.clone()),
        load_balancer_pass_to_target: Some(u64::from(load_balancer.passes_to_target)),
        slave_zone: load_balancer.attributes.backup_zone.clone().map(|zone| vec![zone]),
        load_balancer_domain: Some(view::domain(load_balancer, region)),
        egress: load_balancer.attributes.egress.clone(),
        attribute_flags: Some(view::attribute_flags(transaction, load_balancer)),
        sla_type: load_balancer.sla_type.clone(),
        exclusive: Some(0),
        available_zone_affinity_info: load_balancer.attributes.zone_affinity.clone(),
        ..LoadBalancerDetail::default()
    }
}

/// Returns `Public` or `Private`.
fn network_of(load_balancer: &LoadBalancer) -> &'static str {
    if load_balancer.is_public { "Public" } else { "Private" }
}

fn with_listener(row: &LoadBalancerDetail, listener: &Listener) -> LoadBalancerDetail {
    LoadBalancerDetail {
        listener_id: Some(listener.id.clone()),
        protocol: Some(listener.protocol.as_str().to_owned()),
        port: Some(listener.port.into()),
        sni_switch: Some(listener.sni.into()),
        ..row.clone()
    }
}

fn with_rule(row: &LoadBalancerDetail, rule: &Rule) -> LoadBalancerDetail {
    LoadBalancerDetail {
        location_id: Some(rule.id.clone()),
        domain: rule.domains.first().cloned(),
        domains: Some(rule.domains.join(",")),
        url: Some(rule.url.clone()),
        ..row.clone()
    }
}

fn with_target(
    row: &LoadBalancerDetail,
    target: &Target,
    context: &Context<'_>,
) -> LoadBalancerDetail {
    let addresses = describe::addresses_of(target, context, false);
    let address = addresses.first().map(ToString::to_string);
    LoadBalancerDetail {
        target_id: match &target.holder {
            TargetHolder::Instance(id) => Some(id.clone()),
            TargetHolder::Interface(_) => address.clone(),
        },
        target_address: address,
        target_port: Some(target.port.into()),
        target_weight: Some(target.weight.into()),
        ..row.clone()
    }
}

fn passes(load_balancer: &LoadBalancer, filter: &Filter, context: &Context<'_>) -> bool {
    if let Some(passes) = filter::tags(filter, &load_balancer.tags) {
        return passes;
    }
    let values = &filter.values;
    let has = |value: &str| values.iter().any(|wanted| wanted == value);
    let addresses = || load_balancer.addresses.iter().map(ToString::to_string);
    match filter.name.as_str() {
        "loadbalancer-id" => has(&load_balancer.id),
        "project-id" => has(&load_balancer.project.to_string()),
        "network" => has(network_of(load_balancer)),
        "vip" => addresses().any(|address| has(&address)),
        "vpcid" => has(&load_balancer.vpc),
        "zone" => load_balancer.zone.as_ref().is_some_and(|zone| has(zone)),
        "target-ip" => load_balancer.targets().any(|target| {
            let addresses = describe::addresses_of(target, context, false);
            addresses.iter().any(|address| has(&address.to_string()))
        }),
        _ => {
            let texts = || addresses().chain([load_balancer.name.clone()]);
            values.iter().any(|part| texts().any(|text| text.contains(part.as_str())))
        }
    }
}

/// Returns the row with only the members that the request asks for, or with all if it names none.
fn selected(row: &LoadBalancerDetail, fields: &[String]) -> Result<LoadBalancerDetail, ApiError> {
    if fields.is_empty() {
        return Ok(row.clone());
    }
    let internal = |error: serde_json::Error| {
        ApiError::new(ErrorCode::InternalError, format!("a row could not be read: {error}"))
    };
    let members = serde_json::to_value(row).map_err(internal)?;
    let mut kept = Map::new();
    for field in fields.iter().map(String::as_str).chain(ALWAYS) {
        let value = members.get(field).ok_or_else(|| {
            check::value_error(format!("the parameter `Fields` has an unknown member {field:?}"))
        })?;
        kept.insert(field.to_owned(), value.clone());
    }
    serde_json::from_value(Value::Object(kept)).map_err(internal)
}
