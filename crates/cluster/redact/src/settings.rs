//! Redacts settings of programs: arguments, images, versions, and documents in JSON.

use std::collections::HashSet;
use std::sync::LazyLock;

use serde_json::Value;
use uturn_clouds::cloud::ALL;

use crate::controllers;
use crate::links::link;
use crate::names::Names;
use crate::text::{NAMES, Vocabulary, redact};
use crate::words::list;

/// The members of documents that are not names: those of Facts, of kube-proxy's configuration, and
/// of annotations in JSON.
pub(crate) static FIELDS: LazyLock<HashSet<&'static str>> =
    LazyLock::new(|| list(include_str!("known/fields.txt")));

static SETTINGS: LazyLock<HashSet<&'static str>> = LazyLock::new(|| {
    let mut words = list(include_str!("known/settings.txt"));
    words.extend(ALL.into_iter().map(|entry| entry.cloud.word()));
    words
});

/// Returns the vocabulary of the values of settings: modes, schedulers, actions.
pub(crate) fn values() -> Vocabulary {
    Vocabulary { words: Some(&SETTINGS), ..NAMES }
}

/// The arguments that are read. The value of one may be the next argument.
const ARGUMENTS: [&str; 20] = [
    "--cluster-cidr",
    "--config",
    "--conntrack-tcp-be-liberal",
    "--detect-local-mode",
    "--hostname-override",
    "--iptables-localhost-nodeports",
    "--iptables-masquerade-bit",
    "--ipvs-scheduler",
    "--ipvs-strict-arp",
    "--kube-proxy-arg",
    "--masquerade-all",
    "--nodeport-addresses",
    "--pod-bridge-interface",
    "--pod-interface-name-prefix",
    "--proxy-mode",
    "--run-service-proxy",
    "--cluster-domain",
    "--disable-kube-proxy",
    "--flannel-backend",
    "--service-cidr",
];

/// Redacts the arguments of containers. Only those that are read are kept.
pub(crate) fn arguments(words: &[Value], names: &mut Names) -> Vec<Value> {
    let mut kept = Vec::new();
    let mut takes_next = None;
    for word in words {
        let Some(text) = word.as_str() else { continue };
        if takes_next.is_none() && controllers::is_command(text) {
            kept.push(text.into());
            continue;
        }
        let mut parts = Vec::new();
        for part in text.split_whitespace() {
            parts.extend(argument(part, &mut takes_next, names));
        }
        if !parts.is_empty() {
            kept.push(parts.join(" ").into());
        }
    }
    kept
}

/// Redacts an argument, or the value of the previous one.
fn argument(text: &str, takes_next: &mut Option<Takes>, names: &mut Names) -> Option<String> {
    let (flag, value) = match text.split_once('=') {
        Some((flag, value)) => (flag, Some(value)),
        None => (text, None),
    };
    if flag.starts_with('-') {
        *takes_next = None;
        if !ARGUMENTS.contains(&flag) {
            // The values are names of objects and classes, and no setting has the same name as one
            // of these arguments.
            let flag = controllers::flag(flag, names)?;
            *takes_next = value.is_none().then_some(Takes::Name);
            let value = value.map(|value| controllers::value(&flag, value, names));
            return Some(value.map_or_else(|| flag.clone(), |value| format!("{flag}={value}")));
        }
        *takes_next = value.is_none().then(|| Takes::ValueOf(flag.to_owned()));
        let value = value.map(|value| nested(flag, value, names));
        return Some(value.map_or_else(|| flag.to_owned(), |value| format!("{flag}={value}")));
    }
    takes_next.take().map(|takes| match takes {
        Takes::Name => redact(text, names, NAMES),
        Takes::ValueOf(flag) => nested(&flag, text, names),
    })
}

/// The meaning of the argument after one without a value.
enum Takes {
    /// A name.
    Name,
    /// The value of this argument.
    ValueOf(String),
}

