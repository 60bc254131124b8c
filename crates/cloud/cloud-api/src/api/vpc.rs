//! Requests and answers of the service `vpc`, version 2017-03-12. Written by the test `typed_api` from
//! the schema; change that instead.

use serde::{Deserialize, Serialize};

use super::Action;

impl Action for DescribeAddressesRequest {
    const SERVICE: &'static str = "vpc";
    const VERSION: &'static str = "2017-03-12";
    const NAME: &'static str = "DescribeAddresses";
    type Response = DescribeAddressesResponse;
}

impl Action for DescribeSecurityGroupPoliciesRequest {
    const SERVICE: &'static str = "vpc";
    const VERSION: &'static str = "2017-03-12";
    const NAME: &'static str = "DescribeSecurityGroupPolicies";
    type Response = DescribeSecurityGroupPoliciesResponse;
}

impl Action for DescribeSecurityGroupsRequest {
    const SERVICE: &'static str = "vpc";
    const VERSION: &'static str = "2017-03-12";
    const NAME: &'static str = "DescribeSecurityGroups";
    type Response = DescribeSecurityGroupsResponse;
}

impl Action for DescribeSubnetsRequest {
    const SERVICE: &'static str = "vpc";
    const VERSION: &'static str = "2017-03-12";
    const NAME: &'static str = "DescribeSubnets";
    type Response = DescribeSubnetsResponse;
}

