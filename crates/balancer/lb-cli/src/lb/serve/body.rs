//! Reads configurations and changes that are sent to the admin address.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use uturn_lb::config::Config;
use uturn_model::Protocol;
use uturn_snapshot::{Fault, RunningBalancer, Source};

use super::super::{check_whole, unreadable_files};

/// The name of a body in messages.
const BODY: &str = "body";

/// Reads a whole configuration that replaces the current one. Relative paths start from the same
/// folder as those of `file`.
///
/// # Errors
/// If the configuration has faults: a message for each.
pub(super) fn whole(file: &Path, text: String, served: &Config) -> Result<Config, Vec<String>> {
    let (path, source) = source(file, text);
    let addresses = uturn_proxy::own_addresses();
    let running = RunningBalancer { served, addresses: &addresses };
    let config = uturn_snapshot::read_lb_config_of_client(source, &running);
    let config = config.map_err(|faults| messages(&path, &faults))?;
    let failed = |failure: uturn_cli::Failure| rename(&path, failure.messages());
    check_whole(&config, &path).map_err(failed)?;
    Ok(config)
}

/// Reads a change of the current configuration. Returns the changed configuration.
///
/// # Errors
/// If the change has faults: a message for each.
pub(super) fn part(file: &Path, text: String, served: &Config) -> Result<Config, Vec<String>> {
    let (path, source) = source(file, text);
    let addresses = uturn_proxy::own_addresses();
    let running = RunningBalancer { served, addresses: &addresses };
    let change = uturn_snapshot::read_lb_change(&source, &running);
    let change = change.map_err(|faults| messages(&path, &faults))?;
    let set = Config { load_balancers: change.set.clone(), ..Config::default() };
    let missing = unreadable_files(&set);
    if !missing.is_empty() {
        return Err(missing);
    }
    let mut config = served.clone();
    let applied = change.apply(&mut config.load_balancers);
    applied.map_err(|error| vec![format!("{BODY}: {error}")])?;
    let shared = shared_addresses(&config);
    if shared.is_empty() { Ok(config) } else { Err(shared) }
}

/// Returns messages for addresses that two listeners share, or a listener and the admin address.
fn shared_addresses(config: &Config) -> Vec<String> {
    let mut known: HashMap<(SocketAddr, Protocol), &str> = HashMap::new();
    if let Some(admin) = config.process.admin {
        known.insert((admin, Protocol::Tcp), "the admin address");
    }
    let mut messages = Vec::new();
    for served in &config.load_balancers {
        let balancer = &served.load_balancer;
        for listener in &balancer.listeners {
            let address = SocketAddr::new(balancer.vip, listener.port.number());
            let transport = listener.protocol.transport();
            if let Some(owner) = known.insert((address, transport), &balancer.name) {
                let name = &balancer.name;
                messages
                    .push(format!("{BODY}: {transport} {address} of {name} is taken by {owner}"));
            }
        }
    }
    messages
}

fn source(file: &Path, text: String) -> (PathBuf, Source) {
    let folder = if file.is_dir() { Some(file) } else { file.parent() };
    let path = folder.unwrap_or(Path::new("")).join(BODY);
    let source = Source { name: (&*path.to_string_lossy()).into(), text };
    (path, source)
}

fn messages(path: &Path, faults: &[Fault]) -> Vec<String> {
    let messages: Vec<String> = faults.iter().map(ToString::to_string).collect();
    rename(path, &messages)
}

/// Replaces the file's name in messages by the name of the body.
fn rename(path: &Path, messages: &[String]) -> Vec<String> {
    let own = format!("{}:", path.to_string_lossy());
    messages.iter().map(|message| message.replace(&own, &format!("{BODY}:"))).collect()
}
