//! Makes a bundle that can be shown to a stranger: names and addresses are replaced, and the
//! analysis of the bundle has the same results.
//!
//! **Owns** the replacements, and the knowledge of which texts of objects, Facts and captures are
//! names.
//!
//! **Never passes on** unknown text: a word that is not known to be the same in every cluster is
//! replaced, a field that no decoder reads is removed, and data that cannot be redacted with
//! certainty is left out and named in `bundle.json`.
//!
//! **Start reading** at [`redact`], then `text` (the parts of a text), `words` and `addresses` (the
//! replacements), `objects` and `node` (the places of texts).
//!
//! # What stays, and what goes
//!
//! The structure stays: kinds, fields, numbers, ports, protocols, and the words in `known/*.txt`,
//! which the analysis looks for or which Kubernetes and its usual programs have in every cluster
//! (`kube-system`, `coredns`, `node.kubernetes.io/`, `calico-node`); a few of them stay in some
//! inputs only, see `usual`. All other words go: names of objects, hosts, label keys and values,
//! paths, images, hashes. So do unknown annotations, arguments that are not read, values of
//! environments, and remarks.
//!
//! A word is the text between separators, and has the same replacement in the whole bundle: `web`
//! becomes the same word as a Service, in `web.shop.svc.cluster.local`, in `web-7d9f-x2x`, as the
//! value of a label, in a Corefile and in a remark of kube-proxy. So each relation between names is
//! kept without being known here. The new words are numbered in the order of the old ones, and sort
//! like these among the words of names that stay, since some results depend on which name sorts
//! first; they reveal nothing but that order.
//!
//! Addresses keep the lengths of their common prefixes and their order, and stay private, shared,
//! link-local or public; see `addresses`. The names of kube-proxy's chains are derived from names
//! and addresses, and are computed anew.
//!
//! The key is random and never written. The replacements are available as a table
//! ([`Redacted::map`]), which belongs to the owner of the cluster.

mod addresses;
mod annotations;
mod config_maps;
mod controllers;
mod facts;
mod links;
mod names;
mod node;
mod objects;
mod settings;
mod text;
mod unread;
mod usual;
mod words;

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::io;

use serde_json::{Value, json};
use thiserror::Error;
use uturn_model::capture::CapturedText;
use uturn_model::{Capture, CaptureFile, Cluster, Extent, Name};
use uturn_netfilter::NodeState;
use uturn_snapshot::bundle::{BundleManifest, BundleWriter, MANIFEST, ObjectsManifest};
use uturn_snapshot::{Fault, Manifests, Source, json_documents};

use crate::names::Names;
use crate::node::chains::Chains;
use crate::objects::{Redacted as Part, text_of};

/// The key that makes the replacements differ from run to run.
#[derive(Clone, Debug)]
pub struct Key(Vec<u8>);

impl Key {
    /// Makes a random key.
    pub fn random() -> Self {
        // The standard library gets the keys of its hashes from the system.
        let bytes = (0..4_u64).flat_map(|number| RandomState::new().hash_one(number).to_be_bytes());
        Self(bytes.collect())
    }

    /// Makes a given key, for reproducible tests.
    pub fn given(bytes: &[u8]) -> Self {
        Self(bytes.to_owned())
    }
}

/// A redacted bundle.
#[derive(Clone, Debug)]
pub struct Redacted {
    /// The files of the bundle by name, without `bundle.json`.
    pub files: BTreeMap<String, String>,
    /// The content of `bundle.json`.
    pub manifest: BundleManifest,
    /// The kinds of objects that were left out, with their numbers.
    pub left_out: BTreeMap<String, usize>,
    /// The replaced words: the original by its replacement.
    words: BTreeMap<String, String>,
    /// The replaced addresses: the original by its replacement.
    addresses: BTreeMap<String, String>,
}

