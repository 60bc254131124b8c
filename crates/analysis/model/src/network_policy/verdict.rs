//! Decides whether NetworkPolicies allow a connection.
//!
//! What the specification leaves to the network plugin is not decided: whether policies see nodes
//! and pods in their network as pods, whether an `ipBlock` has addresses of pods, and with which
//! address a connection is seen whose source was replaced.

use std::net::IpAddr;

use super::{NAME_LABEL, NetworkPolicies, NetworkPolicy, PolicyPeer, PolicyPort, PolicyRule};
use super::{PortNumbers, Way};
use crate::labels::{Operator, Requirement};
use crate::{Name, Pod, Protocol, Selector};

/// One side of a connection, as policies see it.
#[derive(Clone, Copy, Debug)]
pub enum Side<'a> {
    /// A pod with a network of its own, at one of its addresses.
    Pod(&'a Pod, IpAddr),
    /// A node, or a pod in its network if it is known which.
    Node(&'a Name, IpAddr, Option<&'a Pod>),
    /// A machine outside the cluster, with its address if that is given.
    Outside(Option<IpAddr>),
    /// A side whose address was replaced on the way.
    Hidden,
}

/// The port that is connected to.
pub type CalledPort = (Protocol, u16);

/// Whether policies allow a connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PolicyVerdict<'p> {
    /// No policy restricts it, or a rule allows it.
    Allowed,
    /// Policies restrict the pod, and none of their rules allows it.
    Denied(Denial<'p>),
    /// The network plugin decides, or something that is not given.
    Depends(Doubt<'p>),
}

/// The policies that deny a connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Denial<'p> {
    /// The policy whose rules are the nearest to allowing it, or the first.
    pub policy: &'p NetworkPolicy,
    /// The number of other policies that restrict the pod in this direction.
    pub others: usize,
    /// The direction.
    pub way: Way,
    /// What the rules lack.
    pub lack: Lack,
}

/// What the rules of a policy lack to allow a connection, the nearest last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lack {
    /// There are no rules.
    Rules,
    /// No rule has the other side.
    Peer,
    /// No rule has the other side, and one has a word of its labels or its namespace.
    Labels,
    /// A rule has the port for others, and not for the other side.
    PeerAtPort,
    /// A `podSelector` has the labels of the other side, which is in another namespace.
    Namespace,
    /// A rule has the other side, and not the port.
    Port,
}

/// The reason why it is not decided whether policies allow a connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Doubt<'p> {
    /// The policy that may allow it.
    pub policy: &'p NetworkPolicy,
    /// The direction.
    pub way: Way,
    /// What is not known.
    pub why: WhyInDoubt,
}

/// What is not known of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WhyInDoubt {
    /// Whether policies see nodes, and pods in their network, as peers.
    Node,
    /// Whether an `ipBlock` has addresses of pods.
    BlockOfPods,
    /// The address of the other side, or with which policies see it.
    Address,
    /// The labels of a namespace.
    NamespaceLabels,
    /// The port's name at a side that is no pod.
    PortName,
    /// Whether a rule of one direction opens the other, where a policy selects both pods.
    OtherWay,
    /// Whether a pod reaches itself through its Service.
    Itself,
}

impl WhyInDoubt {
    /// Describes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Node => "how the other side's node looks to policies is up to the network plugin",
            Self::BlockOfPods => {
                "whether an ipBlock has addresses of the cluster is up to the network plugin"
            }
            Self::Address => "with which address policies see the other side is not known",
            Self::NamespaceLabels => "the labels of the other side's namespace are not given",
            Self::PortName => "which port has the name is not known",
            Self::OtherWay => {
                "kube-router lets a rule of a policy that selects both pods open the other direction too"
            }
            Self::Itself => {
                "whether a pod reaches itself through its Service is up to the network plugin"
            }
        }
    }
}

