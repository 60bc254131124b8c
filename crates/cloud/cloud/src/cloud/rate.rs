//! Limits the rate at which an account may call an action.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use uturn_cloud_api::wire::error::{ApiError, ErrorCode};

use super::route::Route;

/// Counts requests by account and action.
#[derive(Debug)]
pub(super) struct Rates {
    limit: Option<NonZeroU32>,
    counts: Mutex<HashMap<String, AccountCounts>>,
}

/// The requests of an account by service and action.
type AccountCounts = HashMap<(&'static str, &'static str), Count>;

/// The number of requests in one second.
#[derive(Clone, Copy, Debug)]
struct Count {
    second: i64,
    requests: u32,
}

impl Rates {
    pub(super) fn new(limit: Option<NonZeroU32>) -> Self {
        Self { limit, counts: Mutex::default() }
    }

    /// Counts a request, and refuses it beyond the limit of this second.
    pub(super) fn count(
        &self,
        account: &str,
        route: &Route,
        now: Timestamp,
    ) -> Result<(), ApiError> {
        let Some(limit) = self.limit else { return Ok(()) };
        let second = now.as_second();
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let counts = counts.entry(account.to_owned()).or_default();
        let count = counts
            .entry((&*route.service.name, route.action))
            .or_insert(Count { second, requests: 0 });
        if count.second != second {
            *count = Count { second, requests: 0 };
        }
        if count.requests >= limit.get() {
            let message = format!("{limit} requests a second are allowed of {}", route.action);
            return Err(ApiError::new(ErrorCode::RequestLimitExceeded, message));
        }
        count.requests += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;
    use uturn_cloud_api::schema::services;

    #[test]
    fn each_account_may_call_each_action_so_often_in_a_second() {
        let rates = Rates::new(NonZeroU32::new(2));
        let start = Timestamp::from_second(1_760_000_000).unwrap();
        let count = |account: &str, action: &str, milliseconds: i64| {
            let service = &services()[0];
            let route = Route { service, action: service.actions.get(action).unwrap() };
            let now = start + SignedDuration::from_millis(milliseconds);
            rates.count(account, &route, now).map_err(|error| error.code)
        };
        let refused = Err(ErrorCode::RequestLimitExceeded);
        assert_eq!(count("a", "DescribeQuota", 0), Ok(()));
        assert_eq!(count("a", "DescribeQuota", 500), Ok(()));
        assert_eq!(count("a", "DescribeQuota", 999), refused);
        assert_eq!(count("a", "DescribeListeners", 999), Ok(()), "another action");
        assert_eq!(count("b", "DescribeQuota", 999), Ok(()), "another account");
        assert_eq!(count("a", "DescribeQuota", 1_000), Ok(()), "another second");
    }

    #[test]
    fn without_a_limit_all_may_call() {
        let rates = Rates::new(None);
        let service = &services()[0];
        let route = Route { service, action: service.actions.first().unwrap() };
        let now = Timestamp::from_second(1_760_000_000).unwrap();
        assert!((0..1_000).all(|_| rates.count("a", &route, now).is_ok()));
    }
}
