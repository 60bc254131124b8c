//! Load balancers that are proxies: what pods of the cluster meet, with and without the PROXY
//! header, by what the status says.

#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]

use uturn_model::{Cluster, Flow, Mechanism, Outcome};
use uturn_path::Engine;
use uturn_snapshot::{Source, read};

/// Two nodes of a cloud, a server and a client, and a Service with these annotations and this
/// entry of its status.
fn cluster(provider_id: &str, annotations: &str, entry: &str) -> Cluster {
    with_ports(provider_id, annotations, entry, "{port: 80, nodePort: 30080}")
}

/// The same with these ports.
fn with_ports(provider_id: &str, annotations: &str, entry: &str, ports: &str) -> Cluster {
    let node = |number: u8| {
        format!(
            "{{apiVersion: v1, kind: Node, metadata: {{name: n{number}}}, \
             spec: {{providerID: '{provider_id}{number}', podCIDR: 10.244.{number}.0/24}}, \
             status: {{addresses: [{{type: InternalIP, address: 10.0.0.1{number}}}]}}}}\n---\n"
        )
    };
    let pod = |name: &str, number: u8| {
        format!(
            "{{apiVersion: v1, kind: Pod, metadata: {{name: {name}, namespace: shop, labels: {{app: {name}}}}}, \
             spec: {{nodeName: n{number}, containers: [{{name: c, image: i, ports: [{{containerPort: 80}}]}}]}}, \
             status: {{podIP: 10.244.{number}.9, phase: Running, conditions: [{{type: Ready, status: 'True'}}]}}}}\n---\n"
        )
    };
    let service = format!(
        "{{apiVersion: v1, kind: Service, metadata: {{name: web, namespace: shop, annotations: {{{annotations}}}}}, \
         spec: {{type: LoadBalancer, clusterIP: 10.96.0.10, selector: {{app: web}}, \
         ports: [{ports}]}}, status: {{loadBalancer: {{ingress: [{entry}]}}}}}}\n---\n"
    );
    let facts = "{apiVersion: uturn.dev/v1alpha1, kind: Facts, spec: {kubeProxy: {mode: iptables, version: v1.34.0}, \
                 network: {podCIDRs: [10.244.0.0/16]}}}\n";
    let text = node(1) + &node(2) + &pod("client", 1) + &pod("web", 2) + &service + facts;
    read(vec![Source { name: "cluster.yaml".into(), text }]).unwrap().cluster
}

/// What a client gets that calls the load balancer, and why.
fn met(cluster: &Cluster, from: &str, to: &str) -> (Vec<Outcome>, Vec<Mechanism>) {
    let engine = Engine::new(cluster).unwrap();
    let flow =
        Flow { from: from.parse().unwrap(), to: to.parse().unwrap(), protocol: Default::default() };
    let verdict = engine.verdict(&flow).unwrap();
    let outcomes = verdict.outcomes.iter().map(|(outcome, _)| *outcome).collect();
    (outcomes, verdict.mechanisms)
}

const CLIENT: &str = "pod/shop/client";
const URL: &str = "http://192.0.2.80/";
const IP: &str = "{ip: 192.0.2.80}";

/// The providerID of each cloud and the annotation that switches the header on.
const CLOUDS: [(&str, &str); 5] = [
    ("hcloud://", "load-balancer.hetzner.cloud/uses-proxyprotocol: 'true'"),
    ("digitalocean://", "service.beta.kubernetes.io/do-loadbalancer-enable-proxy-protocol: 'true'"),
    ("linode://", "service.beta.kubernetes.io/linode-loadbalancer-default-proxy-protocol: v2"),
    (
        "scaleway://instance/fr-par-1/",
        "service.beta.kubernetes.io/scw-loadbalancer-proxy-protocol-v2: '*'",
    ),
    ("vultr://", "service.beta.kubernetes.io/vultr-loadbalancer-proxy-protocol: 'true'"),
];

#[test]
fn without_a_header_everybody_is_answered() {
    for (id, _) in CLOUDS {
        let cluster = cluster(id, "", IP);
        assert!(cluster.unjudged.is_empty(), "{id}: {:?}", cluster.unjudged);
        for from in [CLIENT, "node/n1", "outside"] {
            assert_eq!(met(&cluster, from, URL), (vec![Outcome::AT_ONCE], vec![]), "{id} {from}");
        }
    }
}

/// The name beside an address leads to it, unless it is a label.
#[test]
fn a_name_of_the_status_leads_to_the_address_beside_it() {
    let of = |host: &str| {
        let entry = format!("{{ip: 192.0.2.80, hostname: {host}}}");
        let (id, header) = CLOUDS[2];
        met(&cluster(id, header, &entry), CLIENT, &format!("http://{host}/"))
    };
    let lost = (vec![Outcome::EmptyReply], vec![Mechanism::ProxyHeader]);
    assert_eq!(of("192-0-2-80.ip.linodeusercontent.com"), lost);
    assert_ne!(of("label"), lost);
}

/// A server that is not ready: no node takes what is sent to its node port.
fn without_server(mut cluster: Cluster) -> Cluster {
    for endpoint in cluster.endpoints.values_mut().flatten().flat_map(|slice| &mut slice.endpoints)
    {
        endpoint.ready = false;
    }
    cluster
}