impl<'p> PolicyVerdict<'p> {
    /// Returns the verdict if both have to allow the connection.
    #[must_use]
    pub fn and(self, other: impl FnOnce() -> Self) -> Self {
        match (self, other) {
            (Self::Denied(_), _) => self,
            (Self::Allowed, other) => other(),
            (Self::Depends(_), other) => match other() {
                denied @ Self::Denied(_) => denied,
                Self::Allowed | Self::Depends(_) => self,
            },
        }
    }
}

/// Whether a peer or port of a rule fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fit {
    Yes,
    No,
    Maybe(WhyInDoubt),
}

impl Fit {
    fn of(fits: bool) -> Self {
        if fits { Self::Yes } else { Self::No }
    }

    /// Returns whether both fit.
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::No, _) | (_, Self::No) => Self::No,
            (Self::Yes, other) => other,
            (Self::Maybe(why), _) => Self::Maybe(why),
        }
    }

    /// Returns whether one of them fits.
    fn any(all: impl IntoIterator<Item = Self>) -> Self {
        let mut found = Self::No;
        for fit in all {
            match fit {
                Self::Yes => return Self::Yes,
                Self::Maybe(_) if found == Self::No => found = fit,
                Self::Maybe(_) | Self::No => {}
            }
        }
        found
    }
}

