//! Parses the words for values that only Facts state.

use uturn_clouds::cloud::{self, CloudEntry};
use uturn_document::{Node, Value, integer};
use uturn_model::cluster::Provider;
use uturn_model::lb::{Delivery, ListenerProtocol, Scheduler, Scope, StatedProbeSource};
use uturn_model::network::{NetworkMode, Plugin, Transport};
use uturn_model::network_policy::Enforcement;
use uturn_model::node::RpFilter;
use uturn_model::{ProxyMode, ServiceProxy, Variant, Version};

use crate::decode::FromNode;
use crate::decode::value::{Loose, one_of};

macro_rules! words {
    ($($type:ty: $expected:literal [$($word:literal => $value:expr),* $(,)?]),* $(,)?) => {$(
        impl FromNode for $type {
            const EXPECTED: &'static str = $expected;

            fn from_node(node: &Node<'_>) -> Result<Self, String> {
                one_of(node, &[$(($word, $value)),*])
            }
        }
    )*};
}

words!(
    NetworkMode: "global-router, vpc-cni or routed" [
        "global-router" => Self::GlobalRouter,
        "vpc-cni" => Self::VpcCni,
        "routed" => Self::Routed,
    ],
    Transport: "underlay or tunnel" [
        "underlay" => Self::Underlay,
        "tunnel" => Self::Tunnel,
    ],
    Enforcement: "drop, reject or ignore" [
        "drop" => Self::Drops,
        "reject" => Self::Rejects,
        "ignore" => Self::Ignores,
    ],
    ProxyMode: "iptables, ipvs or nftables" [
        "iptables" => Self::Iptables,
        "ipvs" => Self::Ipvs,
        "nftables" => Self::Nftables,
    ],
    Scope: "private or public" ["private" => Self::Private, "public" => Self::Public],
    StatedProbeSource: "vip or reserved" ["vip" => Self::Vip, "reserved" => Self::Reserved],
    ListenerProtocol: "TCP, UDP, TCP_SSL, HTTP or HTTPS" [
        "TCP" => Self::Tcp,
        "UDP" => Self::Udp,
        "TCP_SSL" => Self::TcpSsl,
        "HTTP" => Self::Http,
        "HTTPS" => Self::Https,
    ],
    Delivery: "to-target or keeps-address" [
        "to-target" => Self::ToTarget,
        "keeps-address" => Self::KeepsAddress,
    ],
    Scheduler: "WRR, LEAST_CONN or IP_HASH" [
        "WRR" => Self::WeightedRoundRobin,
        "LEAST_CONN" => Self::LeastConnections,
        "IP_HASH" => Self::SourceHash,
    ],
);

impl FromNode for Plugin {
    const EXPECTED: &'static str = "a network plugin such as calico or aws-vpc-cni";
    const IS_TEXT: bool = true;

    fn from_node(node: &Node<'_>) -> Result<Self, String> {
        let of_clouds = cloud::networks().map(|network| network.network);
        let mut words: Vec<_> =
            of_clouds.map(|network| (network.word, Self::OfCloud(network))).collect();
        words.sort_by_key(|(word, _)| *word);
        words.extend(Self::ALL.map(|(plugin, word, _)| (word, plugin)));
        one_of(node, &words)
    }
}

impl FromNode for ServiceProxy {
    const EXPECTED: &'static str = "a program that serves Services in place of kube-proxy, or none";

    fn from_node(node: &Node<'_>) -> Result<Self, String> {
        one_of(node, &Self::ALL.map(|(proxy, word, _)| (word, proxy)))
    }
}

impl FromNode for Provider {
    const EXPECTED: &'static str = cloud::EXPECTED.provider;

    fn from_node(node: &Node<'_>) -> Result<Self, String> {
        let (modelled, others): (Vec<_>, Vec<_>) =
            cloud::ALL.into_iter().partition(|entry| entry.model.is_some());
        let words = |entries: Vec<&'static CloudEntry>| {
            let word = |entry: &CloudEntry| (entry.cloud.word(), Self::Cloud(entry.cloud));
            entries.into_iter().map(word).collect::<Vec<_>>()
        };
        one_of(node, &[words(modelled), vec![("none", Self::None)], words(others)].concat())
    }
}

impl FromNode for Variant {
    const EXPECTED: &'static str = cloud::EXPECTED.variant;

    fn from_node(node: &Node<'_>) -> Result<Self, String> {
        let all: Vec<_> = cloud::variants().map(|variant| (variant.word(), variant)).collect();
        one_of(node, &all)
    }
}

impl FromNode for Version {
    const EXPECTED: &'static str = cloud::EXPECTED.version;

    fn from_node(node: &Node<'_>) -> Result<Self, String> {
        let version = Loose::from_node(node)?.0.parse();
        version.map(cloud::with_known_build).map_err(|_| String::new())
    }
}

impl FromNode for RpFilter {
    const EXPECTED: &'static str = "0 (off), 1 (strict) or 2 (loose)";

    fn from_node(node: &Node<'_>) -> Result<Self, String> {
        let Value::Number(text) = &node.value else { return Err(String::new()) };
        match integer(text) {
            Some(0) => Ok(Self::Off),
            Some(1) => Ok(Self::Strict),
            Some(2) => Ok(Self::Loose),
            _ => Err(String::new()),
        }
    }
}
