//! `uturn rules`: what kube-proxy programs on a node.

use uturn_model::{Family, Known, Name, Origin};

use crate::cli::{Rules, RulesFormat};
use crate::input;
use crate::printer::Printer;
use crate::status::{Failure, Status};

pub(super) fn run(args: &Rules, printer: &Printer) -> Result<Status, Failure> {
    let mut cluster = input::cluster(&args.inputs, printer)?;
    if let Some(mode) = args.mode {
        cluster.proxy.mode = Known::stated(mode, Origin::file("--mode"));
    }
    if let Some(version) = args.kube_proxy_version {
        cluster.proxy.version = Known::stated(version, Origin::file("--kube-proxy-version"));
    }
    let unknown = || Failure::usage(format!("there is no node {:?} in this cluster", args.node));
    let node = Name::new(args.node.as_str()).map_err(|_| unknown())?;
    if !cluster.nodes.contains_key(&node) {
        return Err(unknown());
    }
    let family = match args.format {
        RulesFormat::Iptables => Family::V4,
        RulesFormat::Ip6tables => Family::V6,
    };
    let program = uturn_kubeproxy::compile(&cluster, &node, &cluster.proxy, family)
        .map_err(|why| Failure::not_here(why.to_string()))?;
    printer.result(&program.iptables);
    Ok(Status::Clean)
}
