//! Cures by annotation, cloud by cloud: what is found, the annotation that is offered, and that the
//! cluster is clean with it. Each cluster is the example that the cloud's page shows.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::common::{Folder, root, run, transcript, uturn};

/// How many commands were run so far.
static RUNS: AtomicUsize = AtomicUsize::new(0);

/// A cloud's example.
struct Example {
    name: &'static str,
    text: String,
}

impl Example {
    fn new(name: &'static str) -> Self {
        let text = fs::read_to_string(root().join(format!("examples/clouds/{name}.yaml"))).unwrap();
        Self { name, text }
    }

    fn with(self, old: &str, new: &str) -> Self {
        assert!(self.text.contains(old), "{} has no {old:?}", self.name);
        Self { text: self.text.replace(old, new), ..self }
    }

    fn run(&self, args: &[&str]) -> String {
        // Tests run beside each other.
        let number = RUNS.fetch_add(1, Ordering::Relaxed);
        let folder = Folder::new(&format!("remedy-{number}"));
        folder.file("cluster.yaml", &self.text);
        let mut command = uturn(&[&args[..1], &["-f", "cluster.yaml"], &args[1..]].concat());
        transcript(&command.current_dir(&folder.0).output().unwrap())
    }

    fn scan(&self) -> String {
        self.run(&["scan", "-o", "wide"])
    }

    /// What is said of one cure.
    fn cure(&self, code: &str, name: &str) -> String {
        self.run(&["cure", code, "shop/web", "--cure", name])
    }

    /// The cluster after a cure was applied, and its controller wrote a status, if it is given.
    fn cured(self, code: &str, name: &str, status: Option<&str>) -> Self {
        let edited = self.run(&["cure", code, "shop/web", "--cure", name, "-o", "yaml"]);
        let (_, edited) = edited.split_once("--- stdout\n").unwrap();
        let edited = edited.split("\n--- stderr").next().unwrap();
        assert!(edited.contains("kind: Service\n"), "{edited}");
        let others = self.text.split("---\n").filter(|text| !text.contains("kind: Service\n"));
        let others: Vec<&str> = others.collect();
        let service = match status {
            Some(status) => {
                let spec = edited.split("\nstatus:\n").next().unwrap();
                format!("{spec}\nstatus: {{loadBalancer: {{ingress: [{status}]}}}}\n")
            }
            None => edited.to_owned(),
        };
        Self { text: format!("{}---\n{service}", others.join("---\n")), ..self }
    }
}

fn assert_has(printed: &str, parts: &[&str]) {
    let flat = printed.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in parts {
        assert!(flat.contains(part), "no {part:?} in:\n{printed}");
    }
}

fn assert_clean(example: &Example) {
    let printed = example.scan();
    assert!(printed.starts_with("exit 0\n"), "{printed}");
    assert!(!printed.contains("error") && !printed.contains("UT1"), "{printed}");
}

#[test]
fn an_nlb_that_keeps_the_source_is_told_to_replace_it() {
    let eks = Example::new("aws");
    assert_has(&eks.scan(), &["UT102", "asymmetric-return"]);
    let source = eks.cure("UT102", "replace-source");
    assert_has(
        &source,
        &[
            "aws-load-balancer-target-group-attributes: \"preserve_client_ip.enabled=false\"",
            "then answered at once",
            "servers see an address of the load balancer instead of the client's",
        ],
    );
    assert_clean(&eks.cured("UT102", "replace-source", None));
}

#[test]
fn an_nlb_can_have_pods_as_targets() {
    let eks = Example::new("aws");
    let pods = eks.cure("UT102", "pods-as-targets");
    assert_has(&pods, &["aws-load-balancer-nlb-target-type: \"ip\"", "then answered at once"]);
    assert_clean(&eks.cured("UT102", "pods-as-targets", None));
    let unsaid = Example::new("aws").with(" vpcCIDRs: [10.0.0.0/16],", "");
    let asked = unsaid.cure("UT102", "pods-as-targets");
    assert_has(&asked, &["make sure pods have addresses", "ranges are an assumption"]);
    let overlay = Example::new("aws").with("vpcCIDRs: [10.0.0.0/16]", "vpcCIDRs: [10.0.0.0/24]");
    let refused = overlay.cure("UT102", "pods-as-targets");
    assert_has(&refused, &["not here:", "the load balancer has no route to it"]);
    let in_tree = Example::new("aws")
        .with("aws-load-balancer-type: external", "aws-load-balancer-type: nlb")
        .with("aws-load-balancer-scheme: internal", "aws-load-balancer-internal: \"true\"");
    let refused = in_tree.cure("UT102", "pods-as-targets");
    assert_has(
        &refused,
        &["not here:", "the in-tree controller makes this one and knows nodes only"],
    );
    let asked = in_tree.cure("UT102", "replace-source");
    assert_has(&asked, &["make sure the cloud's controller reads this annotation"]);
}

