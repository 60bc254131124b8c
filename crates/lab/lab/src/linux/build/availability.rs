//! Checks whether a lab can be built here, by trying once what every lab needs.

use std::fmt::Display;
use std::sync::OnceLock;

use uturn_lb::steer;

use crate::Unavailable;
use crate::linux::kernel::namespace::Namespace;
use crate::linux::kernel::netlink::{End, Netlink};
use crate::linux::kernel::tables;
use crate::linux::run::state::Run;

/// A rule with each match and target that a lab loads, except those of [`steer`].
const RULES: &str = "*nat\n\
    -A PREROUTING -p tcp -m statistic --mode nth --every 2 --packet 0 \
    -j DNAT --to-destination 192.0.2.1:80\n\
    -A POSTROUTING -m mark --mark 0x4000/0x4000 -j MASQUERADE\n\
    -A POSTROUTING -p tcp -m conntrack --ctstate DNAT --ctorigdst 192.0.2.1 \
    --ctorigdstport 80 -j SNAT --to-source 192.0.2.2\n\
    COMMIT\n\
    *mangle\n\
    -A PREROUTING -m conntrack --ctstate NEW -j CONNMARK --set-xmark 0x1/0x1\n\
    -A PREROUTING -m connmark --mark 0x1/0x1 -j MARK --set-xmark 0x1/0x1\n\
    COMMIT\n";

pub(crate) fn available() -> Result<(), Unavailable> {
    static ANSWER: OnceLock<Result<(), Unavailable>> = OnceLock::new();
    ANSWER.get_or_init(probe).clone()
}

fn probe() -> Result<(), Unavailable> {
    if !rustix::process::geteuid().is_root() {
        return Err(Unavailable::NotRoot);
    }
    if !tables::are_installed() {
        return Err(Unavailable::Missing { program: "iptables-restore", package: "iptables" });
    }
    let state = trying("keeping state under /run", Run::new())?;
    let space = |name| trying("making a network namespace", Namespace::new(state.namespace(name)));
    let (first, other) = (space("probe-1")?, space("probe-2")?);
    trying(
        "making a pair of links (veth)",
        first.run(|| {
            let end = |name| End { name, mac: [2, 0, 0, 0, 0, 1] };
            Netlink::open()?.add_pair(&end("a"), &end("b"), &other)
        }),
    )?;
    let bridge = || Netlink::open()?.add_bridge("cbr0", [2, 0, 0, 0, 0, 2]);
    trying("making a bridge", first.run(bridge))?;
    let sysctl = || Namespace::set_sysctl("net/bridge/bridge-nf-call-iptables", "1");
    trying("passing bridged packets to iptables (br_netfilter)", first.run(sysctl))?;
    let load = || tables::try_out(&(steer::rules() + RULES));
    let loaded = trying("starting iptables-restore", first.run(load))?;
    trying("loading rules with iptables-restore", loaded)
}

fn trying<T, E: Display>(tried: &str, result: Result<T, E>) -> Result<T, Unavailable> {
    result.map_err(|error| Unavailable::Kernel { tried: tried.into(), reason: error.to_string() })
}
