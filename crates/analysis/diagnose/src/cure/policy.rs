//! Cures of NetworkPolicies that forbid a call: a rule for it, or the namespace that a peer lacks.

use std::net::IpAddr;

use uturn_document::edit::{Change, Tree};
use uturn_model::network_policy::verdict::{Denial, Lack, PolicyVerdict, Side};
use uturn_model::network_policy::{NAME_LABEL, NetworkPolicy, PolicyPeer, Way};
use uturn_model::route::Leg;
use uturn_model::{Cluster, Labels, Mechanism, ObjectKind, ObjectRef, Pod, Protocol, WorkloadKind};

use super::{Case, Proposal, way};
use crate::find::policies::DNS_PORT;

/// The labels that controllers give to pods to tell them apart.
const OF_CONTROLLERS: [&str; 5] = [
    "apps.kubernetes.io/pod-index",
    "controller-revision-hash",
    "pod-template-generation",
    "pod-template-hash",
    "statefulset.kubernetes.io/pod-name",
];

/// The maximum number of stopped packets for which rules are proposed.
const MAX: usize = 3;

pub(super) fn propose(case: &Case<'_>) -> Vec<Proposal> {
    if !case.has(Mechanism::NetworkPolicy) {
        return Vec::new();
    }
    let mut all = Vec::new();
    for leg in case.denied().into_iter().take(MAX) {
        if let Some(packet) = Packet::of(case, leg) {
            all.extend(packet.named(case));
            all.extend(packet.allowed(case));
        }
    }
    all
}

/// A packet that policies stopped.
struct Packet<'c> {
    denial: Denial<'c>,
    /// The other side, if it is a pod, and its address.
    other: (Option<&'c Pod>, IpAddr),
    protocol: Protocol,
    port: u16,
}

impl<'c> Packet<'c> {
    fn of(case: &Case<'c>, leg: Leg) -> Option<Self> {
        let cluster = case.cluster();
        let [from, to] = [leg.src, leg.dst].map(|at| case.engine.pod_at(at.ip()));
        let side = |pod: Option<&'c Pod>, ip: IpAddr| match pod {
            Some(pod) => Side::Pod(pod, ip),
            None => Side::Outside(Some(ip)),
        };
        let (from_side, to_side) = (side(from, leg.src.ip()), side(to, leg.dst.ip()));
        let port = leg.dst.port();
        let own = case.walked().map(|flow| flow.protocol);
        let protocols = own.into_iter().chain([Protocol::Udp, Protocol::Tcp]);
        protocols.into_iter().find_map(|protocol| {
            let policies = &cluster.network_policies;
            let called = (protocol, port);
            if let PolicyVerdict::Denied(denial) = policies.egress(from_side, to_side, called) {
                return Some(Self { denial, other: (to, leg.dst.ip()), protocol, port });
            }
            match policies.ingress(to_side, from_side, called) {
                PolicyVerdict::Denied(denial) => {
                    Some(Self { denial, other: (from, leg.src.ip()), protocol, port })
                }
                PolicyVerdict::Allowed | PolicyVerdict::Depends(_) => None,
            }
        })
    }

    /// Proposes that a peer which is meant for the other side names its namespace.
    fn named(&self, case: &Case<'c>) -> Option<Proposal> {
        let Denial { policy, way, lack, .. } = self.denial;
        let pod = self.other.0?;
        let (rule, at) = match lack {
            Lack::Namespace => place_of(policy, way, |peer| {
                matches!(peer, PolicyPeer::Pods { namespaces: None, pods: Some(pods) }
                    if !pods.is_empty() && pods.matches(&pod.spec.labels))
            })?,
            Lack::Labels => place_of(policy, way, |peer| peer.has_word_of(pod))?,
            _ => return None,
        };
        let object = policy.object();
        let place = way!["spec", way.field(), rule, way.peers(), at];
        let namespace = &pod.name.namespace;
        let selector = namespace_selector(pod);
        let cost = self.cost(case);
        if lack == Lack::Namespace {
            let title = format!(
                "namespaceSelector {NAME_LABEL}: {namespace} beside the podSelector of {object}"
            );
            let place = [place, way!["namespaceSelector"]].concat();
            return Some(
                Proposal::new("policy-namespace", 10, title)
                    .edit(object, place, Change::Set(selector))
                    .costs(cost),
            );
        }
        let labels = labels_of(case.cluster(), pod);
        let title =
            format!("namespace {namespace}, {} in `{}` of {object}", said(&labels), way.peers());
        let pods = [place.clone(), way!["podSelector"]].concat();
        let place = [place, way!["namespaceSelector"]].concat();
        Some(
            Proposal::new("policy-peer", 11, title)
                .edit(object.clone(), place, Change::Set(selector))
                .edit(object, pods, Change::Set(pod_selector(&labels)))
                .costs(cost)
                .costs("what the peer selected before is selected no more"),
        )
    }

    /// Proposes a rule for the call.
    fn allowed(&self, case: &Case<'c>) -> Option<Proposal> {
        let Denial { policy, way, .. } = self.denial;
        let object = policy.object();
        let (other, ip) = self.other;
        let (peer, whom) = match other {
            Some(pod) => {
                let labels = labels_of(case.cluster(), pod);
                let is_other = pod.name.namespace != policy.name.namespace;
                let of = if is_other {
                    format!("namespace {}, ", pod.name.namespace)
                } else {
                    String::new()
                };
                (peer_of(pod, &labels, is_other), format!("{of}{}", said(&labels)))
            }
            // Which addresses those that call from outside have is not given.
            None if way == Way::Ingress => return None,
            None => {
                let length = if ip.is_ipv4() { 32 } else { 128 };
                let block = Tree::map([("cidr", Tree::text(format!("{ip}/{length}")))]);
                (Tree::map([("ipBlock", block)]), ip.to_string())
            }
        };
        // DNS is asked by both.
        let protocols = match self.port {
            DNS_PORT => vec![Protocol::Udp, Protocol::Tcp],
            _ => vec![self.protocol],
        };
        let ports = protocols.iter().map(|protocol| {
            Tree::map([
                ("protocol", Tree::text(protocol.to_string())),
                ("port", Tree::number(self.port)),
            ])
        });
        let rule = Tree::map([
            (way.peers(), Tree::List(vec![peer])),
            ("ports", Tree::List(ports.collect())),
        ]);
        let place = way!["spec", way.field()];
        let has_rules = case.manifests.items_at(&object, &place).is_some_and(|many| many > 0);
        let change =
            if has_rules { Change::Append(rule) } else { Change::Set(Tree::List(vec![rule])) };
        let protocols: Vec<String> = protocols.iter().map(ToString::to_string).collect();
        let title = format!(
            "{object}: a rule that lets {} {whom} at {} port {}",
            match way {
                Way::Ingress => "in",
                Way::Egress => "out to",
            },
            protocols.join(" and "),
            self.port
        );
        Some(
            Proposal::new("policy-rule", 12, title)
                .edit(object, place, change)
                .costs(self.cost(case)),
        )
    }

    fn cost(&self, case: &Case<'c>) -> String {
        let Denial { policy, way, .. } = self.denial;
        let many = case.cluster().pods.values().filter(|pod| {
            pod.name.namespace == policy.name.namespace && policy.pods.matches(&pod.spec.labels)
        });
        let pods = match many.count() {
            1 => "the pod that the policy selects".to_owned(),
            many => format!("all {many} pods that the policy selects"),
        };
        match way {
            Way::Ingress => format!("it may then call {pods}"),
            Way::Egress => format!("{pods} may then call there"),
        }
    }
}

