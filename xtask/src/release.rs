//! `release`: static programs for Linux, in archives with checksums, and the manifest from which
//! krew installs `uturn`, which has an archive of its own.

mod elf;
mod krew;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use clap::Args;

use crate::Outcome;
use crate::machine;
use crate::portable;
use crate::shell::{self, Failure};

/// The profile of the programs that are released.
const PROFILE: &str = "dist";

/// The program that krew installs, and the name of its archive.
const PROGRAM: &str = "uturn";

/// The name of the archive with the other programs.
const OTHERS: &str = "uturn-programs";

/// A platform that gets programs.
struct Platform {
    /// The name of the processor in Go, and so in krew.
    arch: &'static str,
    target: &'static str,
    /// The compilers for the C code in dependencies; the first one that is installed is used. Each
    /// may need a folder.
    compilers: &'static [Compiler],
    /// The packages to install for the compilers.
    packages: &'static str,
    /// The emulator that runs the program on other platforms.
    emulator: &'static str,
}

/// A compiler, and the folder of musl's headers if the compiler does not know it.
struct Compiler {
    program: &'static str,
    headers: Option<&'static str>,
}

const PLATFORMS: [Platform; 2] = [
    Platform {
        arch: "amd64",
        target: "x86_64-unknown-linux-musl",
        compilers: &[
            Compiler { program: "x86_64-linux-musl-gcc", headers: None },
            Compiler { program: "musl-gcc", headers: None },
        ],
        packages: "musl-tools",
        emulator: "qemu-x86_64-static",
    },
    Platform {
        arch: "arm64",
        target: "aarch64-unknown-linux-musl",
        compilers: &[
            Compiler { program: "aarch64-linux-musl-gcc", headers: None },
            Compiler {
                program: "aarch64-linux-gnu-gcc",
                headers: Some("/usr/include/aarch64-linux-musl"),
            },
        ],
        packages: "gcc-aarch64-linux-gnu, and musl-dev:arm64 after dpkg --add-architecture arm64",
        emulator: "qemu-aarch64-static",
    },
];

/// The URLs in the manifest for krew.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// Where the archives will be: also writes the manifest for krew
    #[arg(long, value_name = "URL", value_parser = url)]
    base_url: Option<String>,
    /// Page of the project in that manifest [default: the same]
    #[arg(long, value_name = "URL", value_parser = url)]
    homepage: Option<String>,
}

/// Reads a URL that can be written into the manifest as it is, without slashes at its end.
fn url(text: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_graphic() && !"\"\\@".contains(c);
    if text.starts_with("https://") && text.chars().all(plain) {
        Ok(text.trim_end_matches('/').to_owned())
    } else {
        Err("expected a URL that begins with https://".to_owned())
    }
}

