//! The rules of kubelet on which older versions of kube-proxy depend.
//!
//! These versions dropped nothing themselves: they marked packets in the nat table, and kubelet's
//! rules dropped marked packets.

use uturn_model::Family;

use crate::text::{Chain, Mark, Table};

/// The chain of the nat table that marks packets to be dropped.
pub(crate) const MARK_DROP: Chain = Chain::named("KUBE-MARK-DROP");

/// The chain of the filter table that drops marked packets.
pub(crate) const FIREWALL: Chain = Chain::named("KUBE-FIREWALL");

/// The jump to [`FIREWALL`] from the built-in chain INPUT; it comes first.
pub(crate) const INPUT_JUMP: &str = "-A INPUT -j KUBE-FIREWALL\n";
/// The jump to [`FIREWALL`] from the built-in chain OUTPUT; it comes first.
pub(crate) const OUTPUT_JUMP: &str = "-A OUTPUT -j KUBE-FIREWALL\n";

/// The mark of packets to drop: `iptablesDropBit` is 15 unless kubelet is configured otherwise.
const MARK: Mark = Mark(0x8000, 0x8000);

/// Writes the rules that mark packets in the nat table and drop them in the filter table.
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

/// Writes the rule that drops packets from other hosts to localhost, except to NodePorts. Later
/// versions of kube-proxy write this rule themselves.
pub(crate) fn guard_localhost(filter: &mut Table) {
    filter
        .add(FIREWALL)
        .words("! -s 127.0.0.0/8 -d 127.0.0.0/8")
        .comment(&["block incoming localnet connections"])
        .words("-m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT")
        .end("DROP");
}
