//! What is special about a node: ports that lead to pods, a bridge without hairpin mode, a kube-proxy
//! that takes another name for its node's, and who is asked for source ranges.

#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]

use std::fmt::Write as _;

use uturn_model::node::Loss;
use uturn_model::{Cluster, Flow, Mechanism, Outcome, Protocol, Share, Verdict};
use uturn_path::Engine;
use uturn_snapshot::Source;
use uturn_testing::manifests::{ReadyNode, RunningPod};

/// Three nodes, with a client on each and a server on the first two.
#[derive(Clone, Copy)]
struct Case {
    mode: &'static str,
    network: &'static str,
    /// What Facts state of nodes.
    nodes: &'static str,
    /// The domain of the names that hosts have, where these are not the names of the nodes.
    domain: Option<&'static str>,
    /// What the servers' port has besides its number.
    port: &'static str,
    /// What the Service has in its `spec`.
    spec: &'static str,
    /// More objects.
    more: &'static str,
}

const USUAL: Case = Case {
    mode: "iptables",
    network: "global-router",
    nodes: "{}",
    domain: None,
    port: "",
    spec: "type: ClusterIP",
    more: "",
};
const SERVICE: &str = "172.20.0.10:80";

impl Case {
    fn text(&self) -> String {
        let Self { mode, network, nodes, domain, port, spec, more } = self;
        let mut text = format!(
            "apiVersion: uturn.dev/v1alpha1\nkind: Facts\nspec:\n  provider: none\n  declaredPortsOnly: \
             true\n  network: {{mode: {network}, masquerade: true, nonMasqueradeCIDRs: [10.1.0.0/16], podCIDRs: \
             [10.1.0.0/16], vpcCIDRs: [10.0.0.0/16], serviceCIDRs: [172.20.0.0/16]}}\n  kubeProxy: {{mode: \
             {mode}, version: v1.30.0}}\n  nodes: {nodes}\n"
        );
        let mut endpoints = String::new();
        for node in 1..=3 {
            let label = |domain| format!("kubernetes.io/hostname: n{node}.{domain}");
            let node_object = ReadyNode {
                number: node,
                address: &format!("10.0.0.{node}"),
                labels: &domain.map(label).unwrap_or_default(),
                spec: &format!("podCIDRs: [10.1.{node}.0/24]"),
                ..ReadyNode::default()
            };
            text += &node_object.to_string();
            text += &pod(&format!("client-{node}"), node, &format!("10.1.{node}.9"), "");
            if node < 3 {
                text += &pod(&format!("web-{node}"), node, &format!("10.1.{node}.50"), port);
                let _ = write!(
                    endpoints,
                    "{{addresses: [10.1.{node}.50], nodeName: n{node}, conditions: {{ready: true}}, \
                     targetRef: {{kind: Pod, name: web-{node}, namespace: shop}}}}, "
                );
            }
        }
        let status = if spec.contains("LoadBalancer") {
            ", status: {loadBalancer: {ingress: [{ip: 10.0.0.100}]}}"
        } else {
            ""
        };
        let _ = write!(
            text,
            "---\n{{apiVersion: v1, kind: Service, metadata: {{name: web, namespace: shop}}, spec: {{{spec}, \
             clusterIP: 172.20.0.10, ports: [{{port: 80, targetPort: 8080, nodePort: 30080}}]}}{status}}}\n\
             ---\n{{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {{name: web-1, namespace: \
             shop, labels: {{kubernetes.io/service-name: web}}}}, addressType: IPv4, ports: [{{port: 8080, \
             protocol: TCP}}], endpoints: [{endpoints}]}}\n{more}"
        );
        if spec.contains("ClusterIP") {
            text = text.replace(", nodePort: 30080", "");
        }
        text
    }

    fn cluster(&self) -> Cluster {
        let source = Source { name: "cluster.yaml".into(), text: self.text() };
        uturn_snapshot::read(vec![source]).unwrap().cluster
    }

    fn call(&self, from: &str, to: &str) -> Verdict {
        verdict(&self.cluster(), from, to)
    }

