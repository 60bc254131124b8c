//! What clients meet behind load balancers that clouds make for Ingresses, from manifests to
//! outcomes.

#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]

use std::fmt::Write as _;

use uturn_model::{Cluster, Flow, Outcome, Protocol, Verdict};
use uturn_path::Engine;
use uturn_snapshot::Source;
use uturn_testing::manifests::{ReadyNode, RunningPod};

/// Three nodes with a client each; a server on the first, behind a Service and an Ingress.
struct Case {
    provider_id: &'static str,
    /// The Ingress: its class as a field, and annotations.
    class: &'static str,
    notes: &'static str,
    tls: &'static str,
    paths: &'static str,
    status: &'static str,
    /// The Service: its type, its policy, and annotations.
    service: &'static str,
    policy: &'static str,
    service_notes: &'static str,
    /// Whether the server is ready.
    ready: &'static str,
    /// More objects.
    more: &'static str,
}

const PATHS: &str =
    "{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}";

const ALB: Case = Case {
    provider_id: "aws:///a/i-",
    class: "ingressClassName: alb,",
    notes: "",
    tls: "",
    paths: PATHS,
    status: "hostname: internal-k8s-shop-web-0a1b-123.eu-west-1.elb.amazonaws.com",
    service: "NodePort",
    policy: "Cluster",
    service_notes: "",
    ready: "True",
    more: "",
};

const AZURE: Case = Case {
    provider_id: "azure:///subscriptions/s/vm-",
    class: "ingressClassName: azure-application-gateway,",
    status: "ip: 203.0.113.20",
    service: "ClusterIP",
    ..ALB
};

const GOOGLE: Case =
    Case { provider_id: "gce://project/zone-a/vm-", class: "", status: "ip: 203.0.113.30", ..ALB };

impl Case {
    fn cluster(&self) -> Cluster {
        let mut text = String::from(
            "apiVersion: uturn.dev/v1alpha1\nkind: Facts\nspec:\n  network: {mode: vpc-cni, \
             podCIDRs: [10.0.0.0/16], vpcCIDRs: [10.0.0.0/16], serviceCIDRs: [172.20.0.0/16]}\n  \
             kubeProxy: {mode: iptables, version: v1.34.4}\n",
        );
        for node in 1..=3 {
            let node_object = ReadyNode {
                number: node,
                address: &format!("10.0.0.{node}"),
                spec: &format!("providerID: '{}{node}'", self.provider_id),
                ..ReadyNode::default()
            };
            text += &node_object.to_string();
            text += &pod(&format!("client-{node}"), "client", node, 100 + node, false, "True");
            text += &pod(&format!("host-{node}"), "host", node, node, true, "True");
        }
        text += &pod("web-1", "web", 1, 50, false, self.ready);
        let node_port = if self.service == "ClusterIP" { "" } else { ", nodePort: 30080" };
        let policy = match self.service {
            "ClusterIP" => String::new(),
            _ => format!("externalTrafficPolicy: {}, ", self.policy),
        };
        let _ = write!(
            text,
            "---\n{{apiVersion: v1, kind: Service, metadata: {{name: web, namespace: shop, \
             annotations: {{{}}}}}, spec: {{type: {}, clusterIP: 172.20.0.10, {policy}\
             selector: {{app: web}}, ports: [{{port: 80, targetPort: 8080{node_port}}}]}}}}\n\
             ---\n{{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {{name: web, \
             namespace: shop, annotations: {{{}}}}}, spec: {{{}{} rules: [{{host: shop.example.com, \
             http: {{paths: [{}]}}}}]}}, status: {{loadBalancer: {{ingress: [{{{}}}]}}}}}}\n",
            self.service_notes,
            self.service,
            self.notes,
            self.class,
            self.tls,
            self.paths,
            self.status
        );
        text += self.more;
        let source = Source { name: "cluster.yaml".into(), text };
        uturn_snapshot::read(vec![source]).unwrap().cluster
    }

