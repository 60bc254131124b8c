//! cvm `DescribeInstances`.

use std::net::IpAddr;

use uturn_cloud_api::cvm::{
    DescribeInstancesRequest, DescribeInstancesResponse, Instance as Described, InternetAccessible,
    LoginSettings, Placement, SystemDisk, VirtualPrivateCloud,
};
use uturn_cloud_api::wire::error::{ApiError, ErrorCode};

use super::selection::{Rules, Selection, check_found};
use crate::actions::check;
use crate::actions::number::number_of;
use crate::actions::page::Page;
use crate::inventory::Instance;
use crate::state::{Context, Transaction};

/// The default project.
const PROJECT: i64 = 0;

/// The filters. Those for the creation time are left out, because no inventory has it. Filters for
/// other properties that the inventory lacks match nothing.
const FILTERS: Rules = Rules {
    filters: &[
        "zone",
        "project-id",
        "host-id",
        "dedicated-cluster-id",
        "vpc-id",
        "subnet-id",
        "instance-id",
        "uuid",
        "security-group-id",
        "instance-name",
        "instance-charge-type",
        "instance-state",
        "private-ip-address",
        "public-ip-address",
        "ipv6-address",
        "tag-key",
        "tag-value",
        "tag:",
    ],
    id_filter: "instance-id",
    // INF: clients ask for more addresses than the 5 values that are documented.
    max_values: 100,
    both: ErrorCode::InvalidParameterCombination,
    unknown: ErrorCode::InvalidFilter,
    too_many: ErrorCode::FilterValueLimitExceeded,
};

/// `DescribeInstances`: lists instances. An unknown id is an error, unless it is in a filter.
pub(in crate::actions) fn describe(
    transaction: &mut Transaction<'_>,
    request: &DescribeInstancesRequest,
) -> Result<DescribeInstancesResponse, ApiError> {
    let filters = request.filters.iter().flatten();
    let filters = filters.map(|filter| (&*filter.name, &*filter.values)).collect();
    let selection = Selection::of(request.instance_ids.as_ref(), filters, FILTERS)?;
    let page = page(request.offset, request.limit)?;
    let context = &transaction.context;
    let addresses: Option<Vec<IpAddr>> = selection
        .values("private-ip-address")
        .map(|values| values.iter().filter_map(|value| value.parse().ok()).collect());
    let inventory = context.inventory;
    let mut found = inventory.instances(context.region, selection.ids(), addresses.as_deref());
    for id in request.instance_ids.iter().flatten() {
        if !id.starts_with("ins-") {
            let message = format!("{id:?} is not an instance's id");
            return Err(ApiError::new(ErrorCode::InvalidInstanceIdMalformed, message));
        }
    }
    let is_there = |id: &str| found.iter().any(|instance| instance.id == id);
    let code = ErrorCode::InvalidInstanceIdNotFound;
    check_found(request.instance_ids.as_ref(), is_there, code)?;
    found.retain(|instance| selection.passes(|filter| values_of(filter, instance, context)));
    let total_count = i64::try_from(found.len()).ok();
    let described = page.take(found).into_iter().map(|instance| view(&instance, context));
    Ok(DescribeInstancesResponse { total_count, instance_set: Some(described.collect()) })
}

fn page(offset: Option<i64>, limit: Option<i64>) -> Result<Page, ApiError> {
    let offset_code = ErrorCode::InvalidParameterValueOffset;
    check::range("Offset", offset.unwrap_or(0), 0..=i64::MAX, offset_code)?;
    Page::of(offset, limit, ErrorCode::InvalidParameterValueLimit)
}

fn values_of(filter: &str, instance: &Instance, context: &Context<'_>) -> Vec<String> {
    match filter {
        "zone" => vec![zone(instance, context)],
        "project-id" => vec![PROJECT.to_string()],
        "vpc-id" => vec![instance.network.clone()],
        "subnet-id" => context.inventory.subnet_of(context.region, instance).into_iter().collect(),
        "instance-id" => vec![instance.id.clone()],
        "instance-name" => vec![instance.name.clone()],
        "instance-state" => vec!["RUNNING".to_owned()],
        "private-ip-address" => texts(&instance.private_addresses, false),
        "public-ip-address" => texts(&instance.public_addresses, false),
        "ipv6-address" => texts(&instance.private_addresses, true),
        _ => Vec::new(),
    }
}

fn texts(addresses: &[IpAddr], is_v6: bool) -> Vec<String> {
    let of_version = addresses.iter().filter(|address| address.is_ipv6() == is_v6);
    of_version.map(ToString::to_string).collect()
}

/// The creation time in answers, because no inventory has one.
const CREATED: &str = "2020-01-01T00:00:00Z";
/// The properties of every instance, because no inventory has them and clients do not check them
/// for `null`.
const TYPE: &str = "S5.MEDIUM4";
const CORES: i64 = 2;
const MEMORY: i64 = 4;
const SYSTEM: &str = "TencentOS Server 3.1 (TK4)";
const IMAGE: &str = "img-eb30mz89";
const CHARGE: &str = "POSTPAID_BY_HOUR";

/// Returns the zone that is stated, or the region's first one.
fn zone(instance: &Instance, context: &Context<'_>) -> String {
    instance.zone.clone().unwrap_or_else(|| format!("{}-1", context.region))
}

fn view(instance: &Instance, context: &Context<'_>) -> Described {
    let subnet = context.inventory.subnet_of(context.region, instance);
    let v6 = texts(&instance.private_addresses, true);
    Described {
        placement: Some(Placement {
            zone: zone(instance, context),
            project_id: Some(PROJECT),
            ..Placement::default()
        }),
        instance_id: Some(instance.id.clone()),
        instance_type: Some(TYPE.to_owned()),
        cpu: Some(CORES),
        memory: Some(MEMORY),
        restrict_state: Some("NORMAL".to_owned()),
        instance_charge_type: Some(CHARGE.to_owned()),
        system_disk: Some(SystemDisk::default()),
        data_disks: Some(Vec::new()),
        internet_accessible: Some(InternetAccessible {
            internet_max_bandwidth_out: Some(0),
            ..InternetAccessible::default()
        }),
        image_id: Some(IMAGE.to_owned()),
        created_time: Some(CREATED.to_owned()),
        os_name: Some(SYSTEM.to_owned()),
        login_settings: Some(LoginSettings::default()),
        stop_charging_mode: Some("NOT_APPLICABLE".to_owned()),
        uuid: Some(format!("{:x}", number_of(&instance.id, u64::MAX))),
        instance_name: Some(instance.name.clone()),
        private_ip_addresses: Some(texts(&instance.private_addresses, false)),
        public_ip_addresses: Some(texts(&instance.public_addresses, false)),
        virtual_private_cloud: Some(VirtualPrivateCloud {
            vpc_id: instance.network.clone(),
            subnet_id: subnet.unwrap_or_default(),
            as_vpc_gateway: Some(false),
            ..VirtualPrivateCloud::default()
        }),
        security_group_ids: Some(Vec::new()),
        instance_state: Some("RUNNING".to_owned()),
        tags: Some(Vec::new()),
        disaster_recover_group_id: Some(String::new()),
        cam_role_name: Some(String::new()),
        hpc_cluster_id: Some(String::new()),
        isolated_source: Some("NOTISOLATED".to_owned()),
        disable_api_termination: Some(false),
        ipv6_addresses: (!v6.is_empty()).then_some(v6),
        ..Described::default()
    }
}