    fn answered(&self, from: &str, to: &str) -> u32 {
        percent(&self.call(from, to), |end| end.is_answered())
    }
}

fn verdict(cluster: &Cluster, from: &str, to: &str) -> Verdict {
    let engine = Engine::new(cluster).unwrap();
    let flow =
        Flow { from: from.parse().unwrap(), to: to.parse().unwrap(), protocol: Protocol::Tcp };
    engine.verdict(&flow).unwrap()
}

fn percent(verdict: &Verdict, is_it: impl Fn(Outcome) -> bool) -> u32 {
    let ends = verdict.outcomes.iter().filter(|end| is_it(end.0));
    ends.map(|end| (end.1.get() * 100.0).round() as u32).sum()
}

fn pod(name: &str, node: u32, address: &str, port: &str) -> String {
    let ports = &*format!("{{containerPort: 8080{port}}}");
    RunningPod { name, node, address, ports, ..RunningPod::default() }.to_string()
}

#[test]
fn a_port_of_a_node_leads_to_its_pod() {
    for network in ["global-router", "routed"] {
        for mode in ["iptables", "ipvs", "nftables"] {
            let case = Case { port: ", hostPort: 8000", mode, network, ..USUAL };
            for from in ["outside", "node/n1", "node/n3", "pod/shop/client-1", "pod/shop/client-3"]
            {
                assert_eq!(case.answered(from, "10.0.0.1:8000"), 100, "{mode} {network} {from}");
            }
            // Its own call comes back to it masqueraded.
            assert_eq!(case.answered("pod/shop/web-1", "10.0.0.1:8000"), 100, "{mode} {network}");
            let refused = case.call("pod/shop/client-1", "10.0.0.3:8000");
            assert_eq!(percent(&refused, |end| end == Outcome::Refused), 100, "no such pod there");
        }
    }
}

#[test]
fn a_port_of_one_address_is_forwarded_there_only() {
    let case = Case { port: ", hostPort: 8000, hostIP: 10.0.0.1", ..USUAL };
    assert_eq!(case.answered("pod/shop/client-2", "10.0.0.1:8000"), 100);
    assert_eq!(case.answered("pod/shop/client-1", "10.0.0.2:8000"), 0);
}

/// Also where a load balancer's address is one of the node's own: kube-proxy's rules come first.
#[test]
fn a_forwarded_port_does_not_take_what_is_sent_to_a_service() {
    let spec = "type: LoadBalancer, externalTrafficPolicy: Cluster";
    let more = "---\n{apiVersion: v1, kind: Pod, metadata: {name: other, namespace: shop}, spec: {nodeName: n3, \
                containers: [{name: c, image: c, ports: [{containerPort: 9, hostPort: 80}]}]}, status: {phase: \
                Running, podIP: 10.1.3.60, podIPs: [{ip: 10.1.3.60}], conditions: [{type: Ready, status: \
                'True'}]}}\n";
    let ends_at_other = |case: Case, to| {
        let verdict = case.call("pod/shop/client-3", to);
        format!("{:?}", verdict.routes).contains("10.1.3.60:9")
    };
    for mode in ["iptables", "ipvs", "nftables"] {
        let case = Case { mode, spec, more, ..USUAL };
        assert!(!ends_at_other(case, "10.0.0.100:80"), "{mode}");
        assert!(ends_at_other(case, "10.0.0.3:80"), "{mode}");
    }
    // Without a rule for it, an address that the node holds is like its own.
    let nodes = "{n3: {localAddresses: [10.0.0.77]}}";
    assert!(ends_at_other(Case { nodes, more, ..USUAL }, "10.0.0.77:80"));
}

