//! Requests and answers of the service `clb`, version 2018-03-17. Written by the test `typed_api` from
//! the schema; change that instead.

use serde::{Deserialize, Serialize};

use super::Action;

impl Action for AutoRewriteRequest {
    const SERVICE: &'static str = "clb";
    const VERSION: &'static str = "2018-03-17";
    const NAME: &'static str = "AutoRewrite";
    type Response = AutoRewriteResponse;
}

impl Action for BatchDeregisterTargetsRequest {
    const SERVICE: &'static str = "clb";
    const VERSION: &'static str = "2018-03-17";
    const NAME: &'static str = "BatchDeregisterTargets";
    type Response = BatchDeregisterTargetsResponse;
}

impl Action for BatchModifyTargetTagRequest {
    const SERVICE: &'static str = "clb";
    const VERSION: &'static str = "2018-03-17";
    const NAME: &'static str = "BatchModifyTargetTag";
    type Response = BatchModifyTargetTagResponse;
}

impl Action for BatchModifyTargetWeightRequest {
    const SERVICE: &'static str = "clb";
    const VERSION: &'static str = "2018-03-17";
    const NAME: &'static str = "BatchModifyTargetWeight";
    type Response = BatchModifyTargetWeightResponse;
}

impl Action for BatchRegisterTargetsRequest {
    const SERVICE: &'static str = "clb";
    const VERSION: &'static str = "2018-03-17";
    const NAME: &'static str = "BatchRegisterTargets";
    type Response = BatchRegisterTargetsResponse;
}

impl Action for CreateListenerRequest {
    const SERVICE: &'static str = "clb";
    const VERSION: &'static str = "2018-03-17";
    const NAME: &'static str = "CreateListener";
    type Response = CreateListenerResponse;
}

impl Action for CreateLoadBalancerRequest {
    const SERVICE: &'static str = "clb";
    const VERSION: &'static str = "2018-03-17";
    const NAME: &'static str = "CreateLoadBalancer";
    type Response = CreateLoadBalancerResponse;
}

impl Action for CreateLoadBalancerSnatIpsRequest {
    const SERVICE: &'static str = "clb";
    const VERSION: &'static str = "2018-03-17";
    const NAME: &'static str = "CreateLoadBalancerSnatIps";
    type Response = CreateLoadBalancerSnatIpsResponse;
}

impl Action for CreateRuleRequest {
    const SERVICE: &'static str = "clb";
    const VERSION: &'static str = "2018-03-17";
    const NAME: &'static str = "CreateRule";
    type Response = CreateRuleResponse;
}

impl Action for DeleteListenerRequest {
    const SERVICE: &'static str = "clb";
    const VERSION: &'static str = "2018-03-17";
    const NAME: &'static str = "DeleteListener";
    type Response = DeleteListenerResponse;
}

impl Action for DeleteLoadBalancerRequest {
    const SERVICE: &'static str = "clb";
    const VERSION: &'static str = "2018-03-17";
    const NAME: &'static str = "DeleteLoadBalancer";
    type Response = DeleteLoadBalancerResponse;
}

impl Action for DeleteLoadBalancerListenersRequest {
    const SERVICE: &'static str = "clb";
    const VERSION: &'static str = "2018-03-17";
    const NAME: &'static str = "DeleteLoadBalancerListeners";
    type Response = DeleteLoadBalancerListenersResponse;
}

impl Action for DeleteLoadBalancerSnatIpsRequest {
    const SERVICE: &'static str = "clb";
    const VERSION: &'static str = "2018-03-17";
    const NAME: &'static str = "DeleteLoadBalancerSnatIps";
    type Response = DeleteLoadBalancerSnatIpsResponse;
}

impl Action for DeleteRewriteRequest {
    const SERVICE: &'static str = "clb";
    const VERSION: &'static str = "2018-03-17";
    const NAME: &'static str = "DeleteRewrite";
    type Response = DeleteRewriteResponse;
}

impl Action for DeleteRuleRequest {
    const SERVICE: &'static str = "clb";
    const VERSION: &'static str = "2018-03-17";
    const NAME: &'static str = "DeleteRule";
    type Response = DeleteRuleResponse;
}

impl Action for DeregisterTargetsRequest {
    const SERVICE: &'static str = "clb";
    const VERSION: &'static str = "2018-03-17";
    const NAME: &'static str = "DeregisterTargets";
    type Response = DeregisterTargetsResponse;
}

impl Action for DescribeClusterResourcesRequest {
    const SERVICE: &'static str = "clb";
    const VERSION: &'static str = "2018-03-17";
    const NAME: &'static str = "DescribeClusterResources";
    type Response = DescribeClusterResourcesResponse;
}

impl Action for DescribeCrossTargetsRequest {
    const SERVICE: &'static str = "clb";
    const VERSION: &'static str = "2018-03-17";
    const NAME: &'static str = "DescribeCrossTargets";
    type Response = DescribeCrossTargetsResponse;
}

impl Action for DescribeCustomizedConfigAssociateListRequest {
    const SERVICE: &'static str = "clb";
    const VERSION: &'static str = "2018-03-17";
    const NAME: &'static str = "DescribeCustomizedConfigAssociateList";
    type Response = DescribeCustomizedConfigAssociateListResponse;
}

impl Action for DescribeCustomizedConfigListRequest {
    const SERVICE: &'static str = "clb";
    const VERSION: &'static str = "2018-03-17";
    const NAME: &'static str = "DescribeCustomizedConfigList";
    type Response = DescribeCustomizedConfigListResponse;
}

impl Action for DescribeExclusiveClustersRequest {
    const SERVICE: &'static str = "clb";
    const VERSION: &'static str = "2018-03-17";
    const NAME: &'static str = "DescribeExclusiveClusters";
    type Response = DescribeExclusiveClustersResponse;
}

impl Action for DescribeLBListenersRequest {
    const SERVICE: &'static str = "clb";
    const VERSION: &'static str = "2018-03-17";
    const NAME: &'static str = "DescribeLBListeners";
    type Response = DescribeLBListenersResponse;
}

impl Action for DescribeLBOperateProtectRequest {
    const SERVICE: &'static str = "clb";
    const VERSION: &'static str = "2018-03-17";
    const NAME: &'static str = "DescribeLBOperateProtect";
    type Response = DescribeLBOperateProtectResponse;
}

impl Action for DescribeListenersRequest {
    const SERVICE: &'static str = "clb";
    const VERSION: &'static str = "2018-03-17";
    const NAME: &'static str = "DescribeListeners";
    type Response = DescribeListenersResponse;
}

