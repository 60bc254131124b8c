//! vpc `DescribeVpcs` and `DescribeSubnets`.

use std::net::IpAddr;

use ipnet::IpNet;
use uturn_cloud_api::vpc::{
    DescribeSubnetsRequest, DescribeSubnetsResponse, DescribeVpcsRequest, DescribeVpcsResponse,
    Filter, Subnet as DescribedSubnet, Vpc,
};
use uturn_cloud_api::wire::error::{ApiError, ErrorCode};

use super::selection::{Rules, Selection, check_found};
use crate::actions::check::{self, given, value_error};
use crate::actions::page::Page;
use crate::inventory::{Network, Subnet};
use crate::state::Transaction;

/// The filters of networks.
const NETWORKS: Rules = rules(
    "vpc-id",
    &[
        "vpc-name",
        "is-default",
        "vpc-id",
        "cidr-block",
        "ipv6-cidr-block",
        "isp-type",
        "address-type",
        "tag-key",
        "tag:",
    ],
);
/// The filters of subnets.
const SUBNETS: Rules = rules(
    "subnet-id",
    &[
        "subnet-id",
        "vpc-id",
        "cidr-block",
        "ipv6-cidr-block",
        "is-default",
        "is-remote-vpc-snat",
        "subnet-name",
        "zone",
        "cdc-id",
        "is-cdc-subnet",
        "isp-type",
        "address-type",
        "tag-key",
        "tag:",
    ],
);

/// The creation time in answers, because no inventory has one.
pub(super) const CREATED: &str = "2020-01-01 00:00:00";

/// Returns the rules for lists of this service.
pub(super) const fn rules(id_filter: &'static str, filters: &'static [&'static str]) -> Rules {
    Rules {
        filters,
        id_filter,
        max_values: 100,
        both: ErrorCode::Coexist,
        unknown: ErrorCode::FilterInvalidKey,
        too_many: ErrorCode::ValueLimitExceeded,
    }
}

/// Reads the ids and the filters of a request.
pub(super) fn selection<'r>(
    ids: Option<&'r Vec<String>>,
    filters: Option<&'r Vec<Filter>>,
    rules: Rules,
) -> Result<Selection<'r>, ApiError> {
    let filters = filters.into_iter().flatten();
    let filters = filters.map(|filter| (&*filter.name, &*filter.values)).collect();
    Selection::of(ids, filters, rules)
}

/// Reads `Offset` and `Limit`, which are texts in this service.
pub(super) fn page(offset: Option<&String>, limit: Option<&String>) -> Result<Page, ApiError> {
    let number = |parameter: &str, text: Option<&String>| {
        let Some(text) = given(text) else { return Ok(None) };
        text.parse::<i64>().map(Some).map_err(|_| {
            value_error(format!("the parameter `{parameter}` is {text:?}, not a number"))
        })
    };
    let (offset, limit) = (number("Offset", offset)?, number("Limit", limit)?);
    Page::of(offset, limit, ErrorCode::ValueRange)
}

/// `DescribeVpcs`.
pub(in crate::actions) fn describe(
    transaction: &mut Transaction<'_>,
    request: &DescribeVpcsRequest,
) -> Result<DescribeVpcsResponse, ApiError> {
    let selection = selection(request.vpc_ids.as_ref(), request.filters.as_ref(), NETWORKS)?;
    let page = page(request.offset.as_ref(), request.limit.as_ref())?;
    let context = &transaction.context;
    let mut found = context.inventory.networks(context.region, selection.ids());
    let is_there = |id: &str| found.iter().any(|network| network.id == id);
    check_found(request.vpc_ids.as_ref(), is_there, ErrorCode::ResourceNotFound)?;
    let default = context.inventory.network(context.region, None);
    let is_default = |network: &Network| default.as_ref() == Some(&network.id);
    found.retain(|network| {
        selection.passes(|filter| match filter {
            "vpc-id" | "vpc-name" => vec![network.id.clone()],
            "is-default" => vec![is_default(network).to_string()],
            _ => of_range(filter, network.addresses),
        })
    });
    let total_count = u64::try_from(found.len()).ok();
    let described = page.take(found).into_iter().map(|network| {
        let (v4, v6) = ranges(network.addresses);
        Vpc {
            vpc_name: Some(network.id.clone()),
            vpc_id: Some(network.id.clone()),
            cidr_block: Some(v4),
            ipv6_cidr_block: Some(v6),
            is_default: Some(is_default(&network)),
            enable_multicast: Some(false),
            created_time: Some(CREATED.to_owned()),
            dns_server_set: Some(Vec::new()),
            domain_name: Some(String::new()),
            dhcp_options_id: Some(String::new()),
            enable_dhcp: Some(true),
            assistant_cidr_set: Some(Vec::new()),
            enable_route_vpc_publish: Some(false),
            tag_set: Some(Vec::new()),
            ..Vpc::default()
        }
    });
    Ok(DescribeVpcsResponse { total_count, vpc_set: Some(described.collect()) })
}

