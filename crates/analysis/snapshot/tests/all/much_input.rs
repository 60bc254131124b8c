//! Much input, and what is no file: one limit for all files, folders and archives of a command together.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use uturn_snapshot::bundle::UnpackLimit;
use uturn_snapshot::{Manifests, Source, read};

/// A folder that is there for a test.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("uturn-{test}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// A file of comments, of so many KiB.
    fn long(&self, name: &str, kibibytes: usize) -> PathBuf {
        self.file(name, format!("#{}\n", "x".repeat(1022)).repeat(kibibytes).as_bytes())
    }

    fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    fn archive(&self, name: &str, kibibytes: usize) -> PathBuf {
        let mut noise = 1_u64;
        let mut bytes = Vec::new();
        for _ in 0..kibibytes * 64 {
            noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            writeln!(bytes, "#{:014x}", noise >> 8).unwrap();
        }
        let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, "objects/a.yaml", &*bytes).unwrap();
        self.file(name, &archive.into_inner().unwrap().finish().unwrap())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn faults(files: &[&Path], bundles: &[&Path], limit: &str) -> Vec<String> {
    let owned = |paths: &[&Path]| paths.iter().map(|path| path.to_path_buf()).collect::<Vec<_>>();
    let limit: UnpackLimit = limit.parse().unwrap();
    let (_, faults) = Manifests::gather_within(&owned(files), &owned(bundles), limit);
    faults.iter().map(ToString::to_string).collect()
}

/// What is beyond the limit is named once, and nothing after it is read.
#[test]
fn all_input_of_a_command_has_one_limit() {
    let folder = Folder::new("much-input");
    let (one, two) = (folder.long("one.yaml", 700), folder.long("two.yaml", 700));
    let many = folder.0.join("many");
    (0..20).for_each(|at| drop(folder.long(&format!("many/{at:02}.yaml"), 100)));
    let bundle = folder.0.join("bundle");
    folder.long("bundle/objects/a.yaml", 700);
    folder.long("bundle/nodes/n1/iptables.save", 700);
    let described = folder.0.join("described");
    folder.long("described/bundle.json", 1100);
    let (first, second) = (folder.archive("first.tgz", 700), folder.archive("second.tgz", 700));
    for (files, bundles, limit, at) in [
        (vec![&*one, &two], vec![], "1", "two.yaml"),
        (vec![&*one, &two], vec![], "2", ""),
        (vec![&*many], vec![], "1", "many/10.yaml"),
        (vec![&*many], vec![], "2", ""),
        (vec![&*one], vec![&*bundle], "1", "iptables.save"),
        (vec![], vec![&*bundle], "1", "bundle/objects/a.yaml"),
        (vec![], vec![&*bundle], "2", ""),
        (vec![&*one], vec![&*first], "1", "first.tgz"),
        (vec![], vec![&*first, &*second], "1", "second.tgz"),
        (vec![], vec![&*first, &*second], "2", ""),
        (vec![], vec![&*described], "1", "bundle.json"),
    ] {
        let found = faults(&files, &bundles, limit);
        match at {
            "" => assert!(found.is_empty(), "{found:?}"),
            at => {
                let [fault] = &*found else { panic!("{at}: {found:?}") };
                let said = "if you trust it, state how much may be read: --unpack-limit 1GiB";
                assert!(fault.contains(at) && fault.contains("more than 1 MiB"), "{at}: {fault}");
                assert!(fault.ends_with(said), "{fault}");
            }
        }
    }
}

/// What a folder has and is no file is not opened: whoever opens a pipe waits.
#[cfg(unix)]
#[test]
fn pipes_and_devices_of_folders_are_refused() {
    let folder = Folder::new("no-files");
    let pipe = |name: &str| {
        fs::create_dir_all(folder.0.join(name).parent().unwrap()).unwrap();
        let made = std::process::Command::new("mkfifo").arg(folder.0.join(name)).status();
        assert!(made.unwrap().success());
    };
    pipe("manifests/a.yaml");
    pipe("bundle/bundle.json");
    pipe("bundle/objects/a.json");
    pipe("bundle/nodes/n1/iptables.save");
    std::os::unix::fs::symlink("/dev/zero", folder.0.join("bundle/objects/zero.yaml")).unwrap();
    std::os::unix::fs::symlink("..", folder.0.join("bundle/objects/up")).unwrap();
    let (manifests, bundle) = (folder.0.join("manifests"), folder.0.join("bundle"));
    let found = faults(&[&manifests], &[&bundle], "1");
    let names = ["manifests/a.yaml", "bundle.json", "objects/a.json", "iptables.save", "zero.yaml"];
    for name in names {
        let said = format!("{name}: neither a file nor a folder");
        assert!(found.iter().any(|fault| fault.ends_with(&said)), "{name}: {found:#?}");
    }
}

