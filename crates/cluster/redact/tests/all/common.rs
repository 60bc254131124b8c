//! What these tests share.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, process};

use serde_json::{Map, Value, json};
use uturn_diagnose::analysis::{Detail, Options};
use uturn_diagnose::analyze;
use uturn_diagnose::check::{Topic, check};
use uturn_model::{Cluster, Route};
use uturn_path::Engine;
use uturn_redact::{Key, Redacted, redact};
use uturn_report::ScanReport;
use uturn_report::schema::scan::Scan;
use uturn_snapshot::Manifests;
use uturn_snapshot::bundle::BundleWriter;

/// A folder that goes with it.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("uturn-redact-{}-{number}", process::id()));
        fs::create_dir(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Redacts, writes and reads it.
pub(crate) fn redacted(manifests: &Manifests, key: u8) -> (Redacted, Manifests) {
    let redacted = redact(manifests, &Key::given(&[key])).unwrap();
    let folder = Folder::new();
    let path = folder.0.join("bundle");
    redacted.write(BundleWriter::create(&path).unwrap()).unwrap();
    let (read, faults) = Manifests::gather(&[], &[path]);
    assert!(faults.is_empty(), "{faults:?}");
    (redacted, read)
}

/// Single addresses that are not in the input stand for those that are not given: which ones they are
/// follows from the others.
fn without_stand_ins(of: Value, input: &str) -> Value {
    match of {
        Value::Object(entries) => {
            let entry = |(key, value)| (key, without_stand_ins(value, input));
            Value::Object(entries.into_iter().map(entry).collect())
        }
        Value::Array(items) => {
            items.into_iter().map(|item| without_stand_ins(item, input)).collect()
        }
        Value::String(text) => {
            let is_part = |letter: char| letter.is_ascii_hexdigit() || ".:".contains(letter);
            let mut new = text.clone();
            for word in text.split(|letter| !is_part(letter)) {
                let word = word.trim_end_matches(['.', ':']);
                let ip = word.parse::<IpAddr>();
                let ip = ip.or_else(|_| word.parse::<SocketAddr>().map(|socket| socket.ip()));
                let is_range = text.contains(&format!("{word}/"));
                // A port may follow an address of IPv6 without brackets.
                let is_given = |ip: &str| {
                    input.contains(ip)
                        || ip.rsplit_once(':').is_some_and(|(ip, _)| {
                            ip.parse::<IpAddr>().is_ok() && input.contains(ip)
                        })
                };
                if let Some(ip) = ip.ok().filter(|ip| !is_range && !is_given(&ip.to_string())) {
                    new = new.replace(&ip.to_string(), "STAND-IN");
                }
            }
            new.into()
        }
        plain => plain,
    }
}

/// What a scan says, and the checklists of nodes, without the places of texts.
pub(crate) fn answers(manifests: &Manifests) -> Value {
    answers_trying(manifests, manifests)
}

/// The same without the cures that are edits: those are tried on the manifests, which takes most of the
/// time.
fn answers_without_edits(manifests: &Manifests) -> Value {
    answers_trying(manifests, &Manifests::of(Vec::new()))
}

fn answers_trying(manifests: &Manifests, edited: &Manifests) -> Value {
    let loaded = match manifests.load() {
        Ok(loaded) => loaded,
        Err(faults) => panic!("{faults:#?}"),
    };
    let options = Options { detail: Detail::Evidence, ..Options::default() };
    let analysis = analyze(edited, &loaded.cluster, &options).unwrap();
    let report = ScanReport { origins: Vec::new(), ..ScanReport::of(analysis, loaded.clone()) };
    let scan = serde_json::to_value(Scan::from(&report)).unwrap();
    json!({"scan": scan, "nodes": checks_of_nodes(&loaded.cluster)})
}

/// The lines of `check nodes`, by node.
pub(crate) fn checks_of_nodes(cluster: &Cluster) -> BTreeMap<String, Vec<String>> {
    let engine = Engine::new(cluster).unwrap();
    check(&engine, Topic::Nodes, |_| true)
        .into_iter()
        .map(|list| {
            let lines = list
                .checks
                .iter()
                .map(|line| format!("{} {:?} {:?}", line.what, line.state, line.next));
            (list.subject.to_string(), lines.collect())
        })
        .collect()
}

/// Files, lines and columns in texts say where something is written, which differs.
pub(crate) fn without_places(of: Value) -> Value {
    match of {
        Value::Object(entries) => {
            let kept = entries.into_iter().filter(|(key, _)| {
                !matches!(&**key, "place" | "source" | "see" | "by" | "because")
            });
            let mut kept: Map<String, Value> =
                kept.map(|(key, value)| (key, without_places(value))).collect();
            // Some begin with the place, by which they are sorted.
            if let Some(supposed) = kept.get_mut("supposed").and_then(Value::as_array_mut) {
                supposed.sort_by_key(Value::to_string);
            }
            Value::Object(kept)
        }
        Value::Array(items) => items.into_iter().map(without_places).collect(),
        Value::String(text) => without_hashes(&without_example(&text)).into(),
        plain => plain,
    }
}

/// kube-proxy sorts endpoints by the text of their addresses: which of those that are alike is shown
/// as an example depends on it.
fn without_example(text: &str) -> String {
    match text.split_once(" -> ").zip(text.split_once(": picked one time in ")) {
        Some(((service, _), (_, times))) => format!("{service}: picked one time in {times}"),
        // The chain of an endpoint in nftables.
        None => match text.split_once("__").filter(|(chain, _)| chain.contains("endpoint-")) {
            Some((chain, _)) => chain.to_owned(),
            None => text.to_owned(),
        },
    }
}

/// Hashes in names of chains follow from the names, and differ; so do places.
fn without_hashes(text: &str) -> String {
    let place = |word: &str| {
        if word.contains(".yaml:") || word.contains(".json:") || word.contains("/nodes/") {
            "PLACE ".to_owned()
        } else {
            word.to_owned()
        }
    };
    let text: String = text.split_inclusive(' ').map(place).collect();
    let is_hash = |word: &str| {
        matches!(word.len(), 8 | 16)
            && word.bytes().all(|own| own.is_ascii_uppercase() || (b'2'..=b'7').contains(&own))
    };
    let words = text.split_inclusive(|letter: char| !letter.is_ascii_alphanumeric());
    let plain = |word: &str| {
        let letters = word.trim_end_matches(|letter: char| !letter.is_ascii_alphanumeric());
        if is_hash(letters) { format!("HASH{}", &word[letters.len()..]) } else { word.to_owned() }
    };
    words.map(plain).collect()
}

/// The same with the original names.
pub(crate) fn restored(of: &Value, by: &Redacted) -> Value {
    match of {
        Value::Object(entries) => {
            let entry = |(key, value): (&String, &Value)| (by.restored(key), restored(value, by));
            Value::Object(entries.iter().map(entry).collect())
        }
        Value::Array(items) => items.iter().map(|item| restored(item, by)).collect(),
        Value::String(text) => by.restored(text).into(),
        plain => plain.clone(),
    }
}

/// The paths at which two documents differ.
pub(crate) fn differences(path: &str, first: &Value, second: &Value, all: &mut Vec<String>) {
    match (first, second) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for key in keys {
                let null = Value::Null;
                let (a, b) = (a.get(key).unwrap_or(&null), b.get(key).unwrap_or(&null));
                differences(&format!("{path}/{key}"), a, b, all);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (at, (a, b)) in a.iter().zip(b).enumerate() {
                differences(&format!("{path}/{at}"), a, b, all);
            }
        }
        // Probabilities of rules are rounded by their order, which is that of texts of addresses.
        (Value::Number(a), Value::Number(b))
            if a.as_f64().zip(b.as_f64()).is_some_and(|(a, b)| (a - b).abs() < 1e-8) => {}
        _ if first == second => {}
        _ => all.push(format!("{path}:\n  {first}\n  {second}")),
    }
}

