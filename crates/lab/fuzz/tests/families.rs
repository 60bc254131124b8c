//! What doubles with each level of an input is limited: each input of a family is taken or refused, by a
//! process that has limits on memory and on time of a processor.

use std::fs;
use std::process::Command;

use uturn_fuzz::families::FAMILIES;

/// The levels of the inputs. With 24 of them, what doubles with each is 16 million times as much.
const LEVELS: [usize; 2] = [3, 24];

#[test]
fn families_are_limited() {
    let folder = std::env::temp_dir().join(format!("uturn-families-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let mut broken = Vec::new();
    for family in FAMILIES {
        for levels in LEVELS {
            let text = (family.text)(levels);
            assert!(text.len() < 1 << 20, "{} has {} bytes", family.name, text.len());
            let file = folder.join("input");
            fs::write(&file, &text).unwrap();
            let run = Command::new(env!("CARGO_BIN_EXE_uturn-growth"))
                .args(["--limited", family.target])
                .arg(&file)
                .output()
                .unwrap();
            let told = String::from_utf8_lossy(&run.stdout).trim().to_owned();
            let is_right = told == "taken" || told == "refused" && !family.is_taken;
            if !(run.status.success() && is_right) {
                let stderr: String =
                    String::from_utf8_lossy(&run.stderr).chars().take(600).collect();
                broken.push(format!(
                    "{}, {levels} levels: {} {told} {stderr}",
                    family.name, run.status
                ));
            }
        }
    }
    fs::remove_dir_all(&folder).unwrap();
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
}
