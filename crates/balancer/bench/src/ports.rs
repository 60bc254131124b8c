//! The ports of the load balancer's listeners that honest and hostile clients call.

pub(crate) const HTTP: u16 = 80;
pub(crate) const HTTPS: u16 = 443;
pub(crate) const TCP_SSL: u16 = 444;
/// HTTP behind a proxy that sends PROXY headers.
pub(crate) const PROXIED: u16 = 81;
pub(crate) const TCP: u16 = 7000;
pub(crate) const UDP: u16 = 7001;
/// The port of the admin address.
pub(crate) const ADMIN: u16 = 9900;
