//! The writer of iptables mode.
//!
//! `port` writes what every Service port adds to the shared chains, and the port's own chains;
//! `endpoints` writes how these lead to endpoints (`xlb` for versions of kube-proxy before v1.24);
//! this file writes the rules that exist without any Service.

mod endpoints;
mod port;
mod probability;
mod xlb;

use uturn_model::{Family, ProxySettings};

use crate::features::Iptables;
use crate::kubelet::{self, FIREWALL, MARK_DROP};
use crate::plan::{Local, NodePortsOn, Plan};
use crate::text::{Chain, Mark, Rule, Table, accept_replies, accept_replies_of_pods};
use crate::{Options, Program};
use port::PortWriter;

/// The number of endpoints above which kube-proxy omits comments that name Services.
const MAX_ENDPOINTS_WITH_REMARKS: usize = 1000;

const CANARY: Chain = Chain::named("KUBE-PROXY-CANARY");
const SERVICES: Chain = Chain::named("KUBE-SERVICES");
const NODE_PORTS: Chain = Chain::named("KUBE-NODEPORTS");
const POSTROUTING: Chain = Chain::named("KUBE-POSTROUTING");
const MARK_MASQ: Chain = Chain::named("KUBE-MARK-MASQ");
const EXTERNAL_SERVICES: Chain = Chain::named("KUBE-EXTERNAL-SERVICES");
const PROXY_FIREWALL: Chain = Chain::named("KUBE-PROXY-FIREWALL");
const FORWARD: Chain = Chain::named("KUBE-FORWARD");

/// The tables of one family.
struct Tables {
    filter: Table,
    nat: Table,
}

/// Writes the rules of a plan.
pub(crate) fn write(
    plan: &Plan<'_>,
    settings: &ProxySettings,
    features: Iptables,
    options: Options,
) -> Program {
    let options = Options { accounting: options.accounting && features.accounts, ..options };
    let mut tables = tables(features);
    let writer = PortWriter::new(plan, settings, features, options);
    for port in &plan.ports {
        writer.write(port, &mut tables);
    }
    node_ports(plan, features, &mut tables.nat);
    masquerade(settings, &mut tables.nat);
    forward(settings, &plan.node.local, features, options, &mut tables.filter);
    if !features.drops_in_filter {
        kubelet::drop_marked(&mut tables.nat, &mut tables.filter, plan.family);
    } else if features.guards_localhost && plan.node.localhost {
        kubelet::guard_localhost(&mut tables.filter);
    }
    let mut sysctls = Vec::new();
    if plan.node.localhost || !features.spares_route_localnet {
        sysctls.push(("net.ipv4.conf.all.route_localnet".to_owned(), "1".to_owned()));
    }
    if settings.conntrack_tcp_be_liberal {
        sysctls.push(("net.netfilter.nf_conntrack_tcp_be_liberal".to_owned(), "1".to_owned()));
    }
    Program { iptables: print(&tables, features), sysctls, ..Program::default() }
}

fn tables(features: Iptables) -> Tables {
    let mut filter = vec![CANARY, SERVICES, NODE_PORTS, EXTERNAL_SERVICES, FORWARD];
    let mut nat = vec![CANARY, SERVICES, NODE_PORTS, POSTROUTING, MARK_MASQ];
    if features.drops_in_filter {
        filter.push(PROXY_FIREWALL);
    } else {
        nat.push(MARK_DROP);
    }
    if has_firewall(features) {
        filter.push(FIREWALL);
    }
    Tables { filter: Table::new("filter", &filter), nat: Table::new("nat", &nat) }
}

/// Returns whether KUBE-FIREWALL exists: as kubelet's, or as kube-proxy's own.
fn has_firewall(features: Iptables) -> bool {
    features.guards_localhost || !features.drops_in_filter
}

fn print(tables: &Tables, features: Iptables) -> String {
    let mut out = String::new();
    let all = ["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"];
    Table::new("mangle", &[CANARY]).print(&all, "", &mut out);
    let is_there = |line: &&str| {
        let (chain, target) = jump(line);
        match target {
            "KUBE-PROXY-FIREWALL" => features.drops_in_filter,
            "KUBE-FIREWALL" => has_firewall(features),
            "KUBE-SERVICES" => match chain {
                "FORWARD" => features.refuses_forwarded,
                "INPUT" => features.refuses_incoming,
                _ => true,
            },
            "KUBE-EXTERNAL-SERVICES" => chain != "FORWARD" || features.refuses_external_forwarded,
            _ => true,
        }
    };
    let jumps: String = FILTER_JUMPS.split_inclusive('\n').filter(is_there).collect();
    tables.filter.print(&["INPUT", "FORWARD", "OUTPUT"], &jumps, &mut out);
    tables.nat.print(&["PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"], NAT_JUMPS, &mut out);
    out
}

/// Returns the chain that contains a rule, and the chain to which it jumps.
fn jump(line: &str) -> (&str, &str) {
    let mut words = line.split_whitespace();
    (words.nth(1).unwrap_or_default(), words.next_back().unwrap_or_default())
}

