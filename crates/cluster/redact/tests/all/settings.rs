//! Names that stand in settings as well as in objects: a word stands for one other word in both.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::common::{assert_same, redacted};
use serde_json::Value;
use uturn_model::{Flow, Protocol};
use uturn_path::Engine;
use uturn_snapshot::{Manifests, Source};

/// The example shop, with texts replaced in all its files.
fn shop(edits: &[(&str, &str)]) -> Manifests {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/shop");
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let mut sources: Vec<Source> = files
        .map(|path| Source {
            name: path.display().to_string().as_str().into(),
            text: fs::read_to_string(&path).unwrap(),
        })
        .collect();
    for (old, new) in edits {
        assert!(sources.iter().any(|source| source.text.contains(old)), "{old}");
        for source in &mut sources {
            source.text = source.text.replace(old, new);
        }
    }
    Manifests::of(sources)
}

/// How a call of a host ends.
fn outcome(manifests: &Manifests, flow: &Flow) -> String {
    let loaded = manifests.load().unwrap();
    let engine = Engine::new(&loaded.cluster).unwrap();
    let cases = engine.cases(flow).unwrap();
    let ends =
        cases.iter().map(|verdict| format!("{:?} {:?}", verdict.outcomes, verdict.mechanisms));
    ends.collect::<Vec<_>>().join("; ")
}

/// A call in the cluster, and the same call in the redacted one.
fn assert_answered_alike(manifests: &Manifests, host: &str) {
    let call = |from: &str, host: &str| Flow {
        from: format!("pod/{from}").parse().unwrap(),
        to: format!("http://{host}/").parse().unwrap(),
        protocol: Protocol::Tcp,
    };
    let plain = outcome(manifests, &call("shop/web-0", host));
    assert!(!plain.contains("NameUnresolved"), "{host}: {plain}");
    let (redacted, read) = redacted(manifests, 7);
    let map: Value = serde_json::from_str(&redacted.map()).unwrap();
    let words: BTreeMap<&str, &str> = map["words"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(new, old)| (old.as_str().unwrap(), &**new))
        .collect();
    let new = |text: &str, separator: &str| {
        let word =
            |word: &str| words.get(word).map_or_else(|| word.to_owned(), |new| (*new).to_owned());
        text.split(separator).map(word).collect::<Vec<_>>().join(separator)
    };
    let from = format!("{}/{}-0", new("shop", "/"), new("web", "-"));
    let told = outcome(&read, &call(&from, &new(host, ".")));
    assert_eq!(told, plain, "{host}: {:#?}", redacted.files["objects/configmap.json"]);
}

const HOSTS: &str = "        hosts {
            10.0.0.100 shop.example.com
            fallthrough
        }
";

#[test]
fn corefiles() {
    // A file beside the Corefile, as k3s has it: case counts in its name.
    let file = "        hosts /etc/coredns/NodeHosts {\n            fallthrough\n        }\n";
    let beside = "  NodeHosts: |\n    10.0.0.100 api.corp.internal\n  Corefile: |\n";
    let k3s = shop(&[(HOSTS, file), ("  Corefile: |\n", beside)]);
    assert_answered_alike(&k3s, "api.corp.internal");
    // Files that a pattern imports, as AKS has them.
    let custom = "  Corefile: |
---
apiVersion: v1
kind: ConfigMap
metadata: {name: coredns-custom, namespace: kube-system}
data:
  umbra.override: |
    hosts {
      10.0.0.100 api.corp.internal
      fallthrough
    }
---
apiVersion: v1
kind: ConfigMap
metadata: {name: coredns, namespace: kube-system}
data:
  Corefile: |
";
    let mounts = "        volumeMounts: [{name: config, mountPath: /etc/coredns}, {name: custom, mountPath: /etc/coredns/custom}]
        ports:
        - {name: dns, containerPort: 53, protocol: UDP}
";
    let volumes = "      volumes: [{name: config, configMap: {name: coredns}}, {name: custom, configMap: {name: coredns-custom}}]
      dnsPolicy: Default
      containers:
      - name: coredns
";
    let first = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: coredns, namespace: kube-system}\ndata:\n";
    let aks = shop(&[
        (&format!("{first}  Corefile: |\n"), &custom.replacen("  Corefile: |\n---\n", "", 1)),
        (HOSTS, "        import custom/*.override\n"),
        ("        ports:\n        - {name: dns, containerPort: 53, protocol: UDP}\n", mounts),
        ("      dnsPolicy: Default\n      containers:\n      - name: coredns\n", volumes),
    ]);
    assert_answered_alike(&aks, "api.corp.internal");
    // A zone that is called like a word of the language.
    let dev = "    dev:53 {\n        hosts {\n            10.0.0.100 api.dev\n        }\n    }\n    .:53 {\n";
    assert_answered_alike(&shop(&[("    .:53 {\n", dev)]), "api.dev");
    // Names of hosts are compared without case, also those that are known.
    let capital = shop(&[("10.0.0.100 shop.example.com", "10.0.0.100 Web.corp.example")]);
    assert_answered_alike(&capital, "web.corp.example");
    // And those that stay in this input.
    let class = "apiVersion: networking.k8s.io/v1\nkind: IngressClass\nmetadata: {name: nginx}\nspec: {controller: \
                 k8s.io/ingress-nginx}\n---\napiVersion: networking.k8s.io/v1\nkind: Ingress\n";
    let stays = shop(&[
        ("shop.example.com", "nginx.example.com"),
        ("10.0.0.100 nginx.example.com", "10.0.0.100 Nginx.example.com"),
        ("apiVersion: networking.k8s.io/v1\nkind: Ingress\n", class),
    ]);
    assert_answered_alike(&stays, "nginx.example.com");
    let map = redacted(&stays, 7).0.map();
    assert!(!map.contains("nginx"), "it stays in one place and goes in another: {map}");
    // Classes and boundaries of regular expressions.
    for host in [r"[a-z0-9._-]+", "[a-z]+", r"\bapi\b", "api"] {
        let rewrite = format!(
            "        rewrite stop {{\n            name regex ({host})\\.umbrella\\.io {{1}}.shop.svc.cluster.local\n            \
             answer auto\n        }}\n{HOSTS}"
        );
        assert_answered_alike(&shop(&[(HOSTS, &rewrite)]), "api.umbrella.io");
    }
}

