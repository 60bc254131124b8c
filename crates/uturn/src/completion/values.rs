//! Candidates for values: clients, targets, objects, codes.

use std::ffi::OsStr;

use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use uturn_cli::completion::{completer, line, matching};
use uturn_diagnose::Code;
use uturn_model::{Mechanism, NamespacedName, ObjectKind, WorkloadKind};

use super::source::{ObjectName, Source};

/// The largest number of names that are shown at once. If there are more, their namespaces are
/// shown.
const MAX_AT_ONCE: usize = 30;

/// Completes a client: `pod/shop/web-0`.
pub(crate) fn client() -> ArgValueCompleter {
    completer(|typed| {
        let Some((word, _)) = typed.split_once('/') else {
            return ["pod/", "deploy/", "sts/", "ds/", "node/", "outside"]
                .map(str::to_owned)
                .into();
        };
        let workload = || WorkloadKind::from_word(word).map(ObjectKind::from);
        let kind = match ObjectKind::from_word(word).or_else(workload) {
            None | Some(ObjectKind::Service | ObjectKind::Ingress) => return Vec::new(),
            Some(kind) => kind,
        };
        below(word, kind, typed)
    })
}

/// Completes a target: `svc/shop/front:80`, `ingress/shop/front/shop.example.com/`.
pub(crate) fn target() -> ArgValueCompleter {
    completer(|typed| {
        let Some((word, rest)) = typed.split_once('/') else {
            return ["svc/", "ingress/", "pod/", "http://", "https://"].map(str::to_owned).into();
        };
        let (kind, divider) = match ObjectKind::from_word(word) {
            Some(kind @ (ObjectKind::Service | ObjectKind::Pod)) => (kind, ':'),
            Some(kind @ ObjectKind::Ingress) => (kind, '/'),
            _ => return Vec::new(),
        };
        let (namespace, name) = rest.split_once('/').unwrap_or((rest, ""));
        match name.split_once(divider) {
            Some((name, _)) => parts(word, kind, namespace, name, divider),
            // A pod is no target without its port.
            None if kind == ObjectKind::Pod => {
                let names = below(word, kind, typed).into_iter();
                names.map(|name| if name.ends_with('/') { name } else { name + ":" }).collect()
            }
            None => below(word, kind, typed),
        }
    })
}

/// Completes an object of `uturn check`: `shop/front`.
pub(crate) fn checked() -> ArgValueCompleter {
    completer(|typed| match (line().has("service"), line().has("ingress")) {
        (true, _) => with_or_without_kind(&[ObjectKind::Service], typed),
        (_, true) => with_or_without_kind(&[ObjectKind::Ingress], typed),
        _ => Vec::new(),
    })
}

/// Completes an object of `uturn cure`, of the kind that findings of the code are about.
pub(crate) fn subject() -> ArgValueCompleter {
    completer(|typed| {
        let codes = line().words.iter().filter_map(|word| word.parse::<Code>().ok());
        let hundred = codes.map(|code| code.as_str().as_bytes()[2]).next();
        let kinds: &[ObjectKind] = match hundred {
            Some(b'3') => &[ObjectKind::Service],
            Some(b'4') => &[ObjectKind::Ingress],
            _ => &[ObjectKind::Service, ObjectKind::Ingress],
        };
        with_or_without_kind(kinds, typed)
    })
}

/// Completes the code of a finding.
pub(crate) fn code() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| matching(typed, codes()))
}

/// Completes a topic that `uturn explain` has a page for.
pub(crate) fn topic() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| {
        let mechanisms = Mechanism::ALL.map(|mechanism| mechanism.to_string());
        matching(
            typed,
            codes().into_iter().chain(mechanisms.map(CompletionCandidate::new)).collect(),
        )
    })
}

/// Completes the preset of a migration.
pub(crate) fn preset() -> ArgValueCompleter {
    let candidate = |preset: uturn_whatif::presets::Preset| {
        CompletionCandidate::new(preset.name).help(Some(preset.title.to_owned().into()))
    };
    ArgValueCompleter::new(move |typed: &OsStr| {
        matching(typed, uturn_whatif::presets::all().map(candidate).collect())
    })
}

fn codes() -> Vec<CompletionCandidate> {
    let candidate = |code: Code| {
        CompletionCandidate::new(code.as_str()).help(Some(code.title().to_owned().into()))
    };
    Code::all().map(candidate).collect()
}

