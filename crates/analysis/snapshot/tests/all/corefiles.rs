//! The Corefile is the one that the cluster's name servers mount, whatever its ConfigMap is called.

use uturn_model::Cluster;
use uturn_snapshot::{Source, read};

/// A DNS Service of an operator or a chart, its pods, and two ConfigMaps. Each container line is in
/// the place of `CONTAINER`, each volume in that of `VOLUME`.
const CLUSTER: &str = r#"
apiVersion: v1
kind: Node
metadata: {name: n1}
spec: {podCIDR: 10.1.1.0/24}
status: {addresses: [{type: InternalIP, address: 10.0.0.1}]}
---
apiVersion: v1
kind: Service
metadata: {name: names, namespace: dns}
spec:
  clusterIP: 10.96.0.10
  selector: {app: names}
  ports: [{name: dns, port: 53, protocol: UDP}]
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: names, namespace: dns}
spec:
  selector: {matchLabels: {app: names}}
  template:
    metadata: {labels: {app: names}}
    spec:
      containers: [CONTAINER]
      volumes: [VOLUME]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: answers, namespace: dns}
data:
  Corefile: ".:53 {\n  kubernetes own.example\n}"
  Corefile.other: ".:53 {\n  kubernetes other.example\n}"
  hosts: "192.0.2.1 shop.example.com"
---
apiVersion: v1
kind: ConfigMap
metadata: {name: coredns, namespace: kube-system}
data:
  Corefile: ".:53 {\n  kubernetes customary.example\n}"
"#;

const CONTAINER: &str = "{name: dns, image: registry.example/coredns:v1.12.0, \
                         args: [-conf, /etc/dns/Corefile], \
                         volumeMounts: [{name: config, mountPath: /etc/dns}]}";
const VOLUME: &str = "{name: config, configMap: {name: answers}}";

fn cluster(text: &str) -> Cluster {
    read(vec![Source { name: "a.yaml".into(), text: text.into() }]).unwrap().cluster
}

fn built(container: &str, volume: &str) -> Cluster {
    cluster(&CLUSTER.replace("CONTAINER", container).replace("VOLUME", volume))
}

#[test]
fn the_config_map_that_the_pods_mount_is_read() {
    let built = built(CONTAINER, VOLUME);
    assert_eq!(built.dns.service.as_ref().unwrap().to_string(), "dns/names");
    assert_eq!(built.dns.config_map().to_string(), "dns/answers");
    assert_eq!(built.dns.domain(), "own.example");
    let corefile = built.dns.corefile.unwrap();
    assert_eq!(corefile.release.unwrap().to_string(), "v1.12.0");
    let beside: Vec<&str> = corefile.beside.iter().map(|file| &*file.path).collect();
    assert_eq!(beside, ["/etc/dns/Corefile.other", "/etc/dns/hosts"]);
}

#[test]
fn arguments_and_items_name_the_key() {
    let named = CONTAINER.replace("dns/Corefile", "dns/Corefile.other");
    assert_eq!(built(&named, VOLUME).dns.domain(), "other.example");
    let items = "{name: config, configMap: {name: answers, \
                 items: [{key: Corefile.other, path: Corefile}]}}";
    let built = built(CONTAINER, items);
    assert_eq!(built.dns.domain(), "other.example");
    assert_eq!(built.dns.config_key(), "Corefile.other");
}

/// An image that is named by its digest tells nothing: the command does.
#[test]
fn the_command_says_that_it_is_coredns() {
    let digest = CONTAINER
        .replace("registry.example/coredns:v1.12.0", "registry.example/release@sha256:0f")
        .replace("args: [-conf,", "command: [/usr/bin/coredns], args: [\"-conf\",");
    assert_eq!(built(&digest, VOLUME).dns.domain(), "own.example");
}

/// What another ConfigMap says does not count if the mounted one is not given: the usual
/// configuration is assumed, and the assumption names the ConfigMap that would settle it.
#[test]
fn a_mounted_config_map_that_is_not_given_is_named() {
    let built = built(CONTAINER, &VOLUME.replace("answers", "elsewhere"));
    assert_eq!(built.dns.corefile, None);
    let all = built.supposed.iter().map(|own| own.because.to_string());
    let all: Vec<String> = all.collect();
    assert!(all.iter().any(|own| own == "there is no ConfigMap dns/elsewhere"), "{all:?}");
}

/// Pods that mount nothing leave the customary ConfigMap.
#[test]
fn without_a_mount_the_customary_one_is_taken() {
    let built = built("{name: dns, image: coredns/coredns:1.12.0}", VOLUME);
    assert_eq!(built.dns.domain(), "customary.example");
    assert_eq!(built.dns.config_map().to_string(), "kube-system/coredns");
}

/// A CoreDNS that an application runs for names of its own is not the cluster's name server.
#[test]
fn a_coredns_without_the_clusters_names_is_an_application() {
    let text = CLUSTER.replace("CONTAINER", CONTAINER).replace("VOLUME", VOLUME);
    let (text, _) = text.rsplit_once("---").unwrap();
    let own = text.replace("kubernetes own.example", "whoami");
    let own = own.replace("kubernetes other.example", "forward . 192.0.2.53");
    let own = cluster(&own);
    assert_eq!((own.dns.service, own.dns.corefile), (None, None));
    assert_eq!(cluster(text).dns.service.unwrap().to_string(), "dns/names");
}

/// The cache on each node has a Corefile of its own.
#[test]
fn the_cache_mounts_its_own() {
    let cache = "
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: cache, namespace: dns}
spec:
  selector: {matchLabels: {app: cache}}
  template:
    metadata: {labels: {app: cache}}
    spec:
      hostNetwork: true
      containers:
      - name: cache
        image: registry.example/k8s-dns-node-cache:1.23.0
        args: [-localip, 169.254.20.10, -conf, /etc/Corefile]
        volumeMounts: [{name: config, mountPath: /etc/coredns}]
      volumes:
      - name: config
        configMap: {name: of-cache, items: [{key: Corefile, path: Corefile.base}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: of-cache, namespace: dns}
data: {Corefile: 'own.example:53 { forward . 10.96.0.10 }'}
---";
    let text = CLUSTER.replace("CONTAINER", CONTAINER).replace("VOLUME", VOLUME);
    let built = cluster(&format!("{cache}{text}"));
    let cache = built.dns.node_local.as_ref().unwrap();
    assert_eq!(&*cache.text, "own.example:53 { forward . 10.96.0.10 }");
    assert_eq!(built.dns.domain(), "own.example");
}
