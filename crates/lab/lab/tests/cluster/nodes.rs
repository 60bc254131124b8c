//! Captures of nodes through the API server, with real rules of real kube-proxies, and what
//! `kubectl exec` does. The kubelet that runs the commands is a stand-in.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::{self, Command, Output, Stdio};

use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, WatchEvent, WatchParams};
use serde_json::{Value, json};

use super::installed::text;
use super::stage::Stage;

/// What short-lived pods are found by.
const SHORT_LIVED: [&str; 6] =
    ["get", "pods", "-n", "kube-system", "-l", "app.kubernetes.io/name=uturn-collect"];

pub(crate) fn show(stage: &Stage<'_>) {
    let folder = Folder(env::temp_dir().join(format!("uturn-nodes-{}", process::id())));
    fs::create_dir_all(&folder.0).unwrap();
    let nodes = Nodes { stage, folder: &folder.0, kubeconfig: stage.kubeconfig().to_owned() };
    nodes.kubectl_exec();
    nodes.as_it_is_there();
    nodes.faults();
    nodes.rights();
    // The last: it takes the pods of kube-proxy away.
    nodes.short_lived();
}

/// A folder that goes with this.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left is in the folder for such things.
        let _ = fs::remove_dir_all(&self.0);
    }
}

struct Nodes<'s> {
    stage: &'s Stage<'s>,
    folder: &'s Path,
    kubeconfig: PathBuf,
}