    /// How a call ends: each outcome with its share.
    fn call(&self, from: &str, to: &str) -> Vec<String> {
        let cluster = self.cluster();
        let engine = Engine::new(&cluster).unwrap();
        ends(&call(&engine, from, to))
    }
}

fn call(engine: &Engine<'_>, from: &str, to: &str) -> Verdict {
    let from = match from {
        "outside" => from.to_owned(),
        pod => format!("pod/shop/{pod}"),
    };
    let flow =
        Flow { from: from.parse().unwrap(), to: to.parse().unwrap(), protocol: Protocol::Tcp };
    engine.verdict(&flow).unwrap()
}

fn ends(verdict: &Verdict) -> Vec<String> {
    let shown = |(end, share): &(Outcome, uturn_model::Share)| match (share.get() * 100.0).round() {
        100.0 => end.to_string(),
        percent => format!("{percent} % {end}"),
    };
    verdict.outcomes.iter().map(shown).collect()
}

fn pod(name: &str, app: &str, node: u32, host: u32, host_network: bool, ready: &str) -> String {
    let address = &*format!("10.0.0.{host}");
    RunningPod { name, app, node, address, host_network, ready, ..RunningPod::default() }
        .to_string()
}

const ANSWERED: &[&str] = &["answered at once"];
const CLIENTS: [&str; 4] = ["client-1", "host-1", "host-3", "web-1"];

#[test]
fn clients_on_every_node_are_answered_by_name_and_by_object() {
    for case in [ALB, AZURE, GOOGLE] {
        for client in CLIENTS {
            for to in ["http://shop.example.com/", "ingress/shop/web"] {
                assert_eq!(case.call(client, to), ANSWERED, "{client} {to} {}", case.provider_id);
            }
        }
    }
    for case in [AZURE, GOOGLE] {
        assert_eq!(case.call("outside", "http://shop.example.com/"), ANSWERED);
    }
    let facing = Case { notes: "alb.ingress.kubernetes.io/scheme: internet-facing", ..ALB };
    assert_eq!(facing.call("outside", "http://shop.example.com/"), ANSWERED);
}

#[test]
fn an_address_or_a_name_of_the_status_is_called_too() {
    assert_eq!(GOOGLE.call("client-2", "203.0.113.30:80"), ["404 at once"]);
    let name = "internal-k8s-shop-web-0a1b-123.eu-west-1.elb.amazonaws.com";
    assert_eq!(ALB.call("client-2", &format!("http://{name}/")), ["404 at once"]);
    assert_eq!(ALB.call("client-2", &format!("{name}:443")), ["refused"]);
}

#[test]
fn targets_are_nodes_or_pods() {
    let is_pods = |case: &Case| {
        let cluster = case.cluster();
        let engine = Engine::new(&cluster).unwrap();
        let targets = &engine.balancers()[0].listeners[0].rules[0].targets;
        (targets.len(), targets[0].address.to_string())
    };
    let nodes = (3, "10.0.0.1:30080".to_owned());
    let pods = (1, "10.0.0.50:8080".to_owned());
    assert_eq!(is_pods(&ALB), nodes);
    let ip = "alb.ingress.kubernetes.io/target-type: ip";
    assert_eq!(is_pods(&Case { notes: ip, ..ALB }), pods);
    assert_eq!(is_pods(&Case { service_notes: ip, ..ALB }), pods);
    assert_eq!(is_pods(&Case { service: "ClusterIP", ..ALB }), pods, "only pods can be");
    assert_eq!(is_pods(&AZURE), pods);
    assert_eq!(is_pods(&GOOGLE), nodes);
    let group = r#"cloud.google.com/neg: '{"ingress": true}'"#;
    assert_eq!(is_pods(&Case { service_notes: group, ..GOOGLE }), pods);
    let internal = "kubernetes.io/ingress.class: gce-internal";
    let status = "ip: 10.0.9.9";
    assert_eq!(is_pods(&Case { notes: internal, status, ..GOOGLE }), pods);
}

