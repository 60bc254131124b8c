//! What uturn says of the live objects.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use super::calls::Calls;
use super::{Stage, Story};
use crate::installed::text;

/// The kinds of objects that uturn reads of a cluster.
const KINDS: &str = "nodes,namespaces,configmaps,services,endpointslices,ingresses,ingressclasses,\
                     networkpolicies,pods,deployments,replicasets,daemonsets,statefulsets,\
                     tkeserviceconfigs.cloud.tencent.com";

/// What shares are added up with differs by less.
const TOLERANCE: f64 = 1e-6;

/// The objects of the cluster at a moment, as `uturn scan` reads them.
pub(crate) struct Prediction {
    /// It goes with the cluster's record.
    folder: PathBuf,
    program: PathBuf,
    scan: Value,
}

/// How many predictions there were: each has a folder of its own.
static PREDICTIONS: AtomicUsize = AtomicUsize::new(0);

impl Stage<'_> {
    /// Reads the live objects, and scans them.
    pub(crate) fn predict(&self) -> Prediction {
        let number = PREDICTIONS.fetch_add(1, Ordering::Relaxed);
        let folder = self.kubeconfig.with_file_name(format!("prediction-{number}"));
        fs::create_dir(&folder).unwrap();
        let objects = self.kubectl(&["get", KINDS, "--all-namespaces", "-o", "yaml"], "");
        fs::write(folder.join("objects.yaml"), objects).unwrap();
        let facts = self.kubeconfig.with_file_name("facts.json");
        fs::copy(facts, folder.join("facts.json")).unwrap();
        let program = self.installed.program().to_owned();
        let scan = run(&program, &folder, &["scan"]);
        Prediction { folder, program, scan }
    }
}

impl Prediction {
    /// The folder with the objects and the facts.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The share of a client's calls that do not end as they should for reason of the subject,
    /// by the findings of the scan.
    pub(crate) fn share_failing(&self, story: &Story<'_>, subject: &str, pod: &str) -> f64 {
        let client = format!("pod/{}/{pod}", story.namespace);
        let findings = self.scan["findings"].as_array().unwrap().iter();
        let mut of_subject = findings.filter(|finding| {
            is_about(finding, story, subject)
                && finding["clients"].as_array().unwrap().iter().any(|known| known == &client)
        });
        of_subject.next().map_or(0.0, |finding| finding["share_failing"].as_f64().unwrap())
    }

    /// Shows that as many of a pod's calls to an Ingress or a Service failed or waited as the scan
    /// says.
    #[track_caller]
    pub(crate) fn assert_agrees(&self, story: &Story<'_>, subject: &str, pod: &str, calls: &Calls) {
        let (measured, predicted) =
            (calls.share_failing(), self.share_failing(story, subject, pod));
        println!("{pod} to {subject}: {measured:.3} measured, {predicted:.3} predicted");
        assert!((predicted - measured).abs() < TOLERANCE, "{:#?}\n{calls:#?}", self.scan);
    }

    /// The codes of the findings about a subject.
    pub(crate) fn codes(&self, story: &Story<'_>, subject: &str) -> Vec<String> {
        let findings = self.scan["findings"].as_array().unwrap().iter();
        let of_subject = findings.filter(|finding| is_about(finding, story, subject));
        of_subject.map(|finding| finding["code"].as_str().unwrap().to_owned()).collect()
    }

    /// How calls of a pod to a URL end: outcome, milliseconds and share, as `uturn trace` has
    /// them.
    pub(crate) fn outcomes(&self, story: &Story<'_>, pod: &str, url: &str) -> Vec<Value> {
        let from = format!("pod/{}/{pod}", story.namespace);
        let traced = run(&self.program, &self.folder, &["trace", "--from", &from, "--to", url]);
        let verdicts = traced["verdicts"].as_array().unwrap();
        assert_eq!(verdicts.len(), 1, "one verdict: everything is known: {verdicts:#?}");
        verdicts[0]["outcomes"].as_array().unwrap().clone()
    }
}

impl Story<'_> {
    /// Shows that as many of a pod's calls failed or waited as a scan of the objects as they are
    /// now says, and returns the scan.
    #[track_caller]
    pub(crate) fn assert_predicted(&self, subject: &str, pod: &str, calls: &Calls) -> Prediction {
        let prediction = self.stage.predict();
        prediction.assert_agrees(self, subject, pod, calls);
        prediction
    }
}

/// Whether a finding is about `Ingress/web` of the story's namespace, or about
/// `SecurityGroup/sg-nodes`, which has none.
fn is_about(finding: &Value, story: &Story<'_>, subject: &str) -> bool {
    let (kind, name) = subject.split_once('/').unwrap();
    let (found, namespace) = (&finding["subject"], &finding["subject"]["namespace"]);
    found["kind"] == kind
        && found["name"] == name
        && (namespace.is_null() || *namespace == story.namespace.as_str())
}

/// What a command prints as JSON. It finds something or nothing.
fn run(program: &Path, folder: &Path, words: &[&str]) -> Value {
    let mut command = Command::new(program);
    command.args(words).arg("-f").arg(folder).args(["-o", "json"]);
    let output = command.output().unwrap();
    let is_run = matches!(output.status.code(), Some(0 | 1));
    assert!(is_run, "{words:?}: {}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}
