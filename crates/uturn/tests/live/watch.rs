//! `uturn scan --watch` beside random changes: at quiet points its state is that of a new scan.
//!
//! `UTURN_WATCH_MINUTES` makes it run for so long, at 50 changes a second.

mod changes;

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use changes::Changes;
use serde_json::Value;

use uturn_testing::variables;

use crate::control_plane::{ControlPlane, READER, Stage};
use crate::{built, objects, run, same, text};

/// Changes between two checks, and checks, where it does not run for a time.
const SHORT: (usize, usize) = (100, 4);
/// Changes between two checks where it runs for a time.
const LONG: usize = 1500;

/// How long it runs, and nothing else with it; without it, some hundreds of changes are made.
pub(crate) fn minutes() -> Option<u64> {
    variables::number(variables::WATCH_MINUTES)
}

pub(crate) fn random_changes(stage: &Stage) {
    let plane = stage.start("watch");
    objects::put(&plane, &[cluster()]);
    same::give_rights(&plane, &["collect", "--rbac", "--watch"]);
    crate::rights::wait(&plane, "watch", "pods", true);
    let mut watch = Watch::start(&plane);
    let mut changes = Changes::new(&plane, 1);
    let until = minutes().map(|minutes| Instant::now() + Duration::from_secs(60 * minutes));
    let (many, most) = until.map_or(SHORT, |_| (LONG, usize::MAX));
    let (mut used, start) = (vec![], Instant::now());
    for check in 1..=most {
        changes.make(many);
        let marks = changes.mark(check);
        let state = watch.wait_for(&marks);
        let state = watch.wait_for_change(&state, || changes.change_corefile(check));
        compare(&plane, &state, check);
        used.push(watch.resident());
        let (made, refused) = (changes.made, changes.refused);
        println!(
            "check {check}: {made} changes made in {} s ({refused} refused), {} states, {} walked, \
             {} reused, {} kept, {} KiB resident",
            start.elapsed().as_secs(),
            watch.states,
            watch.walked,
            watch.reused,
            state["watch"]["kept"],
            used[check - 1]
        );
        if until.is_some_and(|until| Instant::now() > until) {
            break;
        }
    }
    assert!(changes.refused * 4 < changes.made, "{} of {}", changes.refused, changes.made);
    assert!(watch.reused > watch.walked, "{} walked, {} reused", watch.walked, watch.reused);
    let (first, rest) = used.split_at(used.len().div_ceil(4));
    let (first, most) = (first.iter().max().unwrap(), rest.iter().max().unwrap());
    println!("resident: {first} KiB at most in the first quarter, {most} KiB in the rest");
    assert!(*most < first * 3 / 2 + 65_536, "{used:?}");
    let code = run(&plane, &["scan"], READER).status.code();
    assert_eq!(watch.interrupt(), code);
}

/// The first random cluster, or the example of the documentation.
fn cluster() -> PathBuf {
    match variables::path(variables::LIVE_CLUSTERS) {
        Some(folder) => folder.join("1.json"),
        None => PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/shop"),
    }
}

/// Compares a state with a new scan.
fn compare(plane: &ControlPlane, state: &Value, check: usize) {
    let output = run(plane, &["scan", "-o", "json"], READER);
    let why = text(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{why}");
    let scan: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut state = state.clone();
    assert_eq!(state["watch"]["not_current"], serde_json::json!([]));
    state.as_object_mut().unwrap().remove("watch");
    if state != scan {
        std::fs::write(plane.file("state.json"), format!("{state:#}")).unwrap();
        std::fs::write(plane.file("scan.json"), format!("{scan:#}")).unwrap();
        panic!("check {check}: state.json and scan.json in {} differ", plane.folder.display());
    }
}

/// A running `uturn scan --watch -o json`.
struct Watch {
    child: Child,
    lines: Receiver<Value>,
    states: usize,
    walked: u64,
    reused: u64,
}

impl Watch {
    fn start(plane: &ControlPlane) -> Self {
        // It ends with this process, whatever ends it.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]).arg(built());
        command.args(["scan", "--watch", "-o", "json"]).current_dir(&plane.folder);
        command.env("HOME", &plane.folder).env("KUBECONFIG", plane.kubeconfig(READER));
        command.stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let (send, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                if send.send(serde_json::from_str(&line).unwrap()).is_err() {
                    return;
                }
            }
        });
        Self { child, lines, states: 0, walked: 0, reused: 0 }
    }

    /// The next state; fails the test if the program ends.
    fn next(&mut self) -> Value {
        let state = self.lines.recv().expect("the watch goes on");
        self.states += 1;
        self.walked += state["watch"]["walked"].as_u64().unwrap();
        self.reused += state["watch"]["reused"].as_u64().unwrap();
        state
    }

    /// The first state that has these versions of kinds, or later ones.
    fn wait_for(&mut self, marks: &[(String, u64)]) -> Value {
        loop {
            let state = self.next();
            let is_known = |(kind, version): &(String, u64)| {
                let known = state["watch"]["versions"][kind].as_str().unwrap();
                known.parse::<u64>().unwrap() >= *version
            };
            if marks.iter().all(is_known) {
                return state;
            }
        }
    }

    /// The state after something else happened.
    fn wait_for_change(&mut self, before: &Value, happen: impl FnOnce()) -> Value {
        happen();
        loop {
            let state = self.next();
            if state["watch"]["changes"].as_u64() > before["watch"]["changes"].as_u64() {
                return state;
            }
        }
    }

    /// The memory that it has, in KiB.
    fn resident(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// Ends it as Ctrl-C does. Returns its exit status.
    fn interrupt(mut self) -> Option<i32> {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
        self.child.wait().unwrap().code()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