/// What the parameters of a class say holds for its Ingresses, whatever annotations say.
#[test]
fn the_parameters_of_a_class_win_over_annotations() {
    let more = "---
{apiVersion: networking.k8s.io/v1, kind: IngressClass, metadata: {name: alb}, spec: {controller: \
         ingress.k8s.aws/alb, parameters: {apiGroup: elbv2.k8s.aws, kind: IngressClassParams, name: shared}}}
---
{apiVersion: elbv2.k8s.aws/v1beta1, kind: IngressClassParams, metadata: {name: shared}, spec: {scheme: \
         internet-facing, targetType: ip, certificateArn: ['arn:aws:acm:eu-west-1:1:c/1'], group: {name: a}}}
";
    let instance = "alb.ingress.kubernetes.io/target-type: instance";
    let case = Case { notes: instance, service_notes: instance, more, ..ALB };
    let shown = |case: &Case| {
        let cluster = case.cluster();
        let engine = Engine::new(&cluster).unwrap();
        let balancer = &engine.balancers()[0];
        let listener = &balancer.listeners[0];
        let target = listener.rules[0].targets[0].address.port();
        let supposed: Vec<String> = cluster.supposed.iter().map(ToString::to_string).collect();
        (format!("{:?}", balancer.scope), listener.port.number(), target, supposed.join("\n"))
    };
    let (scope, port, target, supposed) = shown(&case);
    assert_eq!((&*scope, port, target), ("Public", 443, 8080));
    assert!(!supposed.contains("IngressClassParams"), "{supposed}");
    let (class, _) = more.rsplit_once("---").unwrap();
    let (scope, port, target, supposed) = shown(&Case { more: class, ..case });
    assert_eq!((&*scope, port, target), ("Private", 80, 30080));
    assert!(supposed.contains("names IngressClassParams shared, which is not given"), "{supposed}");
    // Of the service of the vendor's own, with another group.
    let own = more.replace("elbv2.k8s.aws", "eks.amazonaws.com").replace("/v1beta1", "/v1");
    let (scope, ..) = shown(&Case { more: own.leak(), ..ALB });
    assert_eq!(scope, "Public");
}

#[test]
fn under_policy_local_only_nodes_with_a_pod_are_asked() {
    for case in [ALB, GOOGLE] {
        let case = Case { policy: "Local", ..case };
        let cluster = case.cluster();
        let engine = Engine::new(&cluster).unwrap();
        let vip = engine.balancers()[0].vip;
        let health = engine.health((vip, 80).into(), Protocol::Tcp).unwrap().unwrap();
        let alive: Vec<bool> = health.iter().map(|target| target.alive).collect();
        assert_eq!(alive, [true, false, false]);
        for client in CLIENTS {
            assert_eq!(case.call(client, "http://shop.example.com/"), ANSWERED, "{client}");
        }
    }
}

#[test]
fn without_a_pod_each_product_has_a_status_of_its_own() {
    let to = "http://shop.example.com/";
    let ip = "alb.ingress.kubernetes.io/target-type: ip";
    assert_eq!(Case { ready: "False", notes: ip, ..ALB }.call("client-2", to), ["503 at once"]);
    assert_eq!(Case { ready: "False", ..AZURE }.call("client-2", to), ["502 at once"]);
    assert_eq!(Case { ready: "False", ..GOOGLE }.call("client-2", to), ["502 at once"]);
    // Nodes refuse for the Service; all are asked where none is healthy.
    assert_eq!(Case { ready: "False", ..ALB }.call("client-2", to), ["502 at once"]);
}

