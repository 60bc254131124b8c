//! Requests and answers of the service `cam`, version 2019-01-16. Written by the test `typed_api` from
//! the schema; change that instead.

use serde::{Deserialize, Serialize};

use super::Action;

impl Action for GetUserAppIdRequest {
    const SERVICE: &'static str = "cam";
    const VERSION: &'static str = "2019-01-16";
    const NAME: &'static str = "GetUserAppId";
    type Response = GetUserAppIdResponse;
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct GetUserAppIdRequest {}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct GetUserAppIdResponse {
    pub uin: Option<String>,
    pub owner_uin: Option<String>,
    pub app_id: Option<u64>,
}
