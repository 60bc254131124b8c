//! A large cluster as manifests, to see how uturn grows: nodes, pods with owners, Services
//! of all kinds with their slices, Ingresses, as `kubectl get -o json` prints them.
//!
//! Everything comes from a seed, and is written as it is made: the file may be larger than
//! memory.

mod cloud;

use std::fs::File;
use std::io::{self, BufWriter, Write};

use uturn_dice::Dice;

use crate::Done;
use crate::shell::Failure;

/// How large, and where to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) nodes: u32,
    pub(crate) pods: u32,
    pub(crate) targets: u32,
    pub(crate) seed: u64,
    pub(crate) file: String,
}

impl Size {
    pub(crate) fn parse(words: &[&str]) -> Result<Self, String> {
        let mut size =
            Self { nodes: 5000, pods: 150_000, targets: 10_000, seed: 1, file: String::new() };
        for pair in words.chunks(2) {
            let [key, value] = pair else {
                return Err(format!("{}: expected a value after it", pair[0]));
            };
            let number = || {
                let number: Result<u32, _> = value.parse();
                number.map_err(|_| format!("{key} {value}: expected a number"))
            };
            match *key {
                "--nodes" => size.nodes = number()?.clamp(1, 65_000),
                "--pods" => size.pods = number()?,
                "--targets" => size.targets = number()?,
                "--seed" => size.seed = number()?.into(),
                "-o" => (*value).clone_into(&mut size.file),
                _ => return Err(format!("gen-cluster takes no {key:?}")),
            }
        }
        if size.file.is_empty() {
            return Err("gen-cluster: expected -o FILE".to_owned());
        }
        if size.pods > size.nodes * MOST_ON_NODE {
            return Err(format!("gen-cluster: at most {MOST_ON_NODE} pods a node have addresses"));
        }
        Ok(size)
    }
}

/// A node's range is a /26.
const MOST_ON_NODE: u32 = 60;
/// Pods in the node's own network, on each node.
fn daemons() -> [&'static str; 3] {
    ["kube-proxy", "ip-masq-agent", cloud::word("network-agent")]
}

pub(crate) fn run(size: &Size) -> Result<Done, Failure> {
    let write = || -> io::Result<u64> {
        let mut out = Writer {
            out: BufWriter::with_capacity(1 << 20, File::create(&size.file)?),
            draw: Draw(Dice::new(size.seed)),
            first: true,
            written: 0,
            on_node: vec![0; size.nodes as usize],
        };
        out.cluster(size)?;
        out.out.flush()?;
        Ok(out.written)
    };
    let written = write().map_err(|why| Failure(format!("{}: {why}", size.file)))?;
    println!("{}: {} MB", size.file, written / 1_000_000);
    Ok(Done::Whole)
}

/// Random numbers of a cluster.
struct Draw(Dice);

impl Draw {
    /// A number below `limit`, or 0.
    fn below(&mut self, limit: u32) -> u32 {
        self.0.below(limit.max(1) as usize) as u32
    }

    /// True with this probability in percent.
    fn percent(&mut self, share: u32) -> bool {
        self.below(100) < share
    }

    /// The replicas of a workload: usually few, sometimes many.
    fn replicas(&mut self) -> u32 {
        match self.below(100) {
            0..50 => 1 + self.below(4),
            50..85 => 3 + self.below(12),
            85..98 => 10 + self.below(40),
            _ => 50 + self.below(200),
        }
    }
}

struct Writer {
    out: BufWriter<File>,
    draw: Draw,
    first: bool,
    written: u64,
    /// How many pods each node has.
    on_node: Vec<u32>,
}

/// One endpoint of a Service.
struct Endpoint {
    pod: String,
    node: u32,
    ip: String,
    ready: bool,
}