/// The reason why an input cannot be redacted.
#[derive(Debug, Error)]
pub enum RedactError {
    /// The input cannot be read.
    #[error("the input cannot be read")]
    Faults(Vec<Fault>),
    /// The redacted objects cannot be read. The faults contain no original name.
    #[error("the redacted objects cannot be read")]
    Unreadable(Vec<Fault>),
    /// A redacted capture of a node cannot be read.
    #[error("the redacted captures of nodes cannot be read ({file})")]
    UnreadableCapture {
        /// The redacted name of the file.
        file: String,
    },
}

/// Redacts an input.
///
/// # Errors
/// Returns an error if the input, or its redacted form, cannot be read.
pub fn redact(manifests: &Manifests, key: &Key) -> Result<Redacted, RedactError> {
    let documents = json_documents(manifests.sources()).map_err(RedactError::Faults)?;
    let loaded = manifests.load().map_err(RedactError::Faults)?;
    let input = Input { manifests, documents: &documents, cluster: &loaded.cluster };
    let mut names = Names::new(&key.0, usual::words(&documents, &loaded.cluster));
    input.write(&mut names);
    let mut names = names.decide();
    let mut redacted = input.write(&mut names);
    (redacted.words, redacted.addresses) = names.table();
    redacted.read_back(manifests)?;
    Ok(redacted)
}

/// The input of a redaction.
struct Input<'i> {
    manifests: &'i Manifests,
    documents: &'i [Value],
    cluster: &'i Cluster,
}

impl Input<'_> {
    /// Writes all files. The first time, names are collected; the second time, they are replaced.
    fn write(&self, names: &mut Names) -> Redacted {
        let (mut kinds, mut left_out) = (BTreeMap::<String, Vec<Value>>::new(), BTreeMap::new());
        for document in self.documents {
            let part = match text_of(document, "apiVersion").starts_with("uturn.dev/") {
                true if text_of(document, "kind") == "Facts" => {
                    Part::Object(facts::facts(document.clone(), names))
                }
                true => Part::LeftOut(format!("a {}", text_of(document, "kind"))),
                false => objects::object(document.clone(), names),
            };
            match part {
                Part::Object(object) => {
                    let file = file_of(text_of(&object, "kind"));
                    kinds.entry(file).or_default().push(object);
                }
                Part::Stub(object) => kinds.entry("other".to_owned()).or_default().push(object),
                Part::LeftOut(what) => *left_out.entry(what).or_default() += 1,
            }
        }
        let mut files = BTreeMap::new();
        for (file, objects) in kinds {
            match &*file {
                "facts" => files.insert("objects/facts.yaml".to_owned(), documents(&objects)),
                _ => files.insert(format!("objects/{file}.json"), list(&objects)),
            };
        }
        let captures = self.manifests.captures();
        let chains =
            if captures.is_empty() { Chains::default() } else { Chains::of(self.cluster, names) };
        for capture in captures.values() {
            let node = text::redact(capture.node.as_str(), names, text::NAMES);
            for (file, text) in node::capture(capture, names, &chains) {
                files.insert(format!("nodes/{node}/{file}"), text);
            }
        }
        let manifest = self.manifest(names, &left_out);
        Redacted { files, manifest, left_out, words: BTreeMap::new(), addresses: BTreeMap::new() }
    }

    fn manifest(&self, names: &mut Names, left_out: &BTreeMap<String, usize>) -> BundleManifest {
        let mut manifest = BundleManifest::new();
        let listing = self.manifests.listing();
        let extent =
            if self.manifests.is_complete() { Some(Extent::OBJECTS) } else { listing.extent };
        if let Some(extent) = extent {
            let mut objects = ObjectsManifest::default();
            let unread = listing.unread.iter().map(|unread| unread::redact(unread, names));
            objects.set_listing(extent, &unread.collect::<Vec<_>>());
            manifest.objects = Some(objects);
        }
        let left_out: Vec<Value> =
            left_out.iter().map(|(what, count)| json!({"what": what, "count": count})).collect();
        manifest.others.insert("redacted".to_owned(), json!({"leftOut": left_out}));
        manifest
    }
}

