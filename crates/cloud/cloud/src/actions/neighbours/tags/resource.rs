//! Resources by their six-segment names: `qcs::clb:REGION:uin/ACCOUNT:clb/ID`.

use uturn_cloud_api::wire::error::{ApiError, ErrorCode};

use super::super::account;
use crate::state::Transaction;

/// The service that load balancers belong to.
pub(super) const SERVICE: &str = "clb";

/// The load balancer of a name. It need not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Resource<'r> {
    pub(super) region: &'r str,
    pub(super) id: &'r str,
}

impl<'r> Resource<'r> {
    /// Parses a name.
    ///
    /// # Errors
    ///
    /// Returns the error for the wrong segment: another service, an unknown region, an account
    /// other than the caller's, or a resource that is not a load balancer.
    pub(super) fn parse(name: &'r str, transaction: &Transaction<'_>) -> Result<Self, ApiError> {
        let error = |code, what| error(name, code, what);
        let [service, region, owner, resource] = segments(name)?;
        if service != SERVICE {
            return Err(error(ErrorCode::ServiceTypeInvalid, "is of another service"));
        }
        if !transaction.context.inventory.has_region(region) {
            return Err(error(ErrorCode::RegionInvalid, "is in no region that is there"));
        }
        let number = owner.strip_prefix("uin/").unwrap_or(owner);
        if !number.is_empty() && number != account::uin(transaction.context.account) {
            return Err(error(ErrorCode::UinInvalid, "is of another account"));
        }
        let Some(id) = resource.strip_prefix("clb/") else {
            return Err(error(ErrorCode::ResourcePrefixInvalid, "is not a load balancer"));
        };
        Ok(Self { region, id })
    }
}

/// Returns whether a name is of a resource of another service, which is not known here.
pub(super) fn is_of_another_service(name: &str) -> Result<bool, ApiError> {
    let [service, ..] = segments(name)?;
    Ok(service != SERVICE)
}

/// Returns the service, the region, the owner and the resource in a name.
fn segments(name: &str) -> Result<[&str; 4], ApiError> {
    let segments: Vec<&str> = name.split(':').collect();
    let ["qcs", _, service, region, owner, resource] = segments[..] else {
        return Err(error(name, ErrorCode::ResourceDescriptionError, "has not six segments"));
    };
    Ok([service, region, owner, resource])
}

fn error(name: &str, code: ErrorCode, what: &str) -> ApiError {
    let expected = "expected qcs::clb:REGION:uin/ACCOUNT:clb/ID";
    ApiError::new(code, format!("the resource {name:?} {what}; {expected}"))
}

/// Returns the name of a load balancer.
pub(super) fn name(transaction: &Transaction<'_>, region: &str, id: &str) -> String {
    let uin = account::uin(transaction.context.account);
    format!("qcs::clb:{region}:uin/{uin}:clb/{id}")
}
