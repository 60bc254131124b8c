//! Application Gateways: their controllers make pods the targets of Ingresses.

use uturn_model::ingress::{IngressPath, PathKind};
use uturn_model::lb::{ListenerProtocol, Profile, Redirect, Statuses};
use uturn_model::network::Plugin;
use uturn_model::{Cluster, Family, Ingress, Port, Service, Text};

use crate::cloud::ingress_product::{IngressProduct, asking, with_stars};
use crate::cloud::product::Targets;
use crate::cloud::{
    Annotation, ClosedBy, HTTP, HTTPS, OpenEnd, Opening, RuleAction, ValueKind, WantedListener,
    WantedRule, rules,
};

pub(super) const NAME: &str = "Azure Application Gateway";
pub(super) const CONTAINERS: &str = "Azure Application Gateway for Containers";

/// The prefix of the annotations of the older Application Gateway.
pub(super) const PREFIX: &str = "appgw.ingress.kubernetes.io/";

/// The older Application Gateway, made by AGIC.
pub(super) struct ApplicationGateway;

impl IngressProduct for ApplicationGateway {
    fn name(&self) -> &'static str {
        NAME
    }

    /// Hosts with a certificate are served with HTTPS only, unless HTTP is redirected there.
    fn wanted<'i>(&self, ingress: &'i Ingress) -> Vec<WantedListener<'i>> {
        let stated = get(ingress, "override-frontend-port").and_then(|port| port.parse().ok());
        let has_tls = !ingress.tls.is_empty() || get(ingress, "appgw-ssl-certificate").is_some();
        let all = rules(ingress);
        let listener = |protocol, port: Port, rules| WantedListener { port, protocol, rules };
        if !has_tls {
            return vec![listener(ListenerProtocol::Http, stated.unwrap_or(HTTP), all)];
        }
        let port = stated.unwrap_or(HTTPS);
        let mut wanted = Vec::new();
        if get(ingress, "ssl-redirect") == Some("true") {
            let sent = all.iter().map(|rule| WantedRule {
                action: RuleAction::Redirect(to_tls(port)),
                ..rule.clone()
            });
            wanted.push(listener(ListenerProtocol::Http, HTTP, sent.collect()));
        }
        wanted.push(listener(ListenerProtocol::Https, port, all));
        wanted
    }

    /// `/` matches every path whatever its type; a prefix matches characters, not path elements.
    fn path(&self, path: &IngressPath) -> (Text, PathKind) {
        let loose = PathKind::ImplementationSpecific;
        let text = path.path.trim_end_matches('*');
        match path.kind {
            _ if matches!(&*path.path, "" | "/" | "/*") => ("/".into(), loose),
            PathKind::Exact => (text.into(), PathKind::Exact),
            PathKind::Prefix => (text.into(), loose),
            PathKind::ImplementationSpecific => with_stars(&path.path, false),
        }
    }

    fn profile(&self, _: &Ingress, family: Family) -> Profile {
        let mut profile = asking(NAME, family, (30, 30));
        // Paths without a rule also lead to a pool without targets.
        profile.statuses = Statuses { no_rule: 502, no_target: 502 };
        profile
    }

    fn targets(&self, _: &Cluster, _: &Ingress, _: &Service) -> Targets {
        Targets::Pods
    }

    /// The addresses of kubenet's pods are routed by the table of the nodes' subnet, which the gateway's
    /// subnet does not have by itself.
    fn open_end(&self, cluster: &Cluster, _: &Ingress) -> Option<OpenEnd> {
        let is_stated = cluster.nodes.values().any(|node| node.routed.is_some());
        (cluster.network.plugin.value == Plugin::Kubenet && !is_stated).then(|| OpenEnd {
            by: ClosedBy::Route,
            because: "its targets are pods of kubenet, whose addresses only the route table of the nodes' \
                      subnet knows, and the gateway is in a subnet of its own"
                .to_owned(),
            condition: "that route table is not associated with the gateway's subnet",
            answer: Some((502, 0)),
            opening: Opening::PodRoutes(
                "the nodes' route table associated with the gateway's subnet",
                "az network vnet subnet update --ids GATEWAY-SUBNET --route-table NODES-ROUTE-TABLE",
            ),
        })
    }

    fn is_private(&self, ingress: &Ingress) -> bool {
        get(ingress, "use-private-ip") == Some("true")
    }

    fn unread<'i>(&self, ingress: &'i Ingress) -> Option<&'i str> {
        ["waf-policy-for-path", "hostname-extension", "appgw-ssl-profile"]
            .into_iter()
            .find_map(|name| ingress.annotations.key_from(&format!("{PREFIX}{name}")))
    }
}

/// The newer Application Gateway, for containers.
pub(super) struct ForContainers;

impl IngressProduct for ForContainers {
    fn name(&self) -> &'static str {
        CONTAINERS
    }

    fn wanted<'i>(&self, ingress: &'i Ingress) -> Vec<WantedListener<'i>> {
        crate::cloud::plain_listeners(ingress)
    }

    fn path(&self, path: &IngressPath) -> (Text, PathKind) {
        (path.path.clone(), path.kind)
    }

    fn profile(&self, _: &Ingress, family: Family) -> Profile {
        let mut profile = asking(CONTAINERS, family, (5, 30));
        profile.assumption = Some(
            "it listens by HTTPS alone where there is TLS, and answers 503 without targets".into(),
        );
        profile
    }

    fn targets(&self, _: &Cluster, _: &Ingress, _: &Service) -> Targets {
        Targets::Pods
    }

    fn is_private(&self, _: &Ingress) -> bool {
        false
    }
}

fn get<'i>(ingress: &'i Ingress, key: &str) -> Option<&'i str> {
    ingress.annotations.get(&format!("{PREFIX}{key}")).map(str::trim)
}

fn to_tls(port: Port) -> Redirect {
    Redirect { code: 301, tls: true, host: None, port, path: None }
}

/// The annotations that are read, with the kinds of their values.
pub(super) const READ: &[Annotation] = &[
    Annotation::below(PREFIX, "appgw-ssl-certificate", ValueKind::Names),
    Annotation::below(PREFIX, "appgw-ssl-profile", ValueKind::Names),
    Annotation::below(PREFIX, "hostname-extension", ValueKind::Names),
    Annotation::below(PREFIX, "override-frontend-port", ValueKind::Names),
    Annotation::below(PREFIX, "ssl-redirect", ValueKind::Switch),
    Annotation::below(PREFIX, "use-private-ip", ValueKind::Switch),
    Annotation::below(PREFIX, "waf-policy-for-path", ValueKind::Names),
];
