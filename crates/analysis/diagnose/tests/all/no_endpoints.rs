//! A Service without endpoints: why, how severe it is, and the edit after which it has some.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use uturn_diagnose::cure::{self, Case, Cure, TrialBase};
use uturn_diagnose::{Finding, Severity, diagnose};
use uturn_model::{Flow, Protocol};
use uturn_path::Engine;
use uturn_scan::{FewCalls, Scanner};
use uturn_snapshot::{Manifests, Source};
use uturn_testing::manifests::node;

/// What a cluster has beside two nodes and a client.
struct Shop {
    /// The selector of Service web.
    selector: &'static str,
    /// The labels of the pods of Deployment web-api.
    labels: &'static str,
    /// The `ports` of their container.
    ports: &'static str,
    /// The Service's target port.
    target: &'static str,
    is_ready: bool,
    /// The endpoints and ports of its EndpointSlice.
    slice: &'static str,
    /// Other objects.
    more: &'static str,
}

const EMPTY: &str = "ports: []\nendpoints: []";

impl Default for Shop {
    fn default() -> Self {
        Self {
            selector: "{app: web}",
            labels: "{id: one, app: web}",
            ports: "[{name: http, containerPort: 8080}]",
            target: "8080",
            is_ready: true,
            slice: EMPTY,
            more: "",
        }
    }
}

