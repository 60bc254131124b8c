//! The program under test, and what it leaves on this machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use uturn_testing::variables;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

/// Where the program is, where the parts of a cluster are, and who uses them.
pub(crate) struct Installed {
    program: PathBuf,
    parts: PathBuf,
    user: User,
}

/// Who runs the program.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum User {
    Root,
    /// An ordinary one.
    Nobody,
}

/// The number of the user `nobody`.
const NOBODY: &str = "65534";

/// The record of runs.
const RUNS: &str = "/run/uturn-lab";

impl Installed {
    /// What `cargo xtask box` says.
    pub(crate) fn find() -> Option<Self> {
        Some(Self {
            program: variables::path(variables::PROGRAM)?,
            parts: variables::path(variables::CLUSTER_PARTS)?,
            user: User::Root,
        })
    }

    /// The same for an ordinary user. Returns `None` if the program is in a folder of root's alone.
    pub(crate) fn for_nobody(&self) -> Option<Self> {
        let Self { program, parts, .. } = self;
        let own = Self { program: program.clone(), parts: parts.clone(), user: User::Nobody };
        let test = own.as_user("test".as_ref()).arg("-x").arg(&self.program).status();
        test.is_ok_and(|status| status.success()).then_some(own)
    }

    fn as_user(&self, program: &Path) -> Command {
        if self.user == User::Root {
            return Command::new(program);
        }
        let mut command = Command::new("setpriv");
        command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]).arg(program);
        command.env_remove("XDG_RUNTIME_DIR").current_dir("/");
        command
    }

    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    /// The kubectl of the same version as the API server.
    pub(crate) fn kubectl(&self) -> Command {
        Command::new(self.part("kubectl"))
    }

    /// A program that `cargo xtask box` built.
    pub(crate) fn part(&self, name: &str) -> PathBuf {
        self.parts.join("bin").join(name)
    }

    pub(crate) fn lab(&self, words: &[&str]) -> Command {
        let mut command = self.as_user(&self.program);
        command.arg("lab").args(words);
        command
    }

    /// Builds a cluster. Returns its kubeconfig.
    pub(crate) fn up(&self, words: &[&str]) -> PathBuf {
        let output = self.lab(&["up", "--parts"]).arg(&self.parts).args(words).output().unwrap();
        println!("up {}: {}", words.join(" "), text(&output.stderr).trim());
        assert!(output.status.success(), "{}", text(&output.stderr));
        PathBuf::from(text(&output.stdout).trim())
    }

    /// Takes it down, and shows that nothing of this run is left.
    pub(crate) fn down(&self, run: &Run) {
        let output = self.lab(&["down"]).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert!(!run.folder.exists(), "{} is left", run.folder.display());
        assert_eq!(run.namespaces(), Vec::<String>::new());
        let alive: Vec<&String> = run.processes.iter().filter(|line| is_alive(line)).collect();
        assert_eq!(alive, Vec::<&String>::new());
    }

    /// What a program in a pod prints.
    pub(crate) fn in_pod(&self, pod: &str, words: &[&str]) -> Output {
        self.lab(&["exec", pod, "--"]).args(words).output().unwrap()
    }
}

/// The resources of a run.
pub(crate) struct Run {
    folder: PathBuf,
    /// As they are on record: number and start time.
    processes: Vec<String>,
}

impl Run {
    /// The run that has this kubeconfig.
    pub(crate) fn of(kubeconfig: &Path) -> Self {
        let folder = kubeconfig.parent().unwrap().to_owned();
        assert!(folder.starts_with(RUNS), "{}", folder.display());
        if folder.join("machine.sock").exists() {
            // What it has is in a small machine, and ends with that.
            return Self { folder, processes: Vec::new() };
        }
        let processes = fs::read_to_string(folder.join("processes")).unwrap();
        let processes: Vec<String> = processes.lines().map(str::to_owned).collect();
        assert!(processes.iter().any(|line| is_alive(line)));
        let run = Self { folder, processes };
        assert!(!run.namespaces().is_empty());
        run
    }

    /// Its namespaces.
    pub(crate) fn namespaces(&self) -> Vec<String> {
        let id = self.folder.file_name().unwrap().to_str().unwrap();
        let prefix = format!("uturn-{id}-");
        let Ok(entries) = fs::read_dir("/run/netns") else { return Vec::new() };
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.starts_with(&prefix)).collect()
    }

    /// Kills the process that keeps the cluster.
    pub(crate) fn kill_supervisor(&self) {
        kill_supervisor(&self.folder);
    }
}

/// Kills the process that keeps the cluster whose record is in this folder.
pub(crate) fn kill_supervisor(folder: &Path) {
    let record = fs::read_to_string(folder.join("cluster.json")).unwrap();
    let record: serde_json::Value = serde_json::from_str(&record).unwrap();
    let supervisor = record["keeper"].to_string();
    assert!(Command::new("kill").args(["-KILL", &supervisor]).status().unwrap().success());
}

/// Whether a process on record is still the one that was started.
fn is_alive(line: &str) -> bool {
    let (process, started) = line.split_once(' ').unwrap();
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let fields = stat.rsplit_once(") ").map(|(_, rest)| rest);
    let mut fields = fields.into_iter().flat_map(|rest| rest.split(' '));
    let is_zombie = fields.next() == Some("Z");
    !is_zombie && fields.nth(18) == Some(started)
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A client with this kubeconfig.
pub(crate) async fn client(kubeconfig: &Path) -> Client {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).unwrap();
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
    Client::try_from(config).unwrap()
}