impl Action for DescribeLoadBalancerListByCertIdRequest {
    const SERVICE: &'static str = "clb";
    const VERSION: &'static str = "2018-03-17";
    const NAME: &'static str = "DescribeLoadBalancerListByCertId";
    type Response = DescribeLoadBalancerListByCertIdResponse;
}

impl Action for DescribeLoadBalancersRequest {
    const SERVICE: &'static str = "clb";
    const VERSION: &'static str = "2018-03-17";
    const NAME: &'static str = "DescribeLoadBalancers";
    type Response = DescribeLoadBalancersResponse;
}

impl Action for DescribeLoadBalancersDetailRequest {
    const SERVICE: &'static str = "clb";
    const VERSION: &'static str = "2018-03-17";
    const NAME: &'static str = "DescribeLoadBalancersDetail";
    type Response = DescribeLoadBalancersDetailResponse;
}

impl Action for DescribeQuotaRequest {
    const SERVICE: &'static str = "clb";
    const VERSION: &'static str = "2018-03-17";
    const NAME: &'static str = "DescribeQuota";
    type Response = DescribeQuotaResponse;
}

impl Action for DescribeResourcesRequest {
    const SERVICE: &'static str = "clb";
    const VERSION: &'static str = "2018-03-17";
    const NAME: &'static str = "DescribeResources";
    type Response = DescribeResourcesResponse;
}

impl Action for DescribeRewriteRequest {
    const SERVICE: &'static str = "clb";
    const VERSION: &'static str = "2018-03-17";
    const NAME: &'static str = "DescribeRewrite";
    type Response = DescribeRewriteResponse;
}

impl Action for DescribeTargetGroupListRequest {
    const SERVICE: &'static str = "clb";
    const VERSION: &'static str = "2018-03-17";
    const NAME: &'static str = "DescribeTargetGroupList";
    type Response = DescribeTargetGroupListResponse;
}

impl Action for DescribeTargetGroupsRequest {
    const SERVICE: &'static str = "clb";
    const VERSION: &'static str = "2018-03-17";
    const NAME: &'static str = "DescribeTargetGroups";
    type Response = DescribeTargetGroupsResponse;
}

impl Action for DescribeTargetHealthRequest {
    const SERVICE: &'static str = "clb";
    const VERSION: &'static str = "2018-03-17";
    const NAME: &'static str = "DescribeTargetHealth";
    type Response = DescribeTargetHealthResponse;
}

impl Action for DescribeTargetsRequest {
    const SERVICE: &'static str = "clb";
    const VERSION: &'static str = "2018-03-17";
    const NAME: &'static str = "DescribeTargets";
    type Response = DescribeTargetsResponse;
}

impl Action for DescribeTaskStatusRequest {
    const SERVICE: &'static str = "clb";
    const VERSION: &'static str = "2018-03-17";
    const NAME: &'static str = "DescribeTaskStatus";
    type Response = DescribeTaskStatusResponse;
}

impl Action for ManualRewriteRequest {
    const SERVICE: &'static str = "clb";
    const VERSION: &'static str = "2018-03-17";
    const NAME: &'static str = "ManualRewrite";
    type Response = ManualRewriteResponse;
}

impl Action for ModifyDomainRequest {
    const SERVICE: &'static str = "clb";
    const VERSION: &'static str = "2018-03-17";
    const NAME: &'static str = "ModifyDomain";
    type Response = ModifyDomainResponse;
}

impl Action for ModifyDomainAttributesRequest {
    const SERVICE: &'static str = "clb";
    const VERSION: &'static str = "2018-03-17";
    const NAME: &'static str = "ModifyDomainAttributes";
    type Response = ModifyDomainAttributesResponse;
}

impl Action for ModifyListenerRequest {
    const SERVICE: &'static str = "clb";
    const VERSION: &'static str = "2018-03-17";
    const NAME: &'static str = "ModifyListener";
    type Response = ModifyListenerResponse;
}

impl Action for ModifyLoadBalancerAttributesRequest {
    const SERVICE: &'static str = "clb";
    const VERSION: &'static str = "2018-03-17";
    const NAME: &'static str = "ModifyLoadBalancerAttributes";
    type Response = ModifyLoadBalancerAttributesResponse;
}

impl Action for ModifyLoadBalancersProjectRequest {
    const SERVICE: &'static str = "clb";
    const VERSION: &'static str = "2018-03-17";
    const NAME: &'static str = "ModifyLoadBalancersProject";
    type Response = ModifyLoadBalancersProjectResponse;
}

impl Action for ModifyRuleRequest {
    const SERVICE: &'static str = "clb";
    const VERSION: &'static str = "2018-03-17";
    const NAME: &'static str = "ModifyRule";
    type Response = ModifyRuleResponse;
}

impl Action for ModifyTargetPortRequest {
    const SERVICE: &'static str = "clb";
    const VERSION: &'static str = "2018-03-17";
    const NAME: &'static str = "ModifyTargetPort";
    type Response = ModifyTargetPortResponse;
}

impl Action for ModifyTargetWeightRequest {
    const SERVICE: &'static str = "clb";
    const VERSION: &'static str = "2018-03-17";
    const NAME: &'static str = "ModifyTargetWeight";
    type Response = ModifyTargetWeightResponse;
}

impl Action for RegisterTargetsRequest {
    const SERVICE: &'static str = "clb";
    const VERSION: &'static str = "2018-03-17";
    const NAME: &'static str = "RegisterTargets";
    type Response = RegisterTargetsResponse;
}

impl Action for ReplaceCertForLoadBalancersRequest {
    const SERVICE: &'static str = "clb";
    const VERSION: &'static str = "2018-03-17";
    const NAME: &'static str = "ReplaceCertForLoadBalancers";
    type Response = ReplaceCertForLoadBalancersResponse;
}

impl Action for SetCustomizedConfigForLoadBalancerRequest {
    const SERVICE: &'static str = "clb";
    const VERSION: &'static str = "2018-03-17";
    const NAME: &'static str = "SetCustomizedConfigForLoadBalancer";
    type Response = SetCustomizedConfigForLoadBalancerResponse;
}

impl Action for SetLoadBalancerSecurityGroupsRequest {
    const SERVICE: &'static str = "clb";
    const VERSION: &'static str = "2018-03-17";
    const NAME: &'static str = "SetLoadBalancerSecurityGroups";
    type Response = SetLoadBalancerSecurityGroupsResponse;
}

impl Action for SetLoadBalancerStartStatusRequest {
    const SERVICE: &'static str = "clb";
    const VERSION: &'static str = "2018-03-17";
    const NAME: &'static str = "SetLoadBalancerStartStatus";
    type Response = SetLoadBalancerStartStatusResponse;
}

