//! The parameters of a `CreateLoadBalancer` request after validation.

use std::net::IpAddr;

use uturn_cloud_api::clb::{CreateLoadBalancerRequest, InternetAccessible, SnatIp, TagInfo};
use uturn_cloud_api::wire::error::{ApiError, ErrorCode};

use crate::actions::check::{self, given, missing, parameter_error, value_error};
use crate::state::{Attributes, Context, IpVersion};

/// The most load balancers of a request.
const MAX_NUMBER: u64 = 20;
/// The most tags of a request.
const MAX_TAGS: usize = 20;
/// The bandwidth of a load balancer whose request names none.
const DEFAULT_BANDWIDTH: i64 = 10;
/// The charge type of traffic if a request names none.
const BY_TRAFFIC: &str = "TRAFFIC_POSTPAID_BY_HOUR";
/// The charge type of a bandwidth package.
const BY_PACKAGE: &str = "BANDWIDTH_PACKAGE";
/// The charge types of traffic.
pub(super) const CHARGE_TYPES: [&str; 4] =
    [BY_TRAFFIC, "BANDWIDTH_POSTPAID_BY_HOUR", BY_PACKAGE, "BANDWIDTH_PREPAID"];
/// The classes of capacity.
const SLA_TYPES: [&str; 8] = [
    "clb.c1.small",
    "clb.c2.medium",
    "clb.c3.small",
    "clb.c3.medium",
    "clb.c4.small",
    "clb.c4.medium",
    "clb.c4.large",
    "clb.c4.xlarge",
];

/// The validated parameters of a `CreateLoadBalancer` request.
#[derive(Clone, Debug)]
pub(super) struct Order {
    pub(super) number: usize,
    pub(super) name: Option<String>,
    pub(super) is_public: bool,
    pub(super) ip_version: IpVersion,
    pub(super) vpc: String,
    pub(super) subnet: Option<String>,
    pub(super) project: u64,
    pub(super) zone: Option<String>,
    pub(super) internet_charge_type: Option<String>,
    pub(super) bandwidth: Option<i64>,
    pub(super) charge_type: String,
    pub(super) vip_isp: Option<String>,
    pub(super) sla_type: Option<String>,
    pub(super) tags: Vec<TagInfo>,
    pub(super) vip: Option<IpAddr>,
    pub(super) snat_pro: bool,
    pub(super) snat_ips: Vec<SnatIp>,
    pub(super) passes_to_target: bool,
    pub(super) attributes: Attributes,
}

impl Order {
    /// Reads a request.
    ///
    /// # Errors
    ///
    /// Returns an error for the first rule that the parameters break.
    pub(super) fn of(
        request: &CreateLoadBalancerRequest,
        context: &Context<'_>,
    ) -> Result<Self, ApiError> {
        check_offered(request)?;
        check::choice("LoadBalancerType", &request.load_balancer_type, &["OPEN", "INTERNAL"])?;
        let is_public = request.load_balancer_type == "OPEN";
        let number = request.number.unwrap_or(1);
        if !(1..=MAX_NUMBER).contains(&number) {
            let message =
                format!("the parameter `Number` is {number}; 1 to {MAX_NUMBER} are allowed");
            return Err(ApiError::new(ErrorCode::ValueRange, message));
        }
        let name = given(request.load_balancer_name.as_ref()).filter(|_| number == 1);
        if let Some(name) = name {
            check::name("LoadBalancerName", name)?;
        }
        let ip_version = ip_version(request, is_public)?;
        let (vpc, subnet) = network(request, context, is_public, ip_version)?;
        let sla_type = given(request.sla_type.as_ref());
        if let Some(sla_type) = sla_type {
            check::choice("SlaType", sla_type, &SLA_TYPES)?;
        }
        let charge = InternetCharge::of(request, is_public, sla_type.is_some())?;
        let (zone, backup_zone) = zones(request, context, is_public, ip_version)?;
        let snat_ips = request.snat_ips.clone().unwrap_or_default();
        let snat_pro = request.snat_pro.unwrap_or(false);
        if !snat_ips.is_empty() && !snat_pro {
            return Err(parameter_error("the parameter `SnatIps` needs `SnatPro`"));
        }
        Ok(Self {
            number: usize::try_from(number).unwrap_or_default(),
            name: name.map(str::to_owned),
            is_public,
            ip_version,
            vpc,
            subnet,
            project: project(request.project_id)?,
            zone,
            internet_charge_type: charge.charge_type,
            bandwidth: charge.bandwidth,
            charge_type: charge_type(request)?,
            vip_isp: vip_isp(request, is_public)?,
            sla_type: sla_type.map(str::to_owned),
            tags: tags(request.tags.as_deref().unwrap_or_default())?,
            vip: vip(request, number, ip_version)?,
            snat_pro,
            snat_ips,
            passes_to_target: request.load_balancer_pass_to_target.unwrap_or(false),
            attributes: Attributes {
                has_domain: request.dynamic_vip.unwrap_or(false),
                prepaid: request.lb_charge_prepaid.clone(),
                bandwidth_package: charge.package,
                backup_zone,
                egress: request.egress.clone(),
                zone_affinity: request.available_zone_affinity_info.clone(),
                ..Attributes::default()
            },
        })
    }
}