#[test]
fn proxies_take_connections_and_close_them_without_a_target() {
    for (id, header) in CLOUDS {
        for notes in ["", header] {
            let cluster = without_server(cluster(id, notes, IP));
            let dead = vec![Mechanism::NoEndpoint];
            let plain = met(&cluster, "outside", URL);
            assert_eq!(plain, (vec![Outcome::EmptyReply], dead.clone()), "{id} {notes}");
            let tls = met(&cluster, "outside", "https://192.0.2.80:80/");
            assert_eq!(tls, (vec![Outcome::TlsError], dead), "{id} {notes}");
        }
    }
    // One that hands packets on takes no connection.
    let kind = "service.beta.kubernetes.io/do-loadbalancer-type: REGIONAL_NETWORK";
    let passing = without_server(cluster("digitalocean://", kind, IP));
    assert_eq!(met(&passing, "outside", URL).0, [Outcome::Hangs]);
}

#[test]
fn a_status_with_an_address_loses_the_header_inside() {
    for (id, header) in CLOUDS {
        let entries = [IP, "{ip: 192.0.2.80, hostname: lb.example.com}"];
        for cluster in entries.map(|entry| cluster(id, header, entry)) {
            let lost = (vec![Outcome::EmptyReply], vec![Mechanism::ProxyHeader]);
            assert_eq!(met(&cluster, CLIENT, URL), lost, "{id}");
            let tls = met(&cluster, CLIENT, "https://192.0.2.80:80/");
            assert_eq!(tls, (vec![Outcome::TlsError], vec![Mechanism::ProxyHeader]), "{id}");
            assert_eq!(met(&cluster, "outside", URL), (vec![Outcome::AT_ONCE], vec![]), "{id}");
        }
    }
}

#[test]
fn a_status_without_a_rule_keeps_it() {
    for (id, header) in CLOUDS {
        let by_mode = cluster(id, header, "{ip: 192.0.2.80, ipMode: Proxy}");
        assert_eq!(met(&by_mode, CLIENT, URL), (vec![Outcome::AT_ONCE], vec![]), "{id}");
        let by_name = cluster(id, header, "{hostname: lb.example.com}");
        let to = "http://lb.example.com/";
        assert_eq!(met(&by_name, CLIENT, to), (vec![Outcome::AT_ONCE], vec![]), "{id}");
    }
}

#[test]
fn a_network_load_balancer_needs_the_rule() {
    let kind = "service.beta.kubernetes.io/do-loadbalancer-type: REGIONAL_NETWORK";
    let fine = cluster("digitalocean://", kind, IP);
    assert_eq!(met(&fine, "outside", URL), (vec![Outcome::AT_ONCE], vec![]));
    let broken = cluster("digitalocean://", kind, "{ip: 192.0.2.80, ipMode: Proxy}");
    for from in [CLIENT, "outside"] {
        assert_eq!(met(&broken, from, URL), (vec![Outcome::Hangs], vec![Mechanism::VipUnknown]));
    }
}

/// As their controller writes it: `ipMode: Proxy` only where all ports send the header.
#[test]
fn a_header_on_some_ports_is_lost_on_those() {
    let key = "service.beta.kubernetes.io/scw-loadbalancer-proxy-protocol-v2";
    let ports = "{name: http, port: 80, nodePort: 30080}, {name: tls, port: 443, nodePort: 30443}";
    let of = |list: &str, entry: &str| {
        let notes = format!("{key}: '{list}'");
        with_ports("scaleway://instance/fr-par-1/", &notes, entry, ports)
    };
    let https = "https://192.0.2.80/";
    let some = of("443", IP);
    assert_eq!(met(&some, CLIENT, https), (vec![Outcome::TlsError], vec![Mechanism::ProxyHeader]));
    assert_eq!(met(&some, CLIENT, URL), (vec![Outcome::AT_ONCE], vec![]));
    let all = of("80,443", "{ip: 192.0.2.80, ipMode: Proxy}");
    for to in [URL, https] {
        assert_eq!(met(&all, CLIENT, to), (vec![Outcome::AT_ONCE], vec![]), "{to}");
    }
}

#[test]
fn a_doubt_says_what_it_comes_from() {
    let because = |id: &str, notes: &str| -> Vec<String> {
        let cluster = cluster(id, notes, IP);
        let engine = Engine::new(&cluster).unwrap();
        let (from, to) = ("outside".parse().unwrap(), URL.parse().unwrap());
        let verdict = engine.verdict(&Flow { from, to, protocol: Default::default() }).unwrap();
        let about = |own: &&uturn_model::Assumption| {
            matches!(own.subject, uturn_model::AssumptionSubject::BalancerBehaviour(_))
        };
        verdict.supposed.iter().filter(about).map(|own| own.because.to_string()).collect()
    };
    let [linode] = &*because("linode://", "") else { panic!("one doubt") };
    assert!(linode.contains("Cilium"), "{linode}");
    let [type_] = &*because("digitalocean://", "") else { panic!("one doubt") };
    assert!(type_.contains("DEFAULT_LB_TYPE"), "{type_}");
    assert!(because("hcloud://", "").is_empty());
    for (id, notes) in [CLOUDS[1], CLOUDS[2]] {
        assert!(because(id, notes).is_empty(), "{id}");
    }
}
