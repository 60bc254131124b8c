//! Nothing of the original is in a redacted bundle: what is looked for is collected from the input
//! independently of what the redaction takes for a name.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::slice;

use super::common::{Folder, assert_same, redacted};
use super::dice::{self, Dice};
use serde_json::Value;
use uturn_snapshot::{Manifests, Source, json_documents};
use uturn_testing::variables;

/// A cluster of which everything that can be named has a name of its own.
const CLUSTER: &str = r#"
apiVersion: v1
kind: Node
metadata:
  name: ip-10-20-30-41.acme-internal
  uid: 3f1c0f4e-1111-4222-8333-abcdefabcdef
  labels: {kubernetes.io/hostname: ip-10-20-30-41.acme-internal, acme.io/rack: r17-basement, topology.kubernetes.io/zone: mars-north-7b}
  annotations: {acme.io/owner: "Jane Doe, jane@acme.example", projectcalico.org/IPv4Address: 10.20.30.41/24}
spec: {podCIDRs: [10.77.1.0/24], providerID: "aws:///mars-north-7b/i-0deadbeef1234567"}
status:
  addresses: [{type: InternalIP, address: 10.20.30.41}, {type: Hostname, address: ip-10-20-30-41.acme-internal}]
  nodeInfo: {kubeProxyVersion: v1.34.4, kernelVersion: 6.1.0-acmekernel}
---
apiVersion: v1
kind: Pod
metadata:
  name: checkout-7d9f8b6c5d-x2vqp
  namespace: payments
  labels: {app: checkout, pod-template-hash: 7d9f8b6c5d, acme.io/team: falcons}
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: checkout-7d9f8b6c5d, uid: 77777777-2222-4333-8444-555555555555}]
  annotations: {vault.acme.io/token: s3cr3tt0ken}
spec:
  nodeName: ip-10-20-30-41.acme-internal
  hostAliases: [{ip: 192.0.2.66, hostnames: [legacy.acme-corp.example]}]
  containers:
  - name: checkout
    image: registry.acme-corp.example:5000/falcons/checkout:2024.11-hotfix
    command: [/srv/checkout]
    args: [--db, "postgres://root:hunter22@db.acme-corp.example/ledger"]
    env: [{name: DB_PASSWORD, value: hunter23}]
    ports: [{name: acmeport, containerPort: 8080}]
status: {phase: Running, podIP: 10.77.1.12, podIPs: [{ip: 10.77.1.12}], conditions: [{type: Ready, status: "True"}]}
---
apiVersion: v1
kind: Service
metadata: {name: checkout, namespace: payments, labels: {acme.io/team: falcons}}
spec: {type: LoadBalancer, clusterIP: 172.20.5.6, selector: {app: checkout}, externalIPs: [198.51.100.77], loadBalancerSourceRanges: [81.82.83.0/24], ports: [{name: acmeport, port: 80, targetPort: acmeport, nodePort: 31234}]}
status: {loadBalancer: {ingress: [{hostname: a1b2c3d4acme.elb.eu-west-9.amazonaws.com}]}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: checkout-9xk2p, namespace: payments, labels: {kubernetes.io/service-name: checkout}}
addressType: IPv4
ports: [{name: acmeport, port: 8080, protocol: TCP}]
endpoints: [{addresses: [10.77.1.12], nodeName: ip-10-20-30-41.acme-internal, targetRef: {kind: Pod, name: checkout-7d9f8b6c5d-x2vqp, namespace: payments}, conditions: {ready: true}}]
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: storefront, namespace: payments}
spec:
  ingressClassName: nginx
  tls: [{hosts: [pay.acme-corp.example], secretName: acme-wildcard}]
  rules: [{host: pay.acme-corp.example, http: {paths: [{path: /ledger/v7, pathType: Prefix, backend: {service: {name: checkout, port: {name: acmeport}}}}]}}]
---
apiVersion: v1
kind: Secret
metadata: {name: crown-jewels, namespace: payments}
data: {password: aHVudGVyMjQ=}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: coredns, namespace: kube-system}
data:
  Corefile: |
    # asked for by jane
    .:53 {
        kubernetes cluster.local in-addr.arpa 20.172.in-addr.arpa
        rewrite name Legacy.acme-corp.example checkout.payments.svc.cluster.local
        hosts {
            192.0.2.66 legacy.acme-corp.example
            fallthrough
        }
        forward corp.acme.example 192.0.2.53
    }