impl NetworkPolicies {
    /// Decides whether policies allow a connection that both sides see alike.
    pub fn verdict(&self, from: Side<'_>, to: Side<'_>, port: CalledPort) -> PolicyVerdict<'_> {
        self.egress(from, to, port).and(|| self.ingress(to, from, port))
    }

    /// Decides whether the policies of the caller allow it to connect to the other side.
    pub fn egress(&self, from: Side<'_>, to: Side<'_>, port: CalledPort) -> PolicyVerdict<'_> {
        self.judge(Way::Egress, from, to, port)
    }

    /// Decides whether the policies of the called side allow the other side to connect to it.
    pub fn ingress(&self, to: Side<'_>, from: Side<'_>, port: CalledPort) -> PolicyVerdict<'_> {
        self.judge(Way::Ingress, to, from, port)
    }

    /// Returns the policies that restrict a pod in a direction, with their rules.
    pub fn of_pod(
        &self,
        pod: &Pod,
        way: Way,
    ) -> impl Iterator<Item = (&NetworkPolicy, &[PolicyRule])> {
        let own = self.by_namespace.get(&pod.name.namespace).into_iter().flatten();
        let own = own.filter(move |policy| policy.pods.matches(&pod.spec.labels));
        own.filter_map(move |policy| Some((policy, policy.rules(way)?)))
    }

    /// Returns the policy by which kube-router allows a denied connection: it has one list of rules for
    /// both directions of a policy, so that on the node of one of two pods that a policy selects, a rule
    /// of the other's direction lets the connection pass.
    pub fn opened_otherwise(
        &self,
        denied: Way,
        from: Side<'_>,
        to: Side<'_>,
        port: CalledPort,
    ) -> Option<Doubt<'_>> {
        let (Side::Pod(sender, _), Side::Pod(called, _)) = (from, to) else { return None };
        let (own, other_way, other) = match denied {
            Way::Egress => (sender, Way::Ingress, from),
            Way::Ingress => (called, Way::Egress, to),
        };
        let of_both = self.of_pod(own, denied).map(|(policy, _)| policy).filter(|policy| {
            let selects = |pod: &Pod| {
                pod.name.namespace == policy.name.namespace && policy.pods.matches(&pod.spec.labels)
            };
            selects(sender) && selects(called)
        });
        let opens = |policy: &&NetworkPolicy| {
            let rules = policy.rules(other_way).unwrap_or_default();
            let sides = (other_way, other, Some(called));
            rules.iter().any(|rule| self.fit(policy, rule, sides, port) != Fit::No)
        };
        let policy = of_both.into_iter().find(opens)?;
        Some(Doubt { policy, way: denied, why: WhyInDoubt::OtherWay })
    }

    /// Decides whether a pod reaches itself through a Service. kube-router, which is what rejects calls,
    /// has one chain for what a pod sends and gets, and lets pass what either direction allows.
    pub fn itself(
        &self,
        pod: &Pod,
        ip: IpAddr,
        port: CalledPort,
        rejects: bool,
    ) -> PolicyVerdict<'_> {
        let side = Side::Pod(pod, ip);
        let [out, back] =
            [Way::Egress, Way::Ingress].map(|way| self.restricted(way, pod, side, port));
        match (out, back) {
            (PolicyVerdict::Denied(_), other) | (other, PolicyVerdict::Denied(_)) if rejects => {
                other
            }
            (PolicyVerdict::Denied(denial), _) | (_, PolicyVerdict::Denied(denial)) => {
                let Denial { policy, way, .. } = denial;
                PolicyVerdict::Depends(Doubt { policy, way, why: WhyInDoubt::Itself })
            }
            (out, back) => out.and(|| back),
        }
    }

    fn judge(
        &self,
        way: Way,
        own: Side<'_>,
        other: Side<'_>,
        port: CalledPort,
    ) -> PolicyVerdict<'_> {
        let Side::Pod(pod, _) = own else { return PolicyVerdict::Allowed };
        if always_allowed(pod, other) {
            return PolicyVerdict::Allowed;
        }
        self.restricted(way, pod, other, port)
    }

    /// Decides whether the policies that select a pod allow a connection.
    fn restricted(
        &self,
        way: Way,
        pod: &Pod,
        other: Side<'_>,
        port: CalledPort,
    ) -> PolicyVerdict<'_> {
        if pod.spec.host_network {
            return PolicyVerdict::Allowed;
        }
        let called = match way {
            Way::Ingress => Some(pod),
            Way::Egress => other.pod(),
        };
        let mut doubt = None;
        let mut nearest: Option<(Lack, &NetworkPolicy)> = None;
        let mut number = 0;
        for (policy, rules) in self.of_pod(pod, way) {
            number += 1;
            for rule in rules {
                let fit = self.fit(policy, rule, (way, other, called), port);
                match fit {
                    Fit::Yes => return PolicyVerdict::Allowed,
                    Fit::Maybe(why) => {
                        doubt.get_or_insert(Doubt { policy, way, why });
                    }
                    Fit::No => {}
                }
            }
            let lack = self.lack(policy, rules, (way, other, called), port);
            if nearest.is_none_or(|(known, _)| known < lack) {
                nearest = Some((lack, policy));
            }
        }
        match (nearest, doubt) {
            (None, _) => PolicyVerdict::Allowed,
            (_, Some(doubt)) => PolicyVerdict::Depends(doubt),
            (Some((lack, policy)), None) => {
                PolicyVerdict::Denied(Denial { policy, others: number - 1, way, lack })
            }
        }
    }

    /// Returns whether a rule allows the connection.
    fn fit(
        &self,
        policy: &NetworkPolicy,
        rule: &PolicyRule,
        (way, other, called): (Way, Side<'_>, Option<&Pod>),
        port: CalledPort,
    ) -> Fit {
        let at_port = fit_ports(&rule.ports, called, port);
        if at_port == Fit::No || rule.peers.is_empty() {
            return at_port;
        }
        // Some plugins let all nodes in, whatever the rules say.
        if let (Way::Ingress, Side::Node(..)) = (way, other) {
            return Fit::Maybe(WhyInDoubt::Node);
        }
        let peers = rule.peers.iter().map(|peer| self.fit_peer(policy, peer, other));
        at_port.and(Fit::any(peers))
    }

    fn fit_peer(&self, policy: &NetworkPolicy, peer: &PolicyPeer, other: Side<'_>) -> Fit {
        match (peer, other) {
            (PolicyPeer::Pods { .. }, Side::Hidden) => Fit::Maybe(WhyInDoubt::Address),
            (PolicyPeer::Pods { namespaces, pods }, Side::Pod(pod, _)) => {
                self.fit_pod(policy, namespaces.as_ref(), pods.as_ref(), pod)
            }
            (PolicyPeer::Pods { namespaces, pods }, Side::Node(_, _, Some(pod))) => {
                match self.fit_pod(policy, namespaces.as_ref(), pods.as_ref(), pod) {
                    Fit::No => Fit::No,
                    Fit::Yes | Fit::Maybe(_) => Fit::Maybe(WhyInDoubt::Node),
                }
            }
            (PolicyPeer::Pods { .. }, Side::Node(_, _, None) | Side::Outside(_)) => Fit::No,
            (PolicyPeer::Range { net, except }, other) => fit_range(*net, except, other),
        }
    }

    fn fit_pod(
        &self,
        policy: &NetworkPolicy,
        namespaces: Option<&Selector>,
        pods: Option<&Selector>,
        pod: &Pod,
    ) -> Fit {
        let of_pods = Fit::of(pods.is_none_or(|pods| pods.matches(&pod.spec.labels)));
        let namespace = &pod.name.namespace;
        of_pods.and(match namespaces {
            None => Fit::of(*namespace == policy.name.namespace),
            Some(selector) => self.fit_namespace(selector, namespace),
        })
    }

    /// Returns whether a selector has a namespace; `None` if that is not known. The API server gives
    /// each a label of its name.
    pub fn has_namespace(&self, selector: &Selector, namespace: &Name) -> Option<bool> {
        match self.fit_namespace(selector, namespace) {
            Fit::Yes => Some(true),
            Fit::No => Some(false),
            Fit::Maybe(_) => None,
        }
    }

    fn fit_namespace(&self, selector: &Selector, namespace: &Name) -> Fit {
        let known = self.namespaces.get(namespace);
        let by_label = |key: &str, value: &str| match known {
            _ if key == NAME_LABEL => Fit::of(value == namespace.as_str()),
            Some(labels) => Fit::of(labels.is(key, value)),
            None => Fit::Maybe(WhyInDoubt::NamespaceLabels),
        };
        let mut fit = Fit::Yes;
        for (key, value) in selector.labels.iter() {
            fit = fit.and(by_label(key, value));
        }
        for requirement in &selector.expressions {
            fit = fit.and(match known {
                _ if &*requirement.key == NAME_LABEL => {
                    Fit::of(holds_for_name(requirement, namespace))
                }
                Some(labels) => Fit::of(requirement.holds(labels)),
                None => Fit::Maybe(WhyInDoubt::NamespaceLabels),
            });
        }
        fit
    }

    /// Returns what the rules of a policy lack to allow a connection that they do not allow.
    fn lack(
        &self,
        policy: &NetworkPolicy,
        rules: &[PolicyRule],
        (_, other, called): (Way, Side<'_>, Option<&Pod>),
        port: CalledPort,
    ) -> Lack {
        let of_rule = |rule: &PolicyRule| {
            let is_open = rule.peers.is_empty();
            let peers = rule.peers.iter().map(|peer| self.fit_peer(policy, peer, other));
            if is_open || Fit::any(peers) != Fit::No {
                return Lack::Port;
            }
            let near = rule.peers.iter().map(|peer| near(policy, peer, other)).max();
            let near = near.unwrap_or(Lack::Peer);
            let is_at_port =
                !rule.ports.is_empty() && fit_ports(&rule.ports, called, port) != Fit::No;
            if is_at_port { near.max(Lack::PeerAtPort) } else { near }
        };
        rules.iter().map(of_rule).max().unwrap_or(Lack::Rules)
    }
}

impl PolicyPeer {
    /// Returns whether it selects by a value that is one of a pod's labels, or its namespace.
    pub fn has_word_of(&self, pod: &Pod) -> bool {
        let Self::Pods { namespaces, pods } = self else { return false };
        let namespace = pod.name.namespace.as_str();
        let is_word =
            |word: &str| word == namespace || pod.spec.labels.iter().any(|(_, own)| own == word);
        let all = namespaces.iter().chain(pods);
        all.flat_map(|selector| selector.labels.iter()).any(|(_, value)| is_word(value))
    }
}

impl<'a> Side<'a> {
    /// Returns the pod, if the side is one with a network of its own.
    fn pod(self) -> Option<&'a Pod> {
        match self {
            Self::Pod(pod, _) => Some(pod),
            Self::Node(..) | Self::Outside(_) | Self::Hidden => None,
        }
    }
}

