//! The stories that are played on a cluster in a box, one after another.

mod direct;
mod keepalive;
mod local;
mod loopback;
mod policies;
mod rewrite;
mod security_group;
mod short_circuit;

use super::installed::Installed;
use super::stage::{Stage, Story};

/// A story: the name of its namespace, and what happens there.
type Named = (&'static str, fn(&Story<'_>));

/// The stories of a cluster whose kube-proxies are in iptables mode.
const IPTABLES: [Named; 7] = [
    ("keepalive", keepalive::story),
    ("short-circuit", short_circuit::story),
    ("rewrite", rewrite::story),
    ("local", local::story),
    ("direct", direct::story),
    ("security-group", security_group::story),
    // Leaves chains of its own on the nodes.
    ("policies", policies::story),
];

/// Plays the stories that are wanted.
pub(crate) fn play(installed: &Installed, is_wanted: &dyn Fn(&str) -> bool) {
    let wanted: Vec<Named> = IPTABLES.into_iter().filter(|(name, _)| is_wanted(name)).collect();
    if wanted.is_empty() {
        return;
    }
    let stage = Stage::up(installed, &["--nodes", "3"]);
    for (name, story) in wanted {
        stage.play(name, story);
    }
    stage.down();
}

/// Plays the first of them on a cluster that is up.
pub(crate) fn play_first(stage: &Stage<'_>) {
    let (name, story) = IPTABLES[0];
    stage.play(name, story);
}

/// Those in IPVS mode, each with the version of kube-proxy.
const IPVS: [(&str, Named); 2] = [
    ("v1.22.5-tke.13", ("loopback", loopback::cured)),
    ("v1.22.5-tke.12", ("loopback-old", loopback::too_old)),
];

/// Plays those that are wanted in IPVS mode, for which this kernel may need a small machine.
pub(crate) fn play_in_ipvs(installed: &Installed, is_wanted: &dyn Fn(&str) -> bool) {
    for (version, (name, story)) in IPVS {
        if is_wanted(name) {
            let options = ["--nodes", "2", "--mode", "ipvs", "--kube-proxy", version];
            let stage = Stage::up(installed, &options);
            stage.play(name, story);
            stage.down();
        }
    }
}
