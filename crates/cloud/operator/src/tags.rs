//! The tags by which the controllers find their load balancers again.

/// The tag of load balancers that the controllers made.
pub const CREATED_BY: &str = "tke-createdBy-flag";
/// The value of [`CREATED_BY`].
pub const CREATED: &str = "yes";
/// The tag with the cluster's id.
pub const CLUSTER: &str = "tke-clusterId";
/// The tag with which users keep a load balancer that the controllers made.
pub const LIFECYCLE_OWNER: &str = "tke-lifecycle-owner";
/// The value of [`LIFECYCLE_OWNER`] with which users keep a load balancer.
pub const USER: &str = "user";
/// The tag with a Service's UID.
pub const SERVICE_UID: &str = "tke-lb-serviceuuid";
/// The tag with an Ingress's UID.
pub const INGRESS_UID: &str = "tke-lb-ingress-uuid";