/// Returns whether policies cannot forbid a connection with the other side: a pod reaches itself,
/// and its node and it reach each other.
fn always_allowed(pod: &Pod, other: Side<'_>) -> bool {
    match other {
        Side::Pod(other, _) => other.name == pod.name,
        Side::Node(node, ..) => pod.node.as_ref() == Some(node),
        Side::Outside(_) | Side::Hidden => false,
    }
}

/// Returns how near a peer of a rule is to a side that it does not have.
fn near(policy: &NetworkPolicy, peer: &PolicyPeer, other: Side<'_>) -> Lack {
    let PolicyPeer::Pods { pods, .. } = peer else { return Lack::Peer };
    let Some(pod) = other.pod() else { return Lack::Peer };
    let labels = &pod.spec.labels;
    let is_meant = pods.as_ref().is_some_and(|pods| !pods.is_empty() && pods.matches(labels));
    if is_meant && pod.name.namespace != policy.name.namespace {
        return Lack::Namespace;
    }
    if peer.has_word_of(pod) { Lack::Labels } else { Lack::Peer }
}

fn fit_range(net: ipnet::IpNet, except: &[ipnet::IpNet], other: Side<'_>) -> Fit {
    let has = |ip: IpAddr| net.contains(&ip) && !except.iter().any(|out| out.contains(&ip));
    let is_all = net.prefix_len() == 0 && except.is_empty();
    match other {
        Side::Pod(_, ip) if has(ip) => Fit::Maybe(WhyInDoubt::BlockOfPods),
        Side::Node(_, ip, _) if has(ip) => Fit::Maybe(WhyInDoubt::BlockOfPods),
        Side::Pod(..) | Side::Node(..) => Fit::No,
        Side::Outside(Some(ip)) => Fit::of(has(ip)),
        Side::Outside(None) if is_all => Fit::Yes,
        Side::Outside(None) | Side::Hidden => Fit::Maybe(WhyInDoubt::Address),
    }
}

fn fit_ports(ports: &[PolicyPort], called: Option<&Pod>, (protocol, port): CalledPort) -> Fit {
    if ports.is_empty() {
        return Fit::Yes;
    }
    let of_protocol = ports.iter().filter(|own| own.protocol == protocol);
    Fit::any(of_protocol.map(|own| match &own.numbers {
        PortNumbers::All => Fit::Yes,
        PortNumbers::Range(first, last) => {
            Fit::of((first.number()..=last.number()).contains(&port))
        }
        PortNumbers::Named(name) => match called {
            Some(pod) => {
                Fit::of(pod.spec.named_port(name, protocol).is_some_and(|own| own.number() == port))
            }
            None => Fit::Maybe(WhyInDoubt::PortName),
        },
    }))
}

fn holds_for_name(requirement: &Requirement, namespace: &Name) -> bool {
    let among = |values: &[crate::Text]| values.iter().any(|own| **own == *namespace.as_str());
    match &requirement.operator {
        Operator::In(values) => among(values),
        Operator::NotIn(values) => !among(values),
        Operator::Exists => true,
        Operator::DoesNotExist => false,
    }
}
