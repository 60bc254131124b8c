//! The load balancers that manifests show. They exist before the controllers start.
//!
//! An address in the status, or an id in an annotation, was written by controllers in the cluster
//! that the manifests come from. Here the cloud has a load balancer with that address and id; the
//! controllers find it by its tags, and write the status themselves.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use serde_json::{Value, json};
use uturn_clouds::cloud::tke::annotations as keys;

use super::manifests::{kind, name, namespace};

/// The annotation with the class of an Ingress.
const CLASS: &str = "kubernetes.io/ingress.class";
/// The class whose Ingresses the cloud's controllers serve.
const OWN_CLASS: &str = "qcloud";

/// A load balancer that an object shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shown {
    /// The id of the load balancer.
    pub(super) id: String,
    /// The address of the load balancer; `None` for any.
    pub(super) address: Option<Ipv4Addr>,
    /// The subnet of the load balancer; a public one has none.
    pub(super) subnet: Option<String>,
    /// The object that the load balancer was made for; `None` if it is the user's own.
    pub(super) owner: Option<Owner>,
}

/// A Service or an Ingress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) is_ingress: bool,
    pub(super) namespace: String,
    pub(super) name: String,
    /// The UID, which is known once the object is applied.
    pub(super) uid: Option<String>,
}

/// Returns whether the cloud's controllers serve an object.
pub(super) fn is_served(object: &Value) -> bool {
    match kind(object) {
        "Service" => {
            object["spec"]["type"] == "LoadBalancer"
                && object["spec"]["loadBalancerClass"].is_null()
        }
        "Ingress" => {
            let class = annotation(object, CLASS);
            let class = class.or_else(|| object["spec"]["ingressClassName"].as_str());
            class.is_none_or(|class| class == OWN_CLASS)
        }
        _ => false,
    }
}

/// Removes from the objects what controllers wrote, and returns the load balancers that this shows.
pub(super) fn take_shown(objects: &mut [Value]) -> Vec<Shown> {
    let mut all: BTreeMap<String, Shown> = BTreeMap::new();
    for object in objects.iter_mut().filter(|object| is_served(object)) {
        let is_ingress = kind(object) == "Ingress";
        let address = object["status"]["loadBalancer"]["ingress"][0]["ip"].as_str();
        let address: Option<Ipv4Addr> = address.and_then(|ip| ip.parse().ok());
        if let Some(fields) = object.as_object_mut() {
            fields.remove("status");
        }
        let of = |service, ingress| if is_ingress { ingress } else { service };
        let text = |key| annotation(object, key).map(str::to_owned);
        let subnet = text(of(keys::SUBNET, keys::INGRESS_SUBNET));
        let current = of(keys::CURRENT, keys::INGRESS_CURRENT);
        let existing = text(of(keys::EXISTING, keys::INGRESS_EXISTING));
        let shown = match (existing, address) {
            (Some(id), _) => Some(Shown { id, address, subnet, owner: None }),
            (None, Some(_)) => {
                let owner = Owner {
                    is_ingress,
                    namespace: namespace(object).to_owned(),
                    name: name(object).to_owned(),
                    uid: None,
                };
                let id = text(current).unwrap_or_else(|| format!("lb-{:08}", all.len() + 1));
                Some(Shown { id, address, subnet, owner: Some(owner) })
            }
            (None, None) => None,
        };
        if let Some(annotations) = object["metadata"]["annotations"].as_object_mut() {
            annotations.remove(current);
        }
        if let Some(shown) = shown {
            if shown.owner.is_some() {
                object["metadata"]["annotations"][current] = json!(shown.id);
            }
            let known = all.entry(shown.id.clone()).or_insert_with(|| shown.clone());
            known.address = known.address.or(shown.address);
        }
    }
    all.into_values().collect()
}

fn annotation<'o>(object: &'o Value, key: &str) -> Option<&'o str> {
    object["metadata"]["annotations"][key].as_str().filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(name: &str, annotations: &Value, ip: Option<&str>) -> Value {
        let ingress = ip.map(|ip| json!({"ip": ip}));
        json!({
            "kind": "Service",
            "metadata": {"namespace": "shop", "name": name, "annotations": annotations},
            "spec": {"type": "LoadBalancer"},
            "status": {"loadBalancer": {"ingress": ingress.into_iter().collect::<Vec<_>>()}},
        })
    }

    #[test]
    fn what_controllers_wrote_becomes_load_balancers() {
        let own = json!({keys::SUBNET: "subnet-a", keys::CURRENT: "lb-own"});
        let mut objects = [
            service("own", &own, Some("10.0.0.101")),
            service("existing", &json!({keys::EXISTING: "lb-user"}), None),
            service("new", &json!({keys::CURRENT: "lb-old"}), None),
        ];
        let shown = take_shown(&mut objects);
        let owner =
            Owner { is_ingress: false, namespace: "shop".into(), name: "own".into(), uid: None };
        let expected = [
            Shown {
                id: "lb-own".into(),
                address: Some(Ipv4Addr::new(10, 0, 0, 101)),
                subnet: Some("subnet-a".into()),
                owner: Some(owner),
            },
            Shown { id: "lb-user".into(), address: None, subnet: None, owner: None },
        ];
        assert_eq!(shown, expected);
        assert!(objects.iter().all(|object| object.get("status").is_none()));
        assert_eq!(annotation(&objects[0], keys::CURRENT), Some("lb-own"));
        assert_eq!(annotation(&objects[2], keys::CURRENT), None);
    }

    #[test]
    fn what_other_controllers_serve_stays() {
        let mut ingress = json!({
            "kind": "Ingress", "metadata": {"name": "web"}, "spec": {"ingressClassName": "nginx"},
            "status": {"loadBalancer": {"ingress": [{"ip": "10.0.0.7"}]}},
        });
        assert_eq!(take_shown(std::slice::from_mut(&mut ingress)), []);
        assert_eq!(ingress["status"]["loadBalancer"]["ingress"][0]["ip"], "10.0.0.7");
    }
}