#[test]
fn without_hairpin_mode_a_pod_does_not_reach_itself() {
    let off = Case { nodes: "{'*': {hairpin: false}}", ..USUAL };
    assert_eq!(off.answered("pod/shop/web-1", SERVICE), 50);
    assert_eq!(off.call("pod/shop/web-1", SERVICE).mechanisms, [Mechanism::HairpinOff]);
    assert_eq!(off.answered("pod/shop/client-1", SERVICE), 100);
    // Unknown accuses nobody.
    assert_eq!(USUAL.answered("pod/shop/web-1", SERVICE), 100);
    // IPVS sends the packet from the node, masqueraded; the answer is translated on the bridge.
    assert_eq!(Case { mode: "ipvs", ..off }.answered("pod/shop/web-1", SERVICE), 50);
    // Links of single pods are no bridge; and frames that no rule sees are routed.
    assert_eq!(Case { network: "routed", ..off }.answered("pod/shop/web-1", SERVICE), 100);
    let unseen = Case { nodes: "{'*': {hairpin: false, bridgeRules: false}}", ..USUAL };
    let verdict = unseen.call("pod/shop/web-1", SERVICE);
    assert!(!verdict.mechanisms.contains(&Mechanism::HairpinOff), "{verdict:?}");
    let forwarded = Case { port: ", hostPort: 8000", ..off };
    assert_eq!(forwarded.answered("pod/shop/web-1", "10.0.0.1:8000"), 0);
}

/// The configuration of flannel's plugin in its ConfigMap.
fn flannel(delegate: &str) -> &'static str {
    let text = format!(
        "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: kube-flannel-cfg, namespace: kube-flannel}}\n\
         data:\n  net-conf.json: '{{\"Network\": \"10.1.0.0/16\"}}'\n  cni-conf.json: |\n    {{\n      \
         \"name\": \"cbr0\",\n      \"plugins\": [\n        {{\"type\": \"flannel\"{delegate}}},\n        \
         {{\"type\": \"portmap\", \"capabilities\": {{\"portMappings\": true}}}}\n      ]\n    }}\n"
    );
    Box::leak(text.into_boxed_str())
}

