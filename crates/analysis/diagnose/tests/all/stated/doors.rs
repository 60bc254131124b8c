//! A fault has one code and the same cures whatever it is asked by: the finding, the Service, the
//! Ingress, or the URL that people call.

use uturn_diagnose::cure::{self, Case, TrialBase};
use uturn_diagnose::flow_codes::FlowCodes;

use super::*;

/// What a flow shows, by a trace and by cures.
#[derive(Debug)]
struct Asked {
    codes: Vec<Code>,
    because: String,
    /// The titles of the cures that are offered.
    cures: Vec<String>,
}

fn asked(objects: &str, from: &str, to: &str) -> Asked {
    let text = [nodes_and_pods(), objects.to_owned(), facts(&[IPTABLES, NAMES])].concat();
    let manifests = Manifests::of(vec![Source { name: "made.yaml".into(), text }]);
    let manifests = manifests.complete_if(true);
    let cluster = manifests.cluster().unwrap();
    let engine = Engine::new(&cluster).unwrap();
    let flow = flow(from, to);
    let verdicts = engine.cases(&flow).unwrap();
    let codes = FlowCodes::new(&engine, &flow);
    let because = verdicts.iter().find_map(|verdict| codes.because(verdict));
    let case = Case::flow(&manifests, &engine, flow.clone()).unwrap();
    let traced = codes.of(&verdicts);
    assert_eq!(case.codes().into_iter().collect::<Vec<_>>(), traced);
    let cures = cure::cures(&TrialBase::new(&manifests, &engine), &case);
    let offered = cures.into_iter().filter(|cure| cure.is_offered()).map(|cure| cure.title);
    Asked {
        codes: traced,
        because: because.unwrap_or_default().to_string(),
        cures: offered.collect(),
    }
}

fn flow(from: &str, to: &str) -> Flow {
    Flow { from: from.parse().unwrap(), to: to.parse().unwrap(), protocol: Protocol::Tcp }
}

/// Leads the host of [`ingress`] to a node.
const NAMES: &str = "dns: {outside: {shop.example.com: 10.0.0.11}}";

/// The URL of the Ingress of [`ingress`], at a node's port of its controller.
const URL: &str = "http://shop.example.com:30090/";

#[test]
fn why_a_service_has_no_endpoints_is_said_by_its_address_and_url_too() {
    let service = "---
apiVersion: v1
kind: Service
metadata: {name: front, namespace: shop}
spec:
  type: NodePort
  clusterIP: 172.16.0.20
  selector: {app: wep}
  ports: [{port: 80, targetPort: 8080, nodePort: 30070}]
";
    for to in
        ["svc/shop/front:80", "172.16.0.20:80", "http://172.16.0.20/", "http://10.0.0.11:30070/"]
    {
        let asked = asked(service, "node/n2", to);
        assert_eq!(asked.codes, [Code::NoEndpoints], "{to}");
        assert!(asked.because.contains("its selector app=wep"), "{to}: {}", asked.because);
        assert!(asked.cures.iter().any(|cure| cure.contains("app=web")), "{to}: {asked:?}");
    }
}

#[test]
fn a_port_name_that_no_pod_has_is_named_by_url_too() {
    let service = "---
apiVersion: v1
kind: Service
metadata: {name: front, namespace: shop}
spec:
  clusterIP: 172.16.0.20
  selector: {app: web}
  ports: [{port: 80, targetPort: web}]
";
    for to in ["svc/shop/front:80", "http://172.16.0.20/"] {
        let asked = asked(service, "pod/shop/web-1", to);
        assert_eq!(asked.codes, [Code::NamedPortMissing], "{to}");
        assert!(asked.because.contains("targetPort \"web\" is not a port"), "{to}: {asked:?}");
        assert!(!asked.cures.is_empty(), "{to}");
    }
}

#[test]
fn an_ingress_that_nothing_serves_is_named_by_the_url_of_its_host() {
    let text = ingress("--ingress-class=public", "ingressClassName: nginx");
    let asked = asked(&text, "outside/10.0.0.99", URL);
    assert_eq!(asked.codes, [Code::IngressIgnored]);
    assert!(asked.because.contains("no controller serves Ingress shop/web"), "{asked:?}");
    assert_eq!(asked.cures, ["ingressClassName public for ingress/shop/web"]);
}

#[test]
fn a_backend_that_is_missing_is_named_by_the_url_of_its_host() {
    let served = ingress("--ingress-class=public", "ingressClassName: public");
    let port = "backend: {service: {name: web, port: {number: 80}}}";
    let text = served.replace(port, "backend: {service: {name: web, port: {number: 8080}}}");
    let asked = asked(&text, "outside/10.0.0.99", URL);
    assert_eq!(asked.codes, [Code::BackendMissing]);
    assert!(asked.because.contains("has no port 8080"), "{asked:?}");
    let title = "port 80 of svc/shop/web instead of 8080, which it does not have";
    assert_eq!(asked.cures, [title]);
}

#[test]
fn the_backend_behind_a_controller_has_its_own_reason() {
    let served = ingress("--ingress-class=public", "ingressClassName: public");
    let text = served.replace("selector: {app: web}", "selector: {app: wep}");
    let asked = asked(&text, "outside/10.0.0.99", URL);
    assert_eq!(asked.codes, [Code::NoEndpoints]);
    assert!(asked.because.contains("its selector app=wep"), "{asked:?}");
    assert!(asked.because.contains("Service shop/web"), "{asked:?}");
    assert!(asked.cures.iter().any(|cure| cure.contains("app=web")), "{asked:?}");
}