impl Shop {
    fn manifests(&self) -> Manifests {
        let Self { selector, labels, ports, target, is_ready, slice, more } = self;
        let ready = if *is_ready { "True" } else { "False" };
        let own_labels = labels.replace('}', ", pod-template-hash: x}");
        let container = format!(
            "{{name: c, image: c, ports: {ports}, readinessProbe: {{httpGet: {{path: /ready, port: 8080}}}}}}"
        );
        let text = format!(
            "---
apiVersion: v1
kind: Service
metadata: {{name: web, namespace: shop}}
spec:
  clusterIP: 172.16.0.10
  selector: {selector}
  ports:
  - {{port: 80, targetPort: {target}}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{name: web-x, namespace: shop, labels: {{kubernetes.io/service-name: web}}}}
addressType: IPv4
{slice}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web-api, namespace: shop}}
spec:
  selector: {{matchLabels: {{id: one}}}}
  template:
    metadata:
      labels: {labels}
    spec: {{containers: [{container}]}}
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {{name: web-api-1, namespace: shop, ownerReferences: [{{apiVersion: apps/v1, kind: Deployment, name: web-api, controller: true}}]}}
spec:
  selector: {{matchLabels: {{id: one}}}}
  template: {{metadata: {{labels: {own_labels}}}, spec: {{containers: [{container}]}}}}
---
apiVersion: v1
kind: Pod
metadata:
  name: web-api-1-1
  namespace: shop
  labels: {own_labels}
  ownerReferences: [{{apiVersion: apps/v1, kind: ReplicaSet, name: web-api-1, controller: true}}]
spec: {{nodeName: n1, containers: [{container}]}}
status: {{phase: Running, podIP: 10.1.1.20, conditions: [{{type: Ready, status: \"{ready}\"}}]}}
---
apiVersion: v1
kind: Pod
metadata: {{name: client, namespace: shop, labels: {{app: client}}}}
spec: {{nodeName: n2, containers: [{{name: c, image: c}}]}}
status: {{phase: Running, podIP: 10.1.2.10, conditions: [{{type: Ready, status: \"True\"}}]}}
{more}"
        );
        let text = [text, node(1), node(2)].concat();
        Manifests::of(vec![Source { name: "shop.yaml".into(), text }]).complete_if(true)
    }

    /// Returns the finding about Service web with the words that explain it first.
    fn found(&self) -> (Finding, String) {
        let manifests = self.manifests();
        let cluster = manifests.cluster().unwrap();
        let engine = Engine::new(&cluster).unwrap();
        let scanner = Scanner::new(&engine);
        let found = diagnose(&scanner, &scanner.scan(&scanner.targets()).unwrap()).unwrap();
        let is_own = |finding: &&Finding| finding.subject.short() == "svc/shop/web";
        let own = found.into_iter().find(|finding| is_own(&finding)).unwrap();
        let first = own.evidence(&scanner).unwrap().remove(0).what.to_string();
        (own, first)
    }

    fn cures(&self) -> Vec<Cure> {
        let manifests = self.manifests();
        let cluster = manifests.cluster().unwrap();
        let engine = Engine::new(&cluster).unwrap();
        let flow = Flow {
            from: "pod/shop/client".parse().unwrap(),
            to: "svc/shop/web:80".parse().unwrap(),
            protocol: Protocol::Tcp,
        };
        let case = Case::flow(&manifests, &FewCalls::new(&engine), flow).unwrap();
        cure::cures(&TrialBase::new(&manifests, &engine), &case)
    }

    /// Returns the lines that the first cure changes, after which all calls are answered.
    fn first_cure(&self) -> Vec<String> {
        let cures = self.cures();
        let first = cures.iter().find(|cure| cure.is_offered());
        let first = first.unwrap_or_else(|| panic!("nothing is offered: {cures:#?}"));
        assert!(first.after.as_ref().unwrap().is_fine());
        let lines = first.diffs[0].lines().skip(2).filter(|line| line.starts_with(['+', '-']));
        lines.map(str::to_owned).collect()
    }
}

#[test]
fn a_label_under_another_key_is_named_and_mended() {
    let shop = Shop {
        selector: "{component: controller, app: web}",
        labels: "{id: one, app: web, example.com/component: controller}",
        ..Shop::default()
    };
    let (finding, first) = shop.found();
    assert_eq!(finding.code.as_str(), "UT311");
    assert_eq!(finding.severity, Severity::Error);
    assert_eq!(
        first,
        "Deployment shop/web-api would fit its selector but for component: controller (it has \
         example.com/component: controller); its selector app=web,component=controller matches none \
         of the 2 pods of namespace shop"
    );
    assert_eq!(
        shop.first_cure(),
        [
            "-  selector: {component: controller, app: web}",
            "+  selector: {app: web, example.com/component: controller}",
        ]
    );
}

#[test]
fn another_value_of_a_name_is_named_and_mended() {
    let shop = Shop { labels: "{id: one, app: web-api}", ..Shop::default() };
    let (finding, first) = shop.found();
    assert_eq!(finding.severity, Severity::Error);
    assert!(first.contains("but for app: web (it has app: web-api);"), "{first}");
    assert_eq!(shop.first_cure(), ["-  selector: {app: web}", "+  selector: {app: web-api}"]);
}

/// The label of a leader or of the other colour is set while the program runs: no accusation.
#[test]
fn a_role_that_no_pod_has_yet_is_a_warning() {
    for selector in ["{app: web, role: leader}", "{app: web, track: canary}"] {
        let shop =
            Shop { selector, labels: "{id: one, app: web, track: stable}", ..Shop::default() };
        let (finding, first) = shop.found();
        assert_eq!(finding.severity, Severity::Warning, "{selector}");
        assert!(first.ends_with("unless something sets that label while it runs"), "{first}");
    }
}

/// A Service of the same pods is there, so this one may be meant for others.
#[test]
fn pods_that_another_service_has_are_not_accused() {
    let other = "---
apiVersion: v1
kind: Service
metadata: {name: api, namespace: shop}
spec: {clusterIP: 172.16.0.11, selector: {app: web-api}, ports: [{port: 80, targetPort: 8080}]}
";
    let shop = Shop { labels: "{id: one, app: web-api}", more: other, ..Shop::default() };
    assert_eq!(shop.found().0.severity, Severity::Warning);
}

#[test]
fn a_pod_without_labels_gets_them() {
    let bare = "---
apiVersion: v1
kind: Pod
metadata: {name: store, namespace: shop}
spec: {nodeName: n1, containers: [{name: c, image: c, ports: [{containerPort: 8080}]}]}
status: {phase: Running, podIP: 10.1.1.30, conditions: [{type: Ready, status: \"True\"}]}
";
    let shop = Shop {
        selector: "{name: store}",
        labels: "{id: one}",
        ports: "[{containerPort: 9000}]",
        more: bare,
        ..Shop::default()
    };
    let (finding, first) = shop.found();
    assert_eq!(finding.severity, Severity::Error);
    assert!(
        first.starts_with(
            "Pod shop/store would fit its selector but for name: store (it has no label name)"
        ),
        "{first}"
    );
    assert_eq!(
        shop.first_cure(),
        [
            "-metadata: {name: store, namespace: shop}",
            "+metadata: {name: store, namespace: shop, labels: {name: store}}",
        ]
    );
}

#[test]
fn pods_that_are_not_ready_are_named_with_their_probe() {
    let unready = "ports: [{port: 8080, protocol: TCP}]
endpoints: [{addresses: [10.1.1.20], nodeName: n1, conditions: {ready: false, serving: false}}]";
    let shop =
        Shop { labels: "{id: one, app: web}", is_ready: false, slice: unready, ..Shop::default() };
    let (finding, first) = shop.found();
    // Nothing states that somebody calls it, and a pod that starts is not ready either.
    assert_eq!(finding.severity, Severity::Warning);
    assert_eq!(
        first,
        "the only pod that it selects, shop/web-api-1-1 of Deployment shop/web-api, is not ready; \
         the readiness probe of its container c asks GET /ready at 8080"
    );
}

#[test]
fn what_is_called_and_has_no_endpoint_is_an_error() {
    let caller = "---
apiVersion: v1
kind: Pod
metadata: {name: caller, namespace: other}
spec: {nodeName: n2, containers: [{name: c, image: c, args: [--upstream=http://web.shop.svc.cluster.local/]}]}
status: {phase: Running, podIP: 10.1.2.11, conditions: [{type: Ready, status: \"True\"}]}
";
    let labels = "{id: one, app: other}";
    let called = Shop { labels, more: caller, ..Shop::default() };
    assert_eq!(called.found().0.severity, Severity::Error);
    assert_eq!(Shop { labels, ..Shop::default() }.found().0.severity, Severity::Warning);
}

/// Whoever scales a workload to zero, and calls it nowhere, wants no endpoints.
#[test]
fn a_workload_that_is_scaled_to_zero_is_a_hint_unless_it_is_called() {
    let idle = "---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: builder, namespace: shop}
spec:
  replicas: 0
  selector: {matchLabels: {app: builder}}
  template: {metadata: {labels: {app: builder}}, spec: {containers: [{name: c, image: c}]}}
";
    let shop = Shop { selector: "{app: builder}", more: idle, ..Shop::default() };
    let (finding, first) = shop.found();
    assert_eq!(finding.severity, Severity::Info);
    assert!(first.ends_with("is scaled to 0"), "{first}");
    let called = format!(
        "{idle}---
apiVersion: v1
kind: Pod
metadata: {{name: caller, namespace: other}}
spec: {{nodeName: n2, containers: [{{name: c, image: c, args: [--upstream=http://web.shop.svc]}}]}}
status: {{phase: Running, podIP: 10.1.2.11, conditions: [{{type: Ready, status: \"True\"}}]}}
"
    );
    let called = Shop { more: called.leak(), ..shop };
    assert_eq!(called.found().0.severity, Severity::Warning);
}

#[test]
fn a_named_port_of_pods_that_declare_none_is_a_number() {
    let unnamed = "ports: []
endpoints: [{addresses: [10.1.1.20], nodeName: n1, conditions: {ready: true}}]";
    let shop = Shop {
        labels: "{id: one, app: web}",
        ports: "[]",
        target: "http",
        slice: unnamed,
        ..Shop::default()
    };
    let (finding, first) = shop.found();
    assert_eq!(finding.code.as_str(), "UT313");
    assert!(first.starts_with("targetPort \"http\" is not a port of the pods"), "{first}");
    assert_eq!(
        shop.first_cure(),
        ["-  - {port: 80, targetPort: http}", "+  - {port: 80, targetPort: 80}"]
    );
}
