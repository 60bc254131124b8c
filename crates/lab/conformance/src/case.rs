//! A test case: a cluster's objects for the API server, and uturn's input.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use uturn_model::{Cluster, Version};
use uturn_snapshot::Source;

use crate::control_plane;
use crate::fault::{During as _, Fault, Outcome};
use crate::mode::Mode;
use crate::net;

/// The namespace of the objects that are added last.
const LAST: &str = "uturn-conformance";

/// Objects as `kubectl get -o json` prints them, including Facts and kube-proxy's ConfigMap.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) items: Vec<Value>,
}

impl Case {
    pub(crate) fn read(path: &Path) -> Outcome<Self> {
        let text = fs::read_to_string(path).during(path.display())?;
        let mut list: Value = serde_json::from_str(&text).during(path.display())?;
        let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        match list["items"].take() {
            // The stage itself adds the objects in its own namespace again.
            Value::Array(items) => {
                let items = items.into_iter().filter(|item| !is_added(item)).collect();
                Ok(Self { name: name.unwrap_or_default(), items })
            }
            _ => Err(Fault::new(format!("{}: expected a List with items", path.display()))),
        }
    }

    /// Returns the objects to create first: namespaces, then everything else. Nodes get a
    /// preliminary zone: kube-proxy may lose the zone that it sees while it starts, and then
    /// ignores hints until the zone changes.
    pub(crate) fn objects(&self) -> Vec<Value> {
        let named = self.items.iter().filter_map(|item| item["metadata"]["namespace"].as_str());
        let namespaces: BTreeSet<&str> = named.chain([LAST]).collect();
        let namespaces = namespaces.into_iter().map(
            |name| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}),
        );
        let elsewhere = self.items.iter().cloned().map(|mut item| {
            if item["kind"] == "Node" {
                item["metadata"]["labels"] = json!({"topology.kubernetes.io/zone": "not-yet"});
            }
            item
        });
        namespaces.chain(elsewhere).collect()
    }

    /// Returns `namespace/name` of every Service.
    pub(crate) fn services(&self) -> Vec<String> {
        self.items.iter().filter(|item| item["kind"] == "Service").map(service_of).collect()
    }

    /// Returns the case without these Services and their endpoints.
    pub(crate) fn without(&self, services: &[String]) -> Self {
        let stays = |item: &&Value| {
            let counts = item["kind"] == "Service" || item["kind"] == "EndpointSlice";
            !counts || !services.contains(&service_of(item))
        };
        let items = self.items.iter().filter(stays).cloned().collect();
        Self { name: self.name.clone(), items }
    }

    /// Reads kube-proxy's configuration from its ConfigMap.
    pub(crate) fn proxy_config(&self) -> Outcome<Value> {
        let text = self.items.iter().find_map(config_text).ok_or_else(|| {
            Fault::new(format!("{}: no ConfigMap kube-system/kube-proxy", self.name))
        })?;
        serde_json::from_str(text).during(format!("{}: config.conf of kube-proxy", self.name))
    }

    /// Returns the version of kube-proxy in the Facts.
    pub(crate) fn version(&self) -> Option<Version> {
        let facts = self.items.iter().find(|item| item["kind"] == "Facts")?;
        facts["spec"]["kubeProxy"]["version"].as_str()?.parse().ok()
    }

    /// Returns the case with another version of kube-proxy, without settings that this version
    /// rejects.
    pub(crate) fn of_version(&self, version: Version) -> Outcome<Self> {
        let mut config = self.proxy_config()?;
        let primary = config["nodePortAddresses"] == json!(["primary"]);
        if primary && (version.major, version.minor) < (1, 31) {
            config["nodePortAddresses"] = json!([]);
        }
        let mut items = self.items.clone();
        for item in &mut items {
            if item["kind"] == "Facts" {
                item["spec"]["kubeProxy"]["version"] = json!(version.to_string());
            } else if config_text(item).is_some() {
                item["data"]["config.conf"] = json!(config.to_string());
            }
        }
        Ok(Self { name: self.name.clone(), items })
    }

    /// Returns the input of uturn: the objects with the mode in kube-proxy's configuration, and the
    /// API server's own objects.
    pub(crate) fn uturn_input(&self, mode: Mode, own: &[Value]) -> Outcome<String> {
        let mut config = self.proxy_config()?;
        config["mode"] = json!(mode.proxy().as_str());
        let mut items = self.items.clone();
        for item in items.iter_mut().filter(|item| config_text(item).is_some()) {
            item["data"]["config.conf"] = json!(config.to_string());
        }
        items.extend(last());
        items.extend(own.iter().cloned());
        serde_json::to_string_pretty(&control_plane::list(&items)).during(&self.name)
    }

    /// Reads the text of [`Case::uturn_input`].
    pub(crate) fn cluster(&self, uturn_input: String) -> Outcome<Cluster> {
        let source = Source { name: self.name.as_str().into(), text: uturn_input };
        let loaded = uturn_snapshot::read(vec![source]).map_err(|faults| {
            let lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
            Fault::new(format!("uturn cannot read {}:\n{}", self.name, lines.join("\n")))
        })?;
        Ok(loaded.cluster)
    }
}

