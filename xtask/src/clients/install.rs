//! Installs the clients under `target/clients`. Downloads are verified by the checksums of the lock
//! files.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::go;
use crate::shell::{self, Failure};

/// Installed clients.
pub(super) struct Installed {
    /// The folder of the clients.
    pub(super) folder: PathBuf,
}

impl Installed {
    /// Installs the clients that are missing.
    pub(super) fn new(sources: &Path, folder: &Path) -> Result<Self, Failure> {
        let installed = Self { folder: folder.to_owned() };
        installed.install_python(&sources.join("python"))?;
        installed.install_node(&sources.join("node"))?;
        go::build(&sources.join("go"), &folder.join("bin"), &["."])?;
        Ok(installed)
    }

    /// Downloads pure Python packages, which are the same everywhere, and unpacks the parts that
    /// are used.
    fn install_python(&self, sources: &Path) -> Result<(), Failure> {
        let lock = sources.join("requirements.txt");
        let packages = self.packages();
        let wheels = packages.join("wheels");
        shell::fill_once(&packages, &[&lock, &sources.join("unpack.py")], || {
            let mut pip = Command::new("python3");
            pip.args(["-m", "pip", "download", "--quiet", "--disable-pip-version-check"]);
            pip.args(["--no-deps", "--only-binary", ":all:", "--platform", "any"]);
            pip.arg("--require-hashes").arg("--dest").arg(&wheels).arg("--requirement").arg(&lock);
            shell::run(&mut pip)?;
            let mut unpack = Command::new("python3");
            unpack.arg(sources.join("unpack.py")).arg(&wheels).arg(&packages);
            shell::run(&mut unpack)
        })
    }

    fn install_node(&self, sources: &Path) -> Result<(), Failure> {
        let folder = self.folder.join("node-client");
        let files = ["package.json", "package-lock.json", "flow.js"].map(|file| sources.join(file));
        shell::fill_once(&folder, &files.each_ref().map(PathBuf::as_path), || {
            for file in &files {
                let name = file.file_name().unwrap_or_default();
                fs::copy(file, folder.join(name)).map_err(|error| named(file, &error))?;
            }
            let mut npm = Command::new("npm");
            npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"]);
            shell::run(npm.current_dir(&folder))
        })
    }

    fn packages(&self) -> PathBuf {
        self.folder.join("python-packages")
    }

    /// Returns a command that runs a Python program with the packages.
    pub(super) fn python(&self, program: &Path) -> Command {
        let mut python = Command::new("python3");
        // Other packages that the machine has installed are not used.
        python.arg("-sB").arg(program).env("PYTHONPATH", self.packages());
        python
    }

    /// Returns the command of the Go program.
    pub(super) fn go(&self) -> Command {
        Command::new(self.folder.join("bin").join("cloud-clients"))
    }

    /// Returns the command of the program for Node.js.
    pub(super) fn node(&self) -> Command {
        let mut node = Command::new("node");
        node.arg(self.folder.join("node-client").join("flow.js"));
        node
    }
}

fn named(path: &Path, error: &io::Error) -> Failure {
    Failure(format!("{}: {error}", path.display()))
}