---
apiVersion: v1
kind: ConfigMap
metadata: {name: unrelated, namespace: payments}
data: {dsn: "postgres://hunter25"}
---
apiVersion: acme.io/v1
kind: LedgerShard
metadata: {name: shard-zeta}
spec: {owner: falcons}
---
apiVersion: uturn.dev/v1alpha1
kind: Facts
metadata: {name: written-by-jane}
spec:
  nodes:
    ip-10-20-30-41.acme-internal:
      iptables: |
        *filter
        -A INPUT -s 81.82.83.84/32 -m comment --comment "acme scanner" -j DROP
        COMMIT
  dns: {outside: {partner.acme-corp.example: 198.51.100.9}}
"#;

fn manifests(text: &str) -> Manifests {
    Manifests::of(vec![Source { name: "all.yaml".into(), text: text.to_owned() }])
}

/// Words as a reader takes them: with what joins them, and without.
fn tokens(text: &str) -> BTreeSet<String> {
    let long = text.split(|letter: char| letter.is_whitespace() || "\"{}[],=;/@".contains(letter));
    let short = text.split(|letter: char| !letter.is_alphanumeric());
    let ips = text.split(|letter: char| !(letter.is_ascii_hexdigit() || ".:".contains(letter)));
    let all = long.chain(short).chain(ips).map(|token| token.trim_matches(['.', ':', '-']));
    all.map(str::to_lowercase).collect()
}

#[test]
fn a_cluster_full_of_names() {
    let redacted = assert_same(&manifests(CLUSTER), 3, "a cluster full of names");
    let all: String = redacted.files.iter().map(|(name, text)| format!("{name}\n{text}")).collect();
    let all = format!("{all}{}", redacted.manifest.text());
    if variables::is_set(variables::SHOW) {
        println!("{all}");
    }
    let found = tokens(&all);
    let gone = [
        "acme",
        "jane",
        "doe",
        "falcons",
        "payments",
        "checkout",
        "storefront",
        "ledger",
        "rack",
        "basement",
        "mars",
        "north",
        "7b",
        "0deadbeef1234567",
        "3f1c0f4e",
        "77777777",
        "x2vqp",
        "7d9f8b6c5d",
        "9xk2p",
        "hunter22",
        "hunter23",
        "hunter25",
        "s3cr3tt0ken",
        "legacy",
        "partner",
        "corp",
        "registry",
        "db",
        "postgres",
        "crown",
        "jewels",
        "ahvudgvymjq",
        "acmekernel",
        "hotfix",
        "acmeport",
        "shard",
        "zeta",
        "ledgershard",
        "a1b2c3d4acme",
        "wildcard",
        "unrelated",
        "scanner",
        "10.20.30.41",
        "10.77.1.12",
        "10.77.1.0",
        "172.20.5.6",
        "192.0.2.66",
        "198.51.100.77",
        "198.51.100.9",
        "81.82.83.0",
        "81.82.83.84",
        "192.0.2.53",
        "10-20-30-41",
        "team",
        "owner",
    ];
    for word in gone {
        assert!(!found.contains(word), "{word}:\n{all}");
        // Short ones are parts of other words, and so is this one: ownerReferences.
        let may_be_part = word.len() < 5 || word == "owner";
        assert!(may_be_part || !all.to_lowercase().contains(word), "{word}:\n{all}");
    }
    for kept in ["kube-system", "coredns", "cluster.local", "v1.34.4", "amazonaws.com", "31234"] {
        assert!(all.contains(kept), "{kept}:\n{all}");
    }
}

