//! The stories that are played on a cluster in a box.

mod direct;
mod keepalive;
mod local;
mod rewrite;
mod security_group;

use super::installed::Installed;
use super::stage::Stage;

/// Plays all stories, or those whose names are given.
pub(crate) fn main(installed: &Installed) {
    let stage = Stage::up(installed, &["--nodes", "3"]);
    let wanted = std::env::var("STORY").unwrap_or_default();
    let all: [(&str, fn(&super::stage::Story<'_>)); 5] = [
        ("keepalive", keepalive::story),
        ("local", local::story),
        ("direct", direct::story),
        ("rewrite", rewrite::story),
        ("security-group", security_group::story),
    ];
    for (name, story) in all {
        if wanted.is_empty() || wanted.split(',').any(|own| own == name) {
            stage.play(name, story);
        }
    }
    stage.down();
}