/// `DescribeSubnets`: lists subnets. `NextToken` is the position of the first subnet that was left
/// out.
pub(in crate::actions) fn describe_subnets(
    transaction: &mut Transaction<'_>,
    request: &DescribeSubnetsRequest,
) -> Result<DescribeSubnetsResponse, ApiError> {
    let selection = selection(request.subnet_ids.as_ref(), request.filters.as_ref(), SUBNETS)?;
    let (offset, size) = part(request)?;
    let context = &transaction.context;
    let network = selection.values("vpc-id").and_then(|ids| ids.first());
    let mut found =
        context.inventory.subnets(context.region, selection.ids(), network.map(String::as_str));
    let is_there = |id: &str| found.iter().any(|(_, subnet)| subnet.id == id);
    check_found(request.subnet_ids.as_ref(), is_there, ErrorCode::ResourceNotFound)?;
    found.retain(|(network, subnet)| {
        selection.passes(|filter| match filter {
            "subnet-id" | "subnet-name" => vec![subnet.id.clone()],
            "vpc-id" => vec![network.clone()],
            "is-default" | "is-remote-vpc-snat" => vec!["false".to_owned()],
            "is-cdc-subnet" => vec!["0".to_owned()],
            "zone" => subnet.zone.iter().cloned().collect(),
            _ => of_range(filter, subnet.addresses),
        })
    });
    let total = found.len();
    let in_use = transaction.addresses_in_use();
    let described = found.into_iter().skip(offset).take(size);
    let described = described.map(|(network, subnet)| {
        view(context.region, network, &subnet, &mut in_use.iter().copied())
    });
    let described: Vec<DescribedSubnet> = described.collect();
    let end = offset.saturating_add(described.len());
    let is_asked = request.max_results.is_some() || given(request.next_token.as_ref()).is_some();
    Ok(DescribeSubnetsResponse {
        total_count: u64::try_from(total).ok(),
        subnet_set: Some(described),
        next_token: (is_asked && end < total).then(|| end.to_string()),
    })
}

/// Returns the position of the first subnet and the number of subnets that a request asks for.
fn part(request: &DescribeSubnetsRequest) -> Result<(usize, usize), ApiError> {
    if let Some(size) = request.max_results {
        let size = i64::try_from(size).unwrap_or(i64::MAX);
        check::range("MaxResults", size, 1..=100, ErrorCode::ValueRange)?;
    }
    let text = |number: u64| number.to_string();
    let token = request.next_token.as_ref().filter(|token| !token.is_empty());
    let size = request.max_results.map(text);
    let page = page(token.or(request.offset.as_ref()), size.as_ref().or(request.limit.as_ref()))?;
    Ok(page.bounds())
}

fn view(
    region: &str,
    network: String,
    subnet: &Subnet,
    in_use: &mut dyn Iterator<Item = IpAddr>,
) -> DescribedSubnet {
    let (v4, v6) = ranges(subnet.addresses);
    let used = in_use.filter(|address| subnet.addresses.contains(address)).count();
    let total = match subnet.addresses {
        IpNet::V4(range) => Some(1_u64 << (32 - u32::from(range.prefix_len()))),
        IpNet::V6(_) => None,
    };
    // The addresses of the network, the broadcast and the router are not available.
    let total = total.map(|total| total.saturating_sub(3));
    let used = u64::try_from(used).unwrap_or(u64::MAX);
    DescribedSubnet {
        vpc_id: Some(network),
        subnet_id: Some(subnet.id.clone()),
        subnet_name: Some(subnet.id.clone()),
        cidr_block: Some(v4),
        ipv6_cidr_block: Some(v6),
        is_default: Some(false),
        enable_broadcast: Some(false),
        zone: Some(subnet.zone.clone().unwrap_or_else(|| format!("{region}-1"))),
        route_table_id: Some(String::new()),
        created_time: Some(CREATED.to_owned()),
        network_acl_id: Some(String::new()),
        is_remote_vpc_snat: Some(false),
        cdc_id: Some(String::new()),
        is_cdc_subnet: Some(0),
        total_ip_address_count: total,
        available_ip_address_count: total.map(|total| total.saturating_sub(used)),
        tag_set: Some(Vec::new()),
        ..DescribedSubnet::default()
    }
}

/// Returns the values of a range for a filter. The range also matches by its first address alone.
fn of_range(filter: &str, range: IpNet) -> Vec<String> {
    let texts = || vec![range.to_string(), range.network().to_string()];
    match (filter, range) {
        ("cidr-block", IpNet::V4(_)) | ("ipv6-cidr-block", IpNet::V6(_)) => texts(),
        ("address-type", IpNet::V6(range)) => {
            let is_local = range.network().is_unique_local();
            vec![if is_local { "ULA" } else { "GUA" }.to_owned()]
        }
        _ => Vec::new(),
    }
}

/// Returns a range as its IPv4 text and its IPv6 text, one of which is empty.
fn ranges(range: IpNet) -> (String, String) {
    match range {
        IpNet::V4(range) => (range.to_string(), String::new()),
        IpNet::V6(range) => (String::new(), range.to_string()),
    }
}
