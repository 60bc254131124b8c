//! `DescribeLoadBalancers`.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::net::IpAddr;

use uturn_cloud_api::clb::{
    DescribeLoadBalancersRequest, DescribeLoadBalancersResponse, Filter, LoadBalancer as Described,
};
use uturn_cloud_api::wire::error::{ApiError, ErrorCode};

use super::view;
use crate::actions::check::{self, given};
use crate::actions::filter;
use crate::actions::page::Page;
use crate::state::{Context, LoadBalancer, Target, TargetHolder, Transaction};

/// The most ids of a request.
const MAX_IDS: usize = 20;
/// The filters.
const FILTERS: [&str; 9] = [
    "charge-type",
    "internet-charge-type",
    "master-zone-id",
    "tag-key",
    "tag:",
    "function-name",
    "vip-isp",
    "sla-type",
    "exclusive",
];

/// `DescribeLoadBalancers`: lists load balancers. Unknown ids are left out without an error.
pub(in crate::actions) fn describe(
    transaction: &mut Transaction<'_>,
    request: &DescribeLoadBalancersRequest,
) -> Result<DescribeLoadBalancersResponse, ApiError> {
    check_request(request)?;
    let page = Page::of(request.offset, request.limit, ErrorCode::ValueRange)?;
    let mut found: Vec<&LoadBalancer> = candidates(transaction, request)
        .into_iter()
        .filter(|load_balancer| {
            matches(load_balancer, request, &transaction.context)
                && matches_targets(load_balancer, request, &transaction.context)
        })
        .collect();
    sort(&mut found, request, transaction.context.region);
    let total = u64::try_from(found.len()).ok();
    let mut fields = request.additional_fields.iter().flatten();
    let counts_targets = fields.any(|field| field == "TargetCount");
    let described = page.take(found).into_iter().map(|load_balancer| Described {
        target_count: counts_targets.then(|| load_balancer.targets().count() as u64),
        ..view::view(transaction, load_balancer)
    });
    let described = described.collect();
    Ok(DescribeLoadBalancersResponse { total_count: total, load_balancer_set: Some(described) })
}

/// Returns the load balancers that a request names, or all if it names none.
fn candidates<'t>(
    transaction: &'t Transaction<'_>,
    request: &DescribeLoadBalancersRequest,
) -> Vec<&'t LoadBalancer> {
    match request.load_balancer_ids.as_deref() {
        None | Some([]) => transaction.each_load_balancer().collect(),
        Some(ids) => {
            let ids: BTreeSet<&String> = ids.iter().collect();
            ids.into_iter().filter_map(|id| transaction.load_balancer(id)).collect()
        }
    }
}

fn check_request(request: &DescribeLoadBalancersRequest) -> Result<(), ApiError> {
    let ids = request.load_balancer_ids.as_deref().unwrap_or_default();
    check::count("LoadBalancerIds", ids, 0..=MAX_IDS)?;
    if let Some(kind) = given(request.load_balancer_type.as_ref()) {
        check::choice("LoadBalancerType", kind, &["OPEN", "INTERNAL"])?;
    }
    let code = ErrorCode::InvalidParameterValue;
    check::range("Forward", request.forward.unwrap_or(-1), -1..=1, code)?;
    check::range("WithRs", request.with_rs.unwrap_or(-1), -1..=1, code)?;
    check::range("OrderType", request.order_type.unwrap_or(1), 0..=1, code)?;
    if let Some(order_by) = given(request.order_by.as_ref()) {
        let fields = ["LoadBalancerName", "CreateTime", "Domain", "LoadBalancerType"];
        check::choice("OrderBy", order_by, &fields)?;
    }
    for field in request.additional_fields.as_deref().unwrap_or_default() {
        check::choice("AdditionalFields", field, &["TargetCount"])?;
    }
    filter::check(request.filters.as_deref().unwrap_or_default(), &FILTERS)
}

