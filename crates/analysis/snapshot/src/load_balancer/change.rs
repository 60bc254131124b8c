//! Reads changes of the configuration that `uturn lb run` serves, which its admin address accepts:
//! LoadBalancer documents with new or changed listeners, and Removal documents with those that are
//! removed.
//!
//! ```yaml
//! apiVersion: uturn.dev/v1alpha1
//! kind: Removal
//! spec:
//!   loadBalancers: [{name: web, vip: 10.0.0.100}]
//!   listeners: [{loadBalancer: api, vip: 10.0.0.101, port: 80, protocol: HTTP}]
//! ```

use std::cell::RefCell;
use std::net::IpAddr;

use uturn_document::{Fault, Faults, Node, Source};
use uturn_lb::change::{BalancerKey, Change, ListenerKey};
use uturn_model::lb::ListenerProtocol;
use uturn_model::{Port, Text};

use crate::documents::{OURS as VERSION, each_document, each_item};

use super::across::{Across, RunningBalancer};
use super::balancer;
use super::form::Form;

/// Reads a change of the served configuration.
///
/// # Errors
/// All faults of the source.
pub fn read_lb_change(
    source: &Source,
    running: &RunningBalancer<'_>,
) -> Result<Change, Vec<Fault>> {
    let faults = RefCell::new(Faults::default());
    let across = Across::over_http(running).beside(running.served);
    let (mut change, mut across) = (Change::default(), across);
    each_document(source, false, &faults, &mut |doc| {
        each_item(doc, &mut |doc, version, kind| match (version, kind) {
            (VERSION, "LoadBalancer") => {
                let form = Form::new(doc, balancer::is_derived(doc));
                change.set.extend(balancer::read(&form, &mut across));
            }
            (VERSION, "Removal") => remove(&Form::new(doc, false), &mut change),
            _ => {
                let expected = format!("expected {VERSION} LoadBalancer or Removal");
                doc.fault(doc.root, format!("{expected}, found {version} {kind}"));
            }
        });
    });
    let mut faults = faults.into_inner().into_vec();
    across.check(&mut faults);
    if faults.is_empty() { Ok(change) } else { Err(faults) }
}

/// Reads a Removal document.
fn remove(form: &Form<'_, '_>, change: &mut Change) {
    form.only(form.root, &["apiVersion", "kind", "spec"]);
    let Some(spec) = form.need_map(form.root, "spec") else { return };
    form.only(spec, &["loadBalancers", "listeners"]);
    for node in form.maps(spec, "loadBalancers") {
        form.only(node, &["name", "vip"]);
        change.removed.extend(balancer_key(form, node, "name"));
    }
    for node in form.maps(spec, "listeners") {
        form.only(node, &["loadBalancer", "vip", "port", "protocol"]);
        let balancer = balancer_key(form, node, "loadBalancer");
        let port = form.need::<Port>(node, "port");
        let protocol = form.need::<ListenerProtocol>(node, "protocol");
        if let Some(((balancer, port), protocol)) = balancer.zip(port).zip(protocol) {
            let transport = protocol.transport();
            change.removed_listeners.push(ListenerKey { balancer, port, transport });
        }
    }
}

fn balancer_key<'d>(form: &Form<'_, 'd>, node: &'d Node<'d>, name: &str) -> Option<BalancerKey> {
    let (name, vip) = (form.need::<Text>(node, name), form.need::<IpAddr>(node, "vip"));
    Some(BalancerKey { name: name?, vip: vip? })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVED: &str = "
apiVersion: uturn.dev/v1alpha1
kind: LoadBalancer
metadata: {name: web}
spec:
  vip: 10.0.0.100
  listeners:
  - {port: 80, protocol: TCP, targets: ['10.0.0.11:80']}
  - {port: 81, protocol: TCP, targets: ['10.0.0.11:81']}
";

    fn source(text: &str) -> Source {
        Source { name: "body".into(), text: text.to_owned() }
    }

    fn changed(text: &str) -> Result<Vec<String>, Vec<String>> {
        let mut config = super::super::read_lb_config(vec![source(SERVED)]).unwrap();
        let faults =
            |faults: Vec<Fault>| faults.iter().map(ToString::to_string).collect::<Vec<_>>();
        let running = RunningBalancer { served: &config, addresses: &[] };
        let change = read_lb_change(&source(text), &running).map_err(faults)?;
        change.apply(&mut config.load_balancers).map_err(|error| vec![error.to_string()])?;
        let listeners = config.load_balancers.iter().flat_map(|served| {
            let balancer = &served.load_balancer;
            balancer.listeners.iter().map(|listener| {
                let targets = listener.rules.iter().flat_map(|rule| &rule.targets);
                let targets: Vec<String> = targets.map(|it| it.address.to_string()).collect();
                format!("{}:{} {}", balancer.name, listener.port, targets.join(" "))
            })
        });
        Ok(listeners.collect())
    }

    #[test]
    fn listeners_are_replaced_added_and_removed() {
        let text = SERVED.replace("10.0.0.11:81", "10.0.0.12:81").replace("port: 80", "port: 82");
        let removal = "
---
apiVersion: uturn.dev/v1alpha1
kind: Removal
spec: {listeners: [{loadBalancer: web, vip: 10.0.0.100, port: 80, protocol: TCP}]}
";
        assert_eq!(
            changed(&format!("{text}{removal}")).unwrap(),
            ["web:81 10.0.0.12:81", "web:82 10.0.0.11:80"]
        );
        let all = "
apiVersion: uturn.dev/v1alpha1
kind: Removal
spec: {loadBalancers: [{name: web, vip: 10.0.0.100}]}
";
        assert_eq!(changed(all).unwrap(), [""; 0]);
    }

    #[test]
    fn a_change_has_no_other_documents() {
        let faults = changed("{apiVersion: uturn.dev/v1alpha1, kind: DataPlane}").unwrap_err();
        let message = "body:1:1: expected uturn.dev/v1alpha1 LoadBalancer or Removal, found \
             uturn.dev/v1alpha1 DataPlane";
        assert_eq!(faults, [message]);
        let text =
            "{apiVersion: uturn.dev/v1alpha1, kind: Removal, spec: {listeners: [{port: 1}]}}";
        assert_eq!(changed(text).unwrap_err().len(), 3);
        let unknown =
            text.replace("{port: 1}", "{port: 1, vip: 10.0.0.1, loadBalancer: a, protocol: UDP}");
        let message = "UDP:1 of a at 10.0.0.1 is to be removed, but does not exist";
        assert_eq!(changed(&unknown).unwrap_err(), [message]);
    }
}
