//! Programs that provide credentials: the `exec` of a kubeconfig's user.

use std::io::{IsTerminal as _, stdin};
use std::process::{Command, ExitStatus, Output, Stdio};

use http::HeaderValue;
use jiff::Timestamp;
use kube::config::{ExecConfig, ExecInteractiveMode, Kubeconfig};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::credential::{Credential, Identity, bearer};

/// A program that provides credentials.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) exec: ExecConfig,
    /// Whether the program may ask the user for something, and print.
    pub(crate) may_talk: bool,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Given {
    token: Option<String>,
    client_certificate_data: Option<String>,
    client_key_data: Option<String>,
    expiration_timestamp: Option<String>,
}

impl Program {
    /// Returns a text that tells the program from others: all that it is started with.
    pub(crate) fn name(&self) -> String {
        format!("{:?}", self.exec)
    }

    /// Runs the program. Returns its credentials, or why there are none.
    pub(crate) fn run(&self) -> Result<Credential, String> {
        let command = self.exec.command.as_deref().filter(|command| !command.is_empty());
        let name = command.ok_or("exec names no command")?;
        let said = |what: String| format!("the program {name:?} {what}");
        let output = self.output(name).map_err(said)?;
        if !output.status.success() {
            return Err(said(ended(output.status)));
        }
        let given = self.given(&output.stdout).map_err(said)?;
        credential(given).map_err(said)
    }

    fn output(&self, name: &str) -> Result<Output, String> {
        let has_terminal = self.may_talk && stdin().is_terminal();
        let can_ask = match self.exec.interactive_mode {
            Some(ExecInteractiveMode::Never) => false,
            Some(ExecInteractiveMode::Always) if !has_terminal => {
                let why =
                    "has to ask (interactiveMode: Always), and standard input is not a terminal";
                return Err(why.to_owned());
            }
            _ => has_terminal,
        };
        let mut command = Command::new(name);
        command.args(self.exec.args.iter().flatten());
        for variable in self.exec.env.iter().flatten() {
            if let (Some(name), Some(value)) = (variable.get("name"), variable.get("value")) {
                command.env(name, value);
            }
        }
        command.env("KUBERNETES_EXEC_INFO", self.info(can_ask));
        command.stdin(if can_ask { Stdio::inherit() } else { Stdio::null() });
        command.stderr(if self.may_talk { Stdio::inherit() } else { Stdio::null() });
        command.stdout(Stdio::piped());
        let output = command.spawn().and_then(|child| child.wait_with_output());
        output.map_err(|why| {
            let hint = self.exec.install_hint.as_deref().map(str::trim).unwrap_or_default();
            let hint = if hint.is_empty() { String::new() } else { format!("\n{hint}") };
            format!("cannot be run: {why}{hint}")
        })
    }

    /// Returns the information that the program gets in its environment.
    fn info(&self, can_ask: bool) -> String {
        let mut spec = json!({"interactive": can_ask});
        if let Some(cluster) = self.exec.cluster.as_ref().filter(|_| self.exec.provide_cluster_info)
        {
            spec["cluster"] = json!(cluster);
        }
        let version = &self.exec.api_version;
        json!({"apiVersion": version, "kind": "ExecCredential", "spec": spec}).to_string()
    }

    /// Parses the program's output, which is JSON or YAML.
    fn given(&self, printed: &[u8]) -> Result<Given, String> {
        let text = String::from_utf8_lossy(printed);
        let none = |why: String| format!("printed no ExecCredential{why}");
        // A kubeconfig keeps fields that it does not know, so its parser reads any mapping.
        let read = Kubeconfig::from_yaml(&text).map_err(|_| none(String::new()))?;
        match read.kind.as_deref() {
            Some("ExecCredential") => {}
            None => return Err(none(String::new())),
            Some(other) => return Err(none(format!(", but a {other}"))),
        }
        let wanted = self.exec.api_version.as_deref().unwrap_or_default();
        let version = read.api_version.unwrap_or_default();
        if version != wanted {
            return Err(format!("speaks {version:?}, and the kubeconfig says {wanted:?}"));
        }
        let status = read.other.get("status").filter(|status| !status.is_null());
        let status = status.cloned().unwrap_or_else(|| Value::Object(serde_json::Map::new()));
        serde_json::from_value(status).map_err(|why| none(format!(": {why}")))
    }
}

fn ended(status: ExitStatus) -> String {
    match status.code() {
        Some(code) => format!("ended with exit code {code}"),
        None => format!("was ended ({status})"),
    }
}

fn credential(given: Given) -> Result<Credential, String> {
    let stated = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
    let header = match stated(given.token) {
        Some(token) => Some(header(&token)?),
        None => None,
    };
    let pair = (stated(given.client_certificate_data), stated(given.client_key_data));
    let identity = match pair {
        (Some(certificate), Some(key)) => Some(Identity { certificate, key }),
        (Some(_), None) => return Err("gives a client certificate without its key".to_owned()),
        (None, Some(_)) => return Err("gives the key of a client certificate alone".to_owned()),
        (None, None) => None,
    };
    if header.is_none() && identity.is_none() {
        return Err("gives neither a token nor a client certificate".to_owned());
    }
    let until = match stated(given.expiration_timestamp) {
        Some(text) => {
            let until: Result<Timestamp, _> = text.parse();
            Some(until.map_err(|_| format!("gives no time as expirationTimestamp: {text:?}"))?)
        }
        None => None,
    };
    Ok(Credential { header, identity, until })
}

fn header(token: &str) -> Result<HeaderValue, String> {
    bearer(token).map_err(|why| format!("gives a token that {why}"))
}