#[test]
fn a_source_that_something_relies_on_is_kept() {
    let ranges = Example::new("aws").with(
        "  selector: {app: web}\n",
        "  selector: {app: web}\n  loadBalancerSourceRanges: [10.0.0.0/8]\n",
    );
    let refused = ranges.cure("UT102", "replace-source");
    assert_has(
        &refused,
        &["not here:", "without the client's address nodes cannot tell who may call"],
    );
    let local = Example::new("aws").with(
        "  selector: {app: web}\n",
        "  selector: {app: web}\n  externalTrafficPolicy: Local\n",
    );
    let asked = local.cure("UT102", "replace-source");
    assert_has(&asked, &["make sure the servers do not need the client's address"]);
}

#[test]
fn a_header_that_no_server_is_known_to_read_is_refused() {
    let refused = Example::new("aws").cure("UT102", "source-in-header");
    assert_has(&refused, &["not here:", "proxy_protocol_v2.enabled=true", "would be worse off"]);
}

/// The example, the annotation, and the status as the controller writes it then.
const HEADERS: [(&str, &str, &str); 7] = [
    (
        "digitalocean",
        "do-loadbalancer-hostname: \"web.shop.example.com\"",
        "{hostname: web.shop.example.com}",
    ),
    (
        "hetzner",
        "load-balancer.hetzner.cloud/hostname: \"web.shop.example.com\"",
        "{hostname: web.shop.example.com}",
    ),
    (
        "linode",
        "linode-loadbalancer-hostname-only-ingress: \"true\"",
        "{hostname: 203-0-113-10.ip.linodeusercontent.com}",
    ),
    (
        "openstack",
        "loadbalancer.openstack.org/hostname: \"web.shop.example.com\"",
        "{hostname: web.shop.example.com}",
    ),
    ("oracle-header", "ingress-ip-mode: \"proxy\"", "{ip: 203.0.113.10, ipMode: Proxy}"),
    ("scaleway", "scw-loadbalancer-ip-mode: \"Proxy\"", "{ip: 203.0.113.10, ipMode: Proxy}"),
    (
        "vultr",
        "vultr-loadbalancer-hostname: \"web.shop.example.com\"",
        "{hostname: web.shop.example.com}",
    ),
];

#[test]
fn a_lost_header_is_cured_by_the_status() {
    for (name, annotation, status) in HEADERS {
        let example = Example::new(name);
        assert_has(&example.scan(), &["UT108", "proxy-header"]);
        let printed = example.cure("UT108", "calls-through-balancer");
        assert_has(&printed, &[annotation, "then answered at once"]);
        let cured = example.cured("UT108", "calls-through-balancer", Some(status)).scan();
        // Nobody need call the cluster address, which has no header before it either way.
        assert!(cured.starts_with("exit 0\n"), "{cured}");
        let info = "info always empty reply";
        let condition = "(proxy-header if its pods expect a PROXY header) UT108";
        assert_has(&cured, &[info, "svc/shop/web :80", condition, "1 finding (1 info);"]);
    }
}

/// The example, what is found, and the annotation that has the load balancer replace the source.
const SOURCES: [(&str, &str, &str); 3] = [
    ("alibaba", "UT104", "alibaba-cloud-loadbalancer-preserve-client-ip: \"off\""),
    ("huawei", "UT102", "elb.enable-transparent-client-ip: \"false\""),
    ("oracle", "UT104", "oci-network-load-balancer.oraclecloud.com/is-preserve-source: \"false\""),
];