/// Both plugins leave hairpin mode off where their configuration does not ask for it.
#[test]
fn the_configuration_of_the_plugin_says_whether_hairpin_mode_is_on() {
    let network = "global-router, plugin: flannel";
    let answered =
        |more, nodes| Case { network, more, nodes, ..USUAL }.answered("pod/shop/web-1", SERVICE);
    assert_eq!(answered("", "{}"), 100, "no configuration accuses nobody");
    let off = r#", "delegate": {"isDefaultGateway": true}"#;
    for delegate in ["", off, r#", "delegate": {"hairpinMode": false}"#] {
        assert_eq!(answered(flannel(delegate), "{}"), 50, "{delegate}");
    }
    let on = r#", "delegate": {"hairpinMode": true, "isDefaultGateway": true}"#;
    for delegate in
        [on, r#", "delegate": {"promiscMode": true}"#, r#", "delegate": {"type": "ptp"}"#]
    {
        assert_eq!(answered(flannel(delegate), "{}"), 100, "{delegate}");
    }
    // Facts know better, and another network does not read it.
    assert_eq!(answered(flannel(off), "{'*': {hairpin: true}}"), 100);
    let other = Case { network: "global-router, plugin: kubenet", more: flannel(off), ..USUAL };
    assert_eq!(other.answered("pod/shop/web-1", SERVICE), 100);
    // The route rests on the line that says it.
    let verdict = Case { network, more: flannel(off), ..USUAL }.call("pod/shop/web-1", SERVICE);
    assert_eq!(verdict.mechanisms, [Mechanism::HairpinOff]);
    let text = Case { network, more: flannel(off), ..USUAL }.text();
    let line = 1 + text.lines().position(|line| line.contains("isDefaultGateway")).unwrap();
    let lost = format!("{:?}", verdict.routes);
    assert!(lost.contains(&format!("line: {line}")), "{line} not in {lost}");
}

/// A bridge that the plugin itself makes, of whichever network.
#[test]
fn a_bridge_of_its_own_configuration_has_no_hairpin_mode_unless_it_says_so() {
    let bridge = |more: &str| {
        let text = format!(
            "---\n{{apiVersion: v1, kind: ConfigMap, metadata: {{name: kube-router-cfg, namespace: \
             kube-system}}, data: {{cni-conf.json: '{{\"plugins\": [{{\"type\": \"bridge\"{more}}}]}}'}}}}\n"
        );
        let more: &'static str = Box::leak(text.into_boxed_str());
        let case = Case { network: "global-router, plugin: kube-router", more, ..USUAL };
        case.answered("pod/shop/web-1", SERVICE)
    };
    assert_eq!(bridge(", \"isDefaultGateway\": true"), 50);
    assert_eq!(bridge(", \"hairpinMode\": true"), 100);
}

/// Under policy Local a kube-proxy that does not know its node by name has no endpoint anywhere.
#[test]
fn a_kube_proxy_of_another_name_has_no_local_endpoint() {
    let spec = "type: LoadBalancer, externalTrafficPolicy: Local, healthCheckNodePort: 32000";
    for mode in ["iptables", "ipvs", "nftables"] {
        let right = Case { mode, spec, ..USUAL };
        let wrong = Case { nodes: "{'*': {kubeProxyName: ip-10-0-0-1.example}}", ..right };
        let to = "10.0.0.1:30080";
        assert_eq!(right.answered("outside", to), 100, "{mode}");
        let verdict = wrong.call("outside", to);
        if mode == "ipvs" {
            // It then sends to all, and those of other nodes answer past this one.
            assert_eq!(percent(&verdict, |end| end.is_answered()), 50, "{verdict:?}");
            continue;
        }
        assert_eq!(percent(&verdict, |end| end.is_answered()), 0, "{mode}");
        assert_eq!(verdict.mechanisms, [Mechanism::NoEndpoint], "{mode}");
        // Policy Cluster does not ask where an endpoint is.
        assert_eq!(wrong.answered("pod/shop/client-3", SERVICE), 100, "{mode}");
    }
}

/// kube-proxy's DaemonSet with an argument, and its ConfigMap with a setting.
fn proxy(version: &str, argument: &str, setting: &str) -> &'static str {
    let text = format!(
        "---\n{{apiVersion: apps/v1, kind: DaemonSet, metadata: {{name: kube-proxy, namespace: kube-system}}, spec: \
         {{selector: {{matchLabels: {{k8s-app: kube-proxy}}}}, template: {{metadata: {{labels: {{k8s-app: kube-proxy}}}}, \
         spec: {{hostNetwork: true, containers: [{{name: kube-proxy, image: 'kube-proxy:{version}', command: [kube-proxy, \
         --config=/var/lib/kube-proxy/config.conf{argument}]}}]}}}}}}}}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: \
         {{name: kube-proxy, namespace: kube-system}}\ndata:\n  config.conf: |\n    kind: \
         KubeProxyConfiguration\n    hostnameOverride: {setting}\n"
    );
    Box::leak(text.into_boxed_str())
}

/// The names that kube-proxies take for their nodes', where these are others.
fn names(more: &'static str) -> Vec<Option<String>> {
    let cluster = Case { more, ..USUAL }.cluster();
    cluster.nodes.values().map(|node| Some(node.proxy_name.as_ref()?.to_string())).collect()
}

/// Its own arguments say the name where they have it in full.
#[test]
fn the_arguments_of_kube_proxy_say_its_name() {
    let first = |argument: &str| names(proxy("v1.30.0", argument, "''"))[0].clone();
    assert_eq!(first(", --hostname-override=Other-1").as_deref(), Some("other-1"));
    assert_eq!(first(", --hostname-override, other-1").as_deref(), Some("other-1"));
    assert_eq!(first(", --hostname-override=n1"), None);
    assert_eq!(first(", --hostname-override=$(NODE_NAME)"), None);
}

