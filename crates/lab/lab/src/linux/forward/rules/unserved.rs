//! Rules for load balancers that do not answer at ports without a listener.

use uturn_clouds::unserved::Unserved;
use uturn_model::{Cluster, Family, LoadBalancer};

/// The prefix of the chains of these rules.
pub(crate) const UNSERVED_PORTS: &str = "UNSERVED-LB-";

/// Returns rules of the mangle table that drop new packets for such ports. If a load balancer
/// refuses them instead, the kernel does so without a rule.
pub(super) fn ports(cluster: &Cluster, all: &[LoadBalancer], family: Family) -> String {
    let mut text = String::new();
    for (number, lb) in all.iter().enumerate().filter(|(_, lb)| Family::of(lb.vip) == family) {
        if !Unserved::of(cluster, lb).is_silent() {
            continue;
        }
        let (chain, vip) = (format!("{UNSERVED_PORTS}{number}"), lb.vip);
        text += &format!(
            ":{chain} - [0:0]\n\
             -A PREROUTING -d {vip} -m conntrack --ctstate NEW -j {chain}\n"
        );
        for listener in &lb.listeners {
            let protocol = listener.protocol.transport().lower();
            let port = listener.port;
            text += &format!("-A {chain} -p {protocol} -m {protocol} --dport {port} -j RETURN\n");
        }
        for protocol in ["tcp", "udp", "sctp"] {
            text += &format!("-A {chain} -p {protocol} -j DROP\n");
        }
    }
    text
}
