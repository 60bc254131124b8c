//! Derives whether something enforces NetworkPolicies, and how: most network plugins do, some only
//! with an agent beside them, and flannel alone does not.

use uturn_model::network::Plugin;
use uturn_model::network_policy::{ENFORCEMENT, Enforcement, NetworkPolicies};
use uturn_model::pod::PodSpec;
use uturn_model::{Known, ObjectRef};

use super::{Ground, daemon_sets, proxy};
use crate::decode::objects::Objects;
use crate::derive::Assumptions;

/// The DaemonSets of programs that enforce policies, by name. All drop packets.
const AGENTS: [&str; 10] = [
    "calico-node",
    "canal",
    "rke2-canal",
    "cilium",
    "anetd",
    "antrea-agent",
    "ovnkube-node",
    "weave-net",
    "azure-npm",
    "kube-network-policies",
];

/// The DaemonSet of kube-router, which rejects packets, and the argument without which it enforces
/// no policies.
const KUBE_ROUTER: (&str, &str) = ("kube-router", "--run-firewall=false");

/// The argument that switches the agent beside the AWS VPC CNI on, without its value.
const AWS_SWITCH: &str = "--enable-network-policy=";

/// The argument that switches kube-router's controller within k3s off.
const K3S_SWITCH: &str = "--disable-network-policy";

/// The first build of kindnet that enforces policies.
const KINDNET: &str = "v20240813";

/// Returns the policies of a cluster, with what enforces them.
pub(in crate::derive) fn all(
    objects: &Objects,
    ground: &Ground,
    assumptions: &mut Assumptions,
) -> NetworkPolicies {
    let mut all = NetworkPolicies::none();
    for policy in objects.network_policies.0.values() {
        let namespace = policy.name.namespace.clone();
        all.by_namespace.entry(namespace).or_default().push(policy.clone());
    }
    if all.is_empty() {
        return all;
    }
    let namespaces = objects.namespaces.0.values();
    all.namespaces = namespaces.map(|own| (own.name.clone(), own.labels.clone())).collect();
    all.enforcement = enforcement(objects, &ground.plugin);
    if all.are_in_doubt() {
        let because = match &all.enforcement.basis {
            uturn_model::Basis::Supposed(because) => because.clone(),
            basis => basis.to_string().into(),
        };
        assumptions.assume(
            ENFORCEMENT,
            "it does not",
            because,
            "state spec.network.policies in Facts",
        );
    }
    all
}

fn enforcement(objects: &Objects, plugin: &Known<Plugin>) -> Known<Enforcement> {
    if let Some((stated, origin)) = &objects.facts.policies {
        return Known::stated(*stated, origin.clone());
    }
    let is_stated = objects.facts.network_plugin.is_some();
    let is_certain = |known: &Known<Enforcement>| !is_stated || known.value != Enforcement::Ignores;
    if let Some(known) = by_agent(objects).filter(is_certain) {
        return known;
    }
    // The arguments of the agent are not given; its controller's switch is.
    if let (Plugin::AwsVpcCni, Some((is_on, origin))) = (plugin.value, &objects.policy_switch) {
        let value = if *is_on { Enforcement::Drops } else { Enforcement::Ignores };
        return Known::stated(value, origin.clone());
    }
    let of_plugin = |value| Known { value, basis: plugin.basis.clone() };
    match plugin.value {
        Plugin::Calico
        | Plugin::Canal
        | Plugin::Cilium
        | Plugin::OvnKubernetes
        | Plugin::Antrea
        | Plugin::Weave => of_plugin(Enforcement::Drops),
        Plugin::KubeRouter => of_plugin(Enforcement::Rejects),
        Plugin::Flannel => match proxy::k3s_arguments(objects).filter(|_| !is_stated) {
            Some((words, origin)) if words.iter().any(|word| word.starts_with(K3S_SWITCH)) => {
                Known::stated(Enforcement::Ignores, origin.clone())
            }
            Some(_) => Known::derived(Enforcement::Rejects, "k3s, which has kube-router's for it"),
            // Without the DaemonSets, it is not known what runs beside flannel.
            None if is_stated || daemon_sets(objects).next().is_some() => {
                of_plugin(Enforcement::Ignores)
            }
            None => unknown("flannel does not, and its nodes may run another program that does"),
        },
        Plugin::Unknown => unknown("nothing names the network plugin"),
        other => unknown(format!("with {other} an agent has to, and none is given")),
    }
}

fn unknown(because: impl Into<uturn_model::Text>) -> Known<Enforcement> {
    Known::supposed(Enforcement::Unknown, because)
}

/// Returns what an agent in the cluster does, by its DaemonSet.
fn by_agent(objects: &Objects) -> Option<Known<Enforcement>> {
    if let Some((config, origin)) = &objects.cilium_config
        && config.is("enable-policy", "never")
    {
        return Some(Known::stated(Enforcement::Ignores, origin.clone()));
    }
    let mut found: Option<Known<Enforcement>> = None;
    for (set, spec) in daemon_sets(objects) {
        let Some(value) = of_agent(&set, spec) else { continue };
        // One that enforces counts, whatever others do.
        if found.is_none() || value != Enforcement::Ignores {
            found = Some(Known::derived(value, set.to_string()));
        }
    }
    found
}

fn of_agent(set: &ObjectRef, spec: &PodSpec) -> Option<Enforcement> {
    let mut arguments = spec.containers.iter().flat_map(|own| &own.arguments);
    match &*set.name {
        name if AGENTS.contains(&name) => Some(Enforcement::Drops),
        name if name == KUBE_ROUTER.0 => {
            let is_off = arguments.any(|argument| **argument == *KUBE_ROUTER.1);
            Some(if is_off { Enforcement::Ignores } else { Enforcement::Rejects })
        }
        "aws-node" => {
            let switch = arguments.find_map(|argument| argument.strip_prefix(AWS_SWITCH))?;
            Some(if switch == "true" { Enforcement::Drops } else { Enforcement::Ignores })
        }
        "kindnet" => {
            let image = spec.containers.iter().find(|own| own.image.contains("kindnetd"))?;
            let (_, tag) = image.image.rsplit_once(':')?;
            let is_new = tag.get(..KINDNET.len()).is_some_and(|tag| tag >= KINDNET);
            Some(if is_new { Enforcement::Drops } else { Enforcement::Ignores })
        }
        _ => None,
    }
}