/// Returns whether a load balancer matches all criteria of the request except those on targets.
fn matches(
    load_balancer: &LoadBalancer,
    request: &DescribeLoadBalancersRequest,
    context: &Context<'_>,
) -> bool {
    let region = context.region;
    let domain = || view::domain(load_balancer, region);
    let of = |text: &Option<String>, holds: &dyn Fn(&str) -> bool| {
        given(text.as_ref()).is_none_or(holds)
    };
    let searched = || {
        let addresses = load_balancer.addresses.iter().map(ToString::to_string);
        let names = [load_balancer.name.clone(), load_balancer.id.clone(), domain()];
        names.into_iter().chain(addresses)
    };
    of(&request.load_balancer_type, &|kind| kind == view::type_of(load_balancer))
        && matches!(request.forward, None | Some(-1 | 1))
        && of(&request.load_balancer_name, &|part| load_balancer.name.contains(part))
        && of(&request.domain, &|part| domain().contains(part))
        && among(request.load_balancer_vips.as_ref(), |vip| {
            vip.parse().is_ok_and(|vip: IpAddr| load_balancer.addresses.contains(&vip))
        })
        && of(&request.search_key, &|part| searched().any(|text| text.contains(part)))
        && request.project_id.is_none_or(|id| u64::try_from(id) == Ok(load_balancer.project))
        && of(&request.vpc_id, &|vpc| load_balancer.vpc == vpc)
        && of(&request.security_group, &|group| {
            load_balancer.security_groups.iter().any(|known| known == group)
        })
        && of(&request.master_zone, &|zone| load_balancer.zone.as_deref() == Some(zone))
        && request.filters.iter().flatten().all(|filter| passes(load_balancer, filter))
}

/// Returns whether the list of wanted values is absent or empty, or contains one for which `holds`
/// is true.
fn among(wanted: Option<&Vec<String>>, holds: impl Fn(&String) -> bool) -> bool {
    wanted.is_none_or(|wanted| wanted.is_empty() || wanted.iter().any(holds))
}

fn passes(load_balancer: &LoadBalancer, filter: &Filter) -> bool {
    if let Some(passes) = filter::tags(filter, &load_balancer.tags) {
        return passes;
    }
    let value = match filter.name.as_str() {
        "charge-type" => Some(load_balancer.charge_type.as_str()),
        "internet-charge-type" => load_balancer.internet_charge_type.as_deref(),
        "master-zone-id" => load_balancer.zone.as_deref(),
        "vip-isp" if !load_balancer.is_public => Some("INTERNAL"),
        "vip-isp" => load_balancer.vip_isp.as_deref(),
        "sla-type" => load_balancer.sla_type.as_deref(),
        "exclusive" => Some("0"),
        // No load balancer has the functions that `function-name` filters by.
        _ => None,
    };
    value.is_some_and(|value| filter.values.iter().any(|wanted| wanted == value))
}

/// Returns whether a load balancer matches the request's criteria on targets.
fn matches_targets(
    load_balancer: &LoadBalancer,
    request: &DescribeLoadBalancersRequest,
    context: &Context<'_>,
) -> bool {
    let has_targets = || load_balancer.targets().next().is_some();
    let with_targets = match request.with_rs {
        Some(0) => !has_targets(),
        Some(1) => has_targets(),
        _ => true,
    };
    let has_address = |wanted: &Option<Vec<String>>, is_public: bool| {
        let Some(wanted) = wanted.as_ref().filter(|wanted| !wanted.is_empty()) else { return true };
        load_balancer.targets().any(|target| {
            let addresses = addresses_of(target, context, is_public);
            addresses.iter().any(|address| wanted.contains(&address.to_string()))
        })
    };
    with_targets
        && has_address(&request.backend_private_ips, false)
        && has_address(&request.backend_public_ips, true)
}

/// Returns the addresses of the instance or interface of a target.
pub(super) fn addresses_of(target: &Target, context: &Context<'_>, is_public: bool) -> Vec<IpAddr> {
    match &target.holder {
        TargetHolder::Interface(address) if !is_public => vec![*address],
        TargetHolder::Interface(_) => Vec::new(),
        TargetHolder::Instance(id) => {
            let instance = context.inventory.instance(context.region, id);
            instance.map_or_else(Vec::new, |instance| {
                if is_public {
                    instance.public_addresses.clone()
                } else {
                    instance.private_addresses.clone()
                }
            })
        }
    }
}

/// Sorts by the creation time, the latest first, unless the request asks for another order. Load
/// balancers that compare equal are sorted by their ids.
fn sort(found: &mut [&LoadBalancer], request: &DescribeLoadBalancersRequest, region: &str) {
    let order_by = given(request.order_by.as_ref()).unwrap_or("CreateTime");
    let is_descending = request.order_type.unwrap_or(1) == 1;
    found.sort_by(|first, second| {
        let order: Ordering = match order_by {
            "LoadBalancerName" => first.name.cmp(&second.name),
            "Domain" => view::domain(first, region).cmp(&view::domain(second, region)),
            "LoadBalancerType" => view::type_of(first).cmp(view::type_of(second)),
            _ => first.created.cmp(&second.created),
        };
        let order = if is_descending { order.reverse() } else { order };
        order.then_with(|| first.id.cmp(&second.id))
    });
}