#[test]
fn a_kept_source_is_replaced_where_there_is_a_switch() {
    for (name, code, annotation) in SOURCES {
        let example = Example::new(name);
        assert_has(&example.scan(), &[code]);
        let printed = example.cure(code, "replace-source");
        assert_has(&printed, &[annotation, "then answered at once"]);
        assert_clean(&example.cured(code, "replace-source", None));
    }
    let dedicated = Example::new("huawei").with("elb.class: union", "elb.class: performance");
    assert_has(&dedicated.scan(), &["UT102"]);
    let printed = dedicated.run(&["cure", "UT102", "shop/web"]);
    assert!(!printed.contains("enable-transparent-client-ip: \"false\""), "{printed}");
}

/// The example of a load balancer that ends TLS, the annotation, and the status that comes of it.
const TLS: [(&str, &str, Option<&str>); 2] = [
    (
        "alibaba-tls",
        "alibaba-cloud-loadbalancer-hostname: \"web.shop.example.com\"",
        Some("{hostname: web.shop.example.com}"),
    ),
    ("huawei-tls", "elb.pass-through: \"true\"", None),
];

#[test]
fn tls_that_nodes_bypass_is_cured_by_what_leaves_the_address_to_the_load_balancer() {
    for (name, annotation, status) in TLS {
        let example = Example::new(name);
        assert_has(&example.scan(), &["UT106", "tls-bypassed"]);
        let printed = example.cure("UT106", "calls-through-balancer");
        assert_has(&printed, &[annotation, "then answered at once"]);
        assert_clean(&example.cured("UT106", "calls-through-balancer", status));
    }
    let open = Example::new("huawei-tls").with("elb.class: union", "elb.class: shared");
    let refused = open.cure("UT106", "calls-through-balancer");
    assert_has(&refused, &["not here:", "an ordinary one, beside the open controller"]);
}

#[test]
fn nodes_that_nobody_probes_are_probed() {
    let local = Example::new("openstack-local");
    assert_has(&local.scan(), &["UT311", "no-endpoint if", "has no health monitor"]);
    let printed = local.cure("UT311", "health-checks");
    assert_has(&printed, &["enable-health-monitor: \"true\"", "then answered at once"]);
    assert_clean(&local.cured("UT311", "health-checks", None));
}

#[test]
fn a_name_that_is_made_up_is_said_to_be() {
    for name in ["digitalocean", "hetzner", "vultr", "openstack"] {
        let printed = Example::new(name).cure("UT108", "calls-through-balancer");
        assert_has(
            &printed,
            &["make sure a name of yours stands in place of the one shown: \
                                web.shop.example.com is made up"],
        );
    }
}

#[test]
fn an_old_kube_proxy_does_not_heed_the_mode() {
    let old = Example::new("scaleway").with("v1.34.0", "v1.28.0");
    let printed = old.cure("UT108", "calls-through-balancer");
    assert_has(
        &printed,
        &["1. annotate svc/shop/web with", "scw-loadbalancer-use-hostname", "not here:"],
    );
}

#[test]
fn a_load_balancer_that_keeps_its_address_needs_the_rule() {
    let azure = Example::new("azure");
    assert_has(&azure.scan(), &["UT109", "vip-unknown"]);
    let ports = azure.cure("UT109", "node-ports");
    assert_has(&ports, &["azure-disable-load-balancer-floating-ip: \"true\"", "then"]);
    let mode = azure.cure("UT109", "ip-mode-vip");
    assert_has(&mode, &["then answered at once"]);
    assert_clean(&azure.cured("UT109", "ip-mode-vip", None));
}

#[test]
fn checks_with_a_header_are_told_to_ask_the_target() {
    let eks = Example::new("aws-header");
    assert_has(&eks.scan(), &["UT207", "UT208"]);
    let checks = eks.cure("UT207", "answerable-checks");
    assert_has(&checks, &["aws-load-balancer-healthcheck-protocol: \"tcp\""]);
    let cured = eks.cured("UT207", "answerable-checks", None);
    assert!(!cured.scan().contains("UT207"), "{}", cured.scan());
    let cross_zone = "service.beta.kubernetes.io/aws-load-balancer-attributes: \
                      load_balancing.cross_zone.enabled=true\n    ";
    let type_of = "service.beta.kubernetes.io/aws-load-balancer-type: external";
    let all_zones = Example::new("aws-header").with(type_of, &format!("{cross_zone}{type_of}"));
    assert!(!all_zones.scan().contains("UT208"), "{}", all_zones.scan());
}

