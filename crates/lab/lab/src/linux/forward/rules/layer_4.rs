//! Layer 4 load balancing as iptables rules, for kernels on which the load balancer process cannot
//! forward: the small machine's has no nf_tables for IP. Each new connection is translated to a
//! target, and conntrack is the connection table. `uturn_lb::decide` picks the target for each
//! client and turn; the rules repeat its picks.
//!
//! The rules are in chains of their own, so that reloading them changes targets atomically and
//! leaves everything else unchanged.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

use uturn_lb::decide::Choice;
use uturn_lb::source::replaced_source;
use uturn_model::lb::{Delivery, Listener, Rule, Scheduler, Source, Target};
use uturn_model::{Family, LoadBalancer};

use super::handed;
use crate::linux::build::handover::{self, MASK, Nodes, is_handed, mark_of};
use crate::linux::forward::health::TargetHealths;
use crate::linux::forward::layer_4::{is_in_kernel, turns};

/// The jumps to the chains. They are loaded once.
pub(crate) const ENTRY: &str = "*nat\n\
    :LB-L4 - [0:0]\n\
    :LB-SOURCE - [0:0]\n\
    -A PREROUTING -j LB-L4\n\
    -A POSTROUTING -j LB-SOURCE\n\
    COMMIT\n\
    *mangle\n\
    :LB-NO-TARGET - [0:0]\n\
    -A PREROUTING -m conntrack --ctstate NEW -j LB-NO-TARGET\n\
    COMMIT\n";

/// Returns the rules for the current health of targets. `callers` are the clients that need rules
/// of their own if a listener picks by source address.
pub(crate) fn text(
    load_balancers: &[LoadBalancer],
    family: Family,
    healths: &TargetHealths,
    callers: &BTreeSet<IpAddr>,
    nodes: &Nodes,
) -> String {
    let mut nat = Chains::with(&["LB-L4", "LB-SOURCE"]);
    let mut mangle = Chains::with(&["LB-NO-TARGET"]);
    if handover::is_needed(load_balancers, None) {
        mangle.declare(handed::PICK);
    }
    let of_family = load_balancers.iter().filter(|lb| Family::of(lb.vip) == family);
    let listeners =
        of_family.flat_map(|lb| lb.listeners.iter().map(move |listener| (lb, listener)));
    for (number, (lb, listener)) in
        listeners.filter(|(_, listener)| is_in_kernel(listener)).enumerate()
    {
        let protocol = listener.protocol.transport().lower();
        let matched =
            format!("-d {} -p {protocol} -m {protocol} --dport {}", lb.vip, listener.port);
        let chain = format!("LB-{number}-{}", listener.port);
        // A rule that marks a connection does not end the walk through its chains. So these chains
        // are left by going to another one, rather than by a jump, which would return.
        let (own, entry, go) = match listener.profile.delivery {
            Delivery::ToTarget => (&mut nat, "LB-L4", "-j"),
            Delivery::KeepsAddress => (&mut mangle, handed::PICK, "-g"),
        };
        own.declare(&chain);
        own.rule(entry, &format!("{matched} -j {chain}"));
        for target in listener.rules.iter().take(1).flat_map(|rule| &rule.targets) {
            if let Some(node) = nodes.number(target).filter(|_| is_handed(listener)) {
                let (to, mark) = (handed::to_node(node), mark_of(node));
                own.only_rule(&to, &format!("-j CONNMARK --set-xmark {mark:#x}/{MASK:#x}"));
            }
        }
        if let Source::Replaced(range) = &listener.profile.source {
            nat.rule(
                "LB-SOURCE",
                &format!(
                    "-p {protocol} -m conntrack --ctstate DNAT --ctorigdst {} --ctorigdstport {} \
                     -j SNAT --to-source {}",
                    lb.vip,
                    listener.port,
                    replaced_source(*range)
                ),
            );
        }
        let alive = healths.alive(lb, listener, 0);
        for (class, (client, picks)) in picks(listener, &alive, callers).into_iter().enumerate() {
            let from = client.map_or_else(String::new, |ip| format!("-s {ip} "));
            if picks.is_empty() {
                // Without a target, the connection gets no answer.
                mangle.rule("LB-NO-TARGET", &format!("{from}{matched} -j DROP"));
                continue;
            }
            let own = if is_handed(listener) { &mut mangle } else { &mut nat };
            let chain = match client {
                None => chain.clone(),
                Some(_) => {
                    let of_class = format!("{chain}-{class}");
                    own.rule(&chain, &format!("{from}{go} {of_class}"));
                    of_class
                }
            };
            for (at, target) in picks.iter().enumerate() {
                let left = picks.len() - at;
                let turn = match left {
                    1 => String::new(),
                    _ => format!("-m statistic --mode nth --every {left} --packet 0 "),
                };
                let to = match nodes.number(target).filter(|_| is_handed(listener)) {
                    Some(node) => format!("{go} {}", handed::to_node(node)),
                    None => format!("-p {protocol} -j DNAT --to-destination {}", target.address),
                };
                own.rule(&chain, &format!("{turn}{to}"));
            }
        }
    }
    format!("*nat\n{}COMMIT\n*mangle\n{}COMMIT\n", nat.text(), mangle.text())
}

