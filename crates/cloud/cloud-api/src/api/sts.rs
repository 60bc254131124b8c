//! Requests and answers of the service `sts`, version 2018-08-13. Written by the test `typed_api` from
//! the schema; change that instead.

use serde::{Deserialize, Serialize};

use super::Action;

impl Action for GetCallerIdentityRequest {
    const SERVICE: &'static str = "sts";
    const VERSION: &'static str = "2018-08-13";
    const NAME: &'static str = "GetCallerIdentity";
    type Response = GetCallerIdentityResponse;
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct GetCallerIdentityRequest {}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct GetCallerIdentityResponse {
    pub arn: Option<String>,
    pub account_id: Option<String>,
    pub user_id: Option<String>,
    pub principal_id: Option<String>,
    pub r#type: Option<String>,
}
