//! Rules and settings: kube-proxy's on the nodes, the load balancers' in the fabric.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use ipnet::IpNet;
use uturn_lb::decide::Choice;
use uturn_lb::l7::{replaced_source, steer};
use uturn_model::lb::{Layer, Listener, ListenerProtocol, Scheduler, Source};
use uturn_model::{Cluster, Family, LoadBalancer, Name};

use super::count::{self, Call};
use super::namespace::Namespace;
use super::netlink::{Index, Netlink};
use super::system::{During, run};
use crate::LabError;

/// Loads what kube-proxy programs on a node.
pub(crate) fn program_node(
    cluster: &Cluster,
    name: &Name,
    space: &Namespace,
) -> Result<(), LabError> {
    let doing = format!("program node {name}");
    let unsupported = |error: uturn_kubeproxy::Unsupported| LabError::Plan(error.to_string());
    let node = &cluster.nodes[name];
    for family in Family::BOTH {
        if node.address(family).is_none() {
            continue;
        }
        let program =
            uturn_kubeproxy::compile(cluster, name, &cluster.proxy, family).map_err(unsupported)?;
        if !program.bound.is_empty() {
            return Err(LabError::Plan("IPVS mode cannot be built yet".into()));
        }
        restore(space, family, &program.iptables, &doing)?;
        space
            .run(|| {
                program.sysctls.iter().try_for_each(|(key, value)| {
                    Namespace::set_sysctl(&key.replace('.', "/"), value)
                })
            })
            .during(&doing)?;
    }
    Ok(())
}

/// Binds the load balancers' addresses in the fabric, tells its kernel which packets are
/// for the load balancer process, and loads what serves listeners on layer 4.
pub(crate) fn program_fabric(
    fabric: &Namespace,
    all: &[LoadBalancer],
    calls: &BTreeSet<Call>,
) -> Result<(), LabError> {
    let doing = "set up the load balancers";
    fabric.run(|| bind(all)).during(doing)?;
    for (family, everything) in [
        (Family::V4, IpNet::new_assert(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0)),
        (Family::V6, IpNet::new_assert(IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0)),
    ] {
        let of_family: Vec<&LoadBalancer> =
            all.iter().filter(|lb| Family::of(lb.vip) == family).collect();
        if of_family.is_empty() {
            continue;
        }
        fabric
            .run(|| {
                let mut netlink = Netlink::open()?;
                netlink.add_local_table(everything, steer::TABLE)?;
                netlink.add_mark_rule(everything, steer::MARK, steer::TABLE)
            })
            .during(doing)?;
        restore(fabric, family, &steer::rules(), doing)?;
        let text = count::rules(calls, family) + &layer_4(&of_family, calls)?;
        restore_more(fabric, family, &text, doing)?;
    }
    Ok(())
}

fn bind(all: &[LoadBalancer]) -> io::Result<()> {
    let listeners = all.iter().flat_map(|lb| &lb.listeners);
    let sources = listeners.filter_map(|listener| match &listener.profile.source {
        Source::Kept => None,
        Source::Replaced(range) => Some(replaced_source(*range)),
    });
    let mut addresses: Vec<IpAddr> = all.iter().map(|lb| lb.vip).chain(sources).collect();
    addresses.sort_unstable();
    addresses.dedup();
    let mut netlink = Netlink::open()?;
    addresses.into_iter().try_for_each(|ip| netlink.add_address(Index::LOOPBACK, ip.into()))
}

fn restore(space: &Namespace, family: Family, text: &str, doing: &str) -> Result<(), LabError> {
    start_restore(space, family, &[], text, doing)
}

/// The same, beside what is there already.
fn restore_more(
    space: &Namespace,
    family: Family,
    text: &str,
    doing: &str,
) -> Result<(), LabError> {
    start_restore(space, family, &["--noflush"], text, doing)
}

fn start_restore(
    space: &Namespace,
    family: Family,
    arguments: &[&str],
    text: &str,
    doing: &str,
) -> Result<(), LabError> {
    let program = match family {
        Family::V4 => "iptables-restore",
        Family::V6 => "ip6tables-restore",
    };
    space
        .run(|| run(program, arguments, text))
        .during(&format!("{doing}: start {program}"))?
        .map_err(|said| LabError::Program { doing: doing.into(), said })
}