/// What works in the example as it is stands in no need of a cure.
#[test]
fn healthy_clouds_are_left_alone() {
    for name in ["google", "kube-vip", "cilium", "exoscale", "ibm-nlb"] {
        assert_clean(&Example::new(name));
    }
}

#[test]
fn a_page_that_a_controller_lacks_fails_the_check() {
    let page = run(&["explain", "UT207"]);
    assert_has(&page, &["azure-load-balancer-health-probe-request-path"]);
    let azure = Example::new("azure").with(", ipMode: Proxy", "");
    let ports = "ports: [{port: 80, targetPort: 8080, nodePort: 30080}]";
    let asked = azure
        .with(ports, "ports: [{port: 80, targetPort: 8080, nodePort: 30080, appProtocol: http}]");
    // A server that is no controller may well have the page.
    assert!(!asked.scan().contains("UT207"), "{}", asked.scan());
    let controller = asked
        .with(
            "{name: web, image: web, ports: [{containerPort: 8080}]}",
            "{name: controller, image: registry.example/ingress-nginx/controller:v1.12.0, \
             args: [/nginx-ingress-controller], ports: [{name: http, containerPort: 80}]}",
        )
        .with("port: 80, targetPort: 8080", "port: 80, targetPort: http")
        .with(
            "apiVersion: v1\nkind: Service\n",
            "apiVersion: networking.k8s.io/v1\nkind: IngressClass\nmetadata: {name: nginx}\n\
             spec: {controller: k8s.io/ingress-nginx}\n---\n\
             apiVersion: networking.k8s.io/v1\nkind: Ingress\n\
             metadata: {name: shop, namespace: shop}\nspec: {ingressClassName: nginx, rules: \
             [{host: shop.example.com, http: {paths: [{path: /, pathType: Prefix, backend: \
             {service: {name: web, port: {number: 80}}}}]}}]}\n---\n\
             apiVersion: v1\nkind: Service\n",
        );
    assert_has(&controller.scan(), &["UT207", "UT103"]);
    for (code, then) in
        [("UT207", "then 2 of 2 targets answer"), ("UT103", "then answered at once")]
    {
        let other = controller.cure(code, "answerable-checks");
        let annotation = "azure-load-balancer-health-probe-request-path: \"/healthz\"";
        let asks = "make sure servers answer that path with 200: ingress-nginx does";
        assert_has(&other, &[annotation, asks, then]);
    }
    assert_clean(&controller.cured("UT207", "answerable-checks", None));
}

#[test]
fn checks_from_an_address_that_nodes_have_bound() {
    let private = Example::new("hetzner-private");
    assert_has(&private.scan(), &["UT201", "local-source-drop"]);
    let cure = private.cure("UT201", "foreign-address");
    assert_has(&cure, &["disable-private-ingress: \"true\"", "then 2 of 2 targets answer"]);
    assert_clean(&private.cured("UT201", "foreign-address", Some("{ip: 203.0.113.10}")));
    let iptables = Example::new("hetzner-private").with("mode: ipvs", "mode: iptables");
    assert_clean(&iptables);
}

/// A name in the status would take the rule away that all traffic needs.
#[test]
fn a_name_is_refused_where_packets_keep_the_address() {
    let network = Example::new("digitalocean")
        .with("do-loadbalancer-type: REGIONAL", "do-loadbalancer-type: REGIONAL_NETWORK")
        .with(
            "    service.beta.kubernetes.io/do-loadbalancer-enable-proxy-protocol: \"true\"\n",
            "",
        )
        .with(
            "  selector: {app: web}\n",
            "  selector: {app: web}\n  externalTrafficPolicy: Local\n",
        )
        .with("mode: iptables, version: v1.34.0", "mode: ipvs, version: v1.21.14");
    assert_has(&network.scan(), &["UT311", "no-endpoint"]);
    let refused = network.cure("UT311", "calls-through-balancer");
    assert_has(
        &refused,
        &["not here:", "without a rule for the address, no client gets an answer"],
    );
}