/// Every text that is a value or a key of a label in an object, but for fields' own words.
fn identities(of: &Value, key: &str, all: &mut BTreeSet<String>) {
    const NAMED: [&str; 12] = [
        "name",
        "namespace",
        "nodeName",
        "host",
        "hostname",
        "podIP",
        "ip",
        "clusterIP",
        "address",
        "uid",
        "path",
        "serviceName",
    ];
    match of {
        Value::Object(entries) => {
            for (own, value) in entries {
                let is_open = matches!(key, "labels" | "matchLabels" | "selector" | "nodeSelector");
                match (value, is_open) {
                    (Value::String(text), true) => drop(all.insert(text.clone())),
                    _ => identities(value, own, all),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| identities(item, key, all)),
        Value::String(text) if NAMED.contains(&key) || text.parse::<IpAddr>().is_ok() => {
            all.insert(text.clone());
        }
        _ => {}
    }
}

#[test]
fn random_clusters() {
    // Words that every cluster has, as names too. `controller` is a field of each IngressClass and
    // the last part of ingress-nginx's image; what follows it names ports.
    const EVERYWHERE: [&str; 9] = [
        "default",
        "kubernetes",
        "kube-system",
        "coredns",
        "127.0.0.1",
        "kube-proxy",
        "controller",
        "http",
        "https",
    ];
    for seed in 500..530 {
        let source = Source { name: "a.yaml".into(), text: dice::cluster(&mut Dice::new(seed)) };
        let documents = json_documents(slice::from_ref(&source)).unwrap();
        let mut names = BTreeSet::new();
        documents.iter().for_each(|document| identities(document, "", &mut names));
        let (redacted, _) = redacted(&Manifests::of(vec![source]), 7);
        let text: String = redacted.files.values().cloned().collect();
        let found = tokens(&text);
        for name in names.iter().filter(|name| name.len() > 1 && !EVERYWHERE.contains(&&***name)) {
            let says_nothing = name.bytes().all(|byte| !byte.is_ascii_alphabetic() && byte != b'.');
            assert!(
                says_nothing || !found.contains(&name.to_lowercase()),
                "seed {seed}: {name}\n{text}"
            );
        }
    }
}

#[test]
fn twice() {
    for seed in 700..710 {
        let text = dice::cluster(&mut Dice::new(seed));
        let (_, once) = redacted(&manifests(&text), 1);
        assert_same(&once, 2, "redacted again");
    }
}

#[test]
fn odd_texts_are_no_panic() {
    let mut dice = Dice::new(11);
    let pieces = [
        "10.0.0.1",
        "/24",
        "-",
        ".",
        ":",
        "::",
        "fe80::1",
        "é",
        "\\",
        "[a-z]",
        "\\d",
        "in-addr.arpa",
        "ip6.arpa",
        "1.0.",
        "\"",
        "{",
        "}",
        "*filter\n",
        "-A ",
        "KUBE-SVC-",
        "KUBE-SEP-ABCDEFGHIJKLMNOP",
        " -j ",
        "@",
        "elements = {",
        "\n",
        "__",
        "service-ABCDEFGH-a/b/tcp/",
        "999.1.1.1",
        "0x4000",
        "ß-Ω",
        "10-0-0-1",
        "#",
        ":",
        "add X ",
        "\u{0}",
        "%",
        "numgen random mod 2 map { 0 : ",
    ];
    for _ in 0..400 {
        let mut text = String::new();
        for _ in 0..dice.below(30) {
            text.push_str(pieces[dice.below(pieces.len())]);
        }
        let quoted = serde_json::to_string(&text).unwrap();
        let objects = format!(
            "{{\"apiVersion\": \"v1\", \"kind\": \"Service\", \"metadata\": {{\"name\": \"a\", \"labels\": {{\"k\": {quoted}}}, \
             \"annotations\": {{\"service.cloud.tencent.com/specify-protocol\": {quoted}}}}}, \"spec\": {{\"ports\": [{{\"port\": 80}}]}}}}\n---\n\
             {{\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"metadata\": {{\"name\": \"coredns\", \"namespace\": \"kube-system\"}}, \"data\": {{\"Corefile\": {quoted}}}}}\n---\n\
             {{\"apiVersion\": \"uturn.dev/v1alpha1\", \"kind\": \"Facts\", \"spec\": {{\"nodes\": {{\"n1\": {{\"iptables\": {quoted}}}}}}}}}\n"
        );
        let folder = Folder::new();
        let bundle = folder.0.join("b");
        std::fs::create_dir_all(bundle.join("nodes/n1")).unwrap();
        std::fs::write(bundle.join("a.yaml"), objects).unwrap();
        for file in uturn_model::CaptureFile::ALL {
            std::fs::write(bundle.join("nodes/n1").join(file.file_name()), &text).unwrap();
        }
        let (manifests, faults) = Manifests::gather(&[], &[bundle]);
        if faults.is_empty() {
            let _ = uturn_redact::redact(&manifests, &uturn_redact::Key::given(b"k"));
        }
    }
}
