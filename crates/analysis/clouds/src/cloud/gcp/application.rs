//! Application load balancers, external and internal, which Google's controller makes for Ingresses.

use std::collections::BTreeMap;

use uturn_model::ingress::{IngressPath, PathKind};
use uturn_model::lb::{BehaviourAssumption, ListenerProtocol, Profile, Statuses};
use uturn_model::{Cluster, Family, Ingress, Service, Text};

use crate::cloud::ingress_product::{IngressProduct, asking, with_stars};
use crate::cloud::product::Targets;
use crate::cloud::{
    Annotation, AskedPage, HTTP, HTTPS, NewObject, NewValue, OtherCheck, ValueKind, WantedListener,
    rules,
};

pub(super) const EXTERNAL: &str = "Google Cloud application load balancer";
pub(super) const INTERNAL: &str = "Google Cloud internal application load balancer";

/// The annotation that states which of a Service's pods form a group of targets.
const NEG: &str = "cloud.google.com/neg";
const ALLOW_HTTP: &str = "kubernetes.io/ingress.allow-http";
/// The annotation with the name of an object that may redirect HTTP.
const FRONTEND: &str = "networking.gke.io/v1beta1.FrontendConfig";
/// The annotations with certificates other than the Secrets of `spec.tls`.
const CERTIFICATES: [&str; 2] =
    ["networking.gke.io/managed-certificates", "ingress.gcp.kubernetes.io/pre-shared-cert"];

/// Application load balancers.
pub(super) struct Application {
    pub(super) name: &'static str,
}

impl Application {
    fn is_internal(&self) -> bool {
        self.name == INTERNAL
    }
}