/// One configuration with a name is one name for all nodes, unless each has an argument of its own.
#[test]
fn the_configuration_of_kube_proxy_names_every_node_alike() {
    let first = || Some("n1".to_owned());
    assert_eq!(names(proxy("v1.30.0", "", "n1")), [None, first(), first()]);
    assert_eq!(
        names(proxy("v1.30.0", ", --hostname-override=$(NODE_NAME)", "n1")),
        [None, None, None]
    );
    // Releases before 1.13 do not look at arguments beside a configuration.
    let old = proxy("v1.12.6", ", --hostname-override=$(NODE_NAME)", "n1");
    let old_names = |version| {
        let facts = Case { more: old, ..USUAL }.text().replace("version: v1.30.0", version);
        let source = Source { name: "cluster.yaml".into(), text: facts };
        let cluster = uturn_snapshot::read(vec![source]).unwrap().cluster;
        cluster.nodes.values().filter(|node| node.proxy_name.is_some()).count()
    };
    assert_eq!(old_names("version: v1.12.6"), 2);
    assert_eq!(old_names("version: v1.13.0"), 0);
    // What a script is to complete is no name, and a configuration alone says nothing: as it is
    // usually installed, the arguments name the node.
    assert_eq!(names(proxy("v1.30.0", "", "'${NODE_NAME}'")), [None, None, None]);
    let alone = proxy("v1.30.0", "", "n1").split_once("---\napiVersion: v1\n").unwrap().1;
    let alone = Box::leak(format!("---\napiVersion: v1\n{alone}").into_boxed_str());
    assert_eq!(names(alone), [None, None, None]);
    // The node of that name has its endpoint, the others take that one for their own.
    let spec = "type: NodePort, externalTrafficPolicy: Local";
    let case = Case { spec, more: proxy("v1.30.0", "", "n1"), ..USUAL };
    assert_eq!(case.answered("outside", "10.0.0.1:30080"), 100);
    assert_eq!(case.answered("outside", "10.0.0.2:30080"), 0);
    let right = Case { more: proxy("v1.30.0", "", "''"), ..case };
    assert_eq!(right.answered("outside", "10.0.0.2:30080"), 100);
}

/// Where nothing tells kube-proxy a name, and the kubelet noted another one of the host, both are
/// possible: the kubelet may have been told its name.
#[test]
fn a_host_of_another_name_than_its_node_is_a_case_of_its_own() {
    let cases = |spec, more| {
        let cluster = Case { spec, more, domain: Some("corp.example"), ..USUAL }.cluster();
        let engine = Engine::new(&cluster).unwrap();
        let (from, to) = ("outside".parse().unwrap(), "10.0.0.1:30080".parse().unwrap());
        let verdicts = engine.cases(&Flow { from, to, protocol: Protocol::Tcp }).unwrap();
        let said = verdicts.iter().map(|verdict| {
            (
                percent(verdict, |end| end.is_answered()),
                verdict.conditions.iter().map(ToString::to_string).collect(),
            )
        });
        said.collect::<Vec<(u32, Vec<String>)>>()
    };
    let local = "type: NodePort, externalTrafficPolicy: Local";
    let untold = proxy("v1.30.0", "", "''");
    let both = [
        (100, vec!["kube-proxy takes the node's own name".to_owned()]),
        (0, vec!["kube-proxy takes its host's name for the node's".to_owned()]),
    ];
    assert_eq!(cases(local, untold), both);
    for (policy, more) in [
        ("type: NodePort, externalTrafficPolicy: Cluster", untold),
        (local, proxy("v1.30.0", ", --hostname-override=$(NODE_NAME)", "''")),
        (local, ""),
    ] {
        assert_eq!(cases(policy, more), [(100, Vec::new())], "{policy}");
    }
}

/// Who calls past the load balancer is asked for its own address, and not for the load balancer's.
#[test]
fn source_ranges_hold_for_the_caller_itself() {
    for mode in ["iptables", "ipvs", "nftables"] {
        let ranges = |range| Case { mode, spec: range, ..USUAL };
        let nodes_only = ranges("type: LoadBalancer, loadBalancerSourceRanges: [10.0.0.0/24]");
        let pods_too =
            ranges("type: LoadBalancer, loadBalancerSourceRanges: [10.0.0.0/24, 10.1.0.0/16]");
        let to = "10.0.0.100:80";
        let verdict = nodes_only.call("pod/shop/client-1", to);
        assert_eq!(percent(&verdict, |end| end == Outcome::Hangs), 100, "{mode}: {verdict:?}");
        assert_eq!(pods_too.answered("pod/shop/client-1", to), 100, "{mode}");
        assert_eq!(nodes_only.answered("node/n1", to), 100, "{mode}");
        // The cluster IP has no ranges.
        assert_eq!(nodes_only.answered("pod/shop/client-1", SERVICE), 100, "{mode}");
    }
}

