//! `DescribeListeners`.

use uturn_cloud_api::clb::{DescribeListenersRequest, DescribeListenersResponse};
use uturn_cloud_api::wire::error::{ApiError, ErrorCode};

use super::create::protocol;
use super::view;
use crate::actions::check::{self, given};
use crate::actions::find;
use crate::state::Transaction;

/// The most ids of a request.
const MAX_IDS: usize = 100;

/// `DescribeListeners`. Unknown ids of listeners are left out without an error.
pub(in crate::actions) fn describe(
    transaction: &mut Transaction<'_>,
    request: &DescribeListenersRequest,
) -> Result<DescribeListenersResponse, ApiError> {
    let ids = request.listener_ids.clone().unwrap_or_default();
    check::count("ListenerIds", &ids, 0..=MAX_IDS)?;
    let protocol = given(request.protocol.as_ref()).map(protocol).transpose()?;
    let port = request.port.filter(|port| *port != 0);
    let port = port.map(|port| check::port("Port", port)).transpose()?;
    let id = &request.load_balancer_id;
    let load_balancer = find::load_balancer(transaction, id, ErrorCode::LbIdNotFound)?;
    let listeners = load_balancer.listeners.iter().filter(|listener| {
        (ids.is_empty() || ids.contains(&listener.id))
            && protocol.is_none_or(|protocol| listener.protocol == protocol)
            && port.is_none_or(|port| listener.port == port)
    });
    let health = transaction.context.health;
    let listeners: Vec<_> = listeners
        .map(|listener| view::view(listener, health.unserved_listener(id, &listener.id)))
        .collect();
    let total_count = u64::try_from(listeners.len()).ok();
    Ok(DescribeListenersResponse { listeners: Some(listeners), total_count })
}