impl Action for DescribeVpcsRequest {
    const SERVICE: &'static str = "vpc";
    const VERSION: &'static str = "2017-03-12";
    const NAME: &'static str = "DescribeVpcs";
    type Response = DescribeVpcsResponse;
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Address {
    pub address_id: Option<String>,
    pub address_name: Option<String>,
    pub address_status: Option<String>,
    pub address_ip: Option<String>,
    pub instance_id: Option<String>,
    pub created_time: Option<String>,
    pub network_interface_id: Option<String>,
    pub private_address_ip: Option<String>,
    pub is_arrears: Option<bool>,
    pub is_blocked: Option<bool>,
    pub is_eip_direct_connection: Option<bool>,
    pub address_type: Option<String>,
    pub cascade_release: Option<bool>,
    pub eip_alg_type: Option<AlgType>,
    pub internet_service_provider: Option<String>,
    pub local_bgp: Option<bool>,
    pub bandwidth: Option<u64>,
    pub internet_charge_type: Option<String>,
    pub tag_set: Option<Vec<Tag>>,
    pub deadline_date: Option<String>,
    pub instance_type: Option<String>,
    pub egress: Option<String>,
    pub anti_d_do_s_package_id: Option<String>,
    pub renew_flag: Option<String>,
    pub bandwidth_package_id: Option<String>,
    pub un_vpc_id: Option<String>,
    pub dedicated_cluster_id: Option<String>,
    pub eip_visible_on_eni: Option<bool>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct AddressTemplateSpecification {
    pub address_id: Option<String>,
    pub address_group_id: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct AlgType {
    pub ftp: Option<bool>,
    pub sip: Option<bool>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct AssistantCidr {
    pub vpc_id: Option<String>,
    pub cidr_block: Option<String>,
    pub assistant_type: Option<i64>,
    pub subnet_set: Option<Vec<Subnet>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DescribeAddressesRequest {
    pub address_ids: Option<Vec<String>>,
    pub filters: Option<Vec<Filter>>,
    pub offset: Option<i64>,
    pub limit: Option<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DescribeAddressesResponse {
    pub total_count: Option<i64>,
    pub address_set: Option<Vec<Address>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DescribeSecurityGroupPoliciesRequest {
    pub security_group_id: String,
    pub filters: Option<Vec<Filter>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DescribeSecurityGroupPoliciesResponse {
    pub security_group_policy_set: Option<SecurityGroupPolicySet>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DescribeSecurityGroupsRequest {
    pub security_group_ids: Option<Vec<String>>,
    pub filters: Option<Vec<Filter>>,
    pub offset: Option<String>,
    pub limit: Option<String>,
    pub order_field: Option<String>,
    pub order_direction: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DescribeSecurityGroupsResponse {
    pub security_group_set: Option<Vec<SecurityGroup>>,
    pub total_count: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DescribeSubnetsRequest {
    pub subnet_ids: Option<Vec<String>>,
    pub filters: Option<Vec<Filter>>,
    pub offset: Option<String>,
    pub limit: Option<String>,
    pub max_results: Option<u64>,
    pub next_token: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DescribeSubnetsResponse {
    pub total_count: Option<u64>,
    pub subnet_set: Option<Vec<Subnet>>,
    pub next_token: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DescribeVpcsRequest {
    pub vpc_ids: Option<Vec<String>>,
    pub filters: Option<Vec<Filter>>,
    pub offset: Option<String>,
    pub limit: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DescribeVpcsResponse {
    pub total_count: Option<u64>,
    pub vpc_set: Option<Vec<Vpc>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Filter {
    pub name: String,
    pub values: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ISPIPv6CidrBlock {
    #[serde(rename = "IPv6CidrBlock")]
    pub ipv6_cidr_block: Option<String>,
    #[serde(rename = "ISPType")]
    pub isp_type: Option<String>,
    pub address_type: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct PolicyStatistics {
    #[serde(rename = "IngressIPv4TotalCount")]
    pub ingress_ipv4_total_count: u64,
    #[serde(rename = "IngressIPv6TotalCount")]
    pub ingress_ipv6_total_count: u64,
    #[serde(rename = "EgressIPv4TotalCount")]
    pub egress_ipv4_total_count: u64,
    #[serde(rename = "EgressIPv6TotalCount")]
    pub egress_ipv6_total_count: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct SecurityGroup {
    pub security_group_id: String,
    pub security_group_name: String,
    pub security_group_desc: String,
    pub project_id: Option<String>,
    pub is_default: Option<bool>,
    pub created_time: Option<String>,
    pub tag_set: Option<Vec<Tag>>,
    pub update_time: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct SecurityGroupPolicy {
    pub policy_index: Option<i64>,
    pub protocol: Option<String>,
    pub port: Option<String>,
    pub service_template: Option<ServiceTemplateSpecification>,
    pub cidr_block: Option<String>,
    pub ipv6_cidr_block: Option<String>,
    pub security_group_id: Option<String>,
    pub address_template: Option<AddressTemplateSpecification>,
    pub action: Option<String>,
    pub policy_description: Option<String>,
    pub modify_time: Option<String>,
    pub priority: Option<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct SecurityGroupPolicySet {
    pub version: Option<String>,
    pub egress: Option<Vec<SecurityGroupPolicy>>,
    pub ingress: Option<Vec<SecurityGroupPolicy>>,
    pub policy_statistics: Option<PolicyStatistics>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ServiceTemplateSpecification {
    pub service_id: Option<String>,
    pub service_group_id: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Subnet {
    pub vpc_id: Option<String>,
    pub subnet_id: Option<String>,
    pub subnet_name: Option<String>,
    pub cidr_block: Option<String>,
    pub is_default: Option<bool>,
    pub enable_broadcast: Option<bool>,
    pub zone: Option<String>,
    pub route_table_id: Option<String>,
    pub created_time: Option<String>,
    pub available_ip_address_count: Option<u64>,
    pub ipv6_cidr_block: Option<String>,
    pub network_acl_id: Option<String>,
    pub is_remote_vpc_snat: Option<bool>,
    pub total_ip_address_count: Option<u64>,
    pub tag_set: Option<Vec<Tag>>,
    pub cdc_id: Option<String>,
    pub is_cdc_subnet: Option<i64>,
    pub stack_type: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Tag {
    pub key: String,
    pub value: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Vpc {
    pub vpc_name: Option<String>,
    pub vpc_id: Option<String>,
    pub cidr_block: Option<String>,
    pub is_default: Option<bool>,
    pub enable_multicast: Option<bool>,
    pub created_time: Option<String>,
    pub dns_server_set: Option<Vec<String>>,
    pub domain_name: Option<String>,
    pub dhcp_options_id: Option<String>,
    pub enable_dhcp: Option<bool>,
    pub ipv6_cidr_block: Option<String>,
    pub tag_set: Option<Vec<Tag>>,
    pub assistant_cidr_set: Option<Vec<AssistantCidr>>,
    pub enable_route_vpc_publish: Option<bool>,
    pub ipv6_cidr_block_set: Option<Vec<ISPIPv6CidrBlock>>,
    pub enable_route_vpc_publish_ipv6: Option<bool>,
    pub stack_type: Option<String>,
}
