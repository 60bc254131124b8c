//! Requests and answers of the service `ssl`, version 2019-12-05. Written by the test `typed_api` from
//! the schema; change that instead.

use serde::{Deserialize, Serialize};

use super::Action;

impl Action for DeleteCertificateRequest {
    const SERVICE: &'static str = "ssl";
    const VERSION: &'static str = "2019-12-05";
    const NAME: &'static str = "DeleteCertificate";
    type Response = DeleteCertificateResponse;
}

impl Action for DeployCertificateInstanceRequest {
    const SERVICE: &'static str = "ssl";
    const VERSION: &'static str = "2019-12-05";
    const NAME: &'static str = "DeployCertificateInstance";
    type Response = DeployCertificateInstanceResponse;
}

impl Action for DescribeCertificateDetailRequest {
    const SERVICE: &'static str = "ssl";
    const VERSION: &'static str = "2019-12-05";
    const NAME: &'static str = "DescribeCertificateDetail";
    type Response = DescribeCertificateDetailResponse;
}

impl Action for DescribeCertificatesRequest {
    const SERVICE: &'static str = "ssl";
    const VERSION: &'static str = "2019-12-05";
    const NAME: &'static str = "DescribeCertificates";
    type Response = DescribeCertificatesResponse;
}

impl Action for DescribeHostDeployRecordDetailRequest {
    const SERVICE: &'static str = "ssl";
    const VERSION: &'static str = "2019-12-05";
    const NAME: &'static str = "DescribeHostDeployRecordDetail";
    type Response = DescribeHostDeployRecordDetailResponse;
}