/// Takes what a redacted bundle leaves out from the counts of what was read.
fn leave_out(left_out: &BTreeMap<String, usize>, answers: &mut Value) {
    let seen = answers["scan"]["seen"].as_object_mut().unwrap();
    for (what, count) in left_out {
        // `a ConfigMap with a configuration`
        let kind = what.split(' ').nth(1).unwrap();
        let all = seen.remove(kind).unwrap_or_else(|| panic!("{what}: none was read"));
        match all.as_u64().unwrap() - u64::try_from(*count).unwrap() {
            0 => {}
            rest => drop(seen.insert(kind.to_owned(), rest.into())),
        }
    }
}

/// Both say the same.
pub(crate) fn assert_same(manifests: &Manifests, key: u8, what: &str) -> Redacted {
    assert_same_by(answers, manifests, key, what)
}

/// Both say the same, but for cures that are edits.
pub(crate) fn assert_same_without_edits(manifests: &Manifests, key: u8, what: &str) -> Redacted {
    assert_same_by(answers_without_edits, manifests, key, what)
}

fn assert_same_by(
    answers: fn(&Manifests) -> Value,
    manifests: &Manifests,
    key: u8,
    what: &str,
) -> Redacted {
    let (redacted, read) = redacted(manifests, key);
    let (mut old, new) = (answers(manifests), answers(&read));
    leave_out(&redacted.left_out, &mut old);
    let captured = manifests.captures().values().flat_map(|capture| capture.files.values());
    let texts = manifests.sources().iter().map(|source| &*source.text);
    let input: String = texts.chain(captured.map(|file| &*file.text)).collect();
    let output: String = redacted.files.values().map(String::as_str).collect();
    let (old, new) = (without_stand_ins(old, &input), without_stand_ins(new, &output));
    let (old, new) = (without_places(old), without_places(restored(&new, &redacted)));
    let mut all = Vec::new();
    differences("", &old, &new, &mut all);
    let normal = |way: Value| without_places(restored(&without_stand_ins(way, &output), &redacted));
    all.retain(|difference| {
        let finding = finding_with_other_evidence(difference);
        finding.is_none_or(|finding| {
            let shown = &old["scan"]["findings"][finding]["evidence"];
            !ways(&read, finding).into_iter().any(|way| is_of(shown, &normal(way)))
        })
    });
    assert!(all.is_empty(), "{what}:\n{}", all.join("\n"));
    redacted
}

