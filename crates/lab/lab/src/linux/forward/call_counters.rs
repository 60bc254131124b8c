//! Counts the connections to a load balancer's address in the fabric, so that "it never leaves
//! the node" is measured.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use uturn_model::Family;

use crate::LabError;
use crate::linux::kernel::namespace::Namespace;
use crate::linux::kernel::system::During;
use crate::linux::kernel::tables;

/// A source and a destination whose packets are counted.
pub(crate) type Call = (IpAddr, SocketAddr);

/// Returns rules of the mangle table that count packets which begin a connection.
pub(crate) fn rules(calls: &BTreeSet<Call>, family: Family) -> String {
    let of_family = calls.iter().filter(|(source, _)| Family::of(*source) == family);
    let rule = |(source, to): &Call| {
        let (ip, port) = (to.ip(), to.port());
        let label = label(*source, *to);
        let of = |protocol: &str| {
            format!(
                "-A PREROUTING -s {source} -d {ip} -p {protocol} -m {protocol} --dport {port} \
                 -m conntrack --ctstate NEW -m comment --comment \"{label}\"\n"
            )
        };
        of("tcp") + &of("udp")
    };
    let rules: String = of_family.map(rule).collect();
    format!("*mangle\n{rules}COMMIT\n")
}

/// Returns the number of packets of each call.
pub(crate) fn read(
    fabric: &Namespace,
    calls: &BTreeSet<Call>,
) -> Result<BTreeMap<Call, u64>, LabError> {
    let doing = "count who called the load balancers";
    let mut counts = BTreeMap::new();
    for family in Family::BOTH {
        let of_family = || calls.iter().filter(|(source, _)| Family::of(*source) == family);
        if of_family().next().is_none() {
            continue;
        }
        let text = fabric.run(|| tables::save(family, &["-c", "-t", "mangle"])).during(doing)?;
        for call in of_family() {
            let label = format!("\"{}\"", label(call.0, call.1));
            let lines = text.lines().filter(|line| line.contains(&label));
            let each: Option<Vec<u64>> = lines.map(packets).collect();
            let count = each.filter(|each| !each.is_empty()).ok_or_else(|| LabError::Program {
                doing: doing.into(),
                reason: format!("the table mangle does not show the rule {label}"),
            })?;
            let count = count.iter().sum();
            counts.insert(*call, count);
        }
    }
    Ok(counts)
}

/// Returns a comment that names the call.
fn label(source: IpAddr, to: SocketAddr) -> String {
    format!("{source} calls {to}")
}

/// Returns the packets of a rule: 12 for `[12:720] -A …`.
fn packets(line: &str) -> Option<u64> {
    line.strip_prefix('[')?.split_once(':')?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read() {
        assert_eq!(packets("[12:720] -A PREROUTING -s 10.1.1.10/32"), Some(12));
        assert_eq!(packets("-A PREROUTING"), None);
    }
}
