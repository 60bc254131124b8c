//! Real CoreDNS with the scenario's Corefile. Only the address of the API and the paths of files
//! are changed.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use uturn_model::Cluster;
use uturn_model::dns::{COREFILE_FOLDER, Corefile};

use super::api::{Api, Lists};
use super::outside;
use crate::LabError;
use crate::linux::kernel::namespace::Namespace;
use crate::linux::kernel::system::During;
use crate::linux::run::program::Program;
use crate::linux::run::state::Run;

const RESOLV_CONF: &str = "/etc/resolv.conf";

/// The message of CoreDNS once it serves.
pub(crate) const SERVES: &str = "CoreDNS-";

/// A running CoreDNS. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct CoreDns {
    _program: Program,
    /// The API ends after CoreDNS, its only client.
    _api: Api,
}

impl CoreDns {
    /// Starts CoreDNS in a namespace, and waits until it serves.
    pub(super) fn start(
        run: &Run,
        program: &Path,
        name: &str,
        cluster: &Cluster,
        corefile: &Corefile,
        space: &Namespace,
        lists: &Arc<Lists>,
    ) -> Result<Self, LabError> {
        let during = format!("start CoreDNS ({name})");
        let api = Api::start(space, lists).during(&during)?;
        let folder = run.file(name);
        write(&folder, corefile, api.address, outside::address(cluster)).during(&during)?;
        let mut command = Command::new(program);
        command.arg("-conf").arg(folder.join("Corefile")).current_dir(&folder);
        let log = folder.join("log");
        let program = Program::start(run, space, command, &log, SERVES, &during)?;
        Ok(Self { _program: program, _api: api })
    }
}

/// Writes the folder of a CoreDNS: the Corefile, the files beside it, and the `resolv.conf` of its
/// node.
fn write(folder: &Path, corefile: &Corefile, api: SocketAddr, node: IpAddr) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let here = folder.to_string_lossy();
    fs::write(folder.join("resolv.conf"), format!("nameserver {node}\n"))?;
    let api = format!("endpoint http://{api}");
    fs::write(folder.join("Corefile"), adapt(&corefile.text, &here, &api))?;
    for file in &corefile.beside {
        let Some(name) = file.path.strip_prefix(COREFILE_FOLDER) else { continue };
        let path = folder.join(name.trim_start_matches('/'));
        if let Some(parent) = path.parent().filter(|parent| parent.starts_with(folder)) {
            fs::create_dir_all(parent)?;
            fs::write(&path, adapt(&file.text, &here, &api))?;
        }
    }
    Ok(())
}

/// Puts the paths and addresses of this run into a Corefile. `api` is the line with the API's
/// address.
pub(crate) fn adapt(text: &str, folder: &str, api: &str) -> String {
    let mut out = String::new();
    let mut in_plugin = false;
    for line in text.lines() {
        let code = line.split('#').next().unwrap_or_default().trim();
        let word = code.split_ascii_whitespace().next().unwrap_or_default();
        if in_plugin && matches!(word, "endpoint" | "tls" | "kubeconfig") {
            continue;
        }
        let own = match code.strip_suffix('{') {
            _ if word != "kubernetes" => None,
            Some(_) => Some(format!("{code}\n{api}")),
            None => Some(format!("{code} {{\n{api}\n}}")),
        };
        in_plugin = match word {
            "kubernetes" => code.ends_with('{'),
            "}" => false,
            _ => in_plugin,
        };
        let line = own.as_deref().unwrap_or(line);
        let line = line
            .replace(RESOLV_CONF, &format!("{folder}/resolv.conf"))
            .replace(COREFILE_FOLDER, folder);
        let _ = writeln!(out, "{line}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_places_are_changed() {
        let text = ".:53 {\n    kubernetes cluster.local { # API\n        endpoint https://x\n        \
                    fallthrough\n    }\n    hosts /etc/coredns/NodeHosts {\n        endpoint\n    }\n    \
                    forward . /etc/resolv.conf\n}\n";
        let adapted = adapt(text, "/run/x", "endpoint http://127.0.0.1:8080");
        assert_eq!(
            adapted,
            ".:53 {\nkubernetes cluster.local {\nendpoint http://127.0.0.1:8080\n        \
             fallthrough\n    }\n    hosts /run/x/NodeHosts {\n        endpoint\n    }\n    \
             forward . /run/x/resolv.conf\n}\n"
        );
        let adapted = adapt("kubernetes a b\n", "/run/x", "endpoint http://127.0.0.1:1");
        assert_eq!(adapted, "kubernetes a b {\nendpoint http://127.0.0.1:1\n}\n");
    }
}