/// Rules that do what layer 4 does: send each new connection on to a target, the source
/// kept, and remember which. The kernel's connection tracking is the connection table.
fn layer_4(load_balancers: &[&LoadBalancer], calls: &BTreeSet<Call>) -> Result<String, LabError> {
    let mut nat = Chains::default();
    let mut drops = Vec::new();
    for lb in load_balancers {
        for listener in lb.listeners.iter().filter(|one| one.protocol.layer() == Layer::L4) {
            let chain = format!("LB-{}-{}", listener.port, nat.chains.len());
            if let Err(what) = check_layer_4(listener) {
                let (name, port) = (&lb.name, listener.port);
                if calls.iter().any(|(_, to)| *to == SocketAddr::new(lb.vip, port.number())) {
                    return Err(LabError::Plan(format!(
                        "{what} (load balancer {name}, port {port})"
                    )));
                }
                continue;
            }
            let protocol = listener.protocol.transport().lower();
            let matched =
                format!("-d {} -p {protocol} -m {protocol} --dport {}", lb.vip, listener.port);
            nat.rule("PREROUTING", &format!("{matched} -j {chain}"));
            for (class, (client, picks)) in picks(listener).into_iter().enumerate() {
                let from = client.map_or_else(String::new, |ip| format!("-s {ip} "));
                if picks.is_empty() {
                    // Nobody to send it to: nobody answers.
                    drops.push(format!("-A PREROUTING {from}{matched} -j DROP\n"));
                    continue;
                }
                let chain = match client {
                    None => chain.clone(),
                    Some(client) => {
                        let own = format!("{chain}-{class}");
                        nat.rule(&chain, &format!("-s {client} -j {own}"));
                        own
                    }
                };
                for (at, target) in picks.iter().enumerate() {
                    let left = picks.len() - at;
                    let turn = match left {
                        1 => String::new(),
                        _ => format!("-m statistic --mode nth --every {left} --packet 0 "),
                    };
                    let jump = format!("{turn}-p {protocol} -j DNAT --to-destination {target}");
                    nat.rule(&chain, &jump);
                }
            }
        }
    }
    let drops = drops.concat();
    let drops = if drops.is_empty() { drops } else { format!("*mangle\n{drops}COMMIT\n") };
    Ok(nat.text() + &drops)
}

fn check_layer_4(listener: &Listener) -> Result<(), &'static str> {
    if listener.protocol == ListenerProtocol::TcpSsl {
        return Err("listeners that end TLS cannot be built yet");
    }
    if listener.profile.scheduler == Scheduler::SourceHash {
        return Err("a layer-4 listener that picks by the client's address cannot be built yet");
    }
    if listener.profile.source != Source::Kept {
        return Err("a layer-4 listener that replaces the source cannot be built yet");
    }
    Ok(())
}

/// Whom each class of client meets, turn by turn: clients whose address is a target's (they
/// come first), then all others.
fn picks(listener: &Listener) -> Vec<(Option<IpAddr>, Vec<SocketAddr>)> {
    let Some(rule) = listener.rules.first() else { return vec![(None, Vec::new())] };
    let alive = vec![true; rule.targets.len()];
    let nobody = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    let of = |client: IpAddr| {
        let choice = Choice::new(&listener.profile, &rule.targets, &alive, client);
        (0..turns(&choice))
            .filter_map(|turn| choice.pick(turn))
            .map(|i| rule.targets[i].address)
            .collect()
    };
    let mut own: Vec<IpAddr> = rule.targets.iter().map(|target| target.address.ip()).collect();
    own.sort_unstable();
    own.dedup();
    if !listener.profile.avoids_client {
        own.clear();
    }
    own.into_iter().map(|ip| (Some(ip), of(ip))).chain([(None, of(nobody))]).collect()
}

/// The fewest connections that meet every target exactly as often as its share says.
pub(crate) fn turns(choice: &Choice<'_>) -> u64 {
    let shares = choice.shares();
    let is_whole = |turns: &u64| {
        shares.iter().all(|(_, share)| {
            let met = share * *turns as f64;
            (met - met.round()).abs() < 1e-6
        })
    };
    // Weights are at most a few hundred each; no share needs more turns than their sum.
    (1..100_000).find(is_whole).unwrap_or(1)
}

/// Rules of one table, chain by chain.
#[derive(Default)]
struct Chains {
    chains: BTreeMap<String, Vec<String>>,
}

impl Chains {
    fn rule(&mut self, chain: &str, rule: &str) {
        let rules = self.chains.entry(chain.into()).or_default();
        rules.push(format!("-A {chain} {rule}\n"));
    }

