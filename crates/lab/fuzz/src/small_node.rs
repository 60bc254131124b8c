//! The addresses and routes of a node with one card and a bridge for its pods, on which arbitrary rules are
//! walked.

/// The output of `ip addr` on the node.
pub(crate) const ADDRESSES: &str = "\
1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536
    inet 127.0.0.1/8 scope host lo
2: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500
    inet 10.0.0.11/24 scope global eth0
3: cbr0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500
    inet 10.1.1.1/24 scope global cbr0
";

/// The line of the node's default route.
pub(crate) const DEFAULT_ROUTE: &str = "default via 10.0.0.1 dev eth0\n";

/// The node's other routes, as `ip route` prints them after the default route.
pub(crate) const OTHER_ROUTES: &str = "\
10.0.0.0/24 dev eth0 proto kernel scope link src 10.0.0.11
10.1.1.0/24 dev cbr0 proto kernel scope link src 10.1.1.1
";
