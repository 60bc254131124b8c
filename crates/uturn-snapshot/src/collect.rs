//! Turns sources into objects: splits files into documents and Lists into items, and passes each
//! to the decoder of its kind.

use std::cell::RefCell;
use std::ops::ControlFlow;

use uturn_lb::cloud;
use uturn_model::{Origin, WorkloadKind};

use crate::decode::{self, Doc};
use crate::document::{self, Keep, Node, Trouble, Value};
use crate::fault::{Fault, Faults, Note, Twice};
use crate::objects::Objects;
use crate::scenario::{self, Scenario};
use crate::source::{Beside, Source, TEMPLATE};

type Decoder = fn(&Doc<'_>, &mut Objects);

/// A kind that is read: its group, the versions of it that are, and how.
struct Known {
    kind: &'static str,
    /// The groups it may be in; the empty one is Kubernetes' core.
    groups: &'static [&'static str],
    supported: &'static [&'static str],
    decode: Decoder,
}

const fn core(kind: &'static str, decode: Decoder) -> Known {
    Known { kind, groups: &[""], supported: &["v1"], decode }
}

const APPS: &[&str] = &["apps", "extensions"];
/// Versions that clusters had before v1.16, and manifests still have.
const OLD_APPS: &[&str] = &["apps/v1", "apps/v1beta2", "apps/v1beta1", "extensions/v1beta1"];
const INGRESS: &[&str] =
    &["networking.k8s.io/v1", "networking.k8s.io/v1beta1", "extensions/v1beta1"];
const NETWORKING: &[&str] = &["networking.k8s.io", "extensions"];

const KNOWN: &[Known] = &[
    core("Node", decode::node::read),
    core("Pod", decode::pod::read),
    core("Service", decode::service::read),
    core("Endpoints", decode::endpoints::read_endpoints),
    core("ConfigMap", decode::config_map::read),
    Known {
        kind: "EndpointSlice",
        groups: &["discovery.k8s.io"],
        supported: &["discovery.k8s.io/v1", "discovery.k8s.io/v1beta1"],
        decode: decode::endpoints::read_slice,
    },
    Known {
        kind: "Ingress",
        groups: NETWORKING,
        supported: INGRESS,
        decode: decode::ingress::read,
    },
    Known {
        kind: "IngressClass",
        groups: NETWORKING,
        supported: INGRESS,
        decode: decode::ingress::read_class,
    },
    Known {
        kind: "NetworkPolicy",
        groups: NETWORKING,
        supported: &["networking.k8s.io/v1", "extensions/v1beta1"],
        decode: decode::network_policy::read,
    },
    Known {
        kind: "FelixConfiguration",
        groups: &["crd.projectcalico.org", "projectcalico.org"],
        supported: &["crd.projectcalico.org/v1", "projectcalico.org/v3"],
        decode: decode::calico::read_felix,
    },
    Known {
        kind: "Facts",
        groups: &["uturn.dev"],
        supported: &["uturn.dev/v1alpha1"],
        decode: decode::facts::read,
    },
    Known {
        kind: "Deployment",
        groups: APPS,
        supported: OLD_APPS,
        decode: |doc, objects| decode::workload::read(doc, objects, WorkloadKind::Deployment),
    },
    Known {
        kind: "StatefulSet",
        groups: APPS,
        supported: OLD_APPS,
        decode: |doc, objects| decode::workload::read(doc, objects, WorkloadKind::StatefulSet),
    },
    Known {
        kind: "DaemonSet",
        groups: APPS,
        supported: OLD_APPS,
        decode: |doc, objects| decode::workload::read(doc, objects, WorkloadKind::DaemonSet),
    },
    Known {
        kind: "ReplicaSet",
        groups: APPS,
        supported: OLD_APPS,
        decode: |doc, objects| decode::workload::read(doc, objects, WorkloadKind::ReplicaSet),
    },
    Known {
        kind: "Job",
        groups: &["batch"],
        supported: &["batch/v1"],
        decode: |doc, objects| decode::workload::read(doc, objects, WorkloadKind::Job),
    },
    Known {
        kind: "CronJob",
        groups: &["batch"],
        supported: &["batch/v1", "batch/v1beta1", "batch/v2alpha1"],
        decode: |doc, objects| decode::workload::read(doc, objects, WorkloadKind::CronJob),
    },
    core("ReplicationController", |doc, objects| {
        decode::workload::read(doc, objects, WorkloadKind::ReplicationController);
    }),
    Known {
        kind: "HorizontalPodAutoscaler",
        groups: &["autoscaling"],
        supported: &[
            "autoscaling/v2",
            "autoscaling/v1",
            "autoscaling/v2beta2",
            "autoscaling/v2beta1",
        ],
        decode: decode::workload::read_autoscaler,
    },
];