    fn text(&self) -> String {
        if self.chains.is_empty() {
            return String::new();
        }
        let own = self.chains.keys().filter(|chain| *chain != "PREROUTING");
        let declared: String = own.map(|chain| format!(":{chain} - [0:0]\n")).collect();
        let rules: String = self.chains.values().flatten().map(String::as_str).collect();
        format!("*nat\n{declared}{rules}COMMIT\n")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;
    use uturn_lb::profile::tke_clb;
    use uturn_model::lb::{Rule, Scope, Target, TargetKind};
    use uturn_model::{Kind, NamespacedName, ObjectRef, Port};

    use super::*;

    fn balancer(weights: &[u32]) -> LoadBalancer {
        let service = NamespacedName::new("shop", "api").unwrap();
        let target = |(i, weight): (usize, &u32)| Target {
            address: format!("10.0.0.{}:30090", 11 + i).parse().unwrap(),
            weight: *weight,
            kind: TargetKind::NodePort(format!("n{}", 1 + i).parse().unwrap()),
        };
        let rule = Rule {
            host: None,
            path: None,
            service: service.clone(),
            owner: ObjectRef::namespaced(Kind::Service, &service),
            targets: weights.iter().enumerate().map(target).collect(),
        };
        let listener = Listener {
            port: Port::new(80).unwrap(),
            protocol: ListenerProtocol::Tcp,
            profile: tke_clb(Layer::L4),
            rules: vec![rule],
        };
        LoadBalancer {
            name: "lb".into(),
            vip: "10.0.0.200".parse().unwrap(),
            scope: Scope::Private,
            security_groups: Vec::new(),
            listeners: vec![listener],
        }
    }

    fn text(lb: &LoadBalancer) -> String {
        layer_4(&[lb], &BTreeSet::new()).unwrap()
    }

    #[test]
    fn a_target_is_not_sent_to_itself() {
        assert_eq!(
            text(&balancer(&[10, 10])),
            "*nat\n\
             :LB-80-0 - [0:0]\n\
             :LB-80-0-0 - [0:0]\n\
             :LB-80-0-1 - [0:0]\n\
             -A LB-80-0 -s 10.0.0.11 -j LB-80-0-0\n\
             -A LB-80-0 -s 10.0.0.12 -j LB-80-0-1\n\
             -A LB-80-0 -m statistic --mode nth --every 2 --packet 0 -p tcp -j DNAT --to-destination 10.0.0.11:30090\n\
             -A LB-80-0 -p tcp -j DNAT --to-destination 10.0.0.12:30090\n\
             -A LB-80-0-0 -p tcp -j DNAT --to-destination 10.0.0.12:30090\n\
             -A LB-80-0-1 -p tcp -j DNAT --to-destination 10.0.0.11:30090\n\
             -A PREROUTING -d 10.0.0.200 -p tcp -m tcp --dport 80 -j LB-80-0\n\
             COMMIT\n"
        );
    }

    #[test]
    fn without_a_candidate_nobody_answers() {
        let text = text(&balancer(&[10]));
        let drop = "*mangle\n-A PREROUTING -s 10.0.0.11 -d 10.0.0.200 -p tcp -m tcp --dport 80 -j DROP\nCOMMIT\n";
        assert!(text.ends_with(drop), "{text}");
    }

    #[test]
    fn what_cannot_be_built_matters_only_where_it_is_called() {
        let mut lb = balancer(&[10]);
        lb.listeners[0].profile.scheduler = Scheduler::SourceHash;
        assert_eq!(text(&lb), "");
        let call = ("10.1.1.10".parse().unwrap(), "10.0.0.200:80".parse().unwrap());
        let error = layer_4(&[&lb], &BTreeSet::from([call])).unwrap_err();
        assert!(error.to_string().contains("load balancer lb, port 80"), "{error}");
    }

    /// What `-m statistic --mode nth --every N --packet 0` does: it matches the first packet
    /// it sees, and then each N-th after that.
    fn walk(text: &str, connections: usize) -> Vec<String> {
        let rules: Vec<&str> =
            text.lines().filter(|l| l.starts_with("-A LB-80-0 ") && l.contains("DNAT")).collect();
        let mut seen: HashMap<usize, usize> = HashMap::new();
        let mut target_of = || {
            rules.iter().enumerate().find_map(|(i, rule)| {
                let every = rule
                    .split("--every ")
                    .nth(1)
                    .map_or(1usize, |rest| rest.split(' ').next().unwrap().parse().unwrap());
                let count = seen.entry(i).or_default();
                *count += 1;
                (*count - 1)
                    .is_multiple_of(every)
                    .then(|| rule.rsplit(' ').next().unwrap().to_owned())
            })
        };
        (0..connections).filter_map(|_| target_of()).collect()
    }

    proptest! {
        #[test]
        fn rules_meet_targets_in_the_order_of_the_decision(
            weights in prop::collection::vec(0u32..4, 1..5),
        ) {
            let lb = balancer(&weights);
            let listener = &lb.listeners[0];
            let targets = &listener.rules[0].targets;
            let alive = vec![true; targets.len()];
            let client = "10.1.1.10".parse().unwrap();
            let choice = Choice::new(&listener.profile, targets, &alive, client);
            let expected: Vec<String> = (0..50)
                .filter_map(|turn| choice.pick(turn))
                .map(|i| targets[i].address.to_string())
                .collect();
            prop_assert_eq!(walk(&text(&lb), 50), expected);
        }
    }
}
