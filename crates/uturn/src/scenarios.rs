//! The scenarios that are built in: one for each row of the design.

use std::path::PathBuf;

use uturn_snapshot::scenario::{self, Scenario};
use uturn_snapshot::{Fault, Source};

use crate::status::Failure;

macro_rules! built_in {
    ($($name:literal),* $(,)?) => {
        const BUILT_IN: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../../scenarios/", $name, ".yaml")))),*];
    };
}

built_in![
    "answers-unseen",
    "anti-affinity",
    "anti-affinity-local",
    "anti-affinity-local-all-nodes",
    "anti-affinity-local-two-servers",
    "cross-node",
    "cross-node-forwarding",
    "cross-node-route",
    "dice-thrown-again",
    "dice-thrown-again-l7",
    "direct-pod-other-node",
    "direct-pod-same-node",
    "dns-broken",
    "dns-rewrite",
    "edge-masquerade",
    "edge-masquerade-not-vpc",
    "flannel",
    "flannel-strict-filter",
    "ip-mode-proxy",
    "ipvs-hairpin",
    "ipvs-host",
    "ipvs-host-local-remote",
    "l4-iptables",
    "l4-ipvs-unbound-cluster",
    "l4-ipvs-unbound-local",
    "l4-ipvs-upstream",
    "l4-prevent-loopback",
    "l4-prevent-loopback-old",
    "l7-host",
    "l7-host-one-node",
    "l7-loop",
    "l7-loop-one-node",
    "l7-loop-strict-filter",
    "l7-snat",
    "l7-snat-sg",
    "lb-sg-443",
    "mixed-rules",
    "no-bandwidth",
    "no-bandwidth-outwards",
    "no-endpoint",
    "no-route-rule",
    "node-sg",
    "one-of-many",
    "outbound-security-group",
    "overlay-l7",
    "overlay-local",
    "overlay-local-one-node",
    "overlay-needs-no-pod-routes",
    "overlay-security-group",
    "overlay-security-group-udp",
    "overlay-strict-filter",
    "overlay-vxlan",
    "overlay-wide-cluster-cidr",
    "overlay-wide-cluster-cidr-strict",
    "own-ingress",
    "pod-calls-itself",
    "probe-firewall",
    "public",
    "redirected",
    "refusal-lost",
    "refused-hairpin",
    "rejected-by-rule",
    "reset-over-bridge",
    "reset-without-bridge",
    "routed-veth",
    "routed-veth-cluster-ip",
    "routed-veth-local",
    "routed-veth-no-route",
    "routed-veth-strict-filter",
    "rules-missing",
    "same-bridge-without-forwarding",
    "shared-vip",
    "tcp-ssl-refused",
    "tls-bypassed",
    "udp-probe-unanswered",
    "vpc-cni-needs-no-pod-routes",
    "vpc-cni-strict-filter",
    "wrong-port",
];

/// The texts of the user's own files.
pub(crate) fn own(files: &[PathBuf]) -> Result<Vec<Source>, Failure> {
    let (own, faults) = uturn_snapshot::gather(files);
    if faults.is_empty() { Ok(own) } else { Err(faulty(&faults)) }
}

/// The built-in scenarios and the user's own.
pub(crate) fn read(own: Vec<Source>) -> Result<Vec<Scenario>, Failure> {
    let mut sources = built_in();
    sources.extend(own);
    read_only(sources)
}

/// These and no others.
pub(crate) fn read_only(sources: Vec<Source>) -> Result<Vec<Scenario>, Failure> {
    scenario::read_all(sources).map_err(|faults| faulty(&faults))
}

/// The texts of the built-in scenarios.
pub(crate) fn built_in() -> Vec<Source> {
    let source = |(name, text): &(&str, &str)| Source {
        name: format!("scenarios/{name}.yaml").into(),
        text: (*text).into(),
    };
    BUILT_IN.iter().map(source).collect()
}

/// The names of those that are built in.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    BUILT_IN.iter().map(|(name, _)| *name)
}

/// Those of these names; without any, all.
pub(crate) fn pick(scenarios: Vec<Scenario>, names: &[String]) -> Result<Vec<Scenario>, Failure> {
    let unknown: Vec<String> = names
        .iter()
        .filter(|name| !scenarios.iter().any(|scenario| *scenario.name == ***name))
        .map(|name| format!("there is no scenario {name:?}: uturn lab list shows all"))
        .collect();
    if !unknown.is_empty() {
        return Err(Failure::input(unknown));
    }
    let picked =
        |scenario: &Scenario| names.is_empty() || names.iter().any(|name| *scenario.name == **name);
    Ok(scenarios.into_iter().filter(picked).collect())
}

fn faulty(faults: &[Fault]) -> Failure {
    Failure::input(faults.iter().map(ToString::to_string).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scenario_of_the_tree_is_built_in() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        files.sort();
        let mut names: Vec<String> =
            BUILT_IN.iter().map(|(name, _)| format!("{name}.yaml")).collect();
        names.sort();
        assert_eq!(files, names);
    }
}