pub(crate) const OURS: &str = "uturn.dev/v1alpha1";

/// The objects and the faults.
#[derive(Default)]
pub(crate) struct Collected {
    pub(crate) objects: Objects,
    pub(crate) scenarios: Vec<Scenario>,
    pub(crate) faults: RefCell<Faults>,
}

/// Reads every document of every source. A source's text is let go once it is read.
pub(crate) fn collect(sources: Vec<Source>, beside: &Beside) -> Collected {
    let Collected { mut objects, mut scenarios, faults } = Collected::default();
    let mut places = scenario::Places::new();
    let mut others = Vec::new();
    for source in sources {
        let may_be_template = beside.of_folders.contains(&source.name)
            && TEMPLATE_MARKS.iter().any(|mark| source.text.contains(mark));
        each_document(&source, &faults, &mut |doc| {
            if let Some(lacks) = what_it_lacks(doc) {
                objects.leave_out("documents that are no objects", &source.name);
                // Of so many, those that are not shown are not kept either.
                if others.len() < MOST_OTHERS {
                    others.push((doc.origin(doc.root), lacks));
                }
                return;
            }
            if may_be_template && is_faulty(doc) {
                return objects.leave_out(TEMPLATE, &source.name);
            }
            each_item(doc, &mut |doc, version, kind| {
                if (version, kind) == (OURS, "Scenario") {
                    scenario::add(doc, &mut scenarios, &mut places);
                } else {
                    take(doc, version, kind, &mut objects);
                }
            });
        });
    }
    for (what, files) in &beside.left_out {
        files.iter().for_each(|file| objects.leave_out(what, file));
    }
    let mut reported = faults.borrow_mut();
    let twice = reported.take_twice();
    match beside.variants(&twice) {
        Some(fault) => reported.push(fault),
        None => repeated(twice).into_iter().for_each(|note| reported.note(note)),
    }
    if objects.is_empty() && scenarios.is_empty() && reported.len() == 0 {
        match beside.nothing(objects.has_none()) {
            Some(fault) => reported.push(fault),
            None if !objects.has_none() => {}
            None => others.into_iter().for_each(|(origin, lacks)| {
                let hint = "every document of a manifest says what it is; is this one?";
                reported.push(Fault::new(origin, format!("not an object: {lacks}")).hint(hint));
            }),
        }
    }
    objects.notes = reported.take_notes();
    drop(reported);
    Collected { objects, scenarios, faults }
}

/// Notes about repeated objects. As with kubectl, the last one counts.
fn repeated(twice: Vec<Twice>) -> Option<Note> {
    let more = match twice.len() {
        0 | 1 => String::new(),
        all => format!(", and so are {} more objects", all - 1),
    };
    let first = twice.into_iter().next()?.fault;
    Some(Note {
        origin: first.origin,
        message: format!("{}{more}", first.message),
        taken: "the last one counts",
        because: "kubectl applies them in this order",
        settle: "leave the others out".to_owned(),
    })
}

const MOST_OTHERS: usize = 1000;

/// Why a document is not meant to be an object.
pub(crate) fn what_it_lacks(doc: &Doc<'_>) -> Option<String> {
    let Value::Map(_) = doc.root.value else {
        let found = doc.root.describe();
        return Some(format!("expected a mapping with apiVersion and kind, found {found}"));
    };
    let has = |key| doc.root.get(key).is_some();
    match (has("apiVersion"), has("kind")) {
        (true, true) => None,
        // A values file may have a kind, and a chart has a version of its own.
        _ if has("metadata") => None,
        (false, false) => Some("apiVersion and kind are missing".into()),
        (false, true) => Some("apiVersion is missing".into()),
        (true, false) => Some("kind is missing".into()),
    }
}