impl Action for UploadCertificateRequest {
    const SERVICE: &'static str = "ssl";
    const VERSION: &'static str = "2019-12-05";
    const NAME: &'static str = "UploadCertificate";
    type Response = UploadCertificateResponse;
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct CertBasicInfo {
    pub issuer: Option<String>,
    pub subject: Option<String>,
    pub fingerprint: Option<String>,
    pub valid_from: Option<String>,
    pub valid_to: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct CertificateExtra {
    pub domain_number: Option<String>,
    pub origin_certificate_id: Option<String>,
    pub replaced_by: Option<String>,
    pub replaced_for: Option<String>,
    pub renew_order: Option<String>,
    #[serde(rename = "SMCert")]
    pub sm_cert: Option<i64>,
    pub company_type: Option<i64>,
    pub service_renew_certificate_id: Option<String>,
    pub service_origin_certificate_id: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Certificates {
    pub owner_uin: Option<String>,
    pub project_id: Option<String>,
    pub from: Option<String>,
    pub package_type: Option<String>,
    pub certificate_type: Option<String>,
    pub product_zh_name: Option<String>,
    pub domain: Option<String>,
    pub alias: Option<String>,
    pub status: Option<u64>,
    pub certificate_extra: Option<CertificateExtra>,
    pub vulnerability_status: Option<String>,
    pub status_msg: Option<String>,
    pub verify_type: Option<String>,
    pub cert_begin_time: Option<String>,
    pub cert_end_time: Option<String>,
    pub validity_period: Option<String>,
    pub insert_time: Option<String>,
    pub certificate_id: Option<String>,
    pub subject_alt_name: Option<Vec<String>>,
    pub package_type_name: Option<String>,
    pub status_name: Option<String>,
    pub is_vip: Option<bool>,
    pub is_dv: Option<bool>,
    pub is_wildcard: Option<bool>,
    pub is_vulnerability: Option<bool>,
    pub renew_able: Option<bool>,
    pub project_info: Option<ProjectInfo>,
    pub bound_resource: Option<Vec<String>>,
    pub deployable: Option<bool>,
    pub tags: Option<Vec<Tags>>,
    pub is_ignore: Option<bool>,
    #[serde(rename = "IsSM")]
    pub is_sm: Option<bool>,
    pub encrypt_algorithm: Option<String>,
    #[serde(rename = "CAEncryptAlgorithms")]
    pub ca_encrypt_algorithms: Option<Vec<String>>,
    #[serde(rename = "CAEndTimes")]
    pub ca_end_times: Option<Vec<String>>,
    #[serde(rename = "CACommonNames")]
    pub ca_common_names: Option<Vec<String>>,
    pub pre_audit_info: Option<PreAuditInfo>,
    pub auto_renew_flag: Option<i64>,
    pub hosting_status: Option<i64>,
    pub hosting_complete_time: Option<String>,
    pub hosting_renew_cert_id: Option<String>,
    pub has_renew_order: Option<String>,
    pub replace_ori_cert_is_delete: Option<bool>,
    pub is_expiring: Option<bool>,
    #[serde(rename = "DVAuthDeadline")]
    pub dv_auth_deadline: Option<String>,
    pub validation_passed_time: Option<String>,
    #[serde(rename = "CertSANs")]
    pub cert_sa_ns: Option<Vec<String>>,
    pub awaiting_validation_msg: Option<String>,
    pub allow_download: Option<bool>,
    #[serde(rename = "IsDNSPODResolve")]
    pub is_dnspod_resolve: Option<bool>,
    pub is_package: Option<bool>,
    pub key_password_custom_flag: Option<bool>,
    pub support_download_type: Option<SupportDownloadType>,
    pub cert_revoked_time: Option<String>,
    pub hosting_resource_types: Option<Vec<String>>,
    pub hosting_config: Option<HostingConfig>,
    pub is_hosting_upload_renew_cert: Option<bool>,
    pub service_id: Option<String>,
    pub service_status: Option<String>,
    pub cert_service_begin_time: Option<String>,
    pub cert_service_end_time: Option<String>,
    pub cert_service_share_enabled: Option<bool>,
    pub cert_service_valid_certificate_count: Option<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DeleteCertificateRequest {
    pub certificate_id: String,
    pub is_check_resource: Option<bool>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DeleteCertificateResponse {
    pub delete_result: Option<bool>,
    pub task_id: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DeployCertificateInstanceRequest {
    pub certificate_id: String,
    pub instance_id_list: Vec<String>,
    pub resource_type: Option<String>,
    pub status: Option<i64>,
    pub is_cache: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DeployCertificateInstanceResponse {
    pub deploy_record_id: Option<u64>,
    pub deploy_status: Option<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DeployRecordDetail {
    pub id: Option<u64>,
    pub cert_id: Option<String>,
    pub old_cert_id: Option<String>,
    pub instance_id: Option<String>,
    pub instance_name: Option<String>,
    pub listener_id: Option<String>,
    pub domains: Option<Vec<String>>,
    pub protocol: Option<String>,
    pub status: Option<i64>,
    pub error_msg: Option<String>,
    pub create_time: Option<String>,
    pub update_time: Option<String>,
    pub listener_name: Option<String>,
    pub sni_switch: Option<i64>,
    pub bucket: Option<String>,
    pub namespace: Option<String>,
    pub secret_name: Option<String>,
    pub port: Option<i64>,
    pub env_id: Option<String>,
    #[serde(rename = "TCBType")]
    pub tcb_type: Option<String>,
    pub region: Option<String>,
    pub url: Option<Vec<String>>,
    pub algorithm: Option<String>,
    pub old_algorithm: Option<String>,
    pub instance_status: Option<String>,
    pub listener_status: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DescribeCertificateDetailRequest {
    pub certificate_id: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DescribeCertificateDetailResponse {
    pub owner_uin: Option<String>,
    pub project_id: Option<String>,
    pub from: Option<String>,
    pub certificate_type: Option<String>,
    pub package_type: Option<String>,
    pub product_zh_name: Option<String>,
    pub domain: Option<String>,
    pub alias: Option<String>,
    pub status: Option<u64>,
    pub status_msg: Option<String>,
    pub verify_type: Option<String>,
    pub vulnerability_status: Option<String>,
    pub cert_begin_time: Option<String>,
    pub cert_end_time: Option<String>,
    pub validity_period: Option<String>,
    pub insert_time: Option<String>,
    pub order_id: Option<String>,
    pub certificate_extra: Option<CertificateExtra>,
    pub certificate_private_key: Option<String>,
    pub certificate_public_key: Option<String>,
    pub dv_auth_detail: Option<DvAuthDetail>,
    pub vulnerability_report: Option<String>,
    pub certificate_id: Option<String>,
    pub type_name: Option<String>,
    pub status_name: Option<String>,
    pub subject_alt_name: Option<Vec<String>>,
    pub is_vip: Option<bool>,
    pub is_wildcard: Option<bool>,
    pub is_dv: Option<bool>,
    pub is_vulnerability: Option<bool>,
    pub submitted_data: Option<SubmittedData>,
    pub renew_able: Option<bool>,
    pub deployable: Option<bool>,
    pub tags: Option<Vec<Tags>>,
    pub root_cert: Option<RootCertificates>,
    pub encrypt_cert: Option<String>,
    pub encrypt_private_key: Option<String>,
    pub cert_fingerprint: Option<String>,
    pub encrypt_cert_fingerprint: Option<String>,
    pub encrypt_algorithm: Option<String>,
    pub dv_revoke_auth_detail: Option<Vec<DvAuths>>,
    pub cert_chain_info: Option<Vec<CertBasicInfo>>,
    pub domain_type: Option<u64>,
    pub cert_type: Option<String>,
    pub use_cross_sign_root: Option<bool>,
    pub hosting_status: Option<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DescribeCertificatesRequest {
    pub offset: Option<u64>,
    pub limit: Option<u64>,
    pub search_key: Option<String>,
    pub certificate_type: Option<String>,
    pub project_id: Option<u64>,
    pub expiration_sort: Option<String>,
    pub certificate_status: Option<Vec<u64>>,
    pub deployable: Option<u64>,
    pub upload: Option<i64>,
    pub renew: Option<i64>,
    pub filter_source: Option<String>,
    #[serde(rename = "IsSM")]
    pub is_sm: Option<i64>,
    pub filter_expiring: Option<u64>,
    pub hostable: Option<u64>,
    pub tags: Option<Vec<Tags>>,
    pub is_pending_issue: Option<i64>,
    pub cert_ids: Option<Vec<String>>,
    pub service_id: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DescribeCertificatesResponse {
    pub total_count: Option<u64>,
    pub certificates: Option<Vec<Certificates>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DescribeHostDeployRecordDetailRequest {
    pub deploy_record_id: String,
    pub offset: Option<u64>,
    pub limit: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DescribeHostDeployRecordDetailResponse {
    pub total_count: Option<i64>,
    pub deploy_record_detail_list: Option<Vec<DeployRecordDetail>>,
    pub success_total_count: Option<i64>,
    pub failed_total_count: Option<i64>,
    pub running_total_count: Option<i64>,
    pub pending_total_count: Option<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DvAuthDetail {
    pub dv_auth_key: Option<String>,
    pub dv_auth_value: Option<String>,
    pub dv_auth_domain: Option<String>,
    pub dv_auth_path: Option<String>,
    pub dv_auth_key_sub_domain: Option<String>,
    pub dv_auths: Option<Vec<DvAuths>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DvAuths {
    pub dv_auth_key: Option<String>,
    pub dv_auth_value: Option<String>,
    pub dv_auth_domain: Option<String>,
    pub dv_auth_path: Option<String>,
    pub dv_auth_sub_domain: Option<String>,
    pub dv_auth_verify_type: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct HostingConfig {
    pub replace_time: Option<i64>,
    pub message_types: Option<Vec<i64>>,
    pub replace_start_time: Option<String>,
    pub replace_end_time: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct PreAuditInfo {
    pub total_period: Option<i64>,
    pub now_period: Option<i64>,
    pub manager_id: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ProjectInfo {
    pub project_name: Option<String>,
    pub project_creator_uin: Option<u64>,
    pub project_create_time: Option<String>,
    pub project_resume: Option<String>,
    pub owner_uin: Option<u64>,
    pub project_id: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct RootCertificates {
    pub sign: String,
    pub encrypt: String,
    pub standard: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct SubmittedData {
    pub csr_type: Option<String>,
    pub csr_content: Option<String>,
    pub certificate_domain: Option<String>,
    pub domain_list: Option<Vec<String>>,
    pub key_password: Option<String>,
    pub organization_name: Option<String>,
    pub organization_division: Option<String>,
    pub organization_address: Option<String>,
    pub organization_country: Option<String>,
    pub organization_city: Option<String>,
    pub organization_region: Option<String>,
    pub postal_code: Option<String>,
    pub phone_area_code: Option<String>,
    pub phone_number: Option<String>,
    pub admin_first_name: Option<String>,
    pub admin_last_name: Option<String>,
    pub admin_phone_num: Option<String>,
    pub admin_email: Option<String>,
    pub admin_position: Option<String>,
    pub contact_first_name: Option<String>,
    pub contact_last_name: Option<String>,
    pub contact_number: Option<String>,
    pub contact_email: Option<String>,
    pub contact_position: Option<String>,
    pub verify_type: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct SupportDownloadType {
    #[serde(rename = "NGINX")]
    pub nginx: Option<bool>,
    #[serde(rename = "APACHE")]
    pub apache: Option<bool>,
    #[serde(rename = "TOMCAT")]
    pub tomcat: Option<bool>,
    #[serde(rename = "IIS")]
    pub iis: Option<bool>,
    #[serde(rename = "JKS")]
    pub jks: Option<bool>,
    #[serde(rename = "OTHER")]
    pub other: Option<bool>,
    #[serde(rename = "ROOT")]
    pub root: Option<bool>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Tags {
    pub tag_key: String,
    pub tag_value: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct UploadCertificateRequest {
    pub certificate_public_key: String,
    pub certificate_private_key: Option<String>,
    pub certificate_type: Option<String>,
    pub alias: Option<String>,
    pub project_id: Option<u64>,
    pub certificate_use: Option<String>,
    pub tags: Option<Vec<Tags>>,
    pub repeatable: Option<bool>,
    pub key_password: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct UploadCertificateResponse {
    pub certificate_id: Option<String>,
    pub repeat_cert_id: Option<String>,
}
