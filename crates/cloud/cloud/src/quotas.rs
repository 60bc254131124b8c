//! Quotas of an account.

/// The most resources that an account may have in a region, and the most that it may delete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quotas {
    /// Public load balancers.
    pub public_load_balancers: usize,
    /// Private load balancers.
    pub private_load_balancers: usize,
    /// Listeners of a load balancer.
    pub listeners: usize,
    /// Rules of a listener.
    pub rules: usize,
    /// Targets of a rule, or of a listener on layer 4.
    pub targets: usize,
    /// Addresses of a load balancer that replace clients' addresses.
    pub snat_addresses: usize,
    /// Certificates, those of all regions together.
    pub certificates: usize,
    /// Custom configurations.
    pub custom_configs: usize,
    /// Load balancers that may be deleted within five minutes without `ForceDelete`.
    pub deletions: usize,
}

impl Default for Quotas {
    /// The published quotas of a new account; INF for certificates and custom configurations.
    fn default() -> Self {
        Self {
            public_load_balancers: 100,
            private_load_balancers: 100,
            listeners: 50,
            rules: 50,
            targets: 100,
            snat_addresses: 10,
            certificates: 500,
            custom_configs: 100,
            deletions: 30,
        }
    }
}
