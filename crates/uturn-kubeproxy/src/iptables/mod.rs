//! Writer of iptables mode, as kube-proxy v1.34 writes it.
//!
//! What every Service port adds to the shared chains, and the chains of its own, is in
//! `port`; this file has what is there without any Service.

mod port;

use uturn_model::{Family, ProxySettings};

use crate::plan::{NodePortsOn, Plan};
use crate::text::{Chain, Rule, Table};
use crate::{Options, Program};
use port::PortWriter;

/// kube-proxy leaves out remarks that name Services where there are more endpoints.
const MOST_ENDPOINTS_WITH_REMARKS: usize = 1000;

const CANARY: Chain = Chain::named("KUBE-PROXY-CANARY");
const SERVICES: Chain = Chain::named("KUBE-SERVICES");
const NODE_PORTS: Chain = Chain::named("KUBE-NODEPORTS");
const POSTROUTING: Chain = Chain::named("KUBE-POSTROUTING");
const MARK_MASQ: Chain = Chain::named("KUBE-MARK-MASQ");
const EXTERNAL_SERVICES: Chain = Chain::named("KUBE-EXTERNAL-SERVICES");
const PROXY_FIREWALL: Chain = Chain::named("KUBE-PROXY-FIREWALL");
const FORWARD: Chain = Chain::named("KUBE-FORWARD");
const FIREWALL: Chain = Chain::named("KUBE-FIREWALL");

/// The tables of one family.
struct Tables {
    filter: Table,
    nat: Table,
}

/// Writes a plan.
pub(crate) fn write(plan: &Plan<'_>, settings: &ProxySettings, options: Options) -> Program {
    let mut tables = Tables {
        filter: Table::new(
            "filter",
            &[CANARY, SERVICES, NODE_PORTS, EXTERNAL_SERVICES, PROXY_FIREWALL, FORWARD, FIREWALL],
        ),
        nat: Table::new("nat", &[CANARY, SERVICES, NODE_PORTS, POSTROUTING, MARK_MASQ]),
    };
    let writer = PortWriter::new(plan, settings, options);
    for port in &plan.ports {
        writer.write(port, &mut tables);
    }
    node_ports(plan, &mut tables.nat);
    masquerade(settings, &mut tables.nat);
    forward(settings, options, &mut tables.filter);
    let mut sysctls = Vec::new();
    if plan.node.localhost {
        sysctls.push(("net.ipv4.conf.all.route_localnet".to_owned(), "1".to_owned()));
        tables
            .filter
            .add(FIREWALL)
            .words("! -s 127.0.0.0/8 -d 127.0.0.0/8")
            .comment(&["block incoming localnet connections"])
            .words("-m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT")
            .end("DROP");
    }
    if settings.conntrack_tcp_be_liberal {
        sysctls.push(("net.netfilter.nf_conntrack_tcp_be_liberal".to_owned(), "1".to_owned()));
    }
    Program { iptables: print(&tables), sysctls, ..Program::default() }
}

fn print(tables: &Tables) -> String {
    let mut out = String::new();
    let all = ["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"];
    Table::new("mangle", &[CANARY]).print(&all, "", &mut out);
    tables.filter.print(&["INPUT", "FORWARD", "OUTPUT"], FILTER_JUMPS, &mut out);
    tables.nat.print(&["PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"], NAT_JUMPS, &mut out);
    out
}

/// The last rules of KUBE-SERVICES: addresses of the node itself.
fn node_ports(plan: &Plan<'_>, nat: &mut Table) {
    let remark = ["kubernetes service nodeports; NOTE: this must be the last rule in this chain"];
    match &plan.node.node_ports {
        NodePortsOn::All => {
            let rule = nat.add(SERVICES);
            let rule = match (plan.family, plan.node.localhost) {
                (Family::V6, _) => rule.words("! -d ::1/128"),
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

/// Marks packets and, when they leave, gives them the node's address.
fn masquerade(settings: &ProxySettings, nat: &mut Table) {
    let mark = settings.masquerade_mark();
    nat.add(MARK_MASQ).words("-j MARK").display(" --set-xmark ", Mark(mark, mark)).finish();
    nat.add(POSTROUTING).words("-m mark !").display(" --mark ", Mark(mark, mark)).end("RETURN");
    nat.add(POSTROUTING).words("-j MARK").display(" --set-xmark ", Mark(mark, 0)).finish();
    nat.add(POSTROUTING)
        .comment(&["kubernetes service traffic requiring SNAT"])
        .end("MASQUERADE --random-fully");
}

/// What may pass the node when its own policy is to drop.
fn forward(settings: &ProxySettings, options: Options, filter: &mut Table) {
    if !settings.conntrack_tcp_be_liberal {
        let rule = filter.add(FORWARD).words("-m conntrack --ctstate INVALID");
        accounted(rule, options, "ct_state_invalid_dropped_pkts").end("DROP");
    }
    let mark = settings.masquerade_mark();
    filter
        .add(FORWARD)
        .comment(&["kubernetes forwarding rules"])
        .display(" -m mark --mark ", Mark(mark, mark))
        .end("ACCEPT");
    filter
        .add(FORWARD)
        .comment(&["kubernetes forwarding conntrack rule"])
        .words("-m conntrack --ctstate RELATED,ESTABLISHED")
        .end("ACCEPT");
}

/// Counts the packet in an object of the kernel, where there are such objects.
fn accounted<'t>(rule: Rule<'t>, options: Options, object: &str) -> Rule<'t> {
    match options.accounting {
        // Two blanks, as `iptables-save` prints it.
        true => rule.display(" -m nfacct --nfacct-name  ", object),
        false => rule,
    }
}

/// A mark and the bits of it that count: `0x4000/0x4000`.
struct Mark(u32, u32);

impl std::fmt::Display for Mark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#x}/{:#x}", self.0, self.1)
    }
}

/// kube-proxy puts each jump before those that are there, so the last of its list is first.
const FILTER_JUMPS: &str = "\
-A INPUT -j KUBE-FIREWALL
-A INPUT -m conntrack --ctstate NEW -m comment --comment \"kubernetes load balancer firewall\" -j KUBE-PROXY-FIREWALL
-A INPUT -m comment --comment \"kubernetes health check service ports\" -j KUBE-NODEPORTS
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
