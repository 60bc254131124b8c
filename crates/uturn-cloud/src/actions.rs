//! What the actions do. Each takes its request, reads and changes the account through a
//! [`Transaction`], and returns its answer.

mod check;
mod filter;
mod find;
pub mod targets;
mod tasks;
mod time;

use serde_json::{Map, Value};

use crate::api::{Action, clb};
use crate::state::Transaction;
use crate::wire::error::{ApiError, ErrorCode};

/// Declares [`perform`] with the function of each request.
macro_rules! actions {
    ($($request:path => $handler:path,)*) => {
        /// Performs an action. The parameters were held against the schema.
        ///
        /// # Errors
        ///
        /// Returns the error that the request is answered with. What the transaction collected
        /// until then has to be dropped.
        pub fn perform(
            transaction: &mut Transaction<'_>,
            service: &str,
            action: &str,
            parameters: Value,
        ) -> Result<Map<String, Value>, ApiError> {
            match (service, action) {
                $((<$request as Action>::SERVICE, <$request as Action>::NAME) => {
                    typed::<$request>(transaction, parameters, $handler)
                })*
                _ => {
                    let message = format!("this server does not perform {service} {action}");
                    Err(ApiError::new(ErrorCode::UnsupportedOperation, message))
                }
            }
        }

        /// The actions that are performed: services and names.
        pub const PERFORMED: &[(&str, &str)] =
            &[$((<$request as Action>::SERVICE, <$request as Action>::NAME),)*];
    };
}

actions! {
    clb::DescribeTaskStatusRequest => tasks::describe_status,
    clb::RegisterTargetsRequest => targets::register,
    clb::DeregisterTargetsRequest => targets::deregister,
    clb::ModifyTargetWeightRequest => targets::modify_weight,
    clb::ModifyTargetPortRequest => targets::modify_port,
    clb::BatchRegisterTargetsRequest => targets::register_batch,
    clb::BatchDeregisterTargetsRequest => targets::deregister_batch,
    clb::BatchModifyTargetWeightRequest => targets::modify_weights,
    clb::BatchModifyTargetTagRequest => targets::modify_tags,
    clb::DescribeTargetsRequest => targets::describe,
    clb::DescribeTargetHealthRequest => targets::describe_health,
}

fn typed<A: Action>(
    transaction: &mut Transaction<'_>,
    parameters: Value,
    handler: fn(&mut Transaction<'_>, &A) -> Result<A::Response, ApiError>,
) -> Result<Map<String, Value>, ApiError> {
    let internal = |error: serde_json::Error| {
        let message = format!("{}: {error}", A::NAME);
        ApiError::new(ErrorCode::InternalError, message)
    };
    // Members that are `null` are absent.
    let request: A = serde_json::from_value(parameters).map_err(internal)?;
    let response = handler(transaction, &request)?;
    match serde_json::to_value(response).map_err(internal)? {
        Value::Object(members) => Ok(members),
        _ => Ok(Map::new()),
    }
}
