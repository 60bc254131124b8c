//! The stories that are played on a cluster in a box.

mod keepalive;
mod loopback;

use super::installed::Installed;
use super::stage::{Stage, Story};

/// Plays all stories, or those whose names are given.
pub(crate) fn main(installed: &Installed) {
    let stage = Stage::up(installed, &["--nodes", "3"]);
    stage.play("keepalive", keepalive::story);
    stage.down();
}

/// Plays those in IPVS mode, for which this kernel may need a small machine.
pub(crate) fn in_ipvs(installed: &Installed) {
    let with = |version, name, story: fn(&Story<'_>)| {
        let options = ["--nodes", "2", "--mode", "ipvs", "--kube-proxy", version];
        let stage = Stage::up(installed, &options);
        stage.play(name, story);
        stage.down();
    };
    with("v1.22.5-tke.13", "loopback", loopback::cured);
    with("v1.22.5-tke.12", "loopback-old", loopback::too_old);
}
