//! Rules in front of load balancers that do not answer at ports which they do not serve.

use uturn_clouds::unserved::Unserved;
use uturn_model::{Cluster, Family, LoadBalancer};

/// How the chains of these rules begin.
pub(crate) const UNSERVED_PORTS: &str = "UNSERVED-LB-";

/// Rules of the mangle table that drop new packets for such ports. Where a load balancer refuses them,
/// the kernel does so without a rule.
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
