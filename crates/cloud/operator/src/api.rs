//! The API in the form in which the controllers call it.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use uturn_cloud_api::Action;
use uturn_cloud_api::client::{Answer, CallError, Client};

/// The longest duration of a task.
const TASK_LIMIT: Duration = Duration::from_secs(120);

/// A client of the API.
pub trait Api: Sync {
    /// Performs an action, and returns when its task is done.
    fn call<A: Action>(
        &self,
        request: &A,
    ) -> impl Future<Output = Result<Answer<A::Response>, CallError>> + Send;
}

impl Api for Client {
    async fn call<A: Action>(&self, request: &A) -> Result<Answer<A::Response>, CallError> {
        if is_synchronous(A::NAME) {
            Self::call(self, request).await
        } else {
            self.call_and_wait(request, TASK_LIMIT).await
        }
    }
}

impl<T: Api + Send> Api for Arc<T> {
    async fn call<A: Action>(&self, request: &A) -> Result<Answer<A::Response>, CallError> {
        T::call(self, request).await
    }
}

/// Returns whether an action is done when it is answered. The data plane may refuse a batch of
/// targets after the answer, so that its task is waited for too.
fn is_synchronous(action: &str) -> bool {
    action.starts_with("Describe")
}
