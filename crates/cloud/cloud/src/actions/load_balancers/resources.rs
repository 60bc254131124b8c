//! `DescribeResources`: the zones in which load balancers can be created.

use uturn_cloud_api::clb::{
    DescribeResourcesRequest, DescribeResourcesResponse, Filter, Resource, ResourceAvailability,
    ZoneResource,
};
use uturn_cloud_api::wire::error::{ApiError, ErrorCode};

use crate::actions::filter;
use crate::actions::page::Page;
use crate::state::{Context, Transaction};

/// `DescribeResources`: lists the zones of the inventory, and whether they have public and private
/// addresses. An open inventory has one zone.
pub(in crate::actions) fn describe(
    transaction: &mut Transaction<'_>,
    request: &DescribeResourcesRequest,
) -> Result<DescribeResourcesResponse, ApiError> {
    let filters = request.filters.clone().unwrap_or_default();
    filter::check(&filters, &["master-zone", "ip-version", "isp"])?;
    let page = Page::of_unsigned(request.offset, request.limit, ErrorCode::ValueRange)?;
    let mut found = resources(&transaction.context);
    found.retain(|resource| filters.iter().all(|filter| passes(resource, filter)));
    let total_count = u64::try_from(found.len()).ok();
    Ok(DescribeResourcesResponse { zone_resource_set: Some(page.take(found)), total_count })
}

fn resources(context: &Context<'_>) -> Vec<ZoneResource> {
    let Context { inventory, region, .. } = context;
    let zones = inventory.zones(region);
    let has_public = |is_v6| inventory.public_address(region, is_v6, |_| false).is_some();
    let v4: &[&str] = if has_public(false) { &["BGP", "INTERNAL"] } else { &["INTERNAL"] };
    let v6: &[&str] = if has_public(true) { &["BGP"] } else { &[] };
    let versions = [("IPv4", v4), ("IPv6", v6), ("IPv6_Nat", v6)];
    let zones = zones.iter();
    zones
        .flat_map(|zone| {
            let versions = versions.iter().filter(|(_, isps)| !isps.is_empty());
            versions.map(|(version, isps)| zone_resource(zone, region, version, isps))
        })
        .collect()
}

fn zone_resource(zone: &str, region: &str, ip_version: &str, isps: &[&str]) -> ZoneResource {
    let resources = isps.iter().map(|&isp| Resource {
        r#type: Some(vec![isp.to_owned()]),
        isp: Some(isp.to_owned()),
        availability_set: Some(vec![ResourceAvailability {
            r#type: isp.to_owned(),
            availability: "Available".to_owned(),
        }]),
        type_set: Some(Vec::new()),
    });
    ZoneResource {
        master_zone: Some(zone.to_owned()),
        resource_set: Some(resources.collect()),
        slave_zone: None,
        ip_version: Some(ip_version.to_owned()),
        zone_region: Some(region.to_owned()),
        local_zone: Some(false),
        zone_resource_type: Some("SHARED".to_owned()),
        edge_zone: Some(false),
        egress: None,
    }
}

fn passes(resource: &ZoneResource, filter: &Filter) -> bool {
    let has = |value: Option<&String>| value.is_some_and(|value| filter.values.contains(value));
    match filter.name.as_str() {
        "master-zone" => has(resource.master_zone.as_ref()),
        "ip-version" => has(resource.ip_version.as_ref()),
        _ => resource.resource_set.iter().flatten().any(|known| has(known.isp.as_ref())),
    }
}
