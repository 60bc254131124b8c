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
                     pods,deployments,replicasets,daemonsets,statefulsets,\
                     tkeserviceconfigs.cloud.tencent.com";

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
    /// The share of a client's calls to an Ingress or a Service that do not end as they should,
    /// by the findings of the scan.
    pub(crate) fn share_failing(&self, story: &Story<'_>, subject: &str, pod: &str) -> f64 {
        let (kind, name) = subject.split_once('/').unwrap();
        let client = format!("pod/{}/{pod}", story.namespace);
        let findings = self.scan["findings"].as_array().unwrap().iter();
        let mut of_subject = findings.filter(|finding| {
            let subject = &finding["subject"];
            subject["kind"] == kind
                && subject["name"] == name
                && subject["namespace"] == story.namespace.as_str()
                && finding["clients"].as_array().unwrap().iter().any(|known| known == &client)
        });
        of_subject.next().map_or(0.0, |finding| finding["share_failing"].as_f64().unwrap())
    }

    /// The codes of the findings about an Ingress or a Service.
    pub(crate) fn codes(&self, story: &Story<'_>, subject: &str) -> Vec<String> {
        let (kind, name) = subject.split_once('/').unwrap();
        let findings = self.scan["findings"].as_array().unwrap().iter();
        let of_subject = findings.filter(|finding| {
            let subject = &finding["subject"];
            subject["kind"] == kind
                && subject["name"] == name
                && subject["namespace"] == story.namespace.as_str()
        });
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
    /// Shows that the scan of the live objects has the same share of calls that fail as was
    /// measured.
    #[track_caller]
    pub(crate) fn assert_predicted(&self, subject: &str, pod: &str, calls: &Calls) -> Prediction {
        let prediction = self.stage.predict();
        let predicted = prediction.share_failing(self, subject, pod);
        let measured = calls.share_failing();
        println!("{subject} from {pod}: measured {measured:.3}, predicted {predicted:.3}");
        assert!((predicted - measured).abs() < 1e-6, "{predicted} and not {measured}");
        prediction
    }
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