/// Placeholders of templates: Go and Jinja, shell, ytt.
const TEMPLATE_MARKS: [&str; 4] = ["{{", "{%", "${", "#@"];

/// Whether a document has faults of its own.
fn is_faulty(doc: &Doc<'_>) -> bool {
    let faults = RefCell::new(Faults::default());
    let trial = Doc { prefix: doc.prefix, ..Doc::new(doc.file, doc.root, &faults) };
    each_item(&trial, &mut |doc, version, kind| {
        if version != OURS {
            // Each document separately, so that repeated objects do not count.
            take(doc, version, kind, &mut Objects::default());
        }
    });
    faults.into_inner().len() > 0
}

/// Reads every document of a source, unless it is given up for too many faults.
///
/// What kubectl tolerates is a fault in a source with uturn's own documents, which no other
/// program reads.
pub(crate) fn each_document(
    source: &Source,
    faults: &RefCell<Faults>,
    each: &mut dyn FnMut(&Doc<'_>),
) {
    let (mut passed, mut ours) = (Vec::new(), false);
    document::read(&source.text, Keep::Wanted, &mut |document| {
        match document {
            Ok(root) => {
                let version = root.get("apiVersion").and_then(Node::as_str);
                ours |= version.is_some_and(document::is_ours);
                each(&Doc::new(&source.name, &root, faults));
            }
            Err(trouble) if trouble.note.is_some() && passed.len() < MOST_PASSED => {
                passed.push(trouble);
            }
            Err(trouble) => faults.borrow_mut().push(fault(source, trouble)),
        }
        match faults.borrow().gives_up() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    let mut faults = faults.borrow_mut();
    for trouble in passed {
        match trouble.note.filter(|_| !ours) {
            None => faults.push(fault(source, trouble)),
            Some((taken, because)) => {
                let Fault { origin, message, hint, .. } = fault(source, trouble);
                let settle = hint.unwrap_or_default();
                faults.note(Note { origin, message, taken, because, settle });
            }
        }
    }
    faults.finish();
}

/// A source with more oddities than this is no manifest.
const MOST_PASSED: usize = 100;

fn fault(source: &Source, trouble: Trouble) -> Fault {
    let Trouble { line, column, message, hint, .. } = trouble;
    let origin = Origin { file: source.name.clone(), line, column };
    Fault { origin, field: None, message, hint }
}

/// A document, or each item of a List, with its `apiVersion` and `kind`.
pub(crate) fn each_item(doc: &Doc<'_>, each: &mut dyn FnMut(&Doc<'_>, &str, &str)) {
    // Whether to go on with the next document, its reader asks for itself.
    let _ = each_item_of(doc, None, each);
}

fn each_item_of<'d>(
    doc: &Doc<'d>,
    inherited: Option<(&'d str, &'d str)>,
    each: &mut dyn FnMut(&Doc<'_>, &str, &str),
) -> ControlFlow<()> {
    let Some((version, kind)) = identity(doc, inherited) else { return go_on(doc) };
    let Some(item_kind) =
        kind.strip_suffix("List").filter(|rest| rest.is_empty() || doc.root.get("items").is_some())
    else {
        each(doc, version, kind);
        return go_on(doc);
    };
    let inherited = (!item_kind.is_empty()).then_some((version, item_kind));
    let mut at = 0;
    let mut each_of = |item: &Node<'_>| {
        let prefix = match doc.prefix {
            "" => format!("items[{at}]"),
            prefix => format!("{prefix}.items[{at}]"),
        };
        at += 1;
        let doc = Doc { prefix: &prefix, ..Doc::new(doc.file, item, doc.faults) };
        each_item_of(&doc, inherited, each)
    };
    match doc.root.get("items").map(|items| &items.value) {
        Some(Value::Items(items)) => {
            let ours = inherited.is_some_and(|(version, _)| document::is_ours(version));
            items.each(ours, &mut each_of)
        }
        _ => doc.items(doc.root, "items").iter().try_for_each(each_of),
    }
}

/// Whether reading goes on.
fn go_on(doc: &Doc<'_>) -> ControlFlow<()> {
    match doc.faults.borrow().gives_up() {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    }
}

/// `apiVersion` and `kind` of a document; a list's items may leave theirs to the list.
fn identity<'d>(
    doc: &Doc<'d>,
    inherited: Option<(&'d str, &'d str)>,
) -> Option<(&'d str, &'d str)> {
    if !matches!(doc.root.value, Value::Map(_)) {
        let message =
            format!("expected a mapping with apiVersion and kind, found {}", doc.root.describe());
        doc.fault(doc.root, message);
        return None;
    }
    let text = |key| match doc.root.get(key) {
        Some(node) if node.as_str().is_some_and(|text| !text.is_empty()) => node.as_str(),
        Some(node) => {
            doc.fault(node, format!("expected a text, found {}", node.describe()));
            None
        }
        None => None,
    };
    let before = doc.faults.borrow().len();
    match (text("apiVersion"), text("kind"), inherited) {
        (Some(version), Some(kind), _) => Some((version, kind)),
        (None, None, Some(inherited)) => Some(inherited),
        (version, kind, _) => {
            if doc.faults.borrow().len() == before {
                let lacks = match (version, kind) {
                    (None, None) => "apiVersion and kind are missing",
                    (None, _) => "apiVersion is missing",
                    _ => "kind is missing",
                };
                let hint = "every document of a manifest says what it is; is this one?";
                doc.fault_with_hint(doc.root, format!("not an object: {lacks}"), hint.to_owned());
            }
            None
        }
    }
}