/// Returns the targets of each class of clients, turn by turn. Classes of a single client come
/// before all other clients, because the first matching rule decides.
fn picks<'a>(
    listener: &'a Listener,
    alive: &[bool],
    callers: &BTreeSet<IpAddr>,
) -> Vec<(Option<IpAddr>, Vec<&'a Target>)> {
    let Some(rule) = listener.rules.first() else { return vec![(None, Vec::new())] };
    let any_client = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    let of = |client: IpAddr| {
        let choice = Choice::new(&listener.profile, &rule.targets, alive, client);
        (0..turns(&choice)).filter_map(|turn| choice.pick(turn)).map(|i| &rule.targets[i]).collect()
    };
    let separate_clients = separate_clients(listener, rule, callers);
    separate_clients
        .into_iter()
        .map(|ip| (Some(ip), of(ip)))
        .chain([(None, of(any_client))])
        .collect()
}

fn separate_clients(
    listener: &Listener,
    rule: &Rule,
    callers: &BTreeSet<IpAddr>,
) -> BTreeSet<IpAddr> {
    let mut separate_clients = BTreeSet::new();
    if listener.profile.avoids_client {
        separate_clients.extend(rule.targets.iter().map(|target| target.address.ip()));
    }
    if listener.profile.scheduler == Scheduler::SourceHash {
        let family = rule.targets.first().map(|target| Family::of(target.address.ip()));
        separate_clients.extend(callers.iter().filter(|ip| Some(Family::of(**ip)) == family));
    }
    separate_clients
}

/// Rules of one table, chain by chain.
struct Chains(BTreeMap<String, Vec<String>>);

impl Chains {
    /// Declares chains that exist even if they are empty.
    fn with(names: &[&str]) -> Self {
        Self(names.iter().map(|name| ((*name).to_owned(), Vec::new())).collect())
    }

    fn declare(&mut self, chain: &str) {
        self.0.entry(chain.into()).or_default();
    }

    /// Makes a rule the only one of a chain.
    fn only_rule(&mut self, chain: &str, rule: &str) {
        self.0.insert(chain.into(), vec![format!("-A {chain} {rule}\n")]);
    }

    fn rule(&mut self, chain: &str, rule: &str) {
        self.0.entry(chain.into()).or_default().push(format!("-A {chain} {rule}\n"));
    }

