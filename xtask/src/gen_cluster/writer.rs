//! Writes the objects of a cluster, one after the other.

use std::fs::File;
use std::io::{self, BufWriter, Write};

use super::addresses::{namespace, node_ip, node_name, pod_ip, service_ip, uid, vip};
use super::draw::Draw;
use super::pod::{Pod, pod_text};
use super::{MAX_ON_NODE, Size, cloud};

pub(super) struct Writer {
    pub(super) out: BufWriter<File>,
    pub(super) draw: Draw,
    pub(super) first: bool,
    pub(super) written: u64,
    /// The number of pods on each node.
    pub(super) on_node: Vec<u32>,
}

/// One endpoint of a Service.
struct Endpoint {
    pod: String,
    node: u32,
    ip: String,
    ready: bool,
}

impl Writer {
    pub(super) fn cluster(&mut self, size: &Size) -> io::Result<()> {
        self.raw("{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[\n")?;
        self.item(&facts())?;
        for node in 0..size.nodes {
            self.node(node)?;
        }
        let mut left = size.pods;
        for node in 0..size.nodes {
            for name in daemons().iter().take(left as usize) {
                left -= 1;
                self.on_node[node as usize] += 1;
                self.daemon(name, node)?;
            }
        }
        self.dns(size, &mut left)?;
        let services = size.targets - size.targets / 4;
        let mut exposed: Vec<(u32, String)> = Vec::new();
        for number in 0..services {
            // The remaining pods have to suffice for all further Services.
            let most = 1 + 2 * left / (services - number);
            let wanted = self.draw.replicas().min(most).min(left);
            left -= wanted;
            self.service(size, number, wanted, &mut exposed)?;
        }
        for number in 0..size.targets / 4 {
            self.ingress(number, &exposed)?;
        }
        let mut job = 0;
        while left > 0 {
            let name = format!("job-{job}");
            let node = self.free_node(size);
            self.pod("batch", &name, "batch", node, 0, true)?;
            job += 1;
            left -= 1;
        }
        self.raw("\n]}\n")
    }

    fn raw(&mut self, text: &str) -> io::Result<()> {
        self.written += text.len() as u64;
        self.out.write_all(text.as_bytes())
    }

    fn item(&mut self, text: &str) -> io::Result<()> {
        if !std::mem::take(&mut self.first) {
            self.raw(",\n")?;
        }
        self.raw(text)
    }

    fn node(&mut self, node: u32) -> io::Result<()> {
        let zone = node % 3;
        let (ip, cidr) = (node_ip(node), pod_ip(node, 0));
        self.item(&format!(
            r#"{{"apiVersion":"v1","kind":"Node","metadata":{{"annotations":{{"node.alpha.kubernetes.io/ttl":"0","volumes.kubernetes.io/controller-managed-attach-detach":"true"}},"creationTimestamp":"2026-02-03T04:05:06Z","labels":{{"beta.kubernetes.io/arch":"amd64","kubernetes.io/arch":"amd64","kubernetes.io/hostname":"{name}","kubernetes.io/os":"linux","node.kubernetes.io/instance-type":"S5.4XLARGE32","topology.kubernetes.io/region":"gz","topology.kubernetes.io/zone":"10000{zone}"}},"name":"{name}","resourceVersion":"{node}","uid":"{uid}"}},"spec":{{"podCIDR":"{cidr}/26","podCIDRs":["{cidr}/26"],"providerID":"{provider_id}10000{zone}/ins-{node:08x}"}},"status":{{"addresses":[{{"address":"{ip}","type":"InternalIP"}},{{"address":"{name}","type":"Hostname"}}],"allocatable":{{"cpu":"15890m","memory":"28Gi","pods":"61"}},"conditions":[{{"lastHeartbeatTime":"2026-02-04T04:05:06Z","message":"kubelet is posting ready status","reason":"KubeletReady","status":"True","type":"Ready"}}],"nodeInfo":{{"architecture":"amd64","containerRuntimeVersion":"containerd://1.6.9","kernelVersion":"5.4.119-19.0009","kubeProxyVersion":"v1.30.0","kubeletVersion":"v1.30.0","operatingSystem":"linux","osImage":"{os_image}"}}}}}}"#,
            name = node_name(node),
            uid = uid(1, node),
            provider_id = cloud::word("provider-id"),
            os_image = cloud::word("os-image"),
        ))
    }

    fn daemon(&mut self, name: &str, node: u32) -> io::Result<()> {
        let text = pod_text(
            &Pod {
                namespace: "kube-system",
                name: &format!("{name}-{node:05x}"),
                app: name,
                owner: ("DaemonSet", name),
                node,
                ip: &node_ip(node),
                port: 0,
                host: true,
                ready: true,
            },
            &uid(2, node),
        );
        self.item(&text)
    }