/// Refuses parameters for features that this server does not have, instead of ignoring them.
fn check_offered(request: &CreateLoadBalancerRequest) -> Result<(), ApiError> {
    let asked = [
        ("ExclusiveCluster", request.exclusive_cluster.is_some()),
        ("ClusterIds", request.cluster_ids.as_ref().is_some_and(|ids| !ids.is_empty())),
        ("ClusterTag", given(request.cluster_tag.as_ref()).is_some()),
        ("EipAddressId", given(request.eip_address_id.as_ref()).is_some()),
        ("AccessLogTopicId", given(request.access_log_topic_id.as_ref()).is_some()),
        ("AdvancedRoute", request.advanced_route.unwrap_or(false)),
    ];
    if let Some((parameter, _)) = asked.into_iter().find(|(_, is_asked)| *is_asked) {
        let message = format!("this server does not offer the parameter `{parameter}`");
        return Err(ApiError::new(ErrorCode::UnsupportedOperation, message));
    }
    match request.forward {
        None | Some(1) => Ok(()),
        Some(other) => {
            Err(value_error(format!("the parameter `Forward` is {other}; only 1 can be created")))
        }
    }
}

fn ip_version(request: &CreateLoadBalancerRequest, is_public: bool) -> Result<IpVersion, ApiError> {
    let name = given(request.address_ip_version.as_ref()).unwrap_or("IPV4");
    let version = match name.to_ascii_lowercase().as_str() {
        "ipv4" => IpVersion::V4,
        "ipv6" => IpVersion::V6Translated,
        "ipv6fullchain" => IpVersion::V6,
        _ => {
            let parameter = "AddressIPVersion";
            return Err(check::choice(parameter, name, &["IPV4", "IPV6", "IPv6FullChain"])
                .expect_err("the names were compared without case"));
        }
    };
    if version != IpVersion::V4 && !is_public {
        return Err(value_error("only public load balancers have IPv6 addresses"));
    }
    Ok(version)
}

/// Returns the network and, for the kinds that need one, the subnet.
fn network(
    request: &CreateLoadBalancerRequest,
    context: &Context<'_>,
    is_public: bool,
    ip_version: IpVersion,
) -> Result<(String, Option<String>), ApiError> {
    let vpc = given(request.vpc_id.as_ref());
    let subnet = given(request.subnet_id.as_ref());
    if !is_public && vpc.is_none() {
        return Err(missing("VpcId"));
    }
    let needs_subnet = !is_public || ip_version == IpVersion::V6;
    match subnet {
        None if needs_subnet => return Err(missing("SubnetId")),
        Some(_) if !needs_subnet => {
            let message = "the parameter `SubnetId` is not for public load balancers whose \
                           targets have IPv4 addresses";
            return Err(parameter_error(message));
        }
        _ => {}
    }
    let network = context.inventory.network(context.region, vpc).ok_or_else(|| match vpc {
        Some(vpc) => value_error(format!("the network {vpc} does not exist")),
        None => missing("VpcId"),
    })?;
    if let Some(subnet) = subnet {
        let inventory = context.inventory;
        let of_subnet = inventory.network_of_subnet(context.region, subnet, Some(&network));
        if of_subnet.as_ref() != Some(&network) {
            return Err(value_error(format!("{network} has no subnet {subnet}")));
        }
    }
    Ok((network, subnet.map(str::to_owned)))
}

