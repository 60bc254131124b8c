//! The stanza of the plugin in a Corefile.

use super::{Kubernetes, Pods};
use crate::corefile::plugin::Setup;
use crate::dispenser::Dispenser;
use crate::fault::Fault;
use crate::name;

impl Kubernetes {
    pub(crate) fn read(words: &mut Dispenser<'_>, setup: &Setup<'_>) -> Result<Self, Fault> {
        let mut read: Option<Self> = None;
        while words.advance() {
            if read.is_some() {
                return words.fault("kubernetes can be used once in a server block");
            }
            read = Some(Self::stanza(words, setup)?);
        }
        read.map_or_else(|| words.fault("expected kubernetes"), Ok)
    }

    fn stanza(words: &mut Dispenser<'_>, setup: &Setup<'_>) -> Result<Self, Fault> {
        let mut read = Self {
            zones: name::zones(&words.arguments(), setup.zones),
            namespaces: Vec::new(),
            pods: Pods::Disabled,
            fallthrough: Vec::new(),
            pod_names: false,
            endpoints: true,
            ignores_empty: false,
            unmodelled: None,
            multicluster: Vec::new(),
        };
        // CoreDNS does not count the top zones of the reverse trees as reverse zones.
        let reverse =
            |zone: &String| zone.ends_with(".in-addr.arpa.") || zone.ends_with(".ip6.arpa.");
        if read.zones.iter().all(reverse) {
            return words.fault("kubernetes needs a zone that is not a reverse one");
        }
        let mut labels = false;
        while words.next_in_block() {
            let word = words.value();
            let arguments = words.arguments();
            match (word, arguments.as_slice()) {
                ("endpoint_pod_names", []) => read.pod_names = true,
                ("pods", [mode]) => {
                    read.pods = match mode.as_str() {
                        "disabled" => Pods::Disabled,
                        "insecure" => Pods::Insecure,
                        "verified" => Pods::Verified,
                        other => {
                            return words.fault(format!(
                                "expected pods disabled, insecure or verified, found {other}"
                            ));
                        }
                    }
                }
                ("namespaces", [_, ..]) => read.namespaces.extend(arguments),
                ("fallthrough", _) => read.fallthrough = setup.fallthrough(&arguments),
                ("noendpoints", []) => read.endpoints = false,
                ("ignore", [what, ..]) if what == "empty_service" => read.ignores_empty = true,
                ("ignore", []) => {}
                ("ttl", [ttl, ..]) if ttl.parse().is_ok_and(|ttl: u16| ttl <= 3600) => {}
                ("endpoint" | "startup_timeout", [_, ..])
                | ("tls", [_, _, _])
                | ("kubeconfig", [_] | [_, _]) => {}
                ("labels", [_, ..]) => read.unmodelled = Some("labels"),
                ("namespace_labels", [_, ..]) => {
                    read.unmodelled = Some("namespace_labels");
                    labels = true;
                }
                ("multicluster", _) => read.multicluster = name::zones(&arguments, &[]),
                // Options of earlier releases, which change no address.
                ("upstream", _) | ("resyncperiod", [_]) if setup.may_precede(7) => {}
                ("transfer", [to, _, ..]) if to == "to" && setup.may_precede(8) => {}
                // Options of later releases.
                ("apiserver_qps" | "apiserver_burst" | "apiserver_max_inflight", [_])
                    if setup.may_exceed(12) => {}
                ("zonal", []) if setup.may_exceed(12) => read.unmodelled = Some("zonal"),
                _ => {
                    let found = arguments.join(" ");
                    return words.fault(format!("kubernetes does not know {word} {found}"));
                }
            }
        }
        if labels && !read.namespaces.is_empty() {
            return words.fault("namespaces and namespace_labels cannot both be set");
        }
        Ok(read)
    }
}