/// Returns the places of a rule and of its peer that fits.
fn place_of(
    policy: &NetworkPolicy,
    way: Way,
    fits: impl Fn(&PolicyPeer) -> bool,
) -> Option<(usize, usize)> {
    let rules = policy.rules(way)?.iter().enumerate();
    let mut all = rules.filter_map(|(at, rule)| Some((at, rule.peers.iter().position(&fits)?)));
    all.next()
}

/// Returns the labels by which a pod is selected: those of its workload's selector.
fn labels_of(cluster: &Cluster, pod: &Pod) -> Labels {
    let owner = pod.owner.as_ref().and_then(|owner| {
        let ObjectRef { kind: ObjectKind::Workload(kind), .. } = owner else { return None };
        let key: (WorkloadKind, _) = (*kind, owner.namespaced_name()?);
        Some(&cluster.workloads.get(&key)?.selector)
    });
    match owner.filter(|selector| !selector.labels.is_empty() && selector.expressions.is_empty()) {
        Some(selector) => selector.labels.clone(),
        None => pod.spec.labels.iter().filter(|(key, _)| !OF_CONTROLLERS.contains(key)).collect(),
    }
}

fn said(labels: &Labels) -> String {
    let all: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    match all.as_slice() {
        [] => "all pods".to_owned(),
        [only] => format!("pods {only}"),
        _ => format!("pods with its {} labels", all.len()),
    }
}

fn namespace_selector(pod: &Pod) -> Tree {
    let name = Tree::text(pod.name.namespace.as_str());
    Tree::map([("matchLabels", Tree::map([(NAME_LABEL, name)]))])
}

fn peer_of(pod: &Pod, labels: &Labels, has_namespace: bool) -> Tree {
    let mut all = Vec::new();
    if has_namespace {
        all.push(("namespaceSelector".to_owned(), namespace_selector(pod)));
    }
    all.push(("podSelector".to_owned(), pod_selector(labels)));
    Tree::Map(all)
}

fn pod_selector(labels: &Labels) -> Tree {
    if labels.is_empty() {
        return Tree::Map(Vec::new());
    }
    let own = labels.iter().map(|(key, value)| (key.to_owned(), Tree::text(value))).collect();
    Tree::map([("matchLabels", Tree::Map(own))])
}
