//! Reads DataPlane and SecurityGroup documents.

use std::net::SocketAddr;
use std::path::{self, PathBuf};
use std::time::Duration;

use uturn_document::{Node, Value, truth};
use uturn_lb::config::{AccessLog, ProcessSettings};
use uturn_model::Text;
use uturn_model::network::SecurityGroup;

use crate::decode::value::parsed;
use crate::decode::{FromNode, facts};

use super::across::Across;
use super::form::{Form, set};
use super::values::{beside, check_name};

/// Keeps the served values of settings that only the file of a process changes.
pub(super) fn keep(settings: &mut ProcessSettings, served: &ProcessSettings) {
    settings.admin = served.admin;
    settings.admin_token.clone_from(&served.admin_token);
    settings.admin_hosts.clone_from(&served.admin_hosts);
    settings.local_targets = served.local_targets;
    settings.access_log.clone_from(&served.access_log);
}

/// Reports settings that only the file of a process changes, if they differ from those `served`.
fn refuse_changes<'d>(
    form: &Form<'_, 'd>,
    spec: &'d Node<'d>,
    settings: &ProcessSettings,
    served: &ProcessSettings,
) {
    let absolute = |path: &PathBuf| path::absolute(path).unwrap_or_else(|_| path.clone());
    let admin = |of: &ProcessSettings| {
        let token = of.admin_token.as_ref().map(absolute);
        (of.admin, token, of.admin_hosts.clone(), of.local_targets)
    };
    let log = |of: &ProcessSettings| match &of.access_log {
        AccessLog::File(path) => AccessLog::File(absolute(path)),
        other => other.clone(),
    };
    let only = "it can be changed in the file of `uturn lb run` only, not over HTTP";
    if let Some(node) = spec.get("admin").filter(|_| admin(settings) != admin(served)) {
        let served = served.admin.map_or_else(|| "none".to_owned(), |address| address.to_string());
        form.fault(node, format!("{only}: expected the served value, {served}"));
    }
    if let Some(node) = spec.get("accessLog").filter(|_| log(settings) != log(served)) {
        let served = match log(served) {
            AccessLog::Off => "off".to_owned(),
            AccessLog::Stdout => "stdout".to_owned(),
            AccessLog::File(path) => path.display().to_string(),
        };
        form.fault(node, format!("{only}: expected the served value, {served}"));
    }
}

/// Reads the settings of the process. `served` are the settings of a process that is already
/// running.
pub(super) fn read(
    form: &Form<'_, '_>,
    across: &mut Across,
    served: Option<&ProcessSettings>,
) -> ProcessSettings {
    across.data_plane(form);
    form.only(form.root, &["apiVersion", "kind", "metadata", "spec"]);
    if let Some(metadata) = form.map(form.root, "metadata") {
        form.only(metadata, &["name"]);
    }
    let mut settings = ProcessSettings::default();
    if let Some(served) = served {
        keep(&mut settings, served);
    }
    let Some(spec) = form.need_map(form.root, "spec") else { return settings };
    form.only(spec, &["workers", "admin", "accessLog", "drain", "connections"]);
    settings.workers = form.within(spec, "workers", 1..=1024, "a number of threads from 1 to 1024");
    if let Some(node) = spec.get("admin") {
        admin(form, spec, node, &mut settings, across);
    }
    set(&mut settings.access_log, form.read(spec, "accessLog"));
    if let AccessLog::File(path) = &mut settings.access_log {
        *path = beside(form.file, path);
    }
    if let Some(served) = served {
        refuse_changes(form, spec, &settings, served);
        keep(&mut settings, served);
    }
    let hour = Duration::from_secs(3600);
    form.set_within(
        &mut settings.drain,
        spec,
        "drain",
        Duration::ZERO..=hour,
        "a time from 0s to 1h",
    );
    let expected = "a number of connections from 1 to 10000000";
    settings.connections = form.within(spec, "connections", 1..=10_000_000, expected);
    settings
}

/// Reads the admin address: an address, or a mapping.
fn admin<'d>(
    form: &Form<'_, 'd>,
    spec: &'d Node<'d>,
    node: &'d Node<'d>,
    settings: &mut ProcessSettings,
    across: &mut Across,
) {
    let place = if matches!(node.value, Value::Map(_)) {
        form.only(node, &["address", "tokenFile", "hosts", "localTargets"]);
        settings.admin = form.need(node, "address");
        settings.admin_token = form.path(node, "tokenFile");
        settings.admin_hosts = form.list(node, "hosts");
        for host in form.items(node, "hosts") {
            if let Some(name) = form.value::<Text>(host) {
                check_name(form, host, &name);
            }
        }
        settings.local_targets = form.read(node, "localTargets").unwrap_or(false);
        node.get("address")
    } else {
        settings.admin = form.read(spec, "admin");
        Some(node)
    };
    if let Some((address, node)) = settings.admin.zip(place) {
        if address.port() == 0 {
            form.fault(node, "expected a port from 1 to 65535, found 0");
        }
        across.admin(form, node, address);
    }
}

/// Reads a security group, whose rules are written as in Facts.
pub(super) fn security_group(form: &Form<'_, '_>, across: &mut Across) -> Option<SecurityGroup> {
    form.only(form.root, &["apiVersion", "kind", "metadata", "spec"]);
    let metadata = form.need_map(form.root, "metadata");
    let name = metadata.and_then(|metadata| {
        form.only(metadata, &["name"]);
        let name = form.need::<Text>(metadata, "name")?;
        across.group(form, metadata.get("name")?, &name);
        Some(name)
    });
    let spec = form.need_map(form.root, "spec")?;
    let group = facts::security_group(form, name.as_deref().unwrap_or_default(), spec);
    name.map(|_| group)
}

impl FromNode for AccessLog {
    const EXPECTED: &'static str = "off, stdout, or the path of a file";

    fn from_node(node: &Node<'_>) -> Result<Self, String> {
        match &node.value {
            // YAML reads `off` as a truth value.
            Value::Bool(word) if !truth(word) => Ok(Self::Off),
            Value::String(text) => match &**text {
                "off" => Ok(Self::Off),
                "stdout" => Ok(Self::Stdout),
                "" => Err(String::new()),
                path => Ok(Self::File(PathBuf::from(path))),
            },
            _ => Err(String::new()),
        }
    }
}

parsed!(SocketAddr: true "ADDRESS:PORT");
