//! cvm `DescribeRegions` and `DescribeZones`.

use uturn_cloud_api::cvm::{
    DescribeRegionsRequest, DescribeRegionsResponse, DescribeZonesRequest, DescribeZonesResponse,
    RegionInfo, ZoneInfo,
};
use uturn_cloud_api::wire::error::ApiError;

use crate::state::Transaction;

/// The state of regions and zones that can be used.
const AVAILABLE: &str = "AVAILABLE";
/// The known regions, with the number that their zones' numbers begin with.
const NUMBERS: [(&str, u64); 16] = [
    ("ap-guangzhou", 10),
    ("ap-shanghai", 20),
    ("ap-hongkong", 30),
    ("ap-beijing", 80),
    ("ap-singapore", 90),
    ("na-siliconvalley", 15),
    ("ap-chengdu", 16),
    ("eu-frankfurt", 17),
    ("ap-seoul", 18),
    ("ap-chongqing", 19),
    ("ap-mumbai", 21),
    ("na-ashburn", 22),
    ("ap-bangkok", 23),
    ("ap-tokyo", 25),
    ("ap-nanjing", 33),
    ("ap-jakarta", 72),
];

/// `DescribeRegions`: lists regions. For an open inventory, which has every region, lists the known
/// ones.
pub(in crate::actions) fn describe_regions(
    transaction: &mut Transaction<'_>,
    _: &DescribeRegionsRequest,
) -> Result<DescribeRegionsResponse, ApiError> {
    let known: Vec<&str> = NUMBERS.iter().map(|(name, _)| *name).collect();
    let names = transaction.context.inventory.region_names().unwrap_or(known);
    let regions = names.into_iter().map(|name| RegionInfo {
        region: Some(name.to_owned()),
        region_name: Some(name.to_owned()),
        region_state: Some(AVAILABLE.to_owned()),
    });
    let regions: Vec<RegionInfo> = regions.collect();
    let total_count = u64::try_from(regions.len()).ok();
    Ok(DescribeRegionsResponse { total_count, region_set: Some(regions) })
}

/// `DescribeZones`.
pub(in crate::actions) fn describe(
    transaction: &mut Transaction<'_>,
    _: &DescribeZonesRequest,
) -> Result<DescribeZonesResponse, ApiError> {
    let region = transaction.context.region;
    let zones = transaction.context.inventory.zones(region).into_iter().map(|zone| ZoneInfo {
        zone_id: number(region, &zone).map(|number| number.to_string()),
        zone_name: Some(zone.clone()),
        zone: Some(zone),
        zone_state: Some(AVAILABLE.to_owned()),
    });
    let zones: Vec<ZoneInfo> = zones.collect();
    let total_count = u64::try_from(zones.len()).ok();
    Ok(DescribeZonesResponse { total_count, zone_set: Some(zones) })
}

/// Returns the number of a zone, such as 100003 for `ap-guangzhou-3`; `None` in regions whose
/// numbers are not known.
fn number(region: &str, zone: &str) -> Option<u64> {
    let (_, number) = NUMBERS.iter().find(|(name, _)| *name == region)?;
    let position: u64 = zone.strip_prefix(region)?.strip_prefix('-')?.parse().ok()?;
    // Numbers have six digits.
    Some(number * 10_000 + position)
}