/// Writes the last rules of KUBE-SERVICES, for addresses of the node itself.
fn node_ports(plan: &Plan<'_>, features: Iptables, nat: &mut Table) {
    let remark = ["kubernetes service nodeports; NOTE: this must be the last rule in this chain"];
    match &plan.node.node_ports {
        NodePortsOn::All => {
            let rule = nat.add(SERVICES);
            let rule = match (plan.family, plan.node.localhost) {
                (Family::V6, _) if features.spares_v6_localhost => rule.words("! -d ::1/128"),
                (Family::V6, _) => rule,
                (Family::V4, false) => rule.words("! -d 127.0.0.0/8"),
                (Family::V4, true) => rule,
            };
            rule.comment(&remark).words("-m addrtype --dst-type LOCAL").jump(NODE_PORTS);
        }
        NodePortsOn::These(addresses) => {
            for address in addresses {
                nat.add(SERVICES).destination(*address).comment(&remark).jump(NODE_PORTS);
            }
        }
    }
}

/// Writes the rules that mark packets, and masquerade marked packets when they leave.
fn masquerade(settings: &ProxySettings, nat: &mut Table) {
    let mark = settings.masquerade_mark();
    nat.add(MARK_MASQ).words("-j MARK").display(" --set-xmark ", Mark(mark, mark)).finish();
    nat.add(POSTROUTING).words("-m mark !").display(" --mark ", Mark(mark, mark)).end("RETURN");
    nat.add(POSTROUTING).words("-j MARK").display(" --set-xmark ", Mark(mark, 0)).finish();
    nat.add(POSTROUTING)
        .comment(&["kubernetes service traffic requiring SNAT"])
        .end("MASQUERADE --random-fully");
}

/// Writes the rules that accept Service traffic even if the node's FORWARD policy is DROP.
fn forward(
    settings: &ProxySettings,
    local: &Local<'_>,
    features: Iptables,
    options: Options,
    filter: &mut Table,
) {
    if features.drops_invalid && !(settings.conntrack_tcp_be_liberal && features.heeds_liberal) {
        let rule = filter.add(FORWARD).words("-m conntrack --ctstate INVALID");
        accounted(rule, options, "ct_state_invalid_dropped_pkts").end("DROP");
    }
    let mark = settings.masquerade_mark();
    filter
        .add(FORWARD)
        .comment(&["kubernetes forwarding rules"])
        .display(" -m mark --mark ", Mark(mark, mark))
        .end("ACCEPT");
    match local {
        _ if features.accepts_all_replies => {
            accept_replies(filter, FORWARD, features.one_reply_rule);
        }
        Local::Range(range) => accept_replies_of_pods(filter, FORWARD, range),
        _ => {}
    }
}

/// Adds a match that counts packets with nfacct, if the kernel supports it.
fn accounted<'t>(rule: Rule<'t>, options: Options, object: &str) -> Rule<'t> {
    if options.accounting {
        // Two blanks, as `iptables-save` prints it.
        rule.display(" -m nfacct --nfacct-name  ", object)
    } else {
        rule
    }
}

/// The jumps of the filter table. kube-proxy inserts each jump before the existing ones, so the
/// last of its list is first.
const FILTER_JUMPS: &str = "\
-A INPUT -j KUBE-FIREWALL
-A INPUT -m conntrack --ctstate NEW -m comment --comment \"kubernetes load balancer firewall\" -j KUBE-PROXY-FIREWALL
-A INPUT -m comment --comment \"kubernetes health check service ports\" -j KUBE-NODEPORTS
-A INPUT -m conntrack --ctstate NEW -m comment --comment \"kubernetes service portals\" -j KUBE-SERVICES
-A INPUT -m conntrack --ctstate NEW -m comment --comment \"kubernetes externally-visible service portals\" -j KUBE-EXTERNAL-SERVICES
-A FORWARD -m conntrack --ctstate NEW -m comment --comment \"kubernetes load balancer firewall\" -j KUBE-PROXY-FIREWALL
-A FORWARD -m comment --comment \"kubernetes forwarding rules\" -j KUBE-FORWARD
-A FORWARD -m conntrack --ctstate NEW -m comment --comment \"kubernetes service portals\" -j KUBE-SERVICES
-A FORWARD -m conntrack --ctstate NEW -m comment --comment \"kubernetes externally-visible service portals\" -j KUBE-EXTERNAL-SERVICES
-A OUTPUT -j KUBE-FIREWALL
-A OUTPUT -m conntrack --ctstate NEW -m comment --comment \"kubernetes load balancer firewall\" -j KUBE-PROXY-FIREWALL
-A OUTPUT -m conntrack --ctstate NEW -m comment --comment \"kubernetes service portals\" -j KUBE-SERVICES
";

const NAT_JUMPS: &str = "\
-A PREROUTING -m comment --comment \"kubernetes service portals\" -j KUBE-SERVICES
-A OUTPUT -m comment --comment \"kubernetes service portals\" -j KUBE-SERVICES
-A POSTROUTING -m comment --comment \"kubernetes postrouting rules\" -j KUBE-POSTROUTING
";
