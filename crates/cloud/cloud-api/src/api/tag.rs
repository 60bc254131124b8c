//! Requests and answers of the service `tag`, version 2018-08-13. Written by the test `typed_api` from
//! the schema; change that instead.

use serde::{Deserialize, Serialize};

use super::Action;

impl Action for DescribeResourceTagsRequest {
    const SERVICE: &'static str = "tag";
    const VERSION: &'static str = "2018-08-13";
    const NAME: &'static str = "DescribeResourceTags";
    type Response = DescribeResourceTagsResponse;
}

impl Action for DescribeResourceTagsByResourceIdsRequest {
    const SERVICE: &'static str = "tag";
    const VERSION: &'static str = "2018-08-13";
    const NAME: &'static str = "DescribeResourceTagsByResourceIds";
    type Response = DescribeResourceTagsByResourceIdsResponse;
}

impl Action for GetResourcesRequest {
    const SERVICE: &'static str = "tag";
    const VERSION: &'static str = "2018-08-13";
    const NAME: &'static str = "GetResources";
    type Response = GetResourcesResponse;
}

impl Action for GetTagKeysRequest {
    const SERVICE: &'static str = "tag";
    const VERSION: &'static str = "2018-08-13";
    const NAME: &'static str = "GetTagKeys";
    type Response = GetTagKeysResponse;
}

impl Action for GetTagValuesRequest {
    const SERVICE: &'static str = "tag";
    const VERSION: &'static str = "2018-08-13";
    const NAME: &'static str = "GetTagValues";
    type Response = GetTagValuesResponse;
}

impl Action for GetTagsRequest {
    const SERVICE: &'static str = "tag";
    const VERSION: &'static str = "2018-08-13";
    const NAME: &'static str = "GetTags";
    type Response = GetTagsResponse;
}

impl Action for ModifyResourceTagsRequest {
    const SERVICE: &'static str = "tag";
    const VERSION: &'static str = "2018-08-13";
    const NAME: &'static str = "ModifyResourceTags";
    type Response = ModifyResourceTagsResponse;
}

impl Action for TagResourcesRequest {
    const SERVICE: &'static str = "tag";
    const VERSION: &'static str = "2018-08-13";
    const NAME: &'static str = "TagResources";
    type Response = TagResourcesResponse;
}

impl Action for UnTagResourcesRequest {
    const SERVICE: &'static str = "tag";
    const VERSION: &'static str = "2018-08-13";
    const NAME: &'static str = "UnTagResources";
    type Response = UnTagResourcesResponse;
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DescribeResourceTagsByResourceIdsRequest {
    pub service_type: String,
    pub resource_prefix: String,
    pub resource_ids: Vec<String>,
    pub resource_region: String,
    pub offset: Option<u64>,
    pub limit: Option<u64>,
    pub category: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DescribeResourceTagsByResourceIdsResponse {
    pub total_count: Option<u64>,
    pub offset: Option<u64>,
    pub limit: Option<u64>,
    pub tags: Option<Vec<TagResource>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DescribeResourceTagsRequest {
    pub create_uin: Option<u64>,
    pub resource_region: Option<String>,
    pub service_type: Option<String>,
    pub resource_prefix: Option<String>,
    pub resource_id: Option<String>,
    pub offset: Option<u64>,
    pub limit: Option<u64>,
    pub cos_resource_id: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct DescribeResourceTagsResponse {
    pub total_count: Option<u64>,
    pub offset: Option<u64>,
    pub limit: Option<u64>,
    pub rows: Option<Vec<TagResource>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct FailedResource {
    pub resource: String,
    pub code: String,
    pub message: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct GetResourcesRequest {
    pub resource_list: Option<Vec<String>>,
    pub tag_filters: Option<Vec<TagFilter>>,
    pub pagination_token: Option<String>,
    pub max_results: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct GetResourcesResponse {
    pub pagination_token: Option<String>,
    pub resource_tag_mapping_list: Option<Vec<ResourceTagMapping>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct GetTagKeysRequest {
    pub pagination_token: Option<String>,
    pub max_results: Option<u64>,
    pub category: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct GetTagKeysResponse {
    pub pagination_token: Option<String>,
    pub tag_keys: Option<Vec<String>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct GetTagValuesRequest {
    pub tag_keys: Vec<String>,
    pub pagination_token: Option<String>,
    pub max_results: Option<u64>,
    pub category: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct GetTagValuesResponse {
    pub pagination_token: Option<String>,
    pub tags: Option<Vec<Tag>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct GetTagsRequest {
    pub pagination_token: Option<String>,
    pub max_results: Option<u64>,
    pub tag_keys: Option<Vec<String>>,
    pub category: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct GetTagsResponse {
    pub pagination_token: Option<String>,
    pub tags: Option<Vec<Tag>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ModifyResourceTagsRequest {
    pub resource: String,
    pub replace_tags: Option<Vec<Tag>>,
    pub delete_tags: Option<Vec<TagKeyObject>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ModifyResourceTagsResponse {}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ResourceTagMapping {
    pub resource: Option<String>,
    pub tags: Option<Vec<Tag>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Tag {
    pub tag_key: String,
    pub tag_value: String,
    pub category: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct TagFilter {
    pub tag_key: String,
    pub tag_value: Option<Vec<String>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct TagKeyObject {
    pub tag_key: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct TagResource {
    pub tag_key: Option<String>,
    pub tag_value: Option<String>,
    pub resource_id: Option<String>,
    pub tag_key_md5: Option<String>,
    pub tag_value_md5: Option<String>,
    pub service_type: Option<String>,
    pub category: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct TagResourcesRequest {
    pub resource_list: Vec<String>,
    pub tags: Vec<Tag>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct TagResourcesResponse {
    pub failed_resources: Option<Vec<FailedResource>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct UnTagResourcesRequest {
    pub resource_list: Vec<String>,
    pub tag_keys: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct UnTagResourcesResponse {
    pub failed_resources: Option<Vec<FailedResource>>,
}