impl IngressProduct for Application {
    fn name(&self) -> &'static str {
        self.name
    }

    fn wanted<'i>(&self, ingress: &'i Ingress) -> Vec<WantedListener<'i>> {
        let mut certificates = CERTIFICATES.iter().filter_map(|key| ingress.annotations.get(key));
        let has_tls = !ingress.tls.is_empty() || certificates.any(|names| !names.trim().is_empty());
        let has_http = !ingress.annotations.is(ALLOW_HTTP, "false");
        let listener = |port, protocol| WantedListener { port, protocol, rules: rules(ingress) };
        let http = has_http.then(|| listener(HTTP, ListenerProtocol::Http));
        let https = has_tls.then(|| listener(HTTPS, ListenerProtocol::Https));
        http.into_iter().chain(https).collect()
    }

    fn path(&self, path: &IngressPath) -> (Text, PathKind) {
        match path.kind {
            PathKind::ImplementationSpecific if path.path.is_empty() => ("/".into(), path.kind),
            PathKind::ImplementationSpecific => with_stars(&path.path, false),
            kind => (path.path.clone(), kind),
        }
    }

    fn profile(&self, ingress: &Ingress, family: Family) -> Profile {
        let mut profile = asking(self.name, family, (15, 15));
        profile.statuses =
            Statuses { no_rule: 404, no_target: if self.is_internal() { 503 } else { 502 } };
        if ingress.annotations.get(FRONTEND).is_some() {
            profile.assumption =
                Some("it serves by HTTP what it serves by HTTPS: its FrontendConfig, which may redirect, is not read".into());
        } else if ingress.route.is_some() {
            profile.assumption = Some(BehaviourAssumption {
                assumed: "servers answer its health checks with 200".into(),
                because: "those of a Gateway ask for /, unless a HealthCheckPolicy of the Service names another page, which is not read".into(),
                settle: "look at the health of the backend services, and at HealthCheckPolicies".into(),
            });
        }
        profile
    }

    /// Pods are the targets if a group of them is asked for, which clusters whose pods have
    /// addresses of the network do by default; otherwise all nodes are.
    fn targets(&self, _: &Cluster, _: &Ingress, service: &Service) -> Targets {
        let asked = service.annotations.get(NEG).map(has_group_for_ingress);
        let has_node_ports = service.ports.iter().any(|port| port.node_port.is_some());
        match asked {
            _ if self.is_internal() => Targets::Pods,
            Some(true) => Targets::Pods,
            Some(false) => Targets::Nodes,
            None if has_node_ports => Targets::Nodes,
            None => Targets::Pods,
        }
    }

    fn reported_unhealthy(&self, ingress: &Ingress) -> (Vec<String>, bool) {
        let text = ingress.annotations.get(STATES).unwrap_or_default();
        let states: BTreeMap<String, String> = serde_json::from_str(text).unwrap_or_default();
        let all = states.len();
        let unhealthy = states.into_iter().filter(|(_, state)| state == UNHEALTHY);
        let unhealthy: Vec<String> = unhealthy.map(|(backend, _)| backend).collect();
        let are_all = unhealthy.len() == all;
        (unhealthy, are_all)
    }

    fn other_check(&self, ingress: &Ingress, path: &str) -> Option<OtherCheck> {
        let name = format!("{}-check", ingress.name.name);
        let text = ingress.annotations.get(STATES).unwrap_or_default();
        let states: BTreeMap<String, String> = serde_json::from_str(text).ok()?;
        let healthy: BTreeMap<String, &str> =
            states.into_keys().map(|backend| (backend, HEALTHY)).collect();
        let check = vec![
            ("type", NewValue::Text("HTTP".to_owned())),
            ("requestPath", NewValue::Text(path.to_owned())),
        ];
        Some(OtherCheck {
            annotation: (CONFIG, format!(r#"{{"default": "{name}"}}"#)),
            report: (STATES, serde_json::to_string(&healthy).ok()?),
            object: NewObject {
                version: "cloud.google.com/v1",
                kind: "BackendConfig",
                namespace: Some(ingress.name.namespace.clone()),
                name,
                spec: vec![("healthCheck", NewValue::Fields(check))],
            },
        })
    }

    /// Routes of Gateways have no other way to name a page than a policy of the Service. Which Service a
    /// policy is for is not read.
    fn page_asked(
        &self,
        cluster: &Cluster,
        ingress: &Ingress,
        service: &Service,
    ) -> Option<AskedPage> {
        let has_policies = cluster.skipped.iter().any(|own| own.kind.ends_with(POLICY));
        (ingress.route.is_some() && !has_policies).then(|| AskedPage {
            path: "/",
            because: format!(
                "health checks of a Gateway ask {} for /, whatever its probes ask, unless a {POLICY} names \
                 another page",
                service.object()
            ),
            kind: POLICY,
            status: 503,
        })
    }

    fn asks_for(&self, service: &Service, path: &str) -> Option<NewObject> {
        let text = |text: &str| NewValue::Text(text.to_owned());
        let page = NewValue::Fields(vec![("requestPath", text(path))]);
        let config = NewValue::Fields(vec![("type", text("HTTP")), ("httpHealthCheck", page)]);
        let target = vec![
            ("group", text("")),
            ("kind", text("Service")),
            ("name", text(service.name.name.as_str())),
        ];
        Some(NewObject {
            version: "networking.gke.io/v1",
            kind: POLICY,
            namespace: Some(service.name.namespace.clone()),
            name: service.name.name.to_string(),
            spec: vec![
                ("default", NewValue::Fields(vec![("config", config)])),
                ("targetRef", NewValue::Fields(target)),
            ],
        })
    }

    fn is_private(&self, _: &Ingress) -> bool {
        self.is_internal()
    }
}

/// The objects with which Services behind a Gateway name the page of their health checks.
const POLICY: &str = "HealthCheckPolicy";

/// Returns whether the annotation asks for a group of pods for Ingresses: `{"ingress": true}`.
fn has_group_for_ingress(text: &str) -> bool {
    let asked: Option<serde_json::Value> = serde_json::from_str(text).ok();
    asked.and_then(|asked| asked.get("ingress")?.as_bool()).unwrap_or(false)
}

/// The annotation in which the controller reports the health of each backend.
const STATES: &str = "ingress.kubernetes.io/backends";
const UNHEALTHY: &str = "UNHEALTHY";
const HEALTHY: &str = "HEALTHY";
/// The annotation with the name of the object that states health checks of a Service.
const CONFIG: &str = "cloud.google.com/backend-config";

/// The annotations that are read, with the kinds of their values.
pub(super) const READ: &[Annotation] = &[
    Annotation::new(
        STATES,
        ValueKind::Document { fields: &[], words: &[HEALTHY, UNHEALTHY, "Unknown"] },
    ),
    Annotation::new(NEG, ValueKind::Document { fields: &["ingress", "exposed_ports"], words: &[] }),
    Annotation::new(ALLOW_HTTP, ValueKind::Switch),
    Annotation::new(FRONTEND, ValueKind::Names),
    Annotation::new(CERTIFICATES[0], ValueKind::Names),
    Annotation::new(CERTIFICATES[1], ValueKind::Names),
];