/// Redacts the value of an argument, which may be an argument of another program:
/// `proxy-mode=ipvs`.
fn nested(flag: &str, value: &str, names: &mut Names) -> String {
    if flag == "--kube-proxy-arg"
        && let Some((inner, value)) = value.split_once('=')
        && ARGUMENTS.contains(&&*format!("--{}", inner.trim_start_matches('-')))
    {
        let flag = format!("--{}", inner.trim_start_matches('-'));
        return format!("{inner}={}", setting(&flag, value, names));
    }
    setting(flag, value, names)
}

/// Redacts the value of a setting of kube-proxy, by its argument or its field.
pub(crate) fn setting(name: &str, value: &str, names: &mut Names) -> String {
    match name {
        "--hostname-override" | "hostnameOverride" if !value.starts_with("$(") => {
            redact(value, names, NAMES)
        }
        "--pod-bridge-interface" | "bridgeInterface" => link(value, names),
        "--pod-interface-name-prefix" | "interfaceNamePrefix" if !value.is_empty() => {
            link(&format!("{value}*"), names).trim_end_matches('*').to_owned()
        }
        _ => redact(value, names, values()),
    }
}

/// Redacts an image. Its registry is removed, its name is redacted like all names unless it is that
/// of an Ingress controller, and its tag like a version.
pub(crate) fn image(text: &str, names: &mut Names) -> String {
    let (path, tag) = (uturn_model::image::repository(text), uturn_model::image::tag(text));
    let path = match path.split_once('/') {
        Some((registry, rest)) if registry.contains(['.', ':']) || registry == "localhost" => rest,
        _ => path,
    };
    let path = match controllers::program(path) {
        Some((own, program)) => {
            let before = redact(&path[..path.len() - own.len()], names, NAMES);
            format!("{before}{program}")
        }
        None => redact(path, names, NAMES),
    };
    tag.map_or_else(|| path.clone(), |tag| format!("{path}:{}", version(tag, names)))
}

/// The words of versions.
static VERSIONS: LazyLock<HashSet<&'static str>> =
    LazyLock::new(|| list(include_str!("known/versions.txt")));

/// Redacts a version. Numbers of any size are kept.
pub(crate) fn version(text: &str, names: &mut Names) -> String {
    let vocabulary = Vocabulary { words: Some(&VERSIONS), keeps_numbers: true, ..NAMES };
    match text.strip_prefix('v').filter(|rest| rest.starts_with(|own: char| own.is_ascii_digit())) {
        Some(rest) => format!("v{}", parts(rest, names, vocabulary)),
        None => parts(text, names, vocabulary),
    }
}

/// Redacts a text part by part, since four numbers are not an address here.
fn parts(text: &str, names: &mut Names, vocabulary: Vocabulary) -> String {
    let mut parts = text.split('.').map(|part| redact(part, names, vocabulary));
    let first = parts.next().unwrap_or_default();
    parts.fold(first, |text, part| format!("{text}.{part}"))
}

/// Redacts a document within a text. Unknown members are names.
pub(crate) fn document(of: Value, names: &mut Names) -> Value {
    member("", of, names)
}

fn member(field: &str, of: Value, names: &mut Names) -> Value {
    /// The largest number that is kept. Larger ones may identify accounts.
    const MAX: f64 = 99_999.0;
    match of {
        Value::Object(entries) => {
            let entry = |(key, value): (String, Value)| {
                let key = if FIELDS.contains(&*key) { key } else { redact(&key, names, NAMES) };
                let value = member(&key, value, names);
                (key, value)
            };
            Value::Object(entries.into_iter().map(entry).collect())
        }
        Value::Array(items) => items.into_iter().map(|item| member(field, item, names)).collect(),
        Value::String(text) => setting(field, &text, names).into(),
        Value::Number(number)
            if !FIELDS.contains(field) && number.as_f64().is_none_or(|own| own.abs() > MAX) =>
        {
            0.into()
        }
        plain => plain,
    }
}
