//! The ports of the load balancer that honest and hostile clients share.

pub(crate) const HTTP: u16 = 80;
pub(crate) const HTTPS: u16 = 443;
pub(crate) const TCP_SSL: u16 = 444;
/// HTTP behind a proxy that sends PROXY headers.
pub(crate) const PROXIED: u16 = 81;
pub(crate) const TCP: u16 = 7000;
pub(crate) const UDP: u16 = 7001;
/// The admin address's.
pub(crate) const ADMIN: u16 = 9900;