fn project(id: Option<i64>) -> Result<u64, ApiError> {
    u64::try_from(id.unwrap_or(0))
        .map_err(|_| value_error("the parameter `ProjectId` may not be negative"))
}

/// The charge type and bandwidth of traffic towards clients.
struct InternetCharge {
    charge_type: Option<String>,
    bandwidth: Option<i64>,
    package: Option<String>,
}

impl InternetCharge {
    fn of(
        request: &CreateLoadBalancerRequest,
        is_public: bool,
        has_sla: bool,
    ) -> Result<Self, ApiError> {
        let accessible = request.internet_accessible.as_ref();
        check_internet_charge(accessible, has_sla)?;
        let charge_type = accessible.and_then(|charge| given(charge.internet_charge_type.as_ref()));
        let package = given(request.bandwidth_package_id.as_ref());
        if package.is_some() && charge_type != Some(BY_PACKAGE) {
            let message = "the parameter `BandwidthPackageId` needs the internet charge type \
                           BANDWIDTH_PACKAGE";
            return Err(parameter_error(message));
        }
        if !is_public {
            let bandwidth = accessible.and_then(|charge| charge.internet_max_bandwidth_out);
            let bandwidth = bandwidth.filter(|_| has_sla);
            return Ok(Self { charge_type: None, bandwidth, package: None });
        }
        let bandwidth = accessible.and_then(|charge| charge.internet_max_bandwidth_out);
        Ok(Self {
            charge_type: Some(charge_type.unwrap_or(BY_TRAFFIC).to_owned()),
            bandwidth: Some(bandwidth.unwrap_or(DEFAULT_BANDWIDTH)),
            package: accessible.and_then(|charge| charge.bandwidthpkg_sub_type.clone()),
        })
    }
}

/// Refuses unknown charge types, and bandwidths beyond the class of the load balancer.
pub(super) fn check_internet_charge(
    charge: Option<&InternetAccessible>,
    has_sla: bool,
) -> Result<(), ApiError> {
    let Some(charge) = charge else { return Ok(()) };
    if let Some(charge_type) = given(charge.internet_charge_type.as_ref()) {
        check::choice("InternetChargeType", charge_type, &CHARGE_TYPES)?;
    }
    if let Some(bandwidth) = charge.internet_max_bandwidth_out {
        let max = if has_sla { 61_440 } else { 2048 };
        let code = ErrorCode::InvalidParameterValue;
        check::range("InternetMaxBandwidthOut", bandwidth, 1..=max, code)?;
    }
    Ok(())
}

/// Returns the zone and the backup zone. Both are for public IPv4 load balancers only.
fn zones(
    request: &CreateLoadBalancerRequest,
    context: &Context<'_>,
    is_public: bool,
    ip_version: IpVersion,
) -> Result<(Option<String>, Option<String>), ApiError> {
    let master = given(request.master_zone_id.as_ref());
    let slave = given(request.slave_zone_id.as_ref());
    let single = given(request.zone_id.as_ref());
    let zones = [("MasterZoneId", master), ("SlaveZoneId", slave), ("ZoneId", single)];
    for (parameter, zone) in zones {
        let Some(zone) = zone else { continue };
        if !is_public || ip_version != IpVersion::V4 {
            let message =
                format!("the parameter `{parameter}` is for public IPv4 load balancers only");
            return Err(parameter_error(message));
        }
        if !is_zone(zone, context.region) {
            let region = context.region;
            return Err(value_error(format!("{region} has no zone {zone} (`{parameter}`)")));
        }
    }
    match (master, slave, single) {
        (Some(_), _, Some(_)) => Err(parameter_error(
            "only one of the parameters `MasterZoneId` and `ZoneId` is allowed",
        )),
        (None, Some(_), _) => {
            Err(parameter_error("the parameter `SlaveZoneId` needs `MasterZoneId`"))
        }
        (Some(master), Some(slave), None) if master == slave => {
            Err(parameter_error("`MasterZoneId` and `SlaveZoneId` name the same zone"))
        }
        _ => Ok((master.or(single).map(str::to_owned), slave.map(str::to_owned))),
    }
}

