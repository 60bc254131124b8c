//! What decides which nodes and pods are targets of load balancers, and with which weights.

use uturn_clouds::cloud::tke::annotations as keys;
use uturn_model::{Cluster, Labels};

use crate::dice::Dice;

/// Changes a cluster so that nodes and pods differ as targets.
pub(crate) fn vary(cluster: &mut Cluster, dice: &mut Dice) {
    for node in cluster.nodes.values_mut() {
        match dice.below(20) {
            0 => node.ready = false,
            1 => node.unschedulable = true,
            2 => annotate(&mut node.labels, "node-role.kubernetes.io/control-plane", ""),
            _ => {}
        }
    }
    for service in cluster.services.values_mut() {
        let notes = &mut service.annotations;
        if dice.once_in(3) {
            annotate(notes, keys::DIRECT_ACCESS, "true");
        }
        if dice.once_in(4) {
            annotate(notes, keys::GRACE_SHUTDOWN, "true");
        }
        if dice.once_in(2) {
            annotate(notes, keys::POD_WEIGHTS, &weights(dice, &["TCP", "UDP"], &[80, 8080]));
        }
    }
    for ingress in cluster.ingresses.values_mut() {
        let notes = &mut ingress.annotations;
        if dice.once_in(4) {
            annotate(notes, keys::INGRESS_GRACE_SHUTDOWN, "true");
        }
        if dice.once_in(2) {
            annotate(notes, keys::INGRESS_POD_WEIGHTS, &weights(dice, &["HTTP", "HTTPS"], &[80]));
        }
    }
    let slices = cluster.endpoints.values().flatten();
    let endpoints = slices.flat_map(|slice| &slice.endpoints);
    let unready = endpoints.filter(|endpoint| !endpoint.ready && !endpoint.terminating);
    let unready: Vec<_> = unready.filter_map(|endpoint| endpoint.pod.clone()).collect();
    for name in unready {
        if let Some(pod) = cluster.pods.get_mut(&name).filter(|_| dice.once_in(2)) {
            pod.ready = false;
            pod.deciding_gates = vec![keys::READINESS_GATE.into()];
        }
    }
}

/// The weights of some pods of the Services `s0` and `s1`.
fn weights(dice: &mut Dice, protocols: &[&str], ports: &[u16]) -> String {
    let mut group = |set: &str| {
        let (protocol, port) = (dice.one_of(protocols), dice.one_of(ports));
        let weight = dice.one_of(&[0, 5, 100]);
        let indexes = dice.one_of(&["0", "1", "0,2,3"]);
        format!(
            r#"{{"key":{{"proto":"{protocol}","port":{port}}},"statefulSets":[{{"name":"{set}",
            "weights":[{{"weight":{weight},"podIndexes":[{indexes}]}}]}}]}}"#
        )
    };
    let groups = [group("s0"), group("s1")].join(",");
    let default = dice.one_of(&["", "", r#""defaultWeight":0,"#, r#""defaultWeight":20,"#]);
    format!(r#"{{{default}"groups":[{groups}]}}"#)
}

fn annotate(notes: &mut Labels, key: &str, value: &str) {
    let all = notes.iter().filter(|(other, _)| *other != key);
    let all: Labels = all.chain([(key, value)]).collect();
    *notes = all;
}