/// Completes a namespace.
pub(crate) fn namespace() -> ArgValueCompleter {
    completer(|_| Source::of(line()).map(|source| source.namespaces()).unwrap_or_default())
}

/// Completes a node.
pub(crate) fn node() -> ArgValueCompleter {
    completer(|typed| names(&[ObjectKind::Node], typed))
}

/// Completes a context of the kubeconfig.
#[cfg(feature = "live")]
pub(crate) fn context() -> ArgValueCompleter {
    completer(|_| {
        let kubeconfig = line().kubeconfig.clone();
        uturn_live::Access { kubeconfig, ..uturn_live::Access::default() }.contexts()
    })
}

/// Offers no context: this build does not read kubeconfigs.
#[cfg(not(feature = "live"))]
pub(crate) fn context() -> ArgValueCompleter {
    completer(|_| Vec::new())
}

/// Returns names after a word: `pod/shop/web-0`.
fn below(word: &str, kind: ObjectKind, typed: &str) -> Vec<String> {
    let rest = typed.split_once('/').map_or("", |(_, rest)| rest);
    names(&[kind], rest).into_iter().map(|name| format!("{word}/{name}")).collect()
}

/// Returns `shop/front`, and once a kind has been begun, `svc/` and `svc/shop/front` as tables show
/// it.
fn with_or_without_kind(kinds: &[ObjectKind], typed: &str) -> Vec<String> {
    let Some((word, _)) = typed.split_once('/') else {
        let mut found = names(kinds, typed);
        if !typed.is_empty() {
            found.extend(["svc/", "ingress/"].map(str::to_owned).into_iter().filter(|word| {
                let kind = ObjectKind::from_word(word.trim_end_matches('/'));
                kind.is_some_and(|kind| kinds.contains(&kind))
            }));
        }
        return found;
    };
    // A namespace may be called `ingress`.
    let mut found = names(kinds, typed);
    found.extend(
        ObjectKind::from_word(word)
            .filter(|kind| kinds.contains(kind))
            .map_or_else(Vec::new, |kind| below(word, kind, typed)),
    );
    found
}

/// Returns names with their namespaces: `shop/web-0`. If there are many, returns the namespaces:
/// `shop/`.
fn names(kinds: &[ObjectKind], typed: &str) -> Vec<String> {
    let Some(source) = Source::of(line()) else { return Vec::new() };
    let namespace = match typed.split_once('/') {
        Some((namespace, _)) => Some(namespace),
        None => line().namespace.as_deref(),
    };
    let mut found: Vec<ObjectName> = Vec::new();
    let mut has_more = false;
    for kind in kinds {
        let (names, more) = source.names(*kind, namespace);
        found.extend(names);
        has_more |= more;
    }
    found.sort_unstable();
    found.dedup();
    let is_begun =
        |(namespace, name): &ObjectName| full(namespace.as_deref(), name).starts_with(typed);
    if namespace.is_some() || found.iter().all(|(namespace, _)| namespace.is_none()) {
        return found.iter().map(|(namespace, name)| full(namespace.as_deref(), name)).collect();
    }
    found.retain(is_begun);
    if !has_more && found.len() <= MAX_AT_ONCE {
        return found.iter().map(|(namespace, name)| full(namespace.as_deref(), name)).collect();
    }
    let mut namespaces: Vec<String> = if has_more { source.namespaces() } else { Vec::new() };
    namespaces.extend(found.into_iter().filter_map(|(namespace, _)| namespace));
    namespaces.sort_unstable();
    namespaces.dedup();
    namespaces.into_iter().map(|namespace| namespace + "/").collect()
}

fn full(namespace: Option<&str>, name: &str) -> String {
    match namespace {
        Some(namespace) => format!("{namespace}/{name}"),
        None => name.to_owned(),
    }
}

/// Returns the texts that may follow the name of a target.
fn parts(word: &str, kind: ObjectKind, namespace: &str, name: &str, divider: char) -> Vec<String> {
    let Ok(full) = NamespacedName::new(namespace, name) else { return Vec::new() };
    let Some(source) = Source::of(line()) else { return Vec::new() };
    let parts = source.parts(kind, &full).into_iter();
    parts.map(|part| format!("{word}/{full}{divider}{part}")).collect()
}
