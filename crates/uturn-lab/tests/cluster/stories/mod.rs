//! The stories that are played on a cluster in a box.

mod keepalive;

use super::installed::Installed;
use super::stage::Stage;

/// Plays all stories, or those whose names are given.
pub(crate) fn main(installed: &Installed) {
    let stage = Stage::up(installed, &["--nodes", "3"]);
    stage.play("keepalive", keepalive::story);
    stage.down();
}