/// The index of the finding, if it is its evidence that differs.
fn finding_with_other_evidence(difference: &str) -> Option<usize> {
    let (index, member) = difference.strip_prefix("/scan/findings/")?.split_once('/')?;
    member.starts_with("evidence").then(|| index.parse().unwrap())
}

/// The steps of all the ways in which the example of a finding can fail, and what else it rests on. Of
/// ways that end alike, a scan shows one; which one depends on the order in which kube-proxy writes
/// addresses.
fn ways(manifests: &Manifests, finding: usize) -> Vec<Value> {
    let loaded = manifests.load().unwrap();
    let analysis = analyze(manifests, &loaded.cluster, &Options::default()).unwrap();
    let finding = &analysis.findings[finding];
    let Some(flow) = finding.example.flow() else { return Vec::new() };
    let engine = Engine::new(&loaded.cluster).unwrap().with_every_way();
    let routes = engine.verdict(&flow).unwrap().routes;
    // Of a call that is fine, it is how it goes that is shown.
    let has_bad = routes.iter().any(|route| route.outcome.is_bad());
    let shown = routes.iter().filter(|route| route.outcome.is_bad() || !has_bad);
    let steps = |route: &Route| {
        let steps = route.hops.iter().flat_map(|hop| &hop.steps).map(|step| &step.why);
        let steps = steps.chain(finding.other_evidence.iter().map(|other| &other.what));
        steps.map(|why| json!({"what": why.to_string()})).collect()
    };
    shown.map(steps).collect()
}

/// Whether a way has all that is shown, in this order.
fn is_of(shown: &Value, way: &Value) -> bool {
    let mut steps = way.as_array().unwrap().iter();
    shown.as_array().unwrap().iter().all(|one| steps.any(|step| step == one))
}