#[test]
fn listeners_and_redirects_follow_annotations() {
    let both = "alb.ingress.kubernetes.io/listen-ports: '[{\"HTTP\": 80}, {\"HTTPS\": 443}]', \
                alb.ingress.kubernetes.io/ssl-redirect: '443'";
    let case = Case { notes: both, ..ALB };
    assert_eq!(case.call("client-2", "http://shop.example.com/"), ANSWERED, "by way of https");
    assert_eq!(case.call("client-2", "https://shop.example.com/"), ANSWERED);
    let certificate = "alb.ingress.kubernetes.io/certificate-arn: arn:aws:acm:eu-west-1:1:c/1";
    let case = Case { notes: certificate, ..ALB };
    assert_eq!(case.call("client-2", "http://shop.example.com/"), ["refused"]);
    assert_eq!(case.call("client-2", "https://shop.example.com/"), ANSWERED);
    assert_eq!(case.call("client-2", "ingress/shop/web"), ANSWERED);
    let tls = "tls: [{hosts: [shop.example.com], secretName: web}],";
    assert_eq!(Case { tls, ..ALB }.call("client-2", "https://shop.example.com/"), ["refused"]);
    assert_eq!(Case { tls, ..AZURE }.call("client-2", "http://shop.example.com/"), ["refused"]);
    let redirect = "appgw.ingress.kubernetes.io/ssl-redirect: 'true'";
    let case = Case { tls, notes: redirect, ..AZURE };
    assert_eq!(case.call("client-2", "http://shop.example.com/"), ANSWERED);
    for scheme in ["http", "https"] {
        let to = format!("{scheme}://shop.example.com/");
        assert_eq!(Case { tls, ..GOOGLE }.call("client-2", &to), ANSWERED);
    }
    let no_http = "kubernetes.io/ingress.allow-http: 'false'";
    let case = Case { tls, notes: no_http, ..GOOGLE };
    assert_eq!(case.call("client-2", "http://shop.example.com/"), ["refused"]);
}

#[test]
fn an_action_that_redirects_is_read() {
    let notes = "alb.ingress.kubernetes.io/listen-ports: '[{\"HTTP\": 80}, {\"HTTPS\": 443}]', \
        alb.ingress.kubernetes.io/actions.to-tls: '{\"Type\": \"redirect\", \"RedirectConfig\": \
        {\"Protocol\": \"HTTPS\", \"Port\": \"443\", \"StatusCode\": \"HTTP_301\"}}'";
    let paths = "{path: /*, pathType: ImplementationSpecific, backend: {service: {name: to-tls, \
        port: {name: use-annotation}}}}, {path: /*, pathType: ImplementationSpecific, backend: \
        {service: {name: web, port: {number: 80}}}}";
    let case = Case { notes, paths, ..ALB };
    assert!(case.cluster().unjudged.is_empty());
    assert_eq!(case.call("client-2", "http://shop.example.com/a"), ANSWERED);
    let cluster = case.cluster();
    let engine = Engine::new(&cluster).unwrap();
    let listener = &engine.balancers()[0].listeners[0];
    assert!(listener.rules[0].redirect.is_some(), "{listener:?}");
}

#[test]
fn what_decides_and_is_not_modelled_keeps_it_from_being_judged() {
    let notes = "alb.ingress.kubernetes.io/auth-type: oidc";
    let case = Case { notes, ..ALB };
    assert_eq!(case.call("client-2", "http://shop.example.com/"), ["not known"]);
    let because = &case.cluster().unjudged[0].because;
    assert!(because.contains("alb.ingress.kubernetes.io/auth-type"), "{because}");
}

#[test]
fn paths_are_read_as_each_controller_does() {
    let loose = "{path: /a/*, pathType: ImplementationSpecific, backend: {service: {name: web, port: \
                 {number: 80}}}}";
    for case in [ALB, GOOGLE, AZURE] {
        let case = Case { paths: loose, ..case };
        assert_eq!(case.call("client-2", "http://shop.example.com/a/b"), ANSWERED);
        let none =
            if case.provider_id.starts_with("azure") { "502 at once" } else { "404 at once" };
        assert_eq!(case.call("client-2", "http://shop.example.com/b"), [none]);
    }
    let bare = "{path: /, pathType: ImplementationSpecific, backend: {service: {name: web, port: \
                {number: 80}}}}";
    for (case, end) in [(ALB, "404 at once"), (GOOGLE, "404 at once"), (AZURE, ANSWERED[0])] {
        let case = Case { paths: bare, ..case };
        assert_eq!(case.call("client-2", "http://shop.example.com/a"), [end]);
        assert_eq!(case.call("client-2", "http://shop.example.com/"), ANSWERED);
    }
}
