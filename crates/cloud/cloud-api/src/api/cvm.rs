//! Requests and answers of the service `cvm`, version 2017-03-12. Written by the test `typed_api` from
//! the schema; change that instead.

use serde::{Deserialize, Serialize};

use super::Action;

impl Action for DescribeInstancesRequest {
    const SERVICE: &'static str = "cvm";
    const VERSION: &'static str = "2017-03-12";
    const NAME: &'static str = "DescribeInstances";
    type Response = DescribeInstancesResponse;
}

impl Action for DescribeRegionsRequest {
    const SERVICE: &'static str = "cvm";
    const VERSION: &'static str = "2017-03-12";
    const NAME: &'static str = "DescribeRegions";
    type Response = DescribeRegionsResponse;
}

impl Action for DescribeZonesRequest {
    const SERVICE: &'static str = "cvm";
    const VERSION: &'static str = "2017-03-12";
    const NAME: &'static str = "DescribeZones";
    type Response = DescribeZonesResponse;
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct CpuTopology {
    pub core_count: Option<i64>,
    pub thread_per_core: Option<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DataDisk {
    pub disk_size: i64,
    pub disk_type: Option<String>,
    pub disk_id: Option<String>,
    pub delete_with_instance: Option<bool>,
    pub snapshot_id: Option<String>,
    pub encrypt: Option<bool>,
    pub kms_key_id: Option<String>,
    pub throughput_performance: Option<i64>,
    pub cdc_id: Option<String>,
    pub burst_performance: Option<bool>,
    pub disk_name: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DescribeInstancesRequest {
    pub instance_ids: Option<Vec<String>>,
    pub filters: Option<Vec<Filter>>,
    pub offset: Option<i64>,
    pub limit: Option<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DescribeInstancesResponse {
    pub total_count: Option<i64>,
    pub instance_set: Option<Vec<Instance>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DescribeRegionsRequest {}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DescribeRegionsResponse {
    pub total_count: Option<u64>,
    pub region_set: Option<Vec<RegionInfo>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DescribeZonesRequest {}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DescribeZonesResponse {
    pub total_count: Option<u64>,
    pub zone_set: Option<Vec<ZoneInfo>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Filter {
    pub name: String,
    pub values: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct GPUInfo {
    #[serde(rename = "GPUCount")]
    pub gpu_count: Option<f64>,
    #[serde(rename = "GPUId")]
    pub gpu_id: Option<Vec<String>>,
    #[serde(rename = "GPUType")]
    pub gpu_type: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Instance {
    pub placement: Option<Placement>,
    pub instance_id: Option<String>,
    pub instance_type: Option<String>,
    #[serde(rename = "CPU")]
    pub cpu: Option<i64>,
    pub memory: Option<i64>,
    pub restrict_state: Option<String>,
    pub instance_name: Option<String>,
    pub instance_charge_type: Option<String>,
    pub system_disk: Option<SystemDisk>,
    pub data_disks: Option<Vec<DataDisk>>,
    pub private_ip_addresses: Option<Vec<String>>,
    pub public_ip_addresses: Option<Vec<String>>,
    pub internet_accessible: Option<InternetAccessible>,
    pub virtual_private_cloud: Option<VirtualPrivateCloud>,
    pub image_id: Option<String>,
    pub renew_flag: Option<String>,
    pub created_time: Option<String>,
    pub expired_time: Option<String>,
    pub os_name: Option<String>,
    pub security_group_ids: Option<Vec<String>>,
    pub login_settings: Option<LoginSettings>,
    pub instance_state: Option<String>,
    pub tags: Option<Vec<Tag>>,
    pub stop_charging_mode: Option<String>,
    pub uuid: Option<String>,
    pub latest_operation: Option<String>,
    pub latest_operation_state: Option<String>,
    pub latest_operation_request_id: Option<String>,
    pub disaster_recover_group_id: Option<String>,
    #[serde(rename = "IPv6Addresses")]
    pub ipv6_addresses: Option<Vec<String>>,
    pub cam_role_name: Option<String>,
    pub hpc_cluster_id: Option<String>,
    pub rdma_ip_addresses: Option<Vec<String>>,
    pub dedicated_cluster_id: Option<String>,
    pub isolated_source: Option<String>,
    pub disaster_recover_group_ids: Option<Vec<String>>,
    #[serde(rename = "GPUInfo")]
    pub gpu_info: Option<GPUInfo>,
    pub license_type: Option<String>,
    pub disable_api_termination: Option<bool>,
    pub host_name: Option<String>,
    pub default_login_user: Option<String>,
    pub default_login_port: Option<i64>,
    pub latest_operation_error_msg: Option<String>,
    pub enable_jumbo_frame: Option<bool>,
    pub metadata: Option<Metadata>,
    #[serde(rename = "PublicIPv6Addresses")]
    pub public_ipv6_addresses: Option<Vec<String>>,
    pub cpu_topology: Option<CpuTopology>,
    pub partition_number: Option<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct InternetAccessible {
    pub internet_charge_type: Option<String>,
    pub internet_max_bandwidth_out: Option<i64>,
    pub public_ip_assigned: Option<bool>,
    pub bandwidth_package_id: Option<String>,
    pub internet_service_provider: Option<String>,
    #[serde(rename = "IPv4AddressType")]
    pub ipv4_address_type: Option<String>,
    #[serde(rename = "IPv6AddressType")]
    pub ipv6_address_type: Option<String>,
    pub anti_d_do_s_package_id: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct LoginSettings {
    pub password: Option<String>,
    pub key_ids: Option<Vec<String>>,
    pub keep_image_login: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Metadata {
    pub items: Vec<MetadataItem>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct MetadataItem {
    pub key: String,
    pub value: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Placement {
    pub zone: String,
    pub project_id: Option<i64>,
    pub host_ids: Option<Vec<String>>,
    pub host_id: Option<String>,
    pub dedicated_resource_pack_tenancy: Option<String>,
    pub dedicated_resource_pack_ids: Option<Vec<String>>,
    pub rack_id: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct RegionInfo {
    pub region: Option<String>,
    pub region_name: Option<String>,
    pub region_state: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct SystemDisk {
    pub disk_type: Option<String>,
    pub disk_id: Option<String>,
    pub disk_size: Option<i64>,
    pub cdc_id: Option<String>,
    pub disk_name: Option<String>,
    pub encrypt: Option<bool>,
    pub kms_key_id: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Tag {
    pub key: String,
    pub value: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct VirtualPrivateCloud {
    pub vpc_id: String,
    pub subnet_id: String,
    pub as_vpc_gateway: Option<bool>,
    pub private_ip_addresses: Option<Vec<String>>,
    pub ipv6_address_count: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ZoneInfo {
    pub zone: Option<String>,
    pub zone_name: Option<String>,
    pub zone_id: Option<String>,
    pub zone_state: Option<String>,
}