impl Writer {
    fn cluster(&mut self, size: &Size) -> io::Result<()> {
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
            // What is left has to do for all that come.
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
        while self.on_node[node as usize] >= MOST_ON_NODE {
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
            // The usual range is too small for such clusters; a port is one Service's alone.
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
        // Neighbours in the list are mostly of one namespace.
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

fn facts() -> String {
    format!(
        r#"{{"apiVersion":"uturn.dev/v1alpha1","kind":"Facts","spec":{{"provider":"{provider}","kubeProxy":{{"mode":"iptables","version":"v1.30.0","variant":"upstream"}},"network":{{"mode":"global-router","podCIDRs":["10.64.0.0/10"],"vpcCIDRs":["10.0.0.0/10"],"serviceCIDRs":["172.16.0.0/12"]}}}}}}"#,
        provider = cloud::word("provider"),
    )
}

fn node_name(node: u32) -> String {
    node_ip(node)
}

fn node_ip(node: u32) -> String {
    format!("10.{}.{}.{}", node / 62_500, node / 250 % 250, 1 + node % 250)
}

fn pod_ip(node: u32, host: u32) -> String {
    let at = (node << 6) + host;
    format!("10.{}.{}.{}", 64 + (at >> 16), at >> 8 & 255, at & 255)
}

fn service_ip(number: u32) -> String {
    let at = number + 256;
    format!("172.{}.{}.{}", 16 + (at >> 16), at >> 8 & 255, at & 255)
}

fn vip(number: u32) -> String {
    format!("10.{}.{}.{}", 32 + (number >> 16), number >> 8 & 255, number & 255)
}

fn namespace(service: u32) -> String {
    format!("team-{}", service / 20)
}

fn uid(kind: u32, number: u32) -> String {
    format!("{number:08x}-0000-4000-8000-{kind:012x}")
}

struct Pod<'p> {
    namespace: &'p str,
    name: &'p str,
    app: &'p str,
    owner: (&'p str, &'p str),
    node: u32,
    ip: &'p str,
    port: u32,
    host: bool,
    ready: bool,
}

fn pod_text(pod: &Pod<'_>, uid: &str) -> String {
    let Pod { namespace, name, app, ip, .. } = pod;
    let ports = match pod.port {
        0 => String::new(),
        port => format!(r#","ports":[{{"containerPort":{port},"name":"http","protocol":"TCP"}}]"#),
    };
    let host = if pod.host { r#""hostNetwork":true,"# } else { "" };
    let ready = if pod.ready { "True" } else { "False" };
    format!(
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"creationTimestamp":"2026-02-03T04:05:06Z","generateName":"{app}-6b7f9c5d4-","labels":{{"app":"{app}","pod-template-hash":"6b7f9c5d4","team":"{namespace}"}},"name":"{name}","namespace":"{namespace}","ownerReferences":[{{"apiVersion":"apps/v1","blockOwnerDeletion":true,"controller":true,"kind":"{kind}","name":"{owner}","uid":"{uid}"}}],"resourceVersion":"{node}","uid":"{uid}"}},"spec":{{"containers":[{{"env":[{{"name":"POD_NAME","valueFrom":{{"fieldRef":{{"apiVersion":"v1","fieldPath":"metadata.name"}}}}}},{{"name":"LOG_LEVEL","value":"info"}}],"image":"images.example.com/{namespace}/{app}:v1.2.3","imagePullPolicy":"IfNotPresent","livenessProbe":{{"failureThreshold":3,"httpGet":{{"path":"/healthz","port":8080,"scheme":"HTTP"}},"periodSeconds":10,"timeoutSeconds":1}},"name":"main"{ports},"resources":{{"limits":{{"cpu":"1","memory":"1Gi"}},"requests":{{"cpu":"100m","memory":"128Mi"}}}},"volumeMounts":[{{"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount","name":"kube-api-access","readOnly":true}}]}}],"dnsPolicy":"ClusterFirst","enableServiceLinks":true,{host}"nodeName":"{node_name}","priority":0,"restartPolicy":"Always","schedulerName":"default-scheduler","serviceAccountName":"default","tolerations":[{{"effect":"NoExecute","key":"node.kubernetes.io/not-ready","operator":"Exists","tolerationSeconds":300}}],"volumes":[{{"name":"kube-api-access","projected":{{"defaultMode":420,"sources":[{{"serviceAccountToken":{{"expirationSeconds":3607,"path":"token"}}}}]}}}}]}},"status":{{"conditions":[{{"lastTransitionTime":"2026-02-03T04:05:06Z","status":"True","type":"Initialized"}},{{"lastTransitionTime":"2026-02-03T04:05:16Z","status":"{ready}","type":"Ready"}}],"containerStatuses":[{{"containerID":"containerd://{uid}","image":"images.example.com/{namespace}/{app}:v1.2.3","name":"main","ready":true,"restartCount":0,"started":true}}],"hostIP":"{host_ip}","phase":"Running","podIP":"{ip}","podIPs":[{{"ip":"{ip}"}}],"qosClass":"Burstable","startTime":"2026-02-03T04:05:06Z"}}}}"#,
        kind = pod.owner.0,
        owner = pod.owner.1,
        node = pod.node,
        node_name = node_name(pod.node),
        host_ip = node_ip(pod.node),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        let size = Size::parse(&["--nodes", "5", "--pods", "40", "-o", "x"]).unwrap();
        assert_eq!((size.nodes, size.pods, size.targets), (5, 40, 10_000));
        assert!(Size::parse(&["--nodes"]).is_err());
        assert!(Size::parse(&["--nodes", "5"]).is_err(), "no file");
        assert!(Size::parse(&["--nodes", "1", "--pods", "61", "-o", "x"]).is_err());
    }

    #[test]
    fn addresses_are_apart() {
        assert_eq!(node_ip(5000), "10.0.20.1");
        assert_eq!(pod_ip(1023, 61), "10.64.255.253");
        assert_eq!(pod_ip(1024, 2), "10.65.0.2");
    }
}