/// Objects and Facts name protocols in any case.
#[test]
fn protocols_in_any_case() {
    const FIRST: &str = "# Three nodes,";
    for [tcp, udp] in [["Tcp", "uDP"], ["tCP", "Udp"]] {
        let facts = format!(
            "apiVersion: uturn.dev/v1alpha1\nkind: Facts\nspec:\n  nodes: {{\"*\": {{securityGroups: [sg]}}}}\n  \
             securityGroups:\n    sg:\n      inbound: [{{action: accept, protocol: {tcp}, ports: 30000-32768, peer: all}}]\n\
             ---\n{FIRST}"
        );
        let edits = [
            (FIRST, &*facts),
            ("protocol: TCP", &*format!("protocol: {tcp}")),
            ("protocol: UDP", &*format!("protocol: {udp}")),
        ];
        assert_same(&shop(&edits), 3, tcp);
    }
}

#[test]
fn names_and_labels_of_nodes() {
    for name in ["k3s-agent-", "ip-10-0-0-1", "private-", "umbra-"] {
        let names: Vec<(String, String)> = (1..4)
            .flat_map(|number| {
                [
                    (format!("nodeName: n{number}\n"), format!("nodeName: {name}{number}\n")),
                    (format!("name: n{number}\n"), format!("name: {name}{number}\n")),
                    (format!("hostname: n{number},"), format!("hostname: {name}{number},")),
                    (format!("address: n{number}}}"), format!("address: {name}{number}}}")),
                ]
            })
            .collect();
        let mut edits: Vec<(&str, &str)> =
            names.iter().map(|(old, new)| (&**old, &**new)).collect();
        let overrides =
            format!("--config=/var/lib/kube-proxy/config.conf, --hostname-override={name}1]");
        edits.extend([
            ("externalTrafficPolicy: Cluster", "externalTrafficPolicy: Local"),
            ("--config=/var/lib/kube-proxy/config.conf]", &*overrides),
        ]);
        assert_same(&shop(&edits), 3, name);
    }
}

/// Addresses in names are those that stand beside them.
#[test]
fn addresses_in_names() {
    let pod = "apiVersion: v1
kind: Pod
metadata:
  name: proxy-10-77-3-4-7d9f8b6c5d
  namespace: shop
  labels: {at: '10_77_3_4', mac: '00-50-56-12-34-56', other: '0050.5612.3456', six: 2001-470-26-307--11, bits: '0x0a4d0304'}
spec: {nodeName: node1-10-77-3-4, containers: [{name: c, image: c}]}
status: {phase: Running, podIP: 10.77.3.4, podIPs: [{ip: 10.77.3.4}, {ip: '2001:470:26:307::11'}]}
---
apiVersion: v1
kind: Service
metadata: {name: far, namespace: shop}
spec: {type: ExternalName, externalName: app1.10.77.3.4.nip.io}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: coredns, namespace: kube-system}
data: {Corefile: \"2.77.10.IN-ADDR.ARPA {\\n  whoami\\n}\\n\"}
";
    let source = Source { name: "a.yaml".into(), text: pod.to_owned() };
    let (redacted, _) = redacted(&Manifests::of(vec![source]), 5);
    let text: String = redacted.files.values().cloned().collect();
    for gone in ["10-77", "10.77", "10_77", "0a4d", "77.10", "50-56", "5612", "470-26", "470:26"] {
        assert!(!text.contains(gone), "{gone}: {text}");
    }
    let map: Value = serde_json::from_str(&redacted.map()).unwrap();
    let (new, _) =
        map["addresses"].as_object().unwrap().iter().find(|(_, old)| *old == "10.77.3.4").unwrap();
    for form in [new.clone(), new.replace('.', "-"), new.replace('.', "_")] {
        assert!(text.contains(&form), "{form}: {text}");
    }
}
