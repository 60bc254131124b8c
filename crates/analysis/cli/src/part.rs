//! The commands that are programs of their own, and where these are installed.

use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use std::{env, iter};

/// A command of `uturn` that is a program of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// `uturn lab`: scenarios on a real kernel.
    Lab,
    /// `uturn lb`: the load balancer.
    Lb,
    /// `uturn cloud`: the API of a cloud.
    Cloud,
    /// `uturn operator`: the controllers.
    Operator,
}

impl Part {
    /// All parts.
    pub const ALL: [Self; 4] = [Self::Lab, Self::Lb, Self::Cloud, Self::Operator];

    /// Returns the word of the command.
    pub const fn command(self) -> &'static str {
        match self {
            Self::Lab => "lab",
            Self::Lb => "lb",
            Self::Cloud => "cloud",
            Self::Operator => "operator",
        }
    }

    /// Returns the line of the command in `uturn --help`.
    pub const fn about(self) -> &'static str {
        match self {
            Self::Lab => "Build scenarios on a real kernel and measure them",
            Self::Lb => "Run a load balancer that behaves as the cloud's does (the lab uses it)",
            Self::Cloud => "Serve a cloud's API for load balancers on this machine",
            Self::Operator => {
                "Create and update the load balancers that the Services and Ingresses of a cluster \
                 ask for"
            }
        }
    }

    /// Returns the name of the program.
    pub const fn program(self) -> &'static str {
        match self {
            Self::Lab => "uturn-lab",
            Self::Lb => "uturn-lb",
            Self::Cloud => "uturn-cloud",
            Self::Operator => "uturn-operator",
        }
    }

    /// Returns the folder of the program's sources.
    const fn sources(self) -> &'static str {
        match self {
            Self::Lab => "crates/lab/lab-cli",
            Self::Lb => "crates/balancer/lb-cli",
            Self::Cloud => "crates/cloud/cloud-cli",
            Self::Operator => "crates/cloud/operator-cli",
        }
    }

    /// Returns the part whose command the words name, if it is one of these, and the index of that
    /// word. The words are those after the program's name. Options of every command may stand
    /// before the command, and `help`.
    pub fn named<W: AsRef<OsStr>>(words: &[W]) -> Option<(Self, usize)> {
        let at = command(words)?;
        let is_it = |part: &Self| words[at].as_ref() == part.command();
        Some((Self::ALL.into_iter().find(is_it)?, at))
    }

    /// Finds the program: beside the one that runs, else on the search path.
    ///
    /// # Errors
    /// If the program is in neither place.
    pub fn find(self) -> Result<PathBuf, NotInstalled> {
        let own = env::current_exe().ok();
        let beside = own.as_deref().and_then(Path::parent);
        let path = env::var_os("PATH").unwrap_or_default();
        let on_path = env::split_paths(&path).filter(|folder| !folder.as_os_str().is_empty());
        let folders = beside.map(Path::to_owned).into_iter().chain(on_path);
        let file = format!("{}{}", self.program(), env::consts::EXE_SUFFIX);
        let mut files = folders.map(|folder| folder.join(&file));
        files
            .find(|file| is_executable(file))
            .ok_or_else(|| NotInstalled { part: self, beside: beside.map(Path::to_owned) })
    }
}

/// The reason why a part cannot run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotInstalled {
    part: Part,
    /// The folder of the program that runs.
    beside: Option<PathBuf>,
}

impl fmt::Display for NotInstalled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (program, command) = (self.part.program(), self.part.command());
        let beside = self.beside.as_deref().map(|folder| format!("in {}", folder.display()));
        let places: Vec<String> =
            beside.into_iter().chain(iter::once("on the PATH".into())).collect();
        write!(
            f,
            "`uturn {command}` is the program {program}, which is not {}: put it there, or install \
             it from the sources with `cargo install --path {}`",
            places.join(" or "),
            self.part.sources()
        )
    }
}

impl std::error::Error for NotInstalled {}

/// Returns the index of the word that names the command. `None` if there is none, or if the words
/// before it are others than the options of every command.
fn command<W: AsRef<OsStr>>(words: &[W]) -> Option<usize> {
    let mut at = 0;
    let mut is_help = false;
    loop {
        let word = words.get(at)?.as_ref().to_str()?;
        match word.strip_prefix('-') {
            None if word == "help" && !is_help => is_help = true,
            None => return Some(at),
            // The value of the option follows.
            Some("-color") => at += 1,
            Some("-verbose" | "-quiet") => {}
            Some(option) if option.starts_with("-color=") => {}
            Some(letters) if !letters.is_empty() && letters.chars().all(|c| "vq".contains(c)) => {}
            Some(_) => return None,
        }
        at += 1;
    }
}

#[cfg(unix)]
fn is_executable(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    file.metadata().is_ok_and(|known| known.is_file() && known.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(file: &Path) -> bool {
    file.is_file()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(line: &str) -> Option<(Part, usize)> {
        Part::named(&line.split(' ').collect::<Vec<_>>())
    }

    #[test]
    fn the_command_is_found_behind_options() {
        for (line, expected) in [
            ("lab run", Some((Part::Lab, 0))),
            ("lab", Some((Part::Lab, 0))),
            ("-q lb check", Some((Part::Lb, 1))),
            ("-vq --color never cloud serve", Some((Part::Cloud, 3))),
            ("--color=never --verbose operator", Some((Part::Operator, 2))),
            ("help lab run", Some((Part::Lab, 1))),
            ("--quiet help lb", Some((Part::Lb, 2))),
            ("help help lab", None),
            ("scan lab", None),
            ("help scan", None),
            ("--color lab", None),
            ("-h lab", None),
            ("--version lab", None),
            ("-- lab", None),
            ("- lab", None),
            ("labs", None),
            ("", None),
        ] {
            assert_eq!(named(line), expected, "{line:?}");
        }
    }

    #[test]
    fn every_part_has_sources() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
        for part in Part::ALL {
            let manifest = root.join(part.sources()).join("Cargo.toml");
            let text = std::fs::read_to_string(manifest).unwrap();
            assert!(text.contains(&format!("name = \"{}\"", part.program())), "{part:?}");
        }
    }
}
