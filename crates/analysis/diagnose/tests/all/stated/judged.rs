//! What a scan says about the called object decides the verdict on a flow, where walks suppose
//! something else or do not know.

use uturn_diagnose::cure::{self, Case, Cure, TrialBase};
use uturn_diagnose::doubts;
use uturn_diagnose::flow_codes::FlowCodes;
use uturn_model::Outcome;
use uturn_scan::FewCalls;

use super::cures::DNS;
use super::*;

/// A case: its condition, its outcome and its codes.
type Judged = (String, Outcome, Vec<Code>);

fn judged_in(text: String, from: &str, to: &str) -> Vec<Judged> {
    let manifests = Manifests::of(vec![Source { name: "made.yaml".into(), text }]);
    let cluster = manifests.cluster().unwrap();
    let engine = Engine::new(&cluster).unwrap();
    let (from, to) = (from.parse().unwrap(), to.parse().unwrap());
    let flow = Flow { from, to, protocol: Protocol::Tcp };
    let codes = FlowCodes::new(&engine, &flow);
    let cases = doubts::cases(&engine, &flow).unwrap();
    let each = cases.all.iter().map(|case| {
        let verdict = &case.verdict;
        let [(outcome, share)] = *verdict.outcomes else { panic!("{verdict:#?}") };
        assert!(share.is_all() && !verdict.routes.is_empty());
        (verdict.conditions.join(" and "), outcome, codes.of_case(case).0)
    });
    each.collect()
}

fn judged(fields: &[&str], objects: &str, from: &str, to: &str) -> Vec<Judged> {
    judged_in([nodes_and_pods(), objects.to_owned(), facts(fields)].concat(), from, to)
}

fn case(condition: &str, outcome: Outcome, codes: &[Code]) -> Judged {
    (condition.to_owned(), outcome, codes.to_vec())
}

#[test]
fn a_condition_makes_a_case_of_its_own() {
    let given = balanced_service("172.16.0.10", "", "", "{ip: 10.0.9.9}")
        .replace("port: 80,", "port: 80, targetPort: 8080,");
    let silent = pool(false) + &given;
    let cases = judged(&[IPTABLES], &silent, "outside", "10.0.9.9:80");
    let hangs = case(
        "neither an L2Advertisement nor a BGPAdvertisement exists",
        Outcome::Hangs,
        &[Code::NoTargets],
    );
    assert_eq!(
        cases,
        [hangs, case("an L2Advertisement or a BGPAdvertisement exists", Outcome::AT_ONCE, &[])]
    );
    // Nodes serve their own pods whatever is announced.
    let fine = case("", Outcome::AT_ONCE, &[]);
    let cases = judged(&[IPTABLES], &silent, "pod/shop/web-1", "10.0.9.9:80");
    assert_eq!(cases, std::slice::from_ref(&fine));
    let announced = pool(true) + &given;
    assert_eq!(judged(&[IPTABLES], &announced, "outside", "10.0.9.9:80"), [fine]);
}

#[test]
fn a_port_at_which_the_image_does_not_listen_is_a_case() {
    let service = "---
apiVersion: v1
kind: Service
metadata: {name: plain, namespace: plain}
spec: {clusterIP: 172.16.0.20, selector: {app: plain}, ports: [{port: 8099}]}
";
    let objects = [POD_OF_NGINX, service].concat();
    let cases = judged(&[IPTABLES], &objects, "node/n2", "svc/plain/plain:8099");
    let refused = case("nothing listens on 8099", Outcome::Refused, &[Code::WrongPort]);
    assert_eq!(cases, [refused, case("something listens on 8099", Outcome::AT_ONCE, &[])]);
}

#[test]
fn an_ingress_without_a_load_balancer_is_unreachable_by_every_door() {
    let served = "alb.ingress.kubernetes.io/target-type: instance";
    let objects = alb(served, "ClusterIP");
    let fields = [IPTABLES, "provider: aws"];
    let lost = |condition: &str| case(condition, Outcome::Unreachable, &[Code::NoTargets]);
    let by_object = judged(&fields, &objects, "outside", "ingress/shop/web");
    assert_eq!(by_object, [lost("")]);
    let host = objects.replace("shop.example.com", "www.example.net");
    let by_name = judged(&fields, &host, "outside", "http://www.example.net/");
    let nameless =
        case("www.example.net has no address", Outcome::NameNotFound, &[Code::NameNotFound]);
    assert_eq!(by_name, [lost("www.example.net has an address outside the cluster"), nameless]);
    // Without a finding, the error is the same as before.
    let other = alb("alb.ingress.kubernetes.io/target-type: ip", "ClusterIP")
        .replace("status: {loadBalancer: {}}", "");
    let text = [nodes_and_pods(), other, facts(&fields)].concat();
    let cluster = Manifests::of(vec![Source { name: "made.yaml".into(), text }]).cluster().unwrap();
    let engine = Engine::new(&cluster).unwrap();
    let to = "ingress/shop/web".parse().unwrap();
    let flow = Flow { from: "outside".parse().unwrap(), to, protocol: Protocol::Tcp };
    assert_eq!(doubts::cases(&engine, &flow).unwrap_err(), engine.cases(&flow).unwrap_err());
}

