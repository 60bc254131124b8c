//! cam `GetUserAppId` and sts `GetCallerIdentity`: the numbers of the account that signed.

use sha2::{Digest as _, Sha256};

use crate::api::cam::{GetUserAppIdRequest, GetUserAppIdResponse};
use crate::api::sts::{GetCallerIdentityRequest, GetCallerIdentityResponse};
use crate::state::Transaction;
use crate::wire::error::ApiError;

/// `GetUserAppId`. An account has no users beside its owner.
pub(in crate::actions) fn describe(
    transaction: &mut Transaction<'_>,
    _: &GetUserAppIdRequest,
) -> Result<GetUserAppIdResponse, ApiError> {
    let account = transaction.context.account;
    let uin = uin(account);
    Ok(GetUserAppIdResponse {
        uin: Some(uin.clone()),
        owner_uin: Some(uin),
        app_id: Some(1_250_000_000 + digits(account, 50_000_000)),
    })
}

/// `GetCallerIdentity`. INF: an owner's name has its number twice, as a user's has the owner's and
/// its own.
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

/// The number of an account: its name, where that is one, or a number of twelve digits that the
/// name determines.
pub(super) fn uin(account: &str) -> String {
    let is_number = !account.is_empty() && account.bytes().all(|byte| byte.is_ascii_digit());
    match is_number {
        true => account.to_owned(),
        false => format!("100{:09}", digits(account, 1_000_000_000)),
    }
}

/// A number below another one that a text determines.
pub(in crate::actions) fn digits(text: &str, below: u64) -> u64 {
    let hash = Sha256::digest(text.as_bytes());
    let number = hash.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte));
    number % below
}