/// Builds the programs, checks that they are static and run, and packs them.
pub(crate) fn run(place: &Place) -> Result<Outcome, Failure> {
    let version = version()?;
    let folder = shell::target().join(format!("release-{version}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(|why| fault(&folder, &why))?;
    let (mut sums, mut others, mut skipped) = (Vec::new(), Vec::new(), Vec::new());
    for platform in &PLATFORMS {
        match platform.compiler() {
            Err(why) => skipped.push(why),
            Ok(compiler) => {
                let built = platform.build(compiler)?;
                for program in shell::PROGRAMS {
                    skipped.extend(platform.try_out(&built, program, &version)?);
                }
                let pack = |name: &str, programs: &[&str]| {
                    let name = format!("{name}-{version}-linux-{}.tar.gz", platform.arch);
                    pack(&built, programs, &folder, name)
                };
                sums.push((platform.arch, pack(PROGRAM, &[PROGRAM])?));
                let rest: Vec<&str> =
                    shell::PROGRAMS.iter().copied().filter(|name| *name != PROGRAM).collect();
                others.push(pack(OTHERS, &rest)?);
            }
        }
    }
    let all = sums.iter().map(|(_, packed)| packed).chain(&others);
    let lines = all.map(|(name, sum)| format!("{sum}  {name}\n"));
    write(&folder.join("SHA256SUMS"), &lines.collect::<String>())?;
    match &place.base_url {
        None => skipped
            .push("the manifest for krew needs --base-url, where the archives will be".to_owned()),
        Some(_) if sums.len() < PLATFORMS.len() => {
            skipped.push("the manifest for krew needs both archives".to_owned());
        }
        Some(base_url) => {
            let homepage = place.homepage.as_deref().unwrap_or(base_url);
            let sums: Vec<(&str, &str)> =
                sums.iter().map(|(arch, (_, sum))| (*arch, &**sum)).collect();
            let text = krew::manifest(&version, base_url, homepage, &sums)?;
            write(&folder.join("uturn.yaml"), &text)?;
        }
    }
    if let Outcome::Skipped(why) = portable::run()? {
        skipped.push(why);
    }
    println!("in {}", folder.display());
    if skipped.is_empty() {
        Ok(Outcome::Complete)
    } else {
        Ok(Outcome::Skipped(skipped.join("; ")))
    }
}

impl Platform {
    /// Returns a compiler that is installed, and checks that the target's standard library is.
    fn compiler(&self) -> Result<&'static Compiler, String> {
        let is_there = |compiler: &&Compiler| {
            machine::find(compiler.program).is_some()
                && compiler.headers.is_none_or(|headers| Path::new(headers).is_dir())
        };
        let Some(compiler) = self.compilers.iter().find(is_there) else {
            return Err(format!(
                "{}: no C compiler for musl: install {}",
                self.target, self.packages
            ));
        };
        if portable::have(self.target) {
            Ok(compiler)
        } else {
            Err(format!("{0}: run: rustup target add {0}", self.target))
        }
    }

    /// Builds the programs. Returns their folder.
    fn build(&self, compiler: &Compiler) -> Result<PathBuf, Failure> {
        let start = Instant::now();
        let mut build = shell::plain_cargo(&["build", "--locked", "--package", PROGRAM]);
        for other in shell::PROGRAMS.iter().filter(|name| **name != PROGRAM) {
            build.args(["--package", &format!("{other}-cli")]);
        }
        build.args(["--profile", PROFILE, "--target", self.target]);
        let name = self.target.replace('-', "_");
        build.env(format!("CC_{name}"), compiler.program);
        if let Some(headers) = compiler.headers {
            // The compiler's own headers are those of another C library.
            build.env(
                format!("CFLAGS_{name}"),
                format!("-nostdinc -isystem {headers} {}", own_headers(compiler)),
            );
        }
        // The linker and libraries that come with the standard library link the rest.
        let name = name.to_uppercase();
        build.env(format!("CARGO_TARGET_{name}_LINKER"), "rust-lld");
        shell::run(&mut build)?;
        let built = shell::target().join(self.target).join(PROFILE);
        for name in shell::PROGRAMS {
            let program = built.join(name);
            let size = fs::metadata(&program).map_err(|why| fault(&program, &why))?.len();
            println!("{}: {name}: {:.1} MB", self.target, size as f64 / 1e6);
        }
        println!("{}: built in {} s", self.target, start.elapsed().as_secs());
        Ok(built)
    }

    /// Checks that a program is static, and runs it if that is possible here. Returns what could
    /// not be checked.
    fn try_out(&self, built: &Path, name: &str, version: &str) -> Result<Option<String>, Failure> {
        let program = &built.join(name);
        let bytes = fs::read(program).map_err(|why| fault(program, &why))?;
        elf::check_static(&bytes)
            .map_err(|why| Failure(format!("{}: {why}", program.display())))?;
        let is_own = matches!(
            (std::env::consts::ARCH, self.arch),
            ("x86_64", "amd64") | ("aarch64", "arm64")
        );
        let mut command = match (is_own, machine::find(self.emulator)) {
            (true, _) => Command::new(program),
            (false, Some(emulator)) => {
                let mut command = Command::new(emulator);
                command.arg(program);
                command
            }
            (false, None) => {
                return Ok(Some(format!(
                    "{name} for {} was not run: {} not found",
                    self.target, self.emulator
                )));
            }
        };
        command.current_dir(shell::root());
        let said = shell::output(command.arg("--version"));
        match said.as_deref().map(str::trim) {
            Some(line) if line == format!("{name} {version}") => Ok(None),
            other => Err(Failure(format!("{} --version: {other:?}", program.display()))),
        }
    }
}

/// Packs programs of a folder with their license, into the same bytes for the same programs. Returns
/// the archive's name and checksum.
fn pack(
    built: &Path,
    programs: &[&str],
    folder: &Path,
    name: String,
) -> Result<(String, String), Failure> {
    let archive = folder.join(&name);
    let mut tar = Command::new("tar");
    tar.args(["--create", "--owner=0", "--group=0", "--numeric-owner", "--mtime=@0"]);
    tar.args(["--mode=u=rwX,go=rX", "--use-compress-program=gzip --no-name --best"]);
    tar.arg("--file").arg(&archive);
    tar.arg("--directory").arg(built).args(programs);
    tar.arg("--directory").arg(shell::root()).arg("LICENSE");
    shell::run(&mut tar)?;
    let sum = shell::output(Command::new("sha256sum").arg(&archive));
    let sum = sum.as_deref().and_then(|text| text.split_whitespace().next());
    let sum = sum.ok_or_else(|| Failure("sha256sum gives no checksum".to_owned()))?;
    Ok((name, sum.to_owned()))
}

/// Returns the options for a compiler's command line that name the folder of its own headers.
fn own_headers(compiler: &Compiler) -> String {
    let asked = shell::output(Command::new(compiler.program).arg("-print-file-name=include"));
    asked.map(|folder| format!("-isystem {}", folder.trim())).unwrap_or_default()
}

/// Returns the version of the workspace.
fn version() -> Result<String, Failure> {
    let path = shell::root().join("Cargo.toml");
    let text = fs::read_to_string(&path).map_err(|why| fault(&path, &why))?;
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("version = \""));
    let version = lines.next().and_then(|rest| rest.strip_suffix('"'));
    version.map(str::to_owned).ok_or_else(|| Failure("Cargo.toml states no version".to_owned()))
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|why| fault(path, &why))
}

fn fault(path: &Path, why: &std::io::Error) -> Failure {
    Failure(format!("{}: {why}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_whole() {
        assert_eq!(url("https://example.com/v1/").as_deref(), Ok("https://example.com/v1"));
        for text in ["http://example.com", "https://a b", "https://a\"b"] {
            assert!(url(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_version_is_that_of_the_workspace() {
        assert_eq!(version().unwrap(), env!("CARGO_PKG_VERSION"));
    }
}