    /// Returns the text of the rules. Declaring a chain empties it.
    fn text(&self) -> String {
        let declared: String = self.0.keys().map(|chain| format!(":{chain} - [0:0]\n")).collect();
        let rules: String = self.0.values().flatten().map(String::as_str).collect();
        declared + &rules
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::net::SocketAddr;

    use proptest::prelude::*;
    use uturn_clouds::cloud::tke::profile::{clb, snat};
    use uturn_lb::event::{Event, ProbeResult};
    use uturn_model::lb::{Layer, ListenerProtocol, Scope, TargetKind};
    use uturn_model::{NamespacedName, ObjectKind, ObjectRef, Port};

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
            owner: ObjectRef::namespaced(ObjectKind::Service, &service),
            targets: weights.iter().enumerate().map(target).collect(),
            redirect: None,
        };
        let listener = Listener {
            port: Port::new(80).unwrap(),
            protocol: ListenerProtocol::Tcp,
            profile: clb(Layer::L4),
            rules: vec![rule],
        };
        LoadBalancer {
            name: "lb".into(),
            vip: "10.0.0.200".parse().unwrap(),
            scope: Scope::Private,
            zone: None,
            security_groups: Vec::new(),
            listeners: vec![listener],
        }
    }

    fn rules_of(lb: &LoadBalancer) -> String {
        with_callers(lb, &BTreeSet::new())
    }

    fn with_callers(lb: &LoadBalancer, callers: &BTreeSet<IpAddr>) -> String {
        text(
            std::slice::from_ref(lb),
            Family::V4,
            &TargetHealths::default(),
            callers,
            &Nodes::default(),
        )
    }

    #[test]
    fn a_target_is_not_sent_to_itself() {
        assert_eq!(
            rules_of(&balancer(&[10, 10])),
            "*nat\n\
             :LB-0-80 - [0:0]\n\
             :LB-0-80-0 - [0:0]\n\
             :LB-0-80-1 - [0:0]\n\
             :LB-L4 - [0:0]\n\
             :LB-SOURCE - [0:0]\n\
             -A LB-0-80 -s 10.0.0.11 -j LB-0-80-0\n\
             -A LB-0-80 -s 10.0.0.12 -j LB-0-80-1\n\
             -A LB-0-80 -m statistic --mode nth --every 2 --packet 0 -p tcp -j DNAT --to-destination 10.0.0.11:30090\n\
             -A LB-0-80 -p tcp -j DNAT --to-destination 10.0.0.12:30090\n\
             -A LB-0-80-0 -p tcp -j DNAT --to-destination 10.0.0.12:30090\n\
             -A LB-0-80-1 -p tcp -j DNAT --to-destination 10.0.0.11:30090\n\
             -A LB-L4 -d 10.0.0.200 -p tcp -m tcp --dport 80 -j LB-0-80\n\
             COMMIT\n\
             *mangle\n\
             :LB-NO-TARGET - [0:0]\n\
             COMMIT\n"
        );
    }

    #[test]
    fn without_a_candidate_no_target_answers() {
        let text = rules_of(&balancer(&[10]));
        let drop =
            "-A LB-NO-TARGET -s 10.0.0.11 -d 10.0.0.200 -p tcp -m tcp --dport 80 -j DROP\nCOMMIT\n";
        assert!(text.ends_with(drop), "{text}");
    }

    #[test]
    fn the_dead_are_left_out() {
        let lb = balancer(&[10, 10, 10]);
        let mut healths = TargetHealths::default();
        let mut report = |target: &str, alive| {
            let result = ProbeResult::TimedOut;
            let (listener, target) =
                ("10.0.0.200:80".parse().unwrap(), target.parse::<SocketAddr>().unwrap());
            let protocol = "tcp".to_owned();
            healths.record(&Event::Health { listener, protocol, rule: 0, target, alive, result });
        };
        report("10.0.0.11:30090", false);
        report("10.0.0.12:30090", true);
        let text = text(&[lb], Family::V4, &healths, &BTreeSet::new(), &Nodes::default());
        assert!(!text.contains("--to-destination 10.0.0.11"), "{text}");
        assert!(text.contains("-A LB-0-80 -p tcp -j DNAT --to-destination 10.0.0.13:30090"));
    }

    #[test]
    fn a_replaced_source_is_replaced() {
        let mut lb = balancer(&[10]);
        lb.listeners[0].profile.source = snat();
        let rule = "-A LB-SOURCE -p tcp -m conntrack --ctstate DNAT --ctorigdst 10.0.0.200 \
                    --ctorigdstport 80 -j SNAT --to-source 100.127.0.1\n";
        assert!(rules_of(&lb).contains(rule), "{}", rules_of(&lb));
    }

    #[test]
    fn picks_by_address_are_distinguished() {
        let mut lb = balancer(&[10, 10, 10]);
        lb.listeners[0].profile.scheduler = Scheduler::SourceHash;
        let callers: BTreeSet<IpAddr> =
            ["10.1.1.10", "10.1.2.10", "10.1.3.10"].map(|ip| ip.parse().unwrap()).into();
        let text = with_callers(&lb, &callers);
        let listener = &lb.listeners[0];
        let targets = &listener.rules[0].targets;
        for caller in callers {
            let choice = Choice::new(&listener.profile, targets, &[true; 3], caller);
            let line = text.lines().find(|line| line.contains(&format!("-s {caller} ")));
            let chain = line.unwrap().rsplit(' ').next().unwrap();
            let target = targets[choice.pick(0).unwrap()].address;
            let rule = format!("-A {chain} -p tcp -j DNAT --to-destination {target}\n");
            assert!(text.contains(&rule), "{rule} in {text}");
        }
    }

    /// Follows `-m statistic --mode nth --every N --packet 0`, which matches the first packet that
    /// it sees, and then each N-th after that.
    fn walk(text: &str, connections: usize) -> Vec<String> {
        let rules: Vec<&str> =
            text.lines().filter(|l| l.starts_with("-A LB-0-80 ") && l.contains("DNAT")).collect();
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
            prop_assert_eq!(walk(&rules_of(&lb), 50), expected);
        }
    }
}
