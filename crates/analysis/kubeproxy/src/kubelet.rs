//! The rules of kubelet that older kube-proxies depend on.
//!
//! These kube-proxies dropped nothing themselves: they marked packets in the nat table, and
//! kubelet's rules dropped marked packets.

use uturn_model::Family;

use crate::text::{Chain, Mark, Table};

/// The nat table's chain that marks.
pub(crate) const MARK_DROP: Chain = Chain::named("KUBE-MARK-DROP");

/// The filter table's chain that drops.
pub(crate) const FIREWALL: Chain = Chain::named("KUBE-FIREWALL");

/// The rules of built-in chains that lead to it; they come first.
pub(crate) const INPUT_JUMP: &str = "-A INPUT -j KUBE-FIREWALL\n";
/// See [`INPUT_JUMP`].
pub(crate) const OUTPUT_JUMP: &str = "-A OUTPUT -j KUBE-FIREWALL\n";

/// `iptablesDropBit` is 15 unless kubelet is configured otherwise.
const MARK: Mark = Mark(0x8000, 0x8000);

/// Marks in one table and drops in the other.
pub(crate) fn drop_marked(nat: &mut Table, filter: &mut Table, family: Family) {
    nat.add(MARK_DROP).words("-j MARK").display(" --set-xmark ", MARK).finish();
    filter
        .add(FIREWALL)
        .comment(&["kubernetes firewall for dropping marked packets"])
        .display(" -m mark --mark ", MARK)
        .end("DROP");
    if family == Family::V4 {
        guard_localhost(filter);
    }
}

/// Drops packets from other hosts to localhost, except to NodePorts. Later kube-proxies have this
/// rule themselves.
pub(crate) fn guard_localhost(filter: &mut Table) {
    filter
        .add(FIREWALL)
        .words("! -s 127.0.0.0/8 -d 127.0.0.0/8")
        .comment(&["block incoming localnet connections"])
        .words("-m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT")
        .end("DROP");
}