/// Returns the name of the file for a kind: `services`.
fn file_of(kind: &str) -> String {
    let is_name = kind.bytes().all(|byte| byte.is_ascii_alphanumeric()) && !kind.is_empty();
    if is_name { kind.to_lowercase() } else { "other".to_owned() }
}

/// Formats objects as a List, one per line.
fn list(objects: &[Value]) -> String {
    let lines: Vec<String> = objects.iter().map(Value::to_string).collect();
    format!(
        "{{\"apiVersion\": \"v1\", \"kind\": \"List\", \"items\": [\n{}\n]}}\n",
        lines.join(",\n")
    )
}

/// Formats documents one after the other.
fn documents(all: &[Value]) -> String {
    all.iter().map(|document| format!("---\n{document}\n")).collect()
}

impl Redacted {
    /// Checks that the redacted objects can be read if the original ones can.
    fn read_back(&self, original: &Manifests) -> Result<(), RedactError> {
        let texts = self.files.iter().filter(|(name, _)| name.starts_with("objects/"));
        let source = |(name, text): (&String, &String)| Source {
            name: name.as_str().into(),
            text: text.clone(),
        };
        let manifests = Manifests::of(texts.map(source).collect());
        // Objects from an API server may be faulty.
        match manifests.load() {
            Err(faults) if original.listing().extent.is_none() => {
                return Err(RedactError::Unreadable(faults));
            }
            _ => {}
        }
        let is_readable = |capture| NodeState::from_capture(capture).is_ok();
        if !original.captures().values().all(is_readable) {
            return Ok(());
        }
        for capture in self.captures() {
            if let Err(errors) = NodeState::from_capture(&capture) {
                let file = errors.first().map(|error| error.origin.to_string());
                return Err(RedactError::UnreadableCapture { file: file.unwrap_or_default() });
            }
        }
        Ok(())
    }

    /// Returns the redacted captures of nodes.
    fn captures(&self) -> Vec<Capture> {
        let mut all: BTreeMap<&str, Capture> = BTreeMap::new();
        for (path, text) in &self.files {
            let Some((node, name)) =
                path.strip_prefix("nodes/").and_then(|rest| rest.split_once('/'))
            else {
                continue;
            };
            let file = CaptureFile::ALL.into_iter().find(|file| file.file_name() == name);
            let (Some(file), Ok(of)) = (file, Name::new(node)) else { continue };
            let captured = CapturedText { path: path.as_str().into(), text: text.as_str().into() };
            let capture = all.entry(node);
            let capture = capture.or_insert_with(|| Capture { node: of, files: BTreeMap::new() });
            capture.files.insert(file, captured);
        }
        all.into_values().collect()
    }

    /// Writes the files as a bundle.
    ///
    /// # Errors
    /// Returns an error if the bundle cannot be written; then no bundle is left.
    pub fn write(&self, mut bundle: BundleWriter) -> io::Result<()> {
        for (name, text) in &self.files {
            bundle.add(name, text.as_bytes())?;
        }
        bundle.add(MANIFEST, self.manifest.text().as_bytes())?;
        bundle.finish()
    }

    /// Returns the number of replaced words.
    pub fn word_count(&self) -> usize {
        self.words.len()
    }

    /// Returns the number of replaced addresses.
    pub fn address_count(&self) -> usize {
        self.addresses.len()
    }

    /// Returns the replacements as a document for the owner of the cluster.
    pub fn map(&self) -> String {
        let map = json!({"words": self.words, "addresses": self.addresses});
        serde_json::to_string_pretty(&map).expect("texts are JSON") + "\n"
    }

    /// Returns the original of a text from a redacted bundle, or from its analysis.
    pub fn restored(&self, text: &str) -> String {
        text::restored(text, &self.words, &self.addresses)
    }
}
