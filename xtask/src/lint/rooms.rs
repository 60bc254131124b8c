//! Rooms: the folders below `crates`, which group the crates by product. A crate uses crates of its
//! own room and of the rooms before it in the list, and no others.

use std::collections::BTreeMap;
use std::path::Path;

use crate::shell::{self, Failure};

use super::source;

/// The rooms, from the first. The program, `crates/uturn`, comes after them all.
const ROOMS: [&str; 6] = ["support", "analysis", "cluster", "balancer", "cloud", "lab"];

/// Uses of later rooms that have a reason: whole commands are fuzzed through the library of the
/// program that has them.
const ALLOWED: [(&str, &str); 1] = [("uturn-fuzz", "uturn")];

/// A crate and the crates of the workspace that it uses outside its tests.
struct Member {
    room: usize,
    uses: Vec<String>,
}

/// Checks the room of every crate, and which crates it uses.
///
/// # Errors
/// If there are crates outside a room, or uses of crates of a later room: all of them.
pub(super) fn check() -> Result<(), Failure> {
    let crates = shell::root().join("crates");
    let mut members = BTreeMap::new();
    for sources in source::crates()? {
        let Ok(place) = sources.strip_prefix(&crates) else { continue };
        let room = place.iter().next().and_then(|room| room.to_str()).unwrap_or_default();
        let room = match room {
            "uturn" => ROOMS.len(),
            room => ROOMS.iter().position(|known| *known == room).ok_or_else(|| {
                Failure(format!("crates/{room} is no room; see ROOMS in xtask/src/lint/rooms.rs"))
            })?,
        };
        let manifest = sources.parent().unwrap_or(&sources).join("Cargo.toml");
        let text = source::read(&manifest)?;
        let name = name_of(&text).ok_or_else(|| unnamed(&manifest))?;
        members.insert(name.to_owned(), Member { room, uses: uses(&text) });
    }
    let arrows = arrows_up(&members);
    if arrows.is_empty() {
        Ok(())
    } else {
        Err(Failure(format!("crates use later rooms:\n{}", arrows.join("\n"))))
    }
}

fn unnamed(manifest: &Path) -> Failure {
    Failure(format!("{} has no name", manifest.display()))
}

/// Returns a line for each use of a crate of a later room.
fn arrows_up(members: &BTreeMap<String, Member>) -> Vec<String> {
    let mut arrows = Vec::new();
    for (name, member) in members {
        for used in &member.uses {
            if let Some(other) = members.get(used)
                && other.room > member.room
                && !ALLOWED.contains(&(name, used))
            {
                let room = |member: &Member| ROOMS.get(member.room).unwrap_or(&"uturn").to_owned();
                arrows.push(format!("{name} ({}) uses {used} ({})", room(member), room(other)));
            }
        }
    }
    arrows
}

fn name_of(manifest: &str) -> Option<&str> {
    let line = manifest.lines().find_map(|line| line.strip_prefix("name = \""))?;
    line.strip_suffix('"')
}

/// Returns the crates of the workspace that a manifest names, except in `dev-dependencies`.
fn uses(manifest: &str) -> Vec<String> {
    let mut counts = false;
    let mut uses = Vec::new();
    for line in manifest.lines() {
        if let Some(section) = line.strip_prefix('[') {
            counts = section == "dependencies]" || section.ends_with(".dependencies]");
        } else if counts
            && let Some(used) = line.split(['.', ' ', '=']).next()
            && (used == "uturn" || used.starts_with("uturn-"))
        {
            uses.push(used.to_owned());
        }
    }
    uses
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn uses_of_later_rooms_are_found() {
        let manifest = "[package]\nname = \"uturn-a\"\n\n[dependencies]\nserde = \"1\"\n\
                        uturn-b.workspace = true\n\n[target.'cfg(unix)'.dependencies]\n\
                        uturn-c = { workspace = true }\nuturn.workspace = true\n\n[dev-dependencies]\nuturn-d.workspace = true\n";
        assert_eq!(name_of(manifest), Some("uturn-a"));
        assert_eq!(uses(manifest), ["uturn-b", "uturn-c", "uturn"]);
        let member = |room, uses: &[&str]| Member {
            room,
            uses: uses.iter().map(|name| (*name).to_owned()).collect(),
        };
        let members = BTreeMap::from([
            ("uturn-a".to_owned(), member(1, &["uturn-b", "uturn-c"])),
            ("uturn-b".to_owned(), member(1, &["uturn-a"])),
            ("uturn-c".to_owned(), member(ROOMS.len(), &["uturn-a"])),
        ]);
        assert_eq!(arrows_up(&members), ["uturn-a (analysis) uses uturn-c (uturn)"]);
    }

    #[test]
    fn every_room_has_crates_and_the_pages_show_it() {
        let pages = ["ARCHITECTURE.md", "CONTRIBUTING.md"]
            .map(|page| fs::read_to_string(shell::root().join(page)).unwrap());
        for room in ROOMS {
            assert!(shell::root().join("crates").join(room).is_dir(), "{room}");
            for page in &pages {
                assert!(page.contains(&format!("| `{room}/` |")), "{room}");
            }
        }
    }
}