/// A file without end is read up to the limit.
#[cfg(target_os = "linux")]
#[test]
fn what_has_no_end_is_cut_off() {
    let folder = Folder::new("no-end");
    let pipe = folder.0.join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut endless = std::process::Command::new("sh")
        .arg("-c")
        .arg("exec yes >\"$0\"")
        .arg(&pipe)
        .spawn()
        .unwrap();
    let found = faults(&[&pipe], &[], "3");
    endless.wait().unwrap();
    let [fault] = &*found else { panic!("{found:?}") };
    assert!(fault.contains("more than 3 MiB"), "{fault}");
    let zeros = faults(&[Path::new("/dev/zero")], &[], "3");
    assert_eq!(zeros, ["/dev/zero:1:1: not a text: a zero byte at offset 0"]);
}

/// A long text that many aliases stand for is a copy for each of them.
#[test]
fn texts_of_aliases_add_up() {
    let read = |length: usize, count: usize| {
        let aliases: String = (0..count).map(|at| format!(", k{at}: *s")).collect();
        let text = format!(
            "apiVersion: v1\nkind: Service\nmetadata:\n  name: x\n  annotations: {{a: &s \"{}\"{aliases}}}\nspec: \
             {{ports: [{{port: 80}}]}}\n",
            "v".repeat(length)
        );
        let manifests = Manifests::of(vec![Source { name: "x.yaml".into(), text }]);
        manifests.cluster().map(drop).map_err(|faults| faults[0].to_string())
    };
    let fault = read(100_000, 1000).unwrap_err();
    assert!(fault.starts_with("x.yaml:5:"), "{fault}");
    assert!(fault.contains("anchors and aliases add up to more than 64 MiB of text"), "{fault}");
    assert_eq!(read(100, 1000), Ok(()));
}

/// The only fault of a text, as it is printed.
fn fault_of(text: String) -> String {
    let source = Source { name: "a.yaml".into(), text };
    let Err(faults) = read(vec![source]) else { panic!("it is not refused") };
    assert_eq!(faults.len(), 1);
    faults[0].to_string()
}

fn workload(kind: &str, number: usize, replicas: u32) -> String {
    format!(
        "---\n{{apiVersion: apps/v1, kind: {kind}, metadata: {{name: w{number}, namespace: d}}, spec: {{replicas: \
         {replicas}, selector: {{matchLabels: {{app: a}}}}, template: {{metadata: {{labels: {{app: a}}}}, spec: \
         {{containers: [{{name: c, image: i}}]}}}}}}}}\n"
    )
}

#[test]
fn more_pods_than_any_cluster_has_are_not_made_up() {
    let all: String = (0..210).map(|number| workload("StatefulSet", number, 100_000)).collect();
    assert_eq!(
        fault_of(all),
        "a.yaml:182:1: with the pods of StatefulSet d/w90, workloads would have more than 200000 pods, of \
         which no Pod object is given\n  give the Pod objects, or a part of the workloads"
    );
}

/// Replicas of which no Pod object is given are alike: a thousand stand for all, or one for each node.
#[test]
fn a_part_of_the_pods_of_a_large_workload_is_made_up() {
    let made_up = |nodes: usize| {
        let node = |number: usize| {
            format!("---\n{{apiVersion: v1, kind: Node, metadata: {{name: n{number}}}}}\n")
        };
        let text = workload("Deployment", 0, 30_080) + &(0..nodes).map(node).collect::<String>();
        let loaded = read(vec![Source { name: "a.yaml".into(), text }]).unwrap();
        let supposed = loaded.cluster.supposed.iter().map(|own| own.to_string());
        let said =
            supposed.filter(|own| own.contains("pods of Deployment d/w0")).collect::<Vec<_>>();
        (loaded.cluster.pods.len(), loaded.cluster.nodes.len(), said)
    };
    let (pods, nodes, said) = made_up(0);
    assert_eq!((pods, nodes), (1_000, 10));
    assert!(said.iter().any(|own| own.contains("the first 1000 of 30080")), "{said:?}");
    let (pods, nodes, said) = made_up(1_500);
    assert_eq!((pods, nodes), (1_500, 1_500));
    assert!(said.iter().any(|own| own.contains("the first 1500 of 30080")), "{said:?}");
}

#[test]
fn each_service_does_not_have_all_pods_of_a_large_cluster() {
    let mut text: String = (0..2).map(|number| workload("Deployment", number, 1_000)).collect();
    let ports: Vec<String> =
        (1..=60).map(|port| format!("{{name: p{port}, port: {port}}}")).collect();
    for number in 0..9 {
        text.push_str(&format!(
            "---\n{{apiVersion: v1, kind: Service, metadata: {{name: s{number}, namespace: d}}, spec: {{selector: \
             {{app: a}}, ports: [{}]}}}}\n",
            ports.join(", ")
        ));
    }
    assert_eq!(
        fault_of(text),
        "a.yaml:22:1: with those of Service d/s8, more than 1000000 endpoints are made of pods, since no \
         EndpointSlice is given\n  give the EndpointSlices, or a part of the Services"
    );
}