/// Returns whether a text is a zone's number (`100003`) or its name (`ap-guangzhou-3`).
fn is_zone(text: &str, region: &str) -> bool {
    let number = text.strip_prefix(region).and_then(|rest| rest.strip_prefix('-')).unwrap_or(text);
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

fn charge_type(request: &CreateLoadBalancerRequest) -> Result<String, ApiError> {
    let charge_type = given(request.lb_charge_type.as_ref()).unwrap_or("POSTPAID_BY_HOUR");
    check::choice("LBChargeType", charge_type, &["POSTPAID_BY_HOUR", "PREPAID"])?;
    if charge_type == "PREPAID" {
        let period = request.lb_charge_prepaid.as_ref().and_then(|prepaid| prepaid.period);
        let period = period.ok_or_else(|| missing("LBChargePrepaid.Period"))?;
        check::range("LBChargePrepaid.Period", period, 1..=60, ErrorCode::InvalidParameterValue)?;
    }
    Ok(charge_type.to_owned())
}

fn vip_isp(
    request: &CreateLoadBalancerRequest,
    is_public: bool,
) -> Result<Option<String>, ApiError> {
    let Some(isp) = given(request.vip_isp.as_ref()) else {
        return Ok(is_public.then(|| "BGP".to_owned()));
    };
    if !is_public {
        return Err(parameter_error("the parameter `VipIsp` is for public load balancers only"));
    }
    check::choice("VipIsp", isp, &["BGP", "CMCC", "CUCC", "CTCC"])?;
    let charge = request.internet_accessible.as_ref();
    let charge_type = charge.and_then(|charge| given(charge.internet_charge_type.as_ref()));
    if isp != "BGP" && charge_type != Some(BY_PACKAGE) {
        let message = format!("addresses of {isp} need the internet charge type BANDWIDTH_PACKAGE");
        return Err(parameter_error(message));
    }
    Ok(Some(isp.to_owned()))
}

fn tags(tags: &[TagInfo]) -> Result<Vec<TagInfo>, ApiError> {
    check::count("Tags", tags, 0..=MAX_TAGS)?;
    for (position, tag) in tags.iter().enumerate() {
        check::length(&format!("Tags.{position}.TagKey"), &tag.tag_key, 1..=127)?;
        check::length(&format!("Tags.{position}.TagValue"), &tag.tag_value, 0..=255)?;
        if tags[..position].iter().any(|earlier| earlier.tag_key == tag.tag_key) {
            return Err(value_error(format!("the tag {} stands twice", tag.tag_key)));
        }
    }
    Ok(tags.to_vec())
}

fn vip(
    request: &CreateLoadBalancerRequest,
    number: u64,
    ip_version: IpVersion,
) -> Result<Option<IpAddr>, ApiError> {
    let Some(text) = given(request.vip.as_ref()) else { return Ok(None) };
    let address: IpAddr = text
        .parse()
        .map_err(|_| value_error(format!("the parameter `Vip` is {text:?}, not an address")))?;
    if number > 1 {
        return Err(parameter_error("the parameter `Vip` needs `Number` 1"));
    }
    match ip_version {
        IpVersion::V6Translated => {
            Err(parameter_error("the parameter `Vip` is not for load balancers that translate"))
        }
        _ if address.is_ipv6() != (ip_version == IpVersion::V6) => {
            Err(value_error(format!("{text} is not of the load balancer's IP version")))
        }
        _ => Ok(Some(address)),
    }
}
