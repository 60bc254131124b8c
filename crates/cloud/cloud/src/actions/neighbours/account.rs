//! cam `GetUserAppId` and sts `GetCallerIdentity`: the numbers of the caller's account.

use uturn_cloud_api::cam::{GetUserAppIdRequest, GetUserAppIdResponse};
use uturn_cloud_api::sts::{GetCallerIdentityRequest, GetCallerIdentityResponse};
use uturn_cloud_api::wire::error::ApiError;

use crate::actions::number::number_of;
use crate::state::Transaction;

/// `GetUserAppId`. An account has no users except its owner.
pub(in crate::actions) fn describe(
    transaction: &mut Transaction<'_>,
    _: &GetUserAppIdRequest,
) -> Result<GetUserAppIdResponse, ApiError> {
    let account = transaction.context.account;
    let uin = uin(account);
    Ok(GetUserAppIdResponse {
        uin: Some(uin.clone()),
        owner_uin: Some(uin),
        app_id: Some(1_250_000_000 + number_of(account, 50_000_000)),
    })
}

/// `GetCallerIdentity`. INF: an owner's ARN has the owner's number twice, as a user's has the
/// owner's and the user's.
pub(in crate::actions) fn describe_caller(
    transaction: &mut Transaction<'_>,
    _: &GetCallerIdentityRequest,
) -> Result<GetCallerIdentityResponse, ApiError> {
    let uin = uin(transaction.context.account);
    Ok(GetCallerIdentityResponse {
        arn: Some(format!("qcs::cam::uin/{uin}:uin/{uin}")),
        account_id: Some(uin.clone()),
        user_id: Some(uin.clone()),
        principal_id: Some(uin),
        r#type: Some("CAMUser".to_owned()),
    })
}

/// Returns the number of an account: its name if that is a number, otherwise a number of twelve
/// digits that is derived from the name.
pub(super) fn uin(account: &str) -> String {
    let is_number = !account.is_empty() && account.bytes().all(|byte| byte.is_ascii_digit());
    if is_number {
        account.to_owned()
    } else {
        format!("100{:09}", number_of(account, 1_000_000_000))
    }
}