/// Returns the objects that are added once kube-proxy has programmed everything else. When their
/// rules are present, kube-proxy has processed all other objects, and a change.
pub(crate) fn last() -> Vec<Value> {
    let (name, addresses) = ("last", last_addresses());
    vec![json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"namespace": LAST, "name": name},
        "spec": {
            "type": "ClusterIP", "clusterIP": addresses[0], "clusterIPs": addresses,
            "ipFamilyPolicy": "RequireDualStack", "ipFamilies": ["IPv4", "IPv6"],
            "ports": [{"name": "p", "protocol": "TCP", "port": 9, "targetPort": 9}],
        },
    })]
}

/// Returns the addresses of the Service that is added last.
pub(crate) fn last_addresses() -> [String; 2] {
    net::cluster_ip(254)
}

/// Returns the name of the Service that an object is, or belongs to.
fn service_of(item: &Value) -> String {
    let meta = &item["metadata"];
    let owner = &meta["labels"]["kubernetes.io/service-name"];
    let name = owner.as_str().or_else(|| meta["name"].as_str()).unwrap_or_default();
    format!("{}/{name}", meta["namespace"].as_str().unwrap_or_default())
}

fn is_added(item: &Value) -> bool {
    let namespace = item["metadata"]["namespace"].as_str();
    namespace == Some(LAST) || namespace == Some("default")
}

fn config_text(item: &Value) -> Option<&str> {
    let ours = item["kind"] == "ConfigMap" && item["metadata"]["name"] == "kube-proxy";
    item["data"]["config.conf"].as_str().filter(|_| ours)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate;

    #[test]
    fn a_case_is_of_the_version_that_it_is_given() {
        let case = generate::case(3, 1, Version::new(1, 34, 4));
        assert_eq!(case.version(), Some(Version::new(1, 34, 4)));
        let other = case.of_version(Version::new(1, 30, 14)).unwrap();
        assert_eq!(other.version(), Some(Version::new(1, 30, 14)));
        assert_eq!(other.services(), case.services());
    }

    #[test]
    fn a_service_goes_with_its_endpoints() {
        let case = generate::case(3, 1, Version::new(1, 34, 4));
        let services = case.services();
        let less = case.without(&services[..1]);
        assert_eq!(less.services(), services[1..]);
        assert!(less.items.len() < case.items.len() - 1);
        let gone = |item: &Value| service_of(item) == services[0];
        assert!(case.items.iter().any(gone) && !less.items.iter().any(gone));
        assert_eq!(case.without(&services).proxy_config().unwrap(), case.proxy_config().unwrap());
    }
}
