//! Reads the settings that decide whether Calico serves Services itself.

use uturn_document::Node;

use super::Doc;
use super::lenient::{items, text};
use super::objects::Objects;

/// The variable in the agent's environment that enables eBPF.
pub(crate) const SWITCH: &str = "FELIX_BPFENABLED";

/// Reads a FelixConfiguration.
pub(crate) fn read_felix(doc: &Doc<'_>, objects: &mut Objects) {
    let Some(spec) = doc.map(doc.root, "spec") else { return };
    if let Some(switch) = spec.get("bpfEnabled")
        && doc.value::<bool>(switch) == Some(true)
    {
        objects.calico_ebpf.get_or_insert(doc.origin(switch));
    }
}

/// Looks for the variable in the containers of a pod or a pod template, whose faults are reported
/// elsewhere.
pub(crate) fn look_into(doc: &Doc<'_>, spec: Option<&Node<'_>>, objects: &mut Objects) {
    let is = |node: &Node<'_>, key: &str, value: &str| {
        text(node, key).is_some_and(|own| own.eq_ignore_ascii_case(value))
    };
    let mut containers = spec.into_iter().flat_map(|spec| items(spec, "containers"));
    let agent = containers.find(|container| is(container, "name", "calico-node"));
    let mut switches = agent.into_iter().flat_map(|agent| items(agent, "env"));
    if let Some(switch) =
        switches.find(|switch| is(switch, "name", SWITCH) && is(switch, "value", "true"))
    {
        objects.calico_ebpf.get_or_insert(doc.origin(switch));
    }
}