#[test]
fn an_address_that_is_asked_for_and_not_given_is_unreachable() {
    let asking = balanced_service("172.16.0.10", "", "loadBalancerIP: 10.0.9.7", "")
        .replace("port: 80,", "port: 80, targetPort: 8080,");
    // Whether another machine has the address is known where the ranges of the network are stated.
    let text = [nodes_and_pods(), asking, facts(&[IPTABLES])].concat();
    let text = text.replace("vpcCIDRs: [10.0.0.0/16], ", "");
    let cases = judged_in(text, "outside", "10.0.9.7:80");
    assert_eq!(cases, [case("", Outcome::Unreachable, &[Code::Pending])]);
}

#[test]
fn another_node_may_answer_for_the_address_of_a_node_in_a_pool() {
    let pool = pool(true).replace("10.0.9.8-10.0.9.9", "10.0.0.11-10.0.0.12");
    let given = balanced_service("172.16.0.10", "", "", "{ip: 10.0.0.11}")
        .replace("port: 80,", "port: 80, targetPort: 8080,");
    let objects = pool + &given;
    let cases = judged(&[IPTABLES], &objects, "outside/10.0.0.200", "10.0.0.11:22");
    let taken = case("another node announces 10.0.0.11", Outcome::Refused, &[Code::AddressTaken]);
    let [first, second] = cases.as_slice() else { panic!("{cases:?}") };
    assert_eq!(*first, taken);
    assert_eq!((&*second.0, second.1), ("no other node announces 10.0.0.11", Outcome::Unknown));
    let of_service = judged(&[IPTABLES], &objects, "outside/10.0.0.200", "10.0.0.11:80");
    assert_eq!(of_service, [case("", Outcome::AT_ONCE, &[])]);
}

#[test]
fn a_machine_outside_may_have_no_route_to_pods() {
    let network = "---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: weave-net, namespace: kube-system}
spec:
  selector: {matchLabels: {name: weave-net}}
  template:
    metadata: {labels: {name: weave-net}}
    spec: {hostNetwork: true, containers: [{name: weave, image: weaveworks/weave-kube:2.6.0}]}
";
    let facts = facts(&[IPTABLES]).replace("mode: global-router, ", "");
    let text = [nodes_and_pods(), network.to_owned(), facts].concat();
    let cases = judged_in(text, "outside/10.0.0.200", "pod/shop/web-1:8080");
    let [hangs, open] = cases.as_slice() else { panic!("{cases:?}") };
    let condition = "the network around the nodes has no route to 10.1.1.2";
    assert_eq!((&*hangs.0, hangs.1), (condition, Outcome::Hangs));
    assert_eq!(hangs.2, [Code::NoRoute]);
    assert_eq!(open.1, Outcome::Unknown);
}

/// Listeners that do not take a route say nothing about those that do.
#[test]
fn an_ingress_that_may_be_ignored_is_a_case() {
    let text = ingress("--ingress.class=public", "ingressClassName: haproxy-public")
        .replace(
            "registry.k8s.io/ingress-nginx/controller:v1.12.0",
            "haproxytech/kubernetes-ingress:3.2.13",
        )
        .replace("args: [/nginx-ingress-controller, ", "args: [")
        .replace("metadata: {name: public}", "metadata: {name: haproxy-public}")
        .replace("k8s.io/ingress-nginx", "haproxy.org/ingress-controller/public");
    let dns = "dns: {outside: {shop.example.com: 10.0.0.11}}";
    let cases =
        judged(&[IPTABLES, dns], &text, "outside/10.0.0.99", "http://shop.example.com:30090/");
    let [ignored, served] = cases.as_slice() else { panic!("{cases:?}") };
    let workload = "Pod ingress-nginx/nginx-1 goes by the names of classes";
    assert_eq!((&*ignored.0, ignored.2.as_slice()), (workload, &[Code::IngressIgnored][..]));
    assert!(matches!(ignored.1, Outcome::Status { code: 404, .. }));
    assert_eq!(served.0, format!("it is not so that {workload}"));
    assert_eq!(served.1, Outcome::AT_ONCE);
}