impl Nodes<'_> {
    /// A real kubectl runs commands in pods.
    fn kubectl_exec(&self) {
        let script = "echo out; echo err >&2; exit 3";
        let exec = ["exec", "-n", "shop", "deploy/web", "--", "sh", "-c", script];
        let output = self.kubectl(&exec).output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
        assert_eq!(text(&output.stdout), "out\n");
        assert!(text(&output.stderr).starts_with("err\n"), "{}", text(&output.stderr));
        // It is the pod's network.
        let exec = ["exec", "-n", "shop", "deploy/web", "--", "curl", "-sS", "http://front/"];
        let output = self.kubectl(&exec).output().unwrap();
        assert!(text(&output.stdout).starts_with("by pod shop/front"), "{output:?}");
        let exec = ["exec", "-n", "shop", "deploy/web", "--", "no-such-program"];
        let output = self.kubectl(&exec).output().unwrap();
        assert!(text(&output.stderr).contains("executable file not found"), "{output:?}");
    }

    /// What comes through the API is what the node says itself.
    fn as_it_is_there(&self) {
        // kube-proxy may still program what was written before.
        let bundle =
            self.stage.until("a capture that agrees with the node and the objects", || {
                for name in ["through", "here"] {
                    // The first time there is none.
                    let _ = fs::remove_dir_all(self.folder.join(name));
                }
                let bundle = self.collected("through", &["--node", "n1"]);
                self.compare_with_here(&bundle)?;
                let output = self.check(&bundle);
                if output.status.code() == Some(0) && text(&output.stdout).contains("n1") {
                    Ok(bundle)
                } else {
                    Err(text(&output.stdout) + &text(&output.stderr))
                }
            });
        let entry = &manifest(&bundle)["captures"]["n1"];
        assert!(entry["pod"].as_str().unwrap().starts_with("kube-system/kube-proxy"), "{entry}");
        assert_eq!(entry["settled"], true);

        // An archive has them too; one node stands for all that are alike.
        let archive = self.collected("classes.tar.gz", &["--nodes"]);
        let output = self.check(&archive);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
        let all = self.collected("all", &["--nodes", "all"]);
        let names: Vec<String> =
            manifest(&all)["captures"].as_object().unwrap().keys().cloned().collect();
        assert_eq!(names, ["n1", "n2", "n3"]);
    }

    /// Compares a capture of n1 with what `collect --here` writes there.
    fn compare_with_here(&self, bundle: &Path) -> Result<(), String> {
        let here = self.folder.join("here");
        let program = self.stage.program().display().to_string();
        let path = here.display().to_string();
        let words = [&*program, "collect", "--here", "--node", "n1", "-o", &path];
        self.stage.exec("node/n1", &words);
        let [through, here] = [bundle, &here].map(|bundle| files(&bundle.join("nodes").join("n1")));
        assert!(through.len() > 6, "{:?}", through.keys());
        assert_eq!(through.keys().collect::<Vec<_>>(), here.keys().collect::<Vec<_>>());
        match through.iter().find(|(name, text)| here[*name] != **text) {
            Some((name, text)) => Err(format!("{name}:\n{text}\n\nand here\n{}", here[name])),
            None => Ok(()),
        }
    }

    fn faults(&self) {
        const FORWARD: &str = "/proc/sys/net/ipv4/ip_forward";
        let write = |value: &str| {
            let script = format!("echo {value} > {FORWARD}");
            self.stage.exec("node/n2", &["sh", "-c", &script]);
        };
        write("0");
        let bundle = self.collected("fault", &["--node", "n2"]);
        write("1");
        let output = self.check(&bundle);
        assert_eq!(output.status.code(), Some(1), "{}", text(&output.stdout));
        assert!(text(&output.stdout).contains("UT604"), "{}", text(&output.stdout));
    }

    /// Without the right to run commands, the rest is collected, and it is said what is missing.
    fn rights(&self) {
        let rights = |words: &[&str]| {
            let rights = text(&self.uturn(&[&["collect", "--rbac"], words].concat()).stdout);
            self.stage.kubectl(&["apply", "-f", "-"], &rights);
        };
        rights(&[]);
        let token = ["create", "token", "uturn-reader", "-n", "kube-system"];
        let token = self.stage.kubectl(&token, "");
        let config = fs::read_to_string(&self.kubeconfig).unwrap();
        let mut config: Value = serde_json::from_str(&config).unwrap();
        config["users"][0]["user"] = json!({"token": token.trim()});
        let reader = self.folder.join("reader.kubeconfig");
        fs::write(&reader, config.to_string()).unwrap();
        let nodes = Nodes { kubeconfig: reader, ..*self };
        let path = self.folder.join("refused").display().to_string();
        let output = nodes.uturn(&["collect", "--node", "n1", "-o", &path]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{said}");
        assert!(said.contains("node n1 is not captured"), "{said}");
        assert!(said.contains("pods/exec") && said.contains("--rbac --nodes"), "{said}");
        let failed = &manifest(Path::new(&path))["captures"]["n1"]["failed"];
        assert!(failed.as_str().unwrap().contains("pods/exec"), "{failed}");
        rights(&["--nodes"]);
        let bundle = nodes.collected("allowed", &["--node", "n1"]);
        assert!(bundle.join("nodes/n1/iptables.save").is_file());
    }

    /// Where kube-proxy has no pod, one is made, and it is gone afterwards.
    fn short_lived(&self) {
        let delete = ["delete", "daemonset", "kube-proxy", "-n", "kube-system"];
        self.stage.kubectl(&[&delete[..], &["--cascade=foreground"]].concat(), "");
        let path = self.folder.join("unasked").display().to_string();
        let output = self.uturn(&["collect", "--node", "n1", "--image", "tools:1", "-o", &path]);
        assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
        assert!(text(&output.stderr).contains("--yes"), "{}", text(&output.stderr));
        self.assert_no_pods();

        let output = self.uturn(&["collect", "--node", "n1", "-o", &path]);
        assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
        assert!(text(&output.stderr).contains("--image"), "{}", text(&output.stderr));

        let image = ["--node", "n1", "--node", "n3", "--image", "tools:1", "--yes"];
        let bundle = self.collected("made", &image);
        for node in ["n1", "n3"] {
            assert!(bundle.join("nodes").join(node).join("iptables.save").is_file());
            let pod = &manifest(&bundle)["captures"][node]["pod"];
            assert!(pod.as_str().unwrap().starts_with("kube-system/uturn-collect-"), "{pod}");
        }
        self.assert_no_pods();
        self.interrupted();
    }

    /// Nothing is left of a run that is interrupted.
    fn interrupted(&self) {
        let path = self.folder.join("interrupted");
        let words = ["collect", "--nodes", "all", "--image", "tools:1", "--yes", "-o"];
        let mut command = Command::new(self.stage.program());
        command.args(words).arg(&path).env("KUBECONFIG", &self.kubeconfig);
        let mut child = command.stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        self.stage.runtime().block_on(async {
            let pods: Api<Pod> = Api::namespaced(self.stage.client().clone(), "kube-system");
            let wanted = WatchParams::default().labels(SHORT_LIVED[5]);
            let mut events = pin!(pods.watch(&wanted, "0").await.unwrap());
            while !matches!(events.next().await.unwrap().unwrap(), WatchEvent::Added(_)) {}
        });
        let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
        assert!(kill.unwrap().success());
        let ended = child.wait().unwrap();
        assert_eq!(ended.code(), Some(3));
        assert!(!path.exists());
        self.assert_no_pods();
    }

    fn assert_no_pods(&self) {
        let names = [&SHORT_LIVED[..], &["-o", "name"]].concat();
        assert_eq!(self.stage.kubectl(&names, ""), "");
    }

    /// Writes a bundle of these nodes. Returns its path.
    fn collected(&self, name: &str, words: &[&str]) -> PathBuf {
        let bundle = self.folder.join(name);
        let path = bundle.display().to_string();
        let output = self.uturn(&[&["collect", "-o", &path], words].concat());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        bundle
    }

    /// Holds a bundle's nodes against its objects. The shop states a kube-proxy of a cloud; the one
    /// that runs is in the facts of the run.
    fn check(&self, bundle: &Path) -> Output {
        let facts = self.stage.kubeconfig().with_file_name("facts.json").display().to_string();
        let path = bundle.display().to_string();
        self.uturn(&["check", "nodes", "--bundle", &path, "-f", &facts, "--complete"])
    }

    fn uturn(&self, words: &[&str]) -> Output {
        let mut command = Command::new(self.stage.program());
        command.args(words).env("KUBECONFIG", &self.kubeconfig).stdin(Stdio::null());
        command.output().unwrap()
    }

    fn kubectl(&self, words: &[&str]) -> Command {
        let mut command = self.stage.bare_kubectl();
        command.args(words).env("KUBECONFIG", &self.kubeconfig).stdin(Stdio::null());
        command
    }
}

fn manifest(bundle: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(bundle.join("bundle.json")).unwrap()).unwrap()
}

/// The files of a capture without what each capture has of its own: times and counts. Links of
/// bridges show their timers.
fn files(folder: &Path) -> BTreeMap<String, String> {
    let read = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().unwrap();
        let text = fs::read_to_string(entry.path()).unwrap();
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let lines = lines.filter(|line| !line.starts_with("net.netfilter.nf_conntrack_count"));
        // `:INPUT ACCEPT [12:345]`
        let lines =
            lines.map(
                |line| if line.starts_with(':') { line.split(" [").next().unwrap() } else { line },
            );
        (name, lines.collect::<Vec<_>>().join("\n"))
    };
    let entries = fs::read_dir(folder).unwrap().map(|entry| read(entry.unwrap()));
    entries.filter(|(name, _)| !["capture.json", "link.json"].contains(&name.as_str())).collect()
}
