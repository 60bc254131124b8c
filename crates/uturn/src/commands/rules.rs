//! `uturn rules`: prints what kube-proxy programs on a node.

use uturn_cli::{Failure, Printer, Status};
use uturn_clouds::cloud;
use uturn_model::{DerivedFrom, Family, Known, Name, Origin, ProxyMode, ServiceProxy, Version};

use super::suggest;
use crate::cli::{Rules, RulesFormat};
use crate::input;

pub(super) fn run(args: &Rules, printer: &Printer) -> Result<Status, Failure> {
    let mut cluster = input::cluster(&args.cluster, None, printer)?;
    if let Some(mode) = args.mode {
        let origin = Origin::Derived(DerivedFrom::Option("--mode"));
        cluster.proxy.mode = Known::stated(mode, origin.clone());
        // A stated mode asks for the rules that kube-proxy would write.
        cluster.proxy.served_by = Known::stated(ServiceProxy::KubeProxy, origin);
    }
    if let Some(version) = args.kube_proxy_version {
        let origin = Origin::Derived(DerivedFrom::Option("--kube-proxy-version"));
        cluster.proxy.version = Known::stated(cloud::with_known_build(version), origin);
        cloud::set_address_binding(&mut cluster.proxy);
    }
    let scope = input::scope_phrase(&cluster);
    let unknown = || {
        let instead = suggest::instead("node", &args.node, &cluster);
        Failure::usage(format!("there is no node {:?} {scope}{instead}", args.node))
    };
    let node = Name::new(args.node.as_str()).map_err(|_| unknown())?;
    let Some(own) = cluster.nodes.get(&node) else { return Err(unknown()) };
    let has_family = |family| own.address(family).is_some();
    let is_v6_only = has_family(Family::V6) && !has_family(Family::V4);
    if let Some(other) = cluster.proxy.replaced_by() {
        let basis = &cluster.proxy.served_by.basis;
        printer.note(&format!(
            "kube-proxy does not run on node {node}: {other} serves Services ({basis}); \
             --mode shows what kube-proxy would write"
        ));
        return Ok(Status::Clean);
    }
    let mode = cluster.proxy.mode.value;
    let format = args.format.unwrap_or(match mode {
        ProxyMode::Nftables => RulesFormat::Nft,
        ProxyMode::Iptables | ProxyMode::Ipvs if is_v6_only => RulesFormat::Ip6tables,
        ProxyMode::Iptables | ProxyMode::Ipvs => RulesFormat::Iptables,
    });
    let mut text = String::new();
    for family in families(format) {
        let program = uturn_kubeproxy::compile(&cluster, &node, &cluster.proxy, *family)
            .map_err(|why| Failure::unavailable(why.to_string()))?;
        text.push_str(&match format {
            RulesFormat::Iptables | RulesFormat::Ip6tables => program.iptables,
            RulesFormat::Ipset => program.ipset,
            RulesFormat::Ipvs => program.ipvs,
            RulesFormat::Nft => program.nft,
        });
    }
    let version = cluster.proxy.version.value;
    if version < uturn_kubeproxy::TO_THE_LETTER {
        printer.note(&older(version));
    }
    if text.is_empty() {
        printer.note(&format!("kube-proxy in {mode} mode programs nothing of that kind"));
    }
    printer.result(&text);
    Ok(Status::Clean)
}

/// Describes how the output differs from that of a kube-proxy before
/// [`uturn_kubeproxy::TO_THE_LETTER`].
fn older(version: Version) -> String {
    let (since, oldest) = (uturn_kubeproxy::TO_THE_LETTER, uturn_kubeproxy::OLDEST);
    let same = format!(
        "the rules treat packets as those of kube-proxy {version} do, but their text differs: \
         comments, empty chains and the order of rules that exclude each other are those of {since}"
    );
    if version < oldest {
        format!("kube-proxy {version} is treated as {oldest}, the oldest that uturn knows; {same}")
    } else {
        same
    }
}

/// Returns the families of a format: iptables separates the families, the other formats hold both.
fn families(format: RulesFormat) -> &'static [Family] {
    match format {
        RulesFormat::Iptables => &[Family::V4],
        RulesFormat::Ip6tables => &[Family::V6],
        RulesFormat::Ipset | RulesFormat::Ipvs | RulesFormat::Nft => &Family::BOTH,
    }
}