/// A checklist has the condition, too.
#[test]
fn a_checklist_says_what_objects_show() {
    let given = balanced_service("172.16.0.10", "", "", "{ip: 10.0.9.9}")
        .replace("port: 80,", "port: 80, targetPort: 8080,");
    let last = |objects: &str, is_whole: bool| {
        let text = [nodes_and_pods(), objects.to_owned(), facts(&[IPTABLES])].concat();
        let manifests = Manifests::of(vec![Source { name: "made.yaml".into(), text }]);
        let cluster = manifests.complete_if(is_whole).cluster().unwrap();
        let engine = Engine::new(&cluster).unwrap();
        let mut lists = check(&engine, Topic::Service, |_| true);
        let last = lists.remove(0).checks.pop().unwrap();
        (last.what, last.state, last.evidence.concat())
    };
    let (what, state, why) = last(&(pool(false) + &given), false);
    assert_eq!((&*what, state), ("nothing that objects show makes its calls fail", State::Unknown));
    assert!(
        why.starts_with(
            "hangs if neither an L2Advertisement nor a BGPAdvertisement exists (UT203): 10.0.9.9"
        ),
        "{why}"
    );
    assert_ne!(last(&(pool(true) + &given), false).0, what);
    let waiting = balanced_service("172.16.0.10", "", "", "");
    assert_eq!(last(&waiting, true).1, State::Failed);
    assert_eq!(last(&waiting, false).1, State::Unknown);
}

/// The codes of a flow, and the titles of its cures that are offered.
fn cured(text: String, from: &str, to: &str) -> (Vec<Code>, Vec<String>) {
    let manifests = Manifests::of(vec![Source { name: "made.yaml".into(), text }]);
    let manifests = manifests.complete_if(true);
    let cluster = manifests.cluster().unwrap();
    let engine = Engine::new(&cluster).unwrap();
    let (from, to) = (from.parse().unwrap(), to.parse().unwrap());
    let flow = Flow { from, to, protocol: Protocol::Tcp };
    let case = Case::flow(&manifests, &FewCalls::new(&engine), flow).unwrap();
    let cures = cure::cures(&TrialBase::new(&manifests, &engine), &case);
    let offered = cures.into_iter().filter(Cure::is_offered).map(|cure| cure.title);
    (case.codes().into_iter().collect(), offered.collect())
}

#[test]
fn checks_that_cannot_pass_have_their_cure_by_url_too() {
    let objects = reported(r#"{"k8s-be-30080--a":"UNHEALTHY"}"#);
    let text = [nodes_and_pods(), objects, facts(&[IPTABLES, "provider: gcp"])].concat();
    let (codes, titles) = cured(text, "outside", "http://203.0.113.9/");
    assert_eq!(codes, [Code::CheckCannotPass]);
    let begins = "health checks of svc/shop/web ask for /healthz";
    assert!(titles.first().is_some_and(|first| first.starts_with(begins)), "{titles:?}");
}

#[test]
fn a_route_of_a_mesh_that_no_gateway_reads_is_named_by_url_too() {
    let route = "---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: shop, namespace: web}
spec: {hosts: [shop.example.com], gateways: [shop], http: [{route: [{destination: {host: shop}}]}]}
";
    let dns = "dns: {outside: {shop.example.com: 10.0.0.11}}";
    let gateway = mesh("edge", 80);
    let text = [nodes_and_pods(), gateway, route.to_owned(), facts(&[IPTABLES, dns])].concat();
    let (codes, titles) = cured(text, "outside/10.0.0.99", "http://shop.example.com:30090/");
    assert_eq!(codes, [Code::GatewayOpensNothing]);
    assert!(titles[0].starts_with("gateways: shop/shop in VirtualService web/shop"), "{titles:?}");
}

#[test]
fn a_question_for_a_name_that_a_node_stops_has_the_cure_of_the_node() {
    let web = "---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {clusterIP: 172.16.0.10, selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
";
    // The servers are on the other node.
    let dns = DNS.replace("nodeName: n1", "nodeName: n2").replace("10.1.1.53", "10.1.2.53");
    let rules = "nodes: {n2: {iptables: \"*filter\\n-A INPUT -p udp -j REJECT\\nCOMMIT\\n\"}}";
    let facts = facts(&[IPTABLES, rules])
        .replace("global-router", "global-router, plugin: flannel, transport: tunnel");
    let text = [nodes_and_pods(), web.to_owned(), dns, facts].concat();
    let (codes, titles) = cured(text, "pod/shop/web-1", "http://web/");
    assert_eq!(codes, [Code::NameNotFound]);
    let first = titles.first().map(String::as_str).unwrap_or_default();
    assert!(first.starts_with("on n2, let UDP 8472"), "{titles:?}");
}
