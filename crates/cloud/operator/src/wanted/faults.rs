//! Checks of objects for errors, with the documented codes.

use uturn_clouds::cloud::Owner;
use uturn_clouds::cloud::tke::annotations as keys;
use uturn_model::ingress::{Backend, BackendPort};
use uturn_model::service::ServiceKind;
use uturn_model::{Ingress, NamespacedName, Service};

use super::Maker;
use crate::event::Event;

/// The endings of the names of configurations that the controllers make.
const RESERVED: [&str; 2] = ["-auto-service-config", "-auto-ingress-config"];

impl Maker<'_> {
    /// Returns whether an object's request can be fulfilled. Errors become events, also if it can.
    pub(super) fn is_acceptable(&mut self, owner: Owner<'_>) -> bool {
        let has_config = self.check_config(owner);
        match owner {
            Owner::Service(service) => {
                let is_direct = service.annotations.is(keys::DIRECT_ACCESS, "true");
                if is_direct && !self.has_pods(service) {
                    let message = "pods are to be its targets, and it selects none";
                    self.events.push(Event::new(&owner.object(), "E4033", message));
                }
                true
            }
            Owner::Ingress(ingress) => {
                let is_readable = self.check_annotations(ingress) && self.check_values(ingress);
                self.check_backends(ingress);
                has_config && is_readable
            }
        }
    }

    /// Returns whether a Service selects pods, or has endpoints that are managed otherwise.
    fn has_pods(&self, service: &Service) -> bool {
        service.selector.is_some() || !self.cluster.slices(&service.name).is_empty()
    }

    /// Returns whether the values of annotations have their documented form.
    fn check_values(&mut self, ingress: &Ingress) -> bool {
        let written = |key: &str| ingress.annotations.get(key).filter(|value| !value.is_empty());
        let is_word = |value: &str| matches!(value, "true" | "false");
        let is_id = |value: &str| {
            let letters = value.strip_prefix("lb-").unwrap_or_default();
            letters.len() == 8 && letters.bytes().all(|byte| byte.is_ascii_alphanumeric())
        };
        let direct = written(keys::INGRESS_DIRECT_ACCESS).filter(|value| !is_word(value));
        let existing = written(keys::INGRESS_EXISTING).filter(|value| !is_id(value));
        let mut faults = Vec::new();
        if let Some(value) = direct {
            let key = keys::INGRESS_DIRECT_ACCESS;
            faults.push(("E4037", format!("{key} is {value}, neither true nor false")));
        }
        if let Some(value) = existing {
            faults.push(("E4098", format!("{value} is not the id of a load balancer")));
        }
        let is_right = faults.is_empty();
        let object = ingress.object();
        let events = faults.into_iter().map(|(code, message)| Event::new(&object, code, message));
        self.events.extend(events);
        is_right
    }

    /// Returns whether the configuration that an object names exists. A Service without it is
    /// served as if it named none.
    fn check_config(&mut self, owner: Owner<'_>) -> bool {
        let (named, auto, is_missing) = match owner {
            Owner::Service(_) => (keys::CONFIG, keys::CONFIG_AUTO, "E4026"),
            Owner::Ingress(_) => (keys::INGRESS_CONFIG, keys::INGRESS_CONFIG_AUTO, "E4043"),
        };
        let is_ingress = matches!(owner, Owner::Ingress(_));
        let written = owner.annotations();
        let is_auto = match written.get(auto) {
            None | Some("false") => false,
            Some("true") => true,
            Some(other) => {
                if is_ingress {
                    let message = format!("{auto} is {other}, neither true nor false");
                    self.events.push(Event::new(&owner.object(), "E4050", message));
                    return false;
                }
                false
            }
        };
        let Some(name) = written.get(named).filter(|_| !is_auto) else { return true };
        if is_ingress && RESERVED.iter().any(|ending| name.ends_with(ending)) {
            let message = format!("the name {name} is reserved for configurations made by {auto}");
            self.events.push(Event::new(&owner.object(), "E4051", message));
            return false;
        }
        let full = NamespacedName::new(owner.name().namespace.as_str(), name);
        if full.is_ok_and(|name| self.cluster.listener_overrides.contains_key(&name)) {
            return true;
        }
        let message = format!("there is no TkeServiceConfig {name}");
        self.events.push(Event::new(&owner.object(), is_missing, message));
        false
    }

    fn check_annotations(&mut self, ingress: &Ingress) -> bool {
        let unreadable = self.model.unreadable(ingress);
        for (key, expected) in &unreadable {
            let code = match *key {
                keys::HTTP_RULES => "E4022",
                keys::HTTPS_RULES => "E4023",
                _ => "E4044",
            };
            let message = format!("the annotation {key} cannot be read: expected {expected}");
            self.events.push(Event::new(&ingress.object(), code, message));
        }
        unreadable.is_empty()
    }

    fn check_backends(&mut self, ingress: &Ingress) {
        let of_rules = ingress.rules.iter().flat_map(|rule| &rule.paths).map(|path| &path.backend);
        let backends: Vec<&Backend> = of_rules.chain(&ingress.default_backend).collect();
        let object = ingress.object();
        if backends.is_empty() {
            self.events.push(Event::new(&object, "E4013", "there are no rules"));
        }
        for backend in backends {
            let Backend::Service { name, port } = backend else { continue };
            let full =
                NamespacedName { namespace: ingress.name.namespace.clone(), name: name.clone() };
            let Some(service) = self.cluster.services.get(&full) else {
                let message = format!("there is no Service {full}");
                self.events.push(Event::new(&object, "W1000", message));
                continue;
            };
            let has_port = service.ports.iter().any(|own| match port {
                BackendPort::Number(number) => own.port == *number,
                BackendPort::Name(name) => own.name.as_ref() == Some(name),
            });
            let is_direct = ingress.annotations.is(keys::INGRESS_DIRECT_ACCESS, "true")
                || service.annotations.is(keys::DIRECT_ACCESS, "true");
            let has_node_port =
                matches!(service.kind, ServiceKind::NodePort | ServiceKind::LoadBalancer);
            if !has_port {
                let message = format!("the Service {full} has no such port");
                self.events.push(Event::new(&object, "E4042", message));
            } else if is_direct && !self.has_pods(service) {
                let message =
                    format!("pods are to be targets, and the Service {full} selects none");
                self.events.push(Event::new(&object, "E4082", message));
            } else if !is_direct && !has_node_port {
                let message = format!("the Service {full} has no NodePort");
                self.events.push(Event::new(&object, "E4047", message));
            }
        }
    }
}
