//! The API as the controllers call it.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use uturn_cloud::api::Action;
use uturn_cloud::client::{Answer, CallError, Client};

/// How long a task may take.
const TASK_LIMIT: Duration = Duration::from_secs(120);

/// Performs actions.
pub trait Api: Sync {
    /// Performs an action, and returns when its task is done.
    fn call<A: Action>(
        &self,
        request: &A,
    ) -> impl Future<Output = Result<Answer<A::Response>, CallError>> + Send;
}

impl Api for Client {
    async fn call<A: Action>(&self, request: &A) -> Result<Answer<A::Response>, CallError> {
        match is_synchronous(A::NAME) {
            true => Self::call(self, request).await,
            false => self.call_and_wait(request, TASK_LIMIT).await,
        }
    }
}

impl<T: Api + Send> Api for Arc<T> {
    async fn call<A: Action>(&self, request: &A) -> Result<Answer<A::Response>, CallError> {
        T::call(self, request).await
    }
}

/// Whether an action is done when it is answered. A batch of targets may be refused by the data
/// plane after it, so that its task is waited for too.
fn is_synchronous(action: &str) -> bool {
    action.starts_with("Describe")
}
