//! The stories that are played on a cluster in a box, one after another.

mod direct;
mod keepalive;
mod local;
mod rewrite;
mod security_group;

use super::installed::Installed;
use super::stage::{Stage, Story};

/// A story: the name of its namespace, and what happens there.
type Named = (&'static str, fn(&Story<'_>));

/// The stories of a cluster whose kube-proxies are in iptables mode.
const IPTABLES: [Named; 5] = [
    ("keepalive", keepalive::story),
    ("rewrite", rewrite::story),
    ("local", local::story),
    ("direct", direct::story),
    ("security-group", security_group::story),
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
