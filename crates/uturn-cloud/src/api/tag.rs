//! Requests and answers of the service `tag`, version 2018-08-13. Written by the test `typed_api` from
//! the schema; change that instead.

use serde::{Deserialize, Serialize};

use super::Action;

impl Action for GetResourcesRequest {
    const SERVICE: &'static str = "tag";
    const VERSION: &'static str = "2018-08-13";
    const NAME: &'static str = "GetResources";
    type Response = GetResourcesResponse;
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