/// A Service behind a load balancer that hands on packets as they are, and for whose address
/// kube-proxy has no rule.
fn without_rule(annotations: &str) -> &'static str {
    let text = format!(
        "---\n{{apiVersion: v1, kind: Service, metadata: {{name: edge, namespace: shop, annotations: \
         {{{annotations}}}}}, spec: {{type: LoadBalancer, clusterIP: 172.20.0.20, ports: [{{port: 80, \
         targetPort: 8080, nodePort: 30081}}]}}, status: {{loadBalancer: {{ingress: [{{ip: 10.0.0.120, \
         ipMode: Proxy}}]}}}}}}\n---\n{{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: \
         {{name: edge-1, namespace: shop, labels: {{kubernetes.io/service-name: edge}}}}, addressType: \
         IPv4, ports: [{{port: 8080, protocol: TCP}}], endpoints: [{{addresses: [10.1.1.50], nodeName: n1, \
         conditions: {{ready: true}}}}]}}\n"
    );
    Box::leak(text.into_boxed_str())
}

/// Where each target has the address among its own, packets that no rule knows end there.
#[test]
fn an_address_that_each_target_holds_is_refused_without_a_rule() {
    let more = without_rule("networking.gke.io/load-balancer-type: Internal");
    let case = Case { more, ..USUAL };
    for from in ["node/n1", "pod/shop/client-3", "outside"] {
        let verdict = case.call(from, "10.0.0.120:80");
        assert_eq!(percent(&verdict, |end| end == Outcome::Refused), 100, "{from}: {verdict:?}");
        assert_eq!(verdict.mechanisms, [Mechanism::VipUnknown], "{from}");
    }
}

/// Only the leader has it: what it sends there itself never leaves it.
#[test]
fn an_address_that_the_leader_holds_stays_on_the_leader() {
    let host = "kube-vip.io/loadbalancerIPs: 10.0.0.120, kube-vip.io/vipHost: n2";
    let case = Case { more: without_rule(host), ..USUAL };
    let verdict = case.call("pod/shop/client-2", "10.0.0.120:80");
    assert_eq!(percent(&verdict, |end| end == Outcome::Refused), 100, "{verdict:?}");
    let other = case.call("pod/shop/client-1", "10.0.0.120:80");
    assert_eq!(percent(&other, |end| end.is_answered()), 0, "{other:?}");
}

/// A node that is down takes a share of the calls that its endpoint gets, and answers nobody; health
/// checks find it only after the loss is noticed.
#[test]
fn a_node_that_is_down_answers_nothing() {
    let whole = USUAL.cluster();
    let with_loss = |loss| {
        let mut cluster = whole.clone();
        cluster.nodes.get_mut("n2").unwrap().loss = Some(loss);
        cluster
    };
    for loss in [Loss::Unnoticed, Loss::Noticed] {
        let cluster = with_loss(loss);
        let to_service = verdict(&cluster, "pod/shop/client-1", SERVICE);
        assert_eq!(to_service.outcomes.len(), 2, "{loss:?}");
        assert!(to_service.outcomes.contains(&(Outcome::Hangs, Share::HALF)), "{loss:?}");
        assert!(to_service.outcomes.contains(&(Outcome::AT_ONCE, Share::HALF)), "{loss:?}");
        assert_eq!(to_service.mechanisms, [Mechanism::NodeDown]);
        for (from, to) in [
            ("pod/shop/client-1", "10.1.2.50:8080"),
            ("node/n1", "10.1.2.50:8080"),
            ("pod/shop/client-2", "10.1.1.50:8080"),
            ("node/n2", "10.1.1.50:8080"),
        ] {
            let lost = verdict(&cluster, from, to);
            assert_eq!(lost.outcomes, [(Outcome::Hangs, Share::ALL)], "{loss:?} {from} {to}");
            assert_eq!(lost.mechanisms, [Mechanism::NodeDown], "{loss:?} {from} {to}");
        }
        let other = verdict(&cluster, "pod/shop/client-3", "10.1.1.50:8080");
        assert!(other.is_fine(), "{loss:?}");
    }
}