    fn free_node(&mut self, size: &Size) -> u32 {
        let mut node = self.draw.below(size.nodes);
        while self.on_node[node as usize] >= MAX_ON_NODE {
            node = (node + 1) % size.nodes;
        }
        node
    }

    fn pod(
        &mut self,
        namespace: &str,
        name: &str,
        app: &str,
        node: u32,
        port: u32,
        ready: bool,
    ) -> io::Result<String> {
        let there = &mut self.on_node[node as usize];
        *there += 1;
        let ip = pod_ip(node, *there + 1);
        let owner = ("ReplicaSet", app);
        let pod = Pod { namespace, name, app, owner, node, ip: &ip, port, host: false, ready };
        let text = pod_text(&pod, &uid(3, node << 8 | *there));
        self.item(&text)?;
        Ok(ip)
    }

    fn dns(&mut self, size: &Size, left: &mut u32) -> io::Result<()> {
        let mut ends = Vec::new();
        for number in 0..4.min(*left) {
            *left -= 1;
            let node = self.free_node(size);
            let pod = format!("coredns-{number}");
            let ip = self.pod("kube-system", &pod, "kube-dns", node, 53, true)?;
            ends.push(Endpoint { pod, node, ip, ready: true });
        }
        self.item(r#"{"apiVersion":"v1","kind":"Service","metadata":{"name":"kube-dns","namespace":"kube-system","labels":{"k8s-app":"kube-dns"}},"spec":{"clusterIP":"172.16.0.10","clusterIPs":["172.16.0.10"],"ports":[{"name":"dns","port":53,"protocol":"UDP","targetPort":53},{"name":"dns-tcp","port":53,"protocol":"TCP","targetPort":53}],"selector":{"k8s-app":"kube-dns"},"type":"ClusterIP"}}"#)?;
        let ports = r#"{"name":"dns","port":53,"protocol":"UDP"},{"name":"dns-tcp","port":53,"protocol":"TCP"}"#;
        self.slices("kube-system", "kube-dns", ports, &ends)
    }

    fn service(
        &mut self,
        size: &Size,
        number: u32,
        replicas: u32,
        exposed: &mut Vec<(u32, String)>,
    ) -> io::Result<()> {
        let (namespace, name) = (namespace(number), format!("app-{number}"));
        let listens = [8080, 8080, 8080, 80, 3000, 9090][self.draw.below(6) as usize];
        // A few Services send to a port on which no process listens.
        let target = if self.draw.percent(1) { listens + 1 } else { listens };
        let mut ends = Vec::new();
        for replica in 0..replicas {
            let node = self.free_node(size);
            let pod = format!("{name}-6b7f9c5d4-{replica:05x}");
            let ready = !self.draw.percent(1);
            let ip = self.pod(&namespace, &pod, &name, node, listens, ready)?;
            ends.push(Endpoint { pod, node, ip, ready });
        }
        let kind = match self.draw.below(100) {
            0..60 => "ClusterIP",
            60..85 => "NodePort",
            _ => "LoadBalancer",
        };
        let ip = service_ip(number);
        let mut notes = Vec::new();
        let mut more = String::new();
        let mut status = String::from("{\"loadBalancer\":{}}");
        let mut port = String::new();
        if kind != "ClusterIP" {
            exposed.push((number, name.clone()));
            let policy = if self.draw.percent(30) { "Local" } else { "Cluster" };
            more = format!(r#","externalTrafficPolicy":"{policy}""#);
            // The usual range is too small for such clusters: each port belongs to one Service
            // only.
            let free = u16::try_from(9_999 + exposed.len());
            let free = free.map_err(|_| io::Error::other("there are not so many node ports"))?;
            port = format!(r#","nodePort":{free}"#);
        }
        if kind == "LoadBalancer" {
            let subnet = cloud::word("private-subnet");
            notes.push(format!(r#""{subnet}":"subnet-1""#));
            notes.push(format!(r#""service.kubernetes.io/loadbalance-id":"lb-{number:08x}""#));
            if self.draw.percent(20) {
                let pods = cloud::word("pods-as-targets");
                notes.push(format!(r#""{pods}":"true""#));
            }
            status = format!(r#"{{"loadBalancer":{{"ingress":[{{"ip":"{}"}}]}}}}"#, vip(number));
        }
        self.item(&format!(
            r#"{{"apiVersion":"v1","kind":"Service","metadata":{{"annotations":{{{notes}}},"creationTimestamp":"2026-02-03T04:05:06Z","labels":{{"app":"{name}"}},"name":"{name}","namespace":"{namespace}","resourceVersion":"{number}","uid":"{uid}"}},"spec":{{"clusterIP":"{ip}","clusterIPs":["{ip}"],"internalTrafficPolicy":"Cluster","ipFamilies":["IPv4"],"ipFamilyPolicy":"SingleStack","ports":[{{"name":"http","port":80,"protocol":"TCP","targetPort":{target}{port}}}],"selector":{{"app":"{name}"}},"sessionAffinity":"None","type":"{kind}"{more}}},"status":{status}}}"#,
            notes = notes.join(","),
            uid = uid(4, number),
        ))?;
        let ports = format!(r#"{{"name":"http","port":{target},"protocol":"TCP"}}"#);
        self.slices(&namespace, &name, &ports, &ends)
    }

    fn slices(
        &mut self,
        namespace: &str,
        service: &str,
        ports: &str,
        ends: &[Endpoint],
    ) -> io::Result<()> {
        for (part, ends) in ends.chunks(100).enumerate() {
            let ends: Vec<String> = ends
                .iter()
                .map(|endpoint| {
                    format!(
                        r#"{{"addresses":["{}"],"conditions":{{"ready":{ready},"serving":{ready},"terminating":false}},"nodeName":"{}","targetRef":{{"kind":"Pod","name":"{}","namespace":"{namespace}"}},"zone":"10000{}"}}"#,
                        endpoint.ip,
                        node_name(endpoint.node),
                        endpoint.pod,
                        endpoint.node % 3,
                        ready = endpoint.ready,
                    )
                })
                .collect();
            self.item(&format!(
                r#"{{"addressType":"IPv4","apiVersion":"discovery.k8s.io/v1","endpoints":[{}],"kind":"EndpointSlice","metadata":{{"labels":{{"endpointslice.kubernetes.io/managed-by":"endpointslice-controller.k8s.io","kubernetes.io/service-name":"{service}"}},"name":"{service}-{part}","namespace":"{namespace}"}},"ports":[{ports}]}}"#,
                ends.join(",")
            ))?;
        }
        Ok(())
    }

    fn ingress(&mut self, number: u32, exposed: &[(u32, String)]) -> io::Result<()> {
        if exposed.is_empty() {
            return Ok(());
        }
        let first = self.draw.below(exposed.len() as u32) as usize;
        let namespace = namespace(exposed[first].0);
        // Neighbours in the list are mostly in the same namespace.
        let own: Vec<&str> = exposed[first..]
            .iter()
            .take_while(|(service, _)| namespace == self::namespace(*service))
            .take(3)
            .map(|(_, name)| name.as_str())
            .collect();
        let rules: Vec<String> = (0..=self.draw.below(2))
            .map(|host| {
                let paths: Vec<String> = own
                    .iter()
                    .enumerate()
                    .map(|(at, service)| {
                        let path = if at == 0 { "/".to_owned() } else { format!("/part-{at}") };
                        format!(
                            r#"{{"backend":{{"service":{{"name":"{service}","port":{{"number":80}}}}}},"path":"{path}","pathType":"Prefix"}}"#
                        )
                    })
                    .collect();
                format!(
                    r#"{{"host":"h{host}-{number}.example.com","http":{{"paths":[{}]}}}}"#,
                    paths.join(",")
                )
            })
            .collect();
        self.item(&format!(
            r#"{{"apiVersion":"networking.k8s.io/v1","kind":"Ingress","metadata":{{"annotations":{{"{subnet}":"subnet-1"}},"name":"web-{number}","namespace":"{namespace}","uid":"{uid}"}},"spec":{{"ingressClassName":"{class}","rules":[{}]}},"status":{{"loadBalancer":{{"ingress":[{{"ip":"{}"}}]}}}}}}"#,
            rules.join(","),
            vip(400_000 + number),
            uid = uid(5, number),
            subnet = cloud::word("ingress-private-subnet"),
            class = cloud::word("ingress-class"),
        ))
    }
}

/// Returns the names of the pods that run on each node in the node's own network.
fn daemons() -> [&'static str; 3] {
    ["kube-proxy", "ip-masq-agent", cloud::word("network-agent")]
}

fn facts() -> String {
    format!(
        r#"{{"apiVersion":"uturn.dev/v1alpha1","kind":"Facts","spec":{{"provider":"{provider}","kubeProxy":{{"mode":"iptables","version":"v1.30.0","variant":"upstream"}},"network":{{"mode":"global-router","podCIDRs":["10.64.0.0/10"],"vpcCIDRs":["10.0.0.0/10"],"serviceCIDRs":["172.16.0.0/12"]}}}}}}"#,
        provider = cloud::word("provider"),
    )
}