/// Hands an object to the decoder of its kind.
pub(crate) fn take(doc: &Doc<'_>, version: &str, kind: &str, objects: &mut Objects) {
    let group = version.rsplit_once('/').map_or("", |(group, _)| group);
    let is_it = |known: &&Known| known.kind == kind && known.groups.contains(&group);
    let Some((supported, decode)) = KNOWN
        .iter()
        .find(is_it)
        .map(|known| (known.supported, known.decode))
        .or_else(|| of_clouds(group, kind))
    else {
        if group == "uturn.dev" {
            return unknown_of_ours(doc, version, kind);
        }
        if decode::workload::read_other(doc, kind, objects) {
            return objects.see(&format!("{version}/{kind}"));
        }
        return objects.skip(&format!("{version}/{kind}"));
    };
    if !supported.contains(&version) {
        let message = format!("{version} {kind} is not supported");
        let hint = format!("supported: {}", supported.join(", "));
        return doc.fault_with_hint(doc.root.get("apiVersion").unwrap_or(doc.root), message, hint);
    }
    objects.see(kind);
    decode(doc, objects);
}

/// The versions of a kind that a cloud brings, and its decoder.
fn of_clouds(group: &str, kind: &str) -> Option<(&'static [&'static str], Decoder)> {
    let mut overrides = cloud::ALL.into_iter().filter_map(|entry| entry.overrides.as_ref());
    let found = overrides.find(|object| object.kind == kind && object.group == group)?;
    Some((found.versions, decode::listener_overrides::read))
}

fn unknown_of_ours(doc: &Doc<'_>, version: &str, kind: &str) {
    let (kinds, at) = (["Facts", "Scenario", "LoadBalancer"], doc.root.get("kind"));
    let hint = match kind {
        "Scenario" if version == OURS => {
            "a Scenario stands for itself, not within another".to_owned()
        }
        "Facts" | "Scenario" => format!("supported: {OURS}"),
        "LoadBalancer" => "a LoadBalancer document is for `uturn lb`".to_owned(),
        _ => match decode::closest(kind, &kinds) {
            Some(close) => format!("did you mean {close}?"),
            None => format!("{OURS} has {}", kinds.join(", ")),
        },
    };
    let message = format!("{version} {kind} is not supported");
    doc.fault_with_hint(at.unwrap_or(doc.root), message, hint);
}