impl Action for SetSecurityGroupForLoadbalancersRequest {
    const SERVICE: &'static str = "clb";
    const VERSION: &'static str = "2018-03-17";
    const NAME: &'static str = "SetSecurityGroupForLoadbalancers";
    type Response = SetSecurityGroupForLoadbalancersResponse;
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct AssociationItem {
    pub load_balancer_id: Option<String>,
    pub listener_id: Option<String>,
    pub location_id: Option<String>,
    pub protocol: Option<String>,
    pub port: Option<u64>,
    pub domain: Option<String>,
    pub url: Option<String>,
    pub load_balancer_name: Option<String>,
    pub listener_name: Option<String>,
    pub weight: Option<u64>,
    pub rule_id: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct AutoRewriteRequest {
    pub load_balancer_id: String,
    pub listener_id: String,
    pub domains: Option<Vec<String>>,
    pub rewrite_codes: Option<Vec<i64>>,
    pub take_urls: Option<Vec<bool>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct AutoRewriteResponse {}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct AvailableZoneAffinityInfo {
    pub enable: Option<bool>,
    pub exit_ratio: Option<u64>,
    pub reentry_ratio: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Backend {
    pub r#type: Option<String>,
    pub instance_id: Option<String>,
    pub port: Option<i64>,
    pub weight: Option<i64>,
    pub public_ip_addresses: Option<Vec<String>>,
    pub private_ip_addresses: Option<Vec<String>>,
    pub instance_name: Option<String>,
    pub registered_time: Option<String>,
    pub eni_id: Option<String>,
    pub tag: Option<String>,
    pub zone: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct BasicTargetGroupInfo {
    pub target_group_id: Option<String>,
    pub target_group_name: Option<String>,
    pub weight: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct BatchDeregisterTargetsRequest {
    pub load_balancer_id: String,
    pub targets: Vec<BatchTarget>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct BatchDeregisterTargetsResponse {
    pub fail_listener_id_set: Option<Vec<String>>,
    pub message: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct BatchModifyTargetTagRequest {
    pub load_balancer_id: String,
    pub modify_list: Vec<RsTagRule>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct BatchModifyTargetTagResponse {}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct BatchModifyTargetWeightRequest {
    pub load_balancer_id: String,
    pub modify_list: Vec<RsWeightRule>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct BatchModifyTargetWeightResponse {}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct BatchRegisterTargetsRequest {
    pub load_balancer_id: String,
    pub targets: Vec<BatchTarget>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct BatchRegisterTargetsResponse {
    pub fail_listener_id_set: Option<Vec<String>>,
    pub message: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct BatchTarget {
    pub listener_id: String,
    pub port: i64,
    pub instance_id: Option<String>,
    pub eni_ip: Option<String>,
    pub weight: Option<i64>,
    pub location_id: Option<String>,
    pub tag: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct BindDetailItem {
    pub load_balancer_id: Option<String>,
    pub listener_id: Option<String>,
    pub domain: Option<String>,
    pub location_id: Option<String>,
    pub listener_name: Option<String>,
    pub protocol: Option<String>,
    pub vport: Option<i64>,
    pub url: Option<String>,
    pub uconfig_id: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct CertIdRelatedWithLoadBalancers {
    pub cert_id: Option<String>,
    pub load_balancers: Option<Vec<LoadBalancer>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct CertInfo {
    pub cert_id: Option<String>,
    pub cert_name: Option<String>,
    pub cert_content: Option<String>,
    pub cert_key: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct CertificateInput {
    #[serde(rename = "SSLMode")]
    pub ssl_mode: Option<String>,
    #[serde(rename = "SSLVerifyClient")]
    pub ssl_verify_client: Option<String>,
    pub cert_id: Option<String>,
    pub cert_ca_id: Option<String>,
    pub cert_name: Option<String>,
    pub cert_key: Option<String>,
    pub cert_content: Option<String>,
    pub cert_ca_name: Option<String>,
    pub cert_ca_content: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct CertificateOutput {
    #[serde(rename = "SSLMode")]
    pub ssl_mode: Option<String>,
    #[serde(rename = "SSLVerifyClient")]
    pub ssl_verify_client: Option<String>,
    pub cert_id: Option<String>,
    pub cert_ca_id: Option<String>,
    pub ext_cert_ids: Option<Vec<String>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Cluster {
    pub cluster_id: Option<String>,
    pub cluster_name: Option<String>,
    pub cluster_type: Option<String>,
    pub cluster_tag: Option<String>,
    pub zone: Option<String>,
    pub network: Option<String>,
    pub max_conn: Option<i64>,
    pub max_in_flow: Option<i64>,
    pub max_in_pkg: Option<i64>,
    pub max_out_flow: Option<i64>,
    pub max_out_pkg: Option<i64>,
    pub max_new_conn: Option<i64>,
    #[serde(rename = "HTTPMaxNewConn")]
    pub http_max_new_conn: Option<i64>,
    #[serde(rename = "HTTPSMaxNewConn")]
    pub https_max_new_conn: Option<i64>,
    #[serde(rename = "HTTPQps")]
    pub http_qps: Option<i64>,
    #[serde(rename = "HTTPSQps")]
    pub https_qps: Option<i64>,
    pub resource_count: Option<i64>,
    pub idle_resource_count: Option<i64>,
    pub load_balance_director_count: Option<i64>,
    pub isp: Option<String>,
    pub clusters_zone: Option<ClustersZone>,
    pub clusters_version: Option<String>,
    pub disaster_recovery_type: Option<String>,
    pub egress: Option<String>,
    #[serde(rename = "IPVersion")]
    pub ip_version: Option<String>,
    pub tag: Option<Vec<TagInfo>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ClusterItem {
    pub cluster_id: String,
    pub cluster_name: Option<String>,
    pub zone: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ClusterResource {
    pub cluster_id: Option<String>,
    pub vip: Option<String>,
    pub load_balancer_id: Option<String>,
    pub idle: Option<String>,
    pub cluster_name: Option<String>,
    pub isp: Option<String>,
    pub clusters_zone: Option<ClustersZone>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ClustersZone {
    pub master_zone: Option<Vec<String>>,
    pub slave_zone: Option<Vec<String>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ConfigListItem {
    pub uconfig_id: Option<String>,
    pub config_type: Option<String>,
    pub config_name: Option<String>,
    pub config_content: Option<String>,
    pub create_timestamp: Option<String>,
    pub update_timestamp: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct CreateListenerRequest {
    pub load_balancer_id: String,
    pub ports: Vec<i64>,
    pub protocol: String,
    pub listener_names: Option<Vec<String>>,
    pub health_check: Option<HealthCheck>,
    pub certificate: Option<CertificateInput>,
    pub session_expire_time: Option<i64>,
    pub scheduler: Option<String>,
    pub sni_switch: Option<i64>,
    pub target_type: Option<String>,
    pub session_type: Option<String>,
    pub keepalive_enable: Option<i64>,
    pub end_port: Option<u64>,
    pub deregister_target_rst: Option<bool>,
    pub multi_cert_info: Option<MultiCertInfo>,
    pub max_conn: Option<i64>,
    pub max_cps: Option<i64>,
    pub idle_connect_timeout: Option<i64>,
    pub proxy_protocol: Option<bool>,
    pub snat_enable: Option<bool>,
    pub full_end_ports: Option<Vec<i64>>,
    pub h2c_switch: Option<bool>,
    pub ssl_close_switch: Option<bool>,
    pub data_compress_mode: Option<String>,
    pub reschedule_target_zero_weight: Option<bool>,
    pub reschedule_unhealthy: Option<bool>,
    pub reschedule_expand_target: Option<bool>,
    pub reschedule_start_time: Option<i64>,
    pub reschedule_interval: Option<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct CreateListenerResponse {
    pub listener_ids: Option<Vec<String>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct CreateLoadBalancerRequest {
    pub load_balancer_type: String,
    pub forward: Option<i64>,
    pub load_balancer_name: Option<String>,
    pub vpc_id: Option<String>,
    pub subnet_id: Option<String>,
    pub project_id: Option<i64>,
    #[serde(rename = "AddressIPVersion")]
    pub address_ip_version: Option<String>,
    pub number: Option<u64>,
    pub master_zone_id: Option<String>,
    pub zone_id: Option<String>,
    pub internet_accessible: Option<InternetAccessible>,
    pub vip_isp: Option<String>,
    pub tags: Option<Vec<TagInfo>>,
    pub vip: Option<String>,
    pub bandwidth_package_id: Option<String>,
    pub exclusive_cluster: Option<ExclusiveCluster>,
    pub sla_type: Option<String>,
    pub cluster_ids: Option<Vec<String>>,
    pub client_token: Option<String>,
    pub snat_pro: Option<bool>,
    pub snat_ips: Option<Vec<SnatIp>>,
    pub cluster_tag: Option<String>,
    pub slave_zone_id: Option<String>,
    pub eip_address_id: Option<String>,
    pub load_balancer_pass_to_target: Option<bool>,
    pub dynamic_vip: Option<bool>,
    pub egress: Option<String>,
    #[serde(rename = "LBChargePrepaid")]
    pub lb_charge_prepaid: Option<LBChargePrepaid>,
    #[serde(rename = "LBChargeType")]
    pub lb_charge_type: Option<String>,
    pub access_log_topic_id: Option<String>,
    pub advanced_route: Option<bool>,
    pub available_zone_affinity_info: Option<AvailableZoneAffinityInfo>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct CreateLoadBalancerResponse {
    pub load_balancer_ids: Option<Vec<String>>,
    pub deal_name: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct CreateLoadBalancerSnatIpsRequest {
    pub load_balancer_id: String,
    pub snat_ips: Vec<SnatIp>,
    pub number: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct CreateLoadBalancerSnatIpsResponse {}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct CreateRuleRequest {
    pub load_balancer_id: String,
    pub listener_id: String,
    pub rules: Vec<RuleInput>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct CreateRuleResponse {
    pub location_ids: Option<Vec<String>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct CrossTargets {
    pub local_vpc_id: Option<String>,
    pub vpc_id: Option<String>,
    #[serde(rename = "IP")]
    pub ip: Option<String>,
    pub vpc_name: Option<String>,
    pub eni_id: Option<String>,
    pub instance_id: Option<String>,
    pub instance_name: Option<String>,
    pub region: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DeleteListenerRequest {
    pub load_balancer_id: String,
    pub listener_id: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DeleteListenerResponse {}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DeleteLoadBalancerListenersRequest {
    pub load_balancer_id: String,
    pub listener_ids: Option<Vec<String>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DeleteLoadBalancerListenersResponse {}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DeleteLoadBalancerRequest {
    pub load_balancer_ids: Vec<String>,
    pub force_delete: Option<bool>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DeleteLoadBalancerResponse {}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DeleteLoadBalancerSnatIpsRequest {
    pub load_balancer_id: String,
    pub ips: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DeleteLoadBalancerSnatIpsResponse {}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DeleteRewriteRequest {
    pub load_balancer_id: String,
    pub source_listener_id: String,
    pub target_listener_id: String,
    pub rewrite_infos: Vec<RewriteLocationMap>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DeleteRewriteResponse {}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DeleteRuleRequest {
    pub load_balancer_id: String,
    pub listener_id: String,
    pub location_ids: Option<Vec<String>>,
    pub domain: Option<String>,
    pub url: Option<String>,
    pub new_default_server_domain: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DeleteRuleResponse {}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DeregisterTargetsRequest {
    pub load_balancer_id: String,
    pub listener_id: String,
    pub targets: Vec<Target>,
    pub location_id: Option<String>,
    pub domain: Option<String>,
    pub url: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DeregisterTargetsResponse {}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DescribeClusterResourcesRequest {
    pub limit: Option<u64>,
    pub offset: Option<u64>,
    pub filters: Option<Vec<Filter>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DescribeClusterResourcesResponse {
    pub cluster_resource_set: Option<Vec<ClusterResource>>,
    pub total_count: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DescribeCrossTargetsRequest {
    pub limit: Option<u64>,
    pub offset: Option<u64>,
    pub filters: Option<Vec<Filter>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DescribeCrossTargetsResponse {
    pub total_count: Option<u64>,
    pub cross_target_set: Option<Vec<CrossTargets>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DescribeCustomizedConfigAssociateListRequest {
    pub uconfig_id: Option<String>,
    pub offset: Option<i64>,
    pub limit: Option<i64>,
    pub domain: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DescribeCustomizedConfigAssociateListResponse {
    pub bind_list: Option<Vec<BindDetailItem>>,
    pub total_count: Option<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DescribeCustomizedConfigListRequest {
    pub config_type: String,
    pub offset: Option<i64>,
    pub limit: Option<i64>,
    pub config_name: Option<String>,
    pub uconfig_ids: Option<Vec<String>>,
    pub filters: Option<Vec<Filter>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DescribeCustomizedConfigListResponse {
    pub config_list: Option<Vec<ConfigListItem>>,
    pub total_count: Option<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DescribeExclusiveClustersRequest {
    pub limit: Option<u64>,
    pub offset: Option<u64>,
    pub filters: Option<Vec<Filter>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DescribeExclusiveClustersResponse {
    pub cluster_set: Option<Vec<Cluster>>,
    pub total_count: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DescribeLBListenersRequest {
    pub backends: Vec<LbRsItem>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DescribeLBListenersResponse {
    pub load_balancers: Option<Vec<LBItem>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DescribeLBOperateProtectRequest {
    pub load_balancer_ids: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DescribeLBOperateProtectResponse {
    pub load_balancer_set: Option<Vec<LBOperateProtectInfo>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DescribeListenersRequest {
    pub load_balancer_id: String,
    pub listener_ids: Option<Vec<String>>,
    pub protocol: Option<String>,
    pub port: Option<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DescribeListenersResponse {
    pub listeners: Option<Vec<Listener>>,
    pub total_count: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DescribeLoadBalancerListByCertIdRequest {
    pub cert_ids: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DescribeLoadBalancerListByCertIdResponse {
    pub cert_set: Option<Vec<CertIdRelatedWithLoadBalancers>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DescribeLoadBalancersDetailRequest {
    pub limit: Option<u64>,
    pub offset: Option<u64>,
    pub fields: Option<Vec<String>>,
    pub target_type: Option<String>,
    pub filters: Option<Vec<Filter>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DescribeLoadBalancersDetailResponse {
    pub total_count: Option<u64>,
    pub load_balancer_detail_set: Option<Vec<LoadBalancerDetail>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DescribeLoadBalancersRequest {
    pub load_balancer_ids: Option<Vec<String>>,
    pub load_balancer_type: Option<String>,
    pub forward: Option<i64>,
    pub load_balancer_name: Option<String>,
    pub domain: Option<String>,
    pub load_balancer_vips: Option<Vec<String>>,
    pub backend_public_ips: Option<Vec<String>>,
    pub backend_private_ips: Option<Vec<String>>,
    pub offset: Option<i64>,
    pub limit: Option<i64>,
    pub order_by: Option<String>,
    pub order_type: Option<i64>,
    pub search_key: Option<String>,
    pub project_id: Option<i64>,
    pub with_rs: Option<i64>,
    pub vpc_id: Option<String>,
    pub security_group: Option<String>,
    pub master_zone: Option<String>,
    pub filters: Option<Vec<Filter>>,
    pub additional_fields: Option<Vec<String>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DescribeLoadBalancersResponse {
    pub total_count: Option<u64>,
    pub load_balancer_set: Option<Vec<LoadBalancer>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DescribeQuotaRequest {}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DescribeQuotaResponse {
    pub quota_set: Option<Vec<Quota>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DescribeResourcesRequest {
    pub limit: Option<u64>,
    pub offset: Option<u64>,
    pub filters: Option<Vec<Filter>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DescribeResourcesResponse {
    pub zone_resource_set: Option<Vec<ZoneResource>>,
    pub total_count: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DescribeRewriteRequest {
    pub load_balancer_id: String,
    pub source_listener_ids: Option<Vec<String>>,
    pub source_location_ids: Option<Vec<String>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DescribeRewriteResponse {
    pub rewrite_set: Option<Vec<RuleOutput>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DescribeTargetGroupListRequest {
    pub target_group_ids: Option<Vec<String>>,
    pub filters: Option<Vec<Filter>>,
    pub offset: Option<u64>,
    pub limit: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DescribeTargetGroupListResponse {
    pub total_count: Option<u64>,
    pub target_group_set: Option<Vec<TargetGroupInfo>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DescribeTargetGroupsRequest {
    pub target_group_ids: Option<Vec<String>>,
    pub limit: Option<u64>,
    pub offset: Option<u64>,
    pub filters: Option<Vec<Filter>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DescribeTargetGroupsResponse {
    pub total_count: Option<u64>,
    pub target_group_set: Option<Vec<TargetGroupInfo>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DescribeTargetHealthRequest {
    pub load_balancer_ids: Vec<String>,
    pub listener_ids: Option<Vec<String>>,
    pub location_ids: Option<Vec<String>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DescribeTargetHealthResponse {
    pub load_balancers: Option<Vec<LoadBalancerHealth>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DescribeTargetsRequest {
    pub load_balancer_id: String,
    pub listener_ids: Option<Vec<String>>,
    pub protocol: Option<String>,
    pub port: Option<i64>,
    pub filters: Option<Vec<Filter>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DescribeTargetsResponse {
    pub listeners: Option<Vec<ListenerBackend>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DescribeTaskStatusRequest {
    pub task_id: Option<String>,
    pub deal_name: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DescribeTaskStatusResponse {
    pub status: Option<i64>,
    pub load_balancer_ids: Option<Vec<String>>,
    pub message: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ExclusiveCluster {
    pub l4_clusters: Option<Vec<ClusterItem>>,
    pub l7_clusters: Option<Vec<ClusterItem>>,
    pub classical_cluster: Option<ClusterItem>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ExtraInfo {
    pub zhi_tong: Option<bool>,
    pub tgw_group_name: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Filter {
    pub name: String,
    pub values: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct FunctionInfo {
    pub function_namespace: String,
    pub function_name: String,
    pub function_qualifier: String,
    pub function_qualifier_type: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct FunctionTarget {
    pub function: FunctionInfo,
    pub weight: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct HealthCheck {
    pub health_switch: Option<i64>,
    pub time_out: Option<i64>,
    pub interval_time: Option<i64>,
    pub health_num: Option<i64>,
    pub un_health_num: Option<i64>,
    pub http_code: Option<i64>,
    pub http_check_path: Option<String>,
    pub http_check_domain: Option<String>,
    pub http_check_method: Option<String>,
    pub check_port: Option<i64>,
    pub context_type: Option<String>,
    pub send_context: Option<String>,
    pub recv_context: Option<String>,
    pub check_type: Option<String>,
    pub http_version: Option<String>,
    pub source_ip_type: Option<i64>,
    pub extended_code: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct InternetAccessible {
    pub internet_charge_type: Option<String>,
    pub internet_max_bandwidth_out: Option<i64>,
    pub bandwidthpkg_sub_type: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct LBChargePrepaid {
    pub renew_flag: Option<String>,
    pub period: Option<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct LBItem {
    pub load_balancer_id: Option<String>,
    pub vip: Option<String>,
    pub listeners: Option<Vec<ListenerItem>>,
    pub region: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct LBOperateProtectInfo {
    pub load_balancer_id: String,
    pub protect_state: bool,
    pub operator_uin: String,
    pub description: String,
    pub modify_time: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct LbRsItem {
    pub vpc_id: String,
    pub private_ip: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct LbRsTargets {
    pub r#type: Option<String>,
    pub private_ip: Option<String>,
    pub port: Option<i64>,
    pub vpc_id: Option<i64>,
    pub weight: Option<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Listener {
    pub listener_id: Option<String>,
    pub protocol: Option<String>,
    pub port: Option<i64>,
    pub certificate: Option<CertificateOutput>,
    pub health_check: Option<HealthCheck>,
    pub scheduler: Option<String>,
    pub session_expire_time: Option<i64>,
    pub sni_switch: Option<i64>,
    pub rules: Option<Vec<RuleOutput>>,
    pub listener_name: Option<String>,
    pub create_time: Option<String>,
    pub end_port: Option<i64>,
    pub target_type: Option<String>,
    pub target_group: Option<BasicTargetGroupInfo>,
    pub session_type: Option<String>,
    pub keepalive_enable: Option<i64>,
    pub toa: Option<bool>,
    pub deregister_target_rst: Option<bool>,
    pub attr_flags: Option<Vec<String>>,
    pub target_group_list: Option<Vec<BasicTargetGroupInfo>>,
    pub max_conn: Option<i64>,
    pub max_cps: Option<i64>,
    pub idle_connect_timeout: Option<i64>,
    pub reschedule_interval: Option<u64>,
    pub data_compress_mode: Option<String>,
    pub reschedule_start_time: Option<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ListenerBackend {
    pub listener_id: Option<String>,
    pub protocol: Option<String>,
    pub port: Option<i64>,
    pub rules: Option<Vec<RuleTargets>>,
    pub targets: Option<Vec<Backend>>,
    pub end_port: Option<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ListenerHealth {
    pub listener_id: Option<String>,
    pub listener_name: Option<String>,
    pub protocol: Option<String>,
    pub port: Option<i64>,
    pub rules: Option<Vec<RuleHealth>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ListenerItem {
    pub listener_id: Option<String>,
    pub protocol: Option<String>,
    pub port: Option<i64>,
    pub rules: Option<Vec<RulesItems>>,
    pub targets: Option<Vec<LbRsTargets>>,
    pub end_port: Option<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct LoadBalancer {
    pub load_balancer_id: Option<String>,
    pub load_balancer_name: Option<String>,
    pub load_balancer_type: Option<String>,
    pub forward: Option<u64>,
    pub domain: Option<String>,
    pub load_balancer_vips: Option<Vec<String>>,
    pub status: Option<u64>,
    pub create_time: Option<String>,
    pub status_time: Option<String>,
    pub project_id: Option<u64>,
    pub vpc_id: Option<String>,
    pub open_bgp: Option<u64>,
    pub snat: Option<bool>,
    pub isolation: Option<u64>,
    pub log: Option<String>,
    pub subnet_id: Option<String>,
    pub tags: Option<Vec<TagInfo>>,
    pub secure_groups: Option<Vec<String>>,
    pub target_region_info: Option<TargetRegionInfo>,
    pub anycast_zone: Option<String>,
    #[serde(rename = "AddressIPVersion")]
    pub address_ip_version: Option<String>,
    pub numerical_vpc_id: Option<u64>,
    pub vip_isp: Option<String>,
    pub master_zone: Option<ZoneInfo>,
    pub backup_zone_set: Option<Vec<ZoneInfo>>,
    pub isolated_time: Option<String>,
    pub expire_time: Option<String>,
    pub charge_type: Option<String>,
    pub network_attributes: Option<InternetAccessible>,
    pub prepaid_attributes: Option<LBChargePrepaid>,
    pub log_set_id: Option<String>,
    pub log_topic_id: Option<String>,
    #[serde(rename = "AddressIPv6")]
    pub address_ipv6: Option<String>,
    pub extra_info: Option<ExtraInfo>,
    pub is_d_dos: Option<bool>,
    pub config_id: Option<String>,
    pub load_balancer_pass_to_target: Option<bool>,
    pub exclusive_cluster: Option<ExclusiveCluster>,
    #[serde(rename = "IPv6Mode")]
    pub ipv6_mode: Option<String>,
    pub snat_pro: Option<bool>,
    pub snat_ips: Option<Vec<SnatIp>>,
    pub sla_type: Option<String>,
    pub is_block: Option<bool>,
    pub is_block_time: Option<String>,
    pub local_bgp: Option<bool>,
    pub cluster_tag: Option<String>,
    pub mix_ip_target: Option<bool>,
    pub zones: Option<Vec<String>>,
    pub nfv_info: Option<String>,
    pub health_log_set_id: Option<String>,
    pub health_log_topic_id: Option<String>,
    pub cluster_ids: Option<Vec<String>>,
    pub attribute_flags: Option<Vec<String>>,
    pub load_balancer_domain: Option<String>,
    pub egress: Option<String>,
    pub exclusive: Option<u64>,
    pub target_count: Option<u64>,
    pub associate_endpoint: Option<String>,
    pub available_zone_affinity_info: Option<AvailableZoneAffinityInfo>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct LoadBalancerDetail {
    pub load_balancer_id: Option<String>,
    pub load_balancer_name: Option<String>,
    pub load_balancer_type: Option<String>,
    pub status: Option<u64>,
    pub address: Option<String>,
    #[serde(rename = "AddressIPv6")]
    pub address_ipv6: Option<String>,
    #[serde(rename = "AddressIPVersion")]
    pub address_ip_version: Option<String>,
    #[serde(rename = "IPv6Mode")]
    pub ipv6_mode: Option<String>,
    pub zone: Option<String>,
    pub address_isp: Option<String>,
    pub vpc_id: Option<String>,
    pub project_id: Option<u64>,
    pub create_time: Option<String>,
    pub charge_type: Option<String>,
    pub network_attributes: Option<InternetAccessible>,
    pub prepaid_attributes: Option<LBChargePrepaid>,
    pub extra_info: Option<ExtraInfo>,
    pub config_id: Option<String>,
    pub tags: Option<Vec<TagInfo>>,
    pub listener_id: Option<String>,
    pub protocol: Option<String>,
    pub port: Option<u64>,
    pub location_id: Option<String>,
    pub domain: Option<String>,
    pub url: Option<String>,
    pub target_id: Option<String>,
    pub target_address: Option<String>,
    pub target_port: Option<u64>,
    pub target_weight: Option<u64>,
    pub isolation: Option<u64>,
    pub security_group: Option<Vec<String>>,
    pub load_balancer_pass_to_target: Option<u64>,
    pub target_health: Option<String>,
    pub domains: Option<String>,
    pub slave_zone: Option<Vec<String>>,
    pub zones: Option<Vec<String>>,
    pub sni_switch: Option<i64>,
    pub load_balancer_domain: Option<String>,
    pub egress: Option<String>,
    pub attribute_flags: Option<Vec<String>>,
    pub sla_type: Option<String>,
    pub exclusive: Option<u64>,
    pub available_zone_affinity_info: Option<AvailableZoneAffinityInfo>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct LoadBalancerHealth {
    pub load_balancer_id: Option<String>,
    pub load_balancer_name: Option<String>,
    pub listeners: Option<Vec<ListenerHealth>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ManualRewriteRequest {
    pub load_balancer_id: String,
    pub source_listener_id: String,
    pub target_listener_id: String,
    pub rewrite_infos: Vec<RewriteLocationMap>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ManualRewriteResponse {}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ModifyDomainAttributesRequest {
    pub load_balancer_id: String,
    pub listener_id: String,
    pub domain: String,
    pub new_domain: Option<String>,
    pub certificate: Option<CertificateInput>,
    pub http2: Option<bool>,
    pub default_server: Option<bool>,
    pub quic: Option<bool>,
    pub new_default_server_domain: Option<String>,
    pub new_domains: Option<Vec<String>>,
    pub multi_cert_info: Option<MultiCertInfo>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ModifyDomainAttributesResponse {}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ModifyDomainRequest {
    pub load_balancer_id: String,
    pub listener_id: String,
    pub domain: String,
    pub new_domain: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ModifyDomainResponse {}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ModifyListenerRequest {
    pub load_balancer_id: String,
    pub listener_id: String,
    pub listener_name: Option<String>,
    pub session_expire_time: Option<i64>,
    pub health_check: Option<HealthCheck>,
    pub certificate: Option<CertificateInput>,
    pub scheduler: Option<String>,
    pub sni_switch: Option<i64>,
    pub target_type: Option<String>,
    pub keepalive_enable: Option<i64>,
    pub deregister_target_rst: Option<bool>,
    pub session_type: Option<String>,
    pub multi_cert_info: Option<MultiCertInfo>,
    pub max_conn: Option<i64>,
    pub max_cps: Option<i64>,
    pub idle_connect_timeout: Option<i64>,
    pub proxy_protocol: Option<bool>,
    pub snat_enable: Option<bool>,
    pub data_compress_mode: Option<String>,
    pub reschedule_target_zero_weight: Option<bool>,
    pub reschedule_unhealthy: Option<bool>,
    pub reschedule_expand_target: Option<bool>,
    pub reschedule_start_time: Option<i64>,
    pub reschedule_interval: Option<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ModifyListenerResponse {}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ModifyLoadBalancerAttributesRequest {
    pub load_balancer_id: String,
    pub load_balancer_name: Option<String>,
    pub target_region_info: Option<TargetRegionInfo>,
    pub internet_charge_info: Option<InternetAccessible>,
    pub load_balancer_pass_to_target: Option<bool>,
    pub switch_flag: Option<u64>,
    pub snat_pro: Option<bool>,
    pub delete_protect: Option<bool>,
    pub modify_classic_domain: Option<bool>,
    pub associate_endpoint: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ModifyLoadBalancerAttributesResponse {
    pub deal_name: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ModifyLoadBalancersProjectRequest {
    pub load_balancer_ids: Vec<String>,
    pub project_id: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ModifyLoadBalancersProjectResponse {}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ModifyRuleRequest {
    pub load_balancer_id: String,
    pub listener_id: String,
    pub location_id: String,
    pub url: Option<String>,
    pub health_check: Option<HealthCheck>,
    pub scheduler: Option<String>,
    pub session_expire_time: Option<i64>,
    pub forward_type: Option<String>,
    pub trpc_callee: Option<String>,
    pub trpc_func: Option<String>,
    pub o_auth: Option<OAuth>,
    pub cookie_name: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ModifyRuleResponse {}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ModifyTargetPortRequest {
    pub load_balancer_id: String,
    pub listener_id: String,
    pub targets: Vec<Target>,
    pub new_port: i64,
    pub location_id: Option<String>,
    pub domain: Option<String>,
    pub url: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ModifyTargetPortResponse {}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ModifyTargetWeightRequest {
    pub load_balancer_id: String,
    pub listener_id: String,
    pub targets: Vec<Target>,
    pub location_id: Option<String>,
    pub domain: Option<String>,
    pub url: Option<String>,
    pub weight: Option<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ModifyTargetWeightResponse {}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct MultiCertInfo {
    #[serde(rename = "SSLMode")]
    pub ssl_mode: String,
    pub cert_list: Vec<CertInfo>,
    #[serde(rename = "SSLVerifyClient")]
    pub ssl_verify_client: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct OAuth {
    pub o_auth_enable: Option<bool>,
    pub o_auth_failure_status: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Quota {
    pub quota_id: Option<String>,
    pub quota_current: Option<i64>,
    pub quota_limit: Option<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct RegisterTargetsRequest {
    pub load_balancer_id: String,
    pub listener_id: String,
    pub targets: Vec<Target>,
    pub location_id: Option<String>,
    pub domain: Option<String>,
    pub url: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct RegisterTargetsResponse {}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ReplaceCertForLoadBalancersRequest {
    pub old_certificate_id: String,
    pub certificate: CertificateInput,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ReplaceCertForLoadBalancersResponse {}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Resource {
    pub r#type: Option<Vec<String>>,
    pub isp: Option<String>,
    pub availability_set: Option<Vec<ResourceAvailability>>,
    pub type_set: Option<Vec<TypeInfo>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ResourceAvailability {
    pub r#type: String,
    pub availability: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct RewriteLocationMap {
    pub source_location_id: String,
    pub target_location_id: String,
    pub rewrite_code: Option<i64>,
    pub take_url: Option<bool>,
    pub source_domain: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct RewriteTarget {
    pub target_listener_id: Option<String>,
    pub target_location_id: Option<String>,
    pub rewrite_code: Option<i64>,
    pub take_url: Option<bool>,
    pub rewrite_type: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct RsTagRule {
    pub listener_id: String,
    pub targets: Vec<Target>,
    pub location_id: Option<String>,
    pub tag: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct RsWeightRule {
    pub listener_id: String,
    pub targets: Vec<Target>,
    pub location_id: Option<String>,
    pub domain: Option<String>,
    pub url: Option<String>,
    pub weight: Option<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct RuleHealth {
    pub location_id: Option<String>,
    pub domain: Option<String>,
    pub url: Option<String>,
    pub rule_id: Option<String>,
    pub targets: Option<Vec<TargetHealth>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct RuleInput {
    pub url: String,
    pub domain: Option<String>,
    pub session_expire_time: Option<i64>,
    pub health_check: Option<HealthCheck>,
    pub certificate: Option<CertificateInput>,
    pub scheduler: Option<String>,
    pub forward_type: Option<String>,
    pub default_server: Option<bool>,
    pub http2: Option<bool>,
    pub target_type: Option<String>,
    pub trpc_callee: Option<String>,
    pub trpc_func: Option<String>,
    pub quic: Option<bool>,
    pub domains: Option<Vec<String>>,
    pub multi_cert_info: Option<MultiCertInfo>,
    pub cookie_name: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct RuleOutput {
    pub location_id: Option<String>,
    pub domain: Option<String>,
    pub url: Option<String>,
    pub session_expire_time: Option<i64>,
    pub health_check: Option<HealthCheck>,
    pub certificate: Option<CertificateOutput>,
    pub scheduler: Option<String>,
    pub listener_id: Option<String>,
    pub rewrite_target: Option<RewriteTarget>,
    pub http_gzip: Option<bool>,
    pub be_auto_created: Option<bool>,
    pub default_server: Option<bool>,
    pub http2: Option<bool>,
    pub forward_type: Option<String>,
    pub create_time: Option<String>,
    pub target_type: Option<String>,
    pub target_group: Option<BasicTargetGroupInfo>,
    pub waf_domain_id: Option<String>,
    pub trpc_callee: Option<String>,
    pub trpc_func: Option<String>,
    pub quic_status: Option<String>,
    pub domains: Option<Vec<String>>,
    pub target_group_list: Option<Vec<BasicTargetGroupInfo>>,
    pub o_auth: Option<OAuth>,
    pub cookie_name: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct RuleTargets {
    pub location_id: Option<String>,
    pub domain: Option<String>,
    pub url: Option<String>,
    pub targets: Option<Vec<Backend>>,
    pub function_targets: Option<Vec<FunctionTarget>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct RulesItems {
    pub location_id: Option<String>,
    pub domain: Option<String>,
    pub url: Option<String>,
    pub targets: Option<Vec<LbRsTargets>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct SetCustomizedConfigForLoadBalancerRequest {
    pub operation_type: String,
    pub uconfig_id: Option<String>,
    pub config_content: Option<String>,
    pub config_name: Option<String>,
    pub load_balancer_ids: Option<Vec<String>>,
    pub tags: Option<Vec<TagInfo>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct SetCustomizedConfigForLoadBalancerResponse {
    pub config_id: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct SetLoadBalancerSecurityGroupsRequest {
    pub load_balancer_id: String,
    pub security_groups: Option<Vec<String>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct SetLoadBalancerSecurityGroupsResponse {}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct SetLoadBalancerStartStatusRequest {
    pub operation_type: String,
    pub load_balancer_id: String,
    pub listener_ids: Option<Vec<String>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct SetLoadBalancerStartStatusResponse {}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct SetSecurityGroupForLoadbalancersRequest {
    pub security_group: String,
    pub operation_type: String,
    pub load_balancer_ids: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct SetSecurityGroupForLoadbalancersResponse {}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct SnatIp {
    pub subnet_id: String,
    pub ip: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct SpecAvailability {
    pub spec_type: Option<String>,
    pub availability: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct TagInfo {
    pub tag_key: String,
    pub tag_value: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Target {
    pub port: i64,
    pub r#type: Option<String>,
    pub instance_id: Option<String>,
    pub weight: Option<i64>,
    pub eni_ip: Option<String>,
    pub tag: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct TargetGroupHealthCheck {
    pub health_switch: bool,
    pub protocol: Option<String>,
    pub port: Option<i64>,
    pub timeout: Option<i64>,
    pub gap_time: Option<i64>,
    pub good_limit: Option<i64>,
    pub bad_limit: Option<i64>,
    pub jumbo_frame: Option<bool>,
    pub http_code: Option<i64>,
    pub http_check_domain: Option<String>,
    pub http_check_path: Option<String>,
    pub http_check_method: Option<String>,
    pub context_type: Option<String>,
    pub send_context: Option<String>,
    pub recv_context: Option<String>,
    pub http_version: Option<String>,
    pub extended_code: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct TargetGroupInfo {
    pub target_group_id: Option<String>,
    pub vpc_id: Option<String>,
    pub target_group_name: Option<String>,
    pub port: Option<u64>,
    pub created_time: Option<String>,
    pub updated_time: Option<String>,
    pub associated_rule: Option<Vec<AssociationItem>>,
    pub protocol: Option<String>,
    pub schedule_algorithm: Option<String>,
    pub health_check: Option<TargetGroupHealthCheck>,
    pub target_group_type: Option<String>,
    pub associated_rule_count: Option<i64>,
    pub registered_instances_count: Option<i64>,
    pub tag: Option<Vec<TagInfo>>,
    pub weight: Option<u64>,
    pub full_listen_switch: Option<bool>,
    pub keepalive_enable: Option<bool>,
    pub session_expire_time: Option<i64>,
    pub ip_version: Option<String>,
    pub snat_enable: Option<bool>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct TargetHealth {
    #[serde(rename = "IP")]
    pub ip: Option<String>,
    pub port: Option<i64>,
    pub health_status: Option<bool>,
    pub target_id: Option<String>,
    pub health_status_detail: Option<String>,
    pub health_status_detial: Option<String>,
    pub target_group_id: Option<String>,
    pub weight: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct TargetRegionInfo {
    pub region: String,
    pub vpc_id: String,
    pub numerical_vpc_id: Option<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct TypeInfo {
    pub r#type: Option<String>,
    pub spec_availability_set: Option<Vec<SpecAvailability>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ZoneInfo {
    pub zone_id: Option<u64>,
    pub zone: Option<String>,
    pub zone_name: Option<String>,
    pub zone_region: Option<String>,
    pub local_zone: Option<bool>,
    pub edge_zone: Option<bool>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ZoneResource {
    pub master_zone: Option<String>,
    pub resource_set: Option<Vec<Resource>>,
    pub slave_zone: Option<String>,
    #[serde(rename = "IPVersion")]
    pub ip_version: Option<String>,
    pub zone_region: Option<String>,
    pub local_zone: Option<bool>,
    pub zone_resource_type: Option<String>,
    pub edge_zone: Option<bool>,
    pub egress: Option<String>,
}
