//! The status of tasks.

use uturn_cloud_api::clb::{DescribeTaskStatusRequest, DescribeTaskStatusResponse};
use uturn_cloud_api::wire::error::{ApiError, ErrorCode};

use super::check::given;
use super::deal;
use crate::state::{TaskStatus, Transaction};

/// `DescribeTaskStatus`: returns 0 for done, 1 for failed, 2 for running.
pub(super) fn describe_status(
    transaction: &mut Transaction<'_>,
    request: &DescribeTaskStatusRequest,
) -> Result<DescribeTaskStatusResponse, ApiError> {
    let task = match (given(request.task_id.as_ref()), given(request.deal_name.as_ref())) {
        (Some(id), None) => transaction.task(id).ok_or(id),
        (None, Some(name)) => deal::task(transaction, name).ok_or(name),
        (None, None) => {
            let message = "one of the parameters `TaskId` and `DealName` is needed";
            return Err(ApiError::new(ErrorCode::InvalidParameter, message));
        }
        (Some(_), Some(_)) => {
            let message = "only one of the parameters `TaskId` and `DealName` is allowed";
            return Err(ApiError::new(ErrorCode::InvalidParameter, message));
        }
    };
    let task = task.map_err(|name| {
        ApiError::new(ErrorCode::InvalidParameter, format!("the task {name} does not exist"))
    })?;
    let load_balancers = &task.load_balancers;
    Ok(DescribeTaskStatusResponse {
        status: Some(task.status_code(transaction.context.now)),
        load_balancer_ids: (!load_balancers.is_empty()).then(|| load_balancers.clone()),
        message: match &task.status {
            TaskStatus::Failed(reason) => Some(reason.clone()),
            TaskStatus::Serving => Some("the data plane has not taken it yet".to_owned()),
            TaskStatus::Done | TaskStatus::DoneAt(_) => transaction
                .context
                .task_time
                .filter(|_| !load_balancers.is_empty())
                .map(|_| "there is no data plane that serves it".to_owned()),
        },
    })
}
