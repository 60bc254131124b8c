//! Whole messages, as users see them.

#![allow(clippy::unwrap_used, reason = "a helper of a test may fail like the test")]

use std::path::PathBuf;

use uturn_snapshot::{Fault, Source, load, read};

/// The messages for one text in `a.yaml`.
fn messages(text: &str) -> String {
    messages_of(&[("a.yaml", text)])
}

fn messages_of(files: &[(&str, &str)]) -> String {
    let source =
        |(name, text): &(&str, &str)| Source { name: (*name).into(), text: (*text).to_owned() };
    match read(files.iter().map(source).collect()) {
        Ok(loaded) => panic!("read: {:?}", loaded.seen),
        Err(faults) => shown(&faults),
    }
}

fn shown(faults: &[Fault]) -> String {
    faults.iter().map(|fault| format!("{fault}\n")).collect()
}

const SERVICE: &str = "\
apiVersion: v1
kind: Service
metadata: {name: front, namespace: shop}
spec: {ports: [{port: 80}]}
";

#[test]
fn a_file_cut_in_half() {
    let json = r#"{"apiVersion": "v1", "kind": "Service",
  "metadata": {"name": "front", "namespace": "shop"},
  "spec": {"ports": [{"port": 80, "protocol": "TC"#;
    assert_eq!(
        messages(json),
        "a.yaml:3:50: the file ends where the end of a text should be\n  \
         is the file complete? the \" at line 3, column 47 is never closed\n"
    );
    assert_eq!(
        messages("apiVersion: v1\nkind: Service\nmetadata:\n  name: front\n  namesp"),
        "a.yaml:5:3: expected KEY: VALUE\n  the file ends here: is it complete?\n"
    );
    assert_eq!(
        messages("apiVersion: v1\nkind: Service\nmetadata:\n  name: \"fro"),
        "a.yaml:4:9: the file ends within a quoted text\n  is the file complete?\n"
    );
    assert_eq!(
        messages("apiVersion: v1\nkind: Service\nmetadata:\n  name: front\n"),
        "a.yaml:1:1: spec: missing: expected the Service's ports\n"
    );
}

/// An API server refuses them, or drops the field where it is not asked to be strict.
#[test]
fn misspelt_fields_of_kubernetes() {
    for (from, to, message) in [
        (
            "spec: {",
            "spec: {sellector: {app: web}, ",
            "4:8: spec.sellector: unknown field\n  did you mean selector?",
        ),
        (
            "port: 80",
            "port: 80, targetport: 8080",
            "4:27: spec.ports[0].targetport: unknown field\n  did you mean targetPort?",
        ),
        (
            "name: front,",
            "name: front, lables: {app: web},",
            "3:25: metadata.lables: unknown field\n  did you mean labels?",
        ),
    ] {
        let text = SERVICE.replacen(from, to, 1);
        assert_eq!(messages(&text), format!("a.yaml:{message}\n"), "{to}");
    }
    let deployment = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  template:
    spec: {hostnetwork: true, containers: [{name: c, image: c, ports: [{containerport: 80, containerPort: 80}]}]}
";
    assert_eq!(
        messages(deployment),
        "a.yaml:6:12: spec.template.spec.hostnetwork: unknown field\n  did you mean hostNetwork?\n"
    );
}

#[test]
fn misspelt_fields_within_and_misspelt_kinds() {
    let ingress = |rule: &str| {
        format!(
            "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {{name: web}}\nspec: {{rules: [{{{rule}}}]}}\n"
        )
    };
    for (text, message) in [
        (ingress("hsot: a.example.com"), "4:17: spec.rules[0].hsot: unknown field\n  did you mean host?"),
        (ingress("http: {pahts: []}"), "4:24: spec.rules[0].http.pahts: unknown field\n  did you mean paths?"),
        (
            "apiVersion: v1\nkind: Servcie\nmetadata: {name: a}\n".to_owned(),
            "2:7: kind: v1 Servcie is unknown\n  did you mean v1 Service?",
        ),
        (
            "apiVersion: networking.k8.io/v1\nkind: Ingress\nmetadata: {name: a}\n".to_owned(),
            "2:7: kind: networking.k8.io/v1 Ingress is unknown\n  did you mean networking.k8s.io/v1 Ingress?",
        ),
        (
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {template: {metadata: {lables: \
             {}}, spec: {containers: []}}}\n"
                .to_owned(),
            "4:30: spec.template.metadata.lables: unknown field\n  did you mean labels?",
        ),
    ] {
        let found = messages(&text);
        assert!(found.contains(&format!("a.yaml:{message}\n")), "{found}");
    }
    // Kinds that are not read, and custom ones, are no misspelt ones.
    for (version, kind) in [
        ("v1", "ServiceAccount"),
        ("apps/v1", "ControllerRevision"),
        ("example.com/v1", "Servic"),
        ("networking.k8s.io/v1", "IPAddress"),
        ("policy/v1", "Eviction"),
        ("gateway.networking.k8s.io/v1alpha2", "UDPRoute"),
        ("v1", "Secret"),
    ] {
        let text = format!("apiVersion: {version}\nkind: {kind}\nmetadata: {{name: a}}\n");
        read(vec![Source { name: "a.yaml".into(), text }]).unwrap();
    }
}

/// Fields that are newer than uturn, those that a custom resource has, and those that an API server
/// gave are left alone.
#[test]
fn other_fields_of_kubernetes() {
    let newer = SERVICE.replace("spec: {", "spec: {trafficShape: even, ");
    let custom = SERVICE
        .replace("apiVersion: v1", "apiVersion: example.com/v1")
        .replace("name: front,", "name: front, lables: {},");
    let given = SERVICE.replace("name: front,", "name: front, resourceVersion: '7', lables: {},");
    for text in [newer, custom, given] {
        read(vec![Source { name: "a.yaml".into(), text }]).unwrap();
    }
}

#[test]
fn tabs() {
    for (text, place) in [
        ("apiVersion: v1\nkind: Service\nmetadata:\n\tname: front\n", "4:1"),
        ("apiVersion: v1\nkind: Service\n\tmetadata: {}\n", "3:1"),
        ("apiVersion: v1\nkind: Service\nspec:\n  ports:\n  \t- port: 80\n", "5:3"),
    ] {
        let wanted = format!("a.yaml:{place}: tab used for indentation: YAML requires spaces\n");
        assert_eq!(messages(text), wanted, "{text:?}");
    }
}

#[test]
fn json_with_tabs_is_fine() {
    let json = "{\n\t\"apiVersion\": \"v1\", \"kind\": \"Service\",\n\t\"metadata\": {\"name\": \"a\"},\
                \n\t\"spec\": {\"ports\": [{\"port\": 80}]}\n}";
    assert!(read(vec![Source { name: "-".into(), text: json.into() }]).is_ok());
}

#[test]
fn an_unknown_version_of_a_known_kind() {
    assert_eq!(
        messages("apiVersion: networking.k8s.io/v9\nkind: Ingress\nmetadata: {name: a}\n"),
        "a.yaml:1:13: apiVersion: networking.k8s.io/v9 Ingress is not supported\n  \
         supported: networking.k8s.io/v1, networking.k8s.io/v1beta1, extensions/v1beta1\n"
    );
    assert_eq!(
        messages("apiVersion: apps/v3\nkind: Deployment\nmetadata: {name: a}\n"),
        "a.yaml:1:13: apiVersion: apps/v3 Deployment is not supported\n  \
         supported: apps/v1, apps/v1beta2, apps/v1beta1, extensions/v1beta1\n"
    );
    assert_eq!(
        messages("apiVersion: uturn.dev/v1alpha1\nkind: Fact\nspec: {}\n"),
        "a.yaml:2:7: kind: uturn.dev/v1alpha1 Fact is not supported\n  did you mean Facts?\n"
    );
}

#[test]
fn objects_of_the_gateway_api() {
    let of = |kind: &str, version: &str, spec: &str| {
        messages(&format!(
            "apiVersion: gateway.networking.k8s.io/{version}\nkind: {kind}\nmetadata: {{name: a}}\nspec:\n  {spec}\n"
        ))
    };
    assert_eq!(
        of("GatewayClass", "v1", "description: b"),
        "a.yaml:5:3: spec.controllerName: missing: expected a text\n"
    );
    assert_eq!(
        of(
            "Gateway",
            "v1",
            "{gatewayClassName: b, listeners: [{name: c, port: 0, protocol: HTTP}]}"
        ),
        "a.yaml:5:53: spec.listeners[0].port: expected a port from 1 to 65535, found the number 0\n"
    );
    assert_eq!(
        of("Gateway", "v1beta1", "gatewayClassName: b"),
        "a.yaml:5:3: spec.listeners: missing: expected at least one listener\n"
    );
    assert_eq!(
        of("HTTPRoute", "v1", "rules: [{matches: [{path: {type: Prefix, value: /}}]}]"),
        "a.yaml:5:36: spec.rules[0].matches[0].path.type: expected Exact, PathPrefix or \
         RegularExpression, found \"Prefix\"\n"
    );
    assert_eq!(
        of("HTTPRoute", "v1", "rules: [{backendRefs: [{name: b}]}]"),
        "a.yaml:5:26: spec.rules[0].backendRefs[0].port: missing: expected a port from 1 to 65535\n"
    );
    assert_eq!(
        of("TCPRoute", "v1alpha1", "rules: []"),
        "a.yaml:1:13: apiVersion: gateway.networking.k8s.io/v1alpha1 TCPRoute is not supported\n  \
         supported: gateway.networking.k8s.io/v1, gateway.networking.k8s.io/v1alpha2\n"
    );
    assert_eq!(
        of("TLSRoute", "v1beta1", "rules: []"),
        "a.yaml:1:13: apiVersion: gateway.networking.k8s.io/v1beta1 TLSRoute is not supported\n  \
         supported: gateway.networking.k8s.io/v1, gateway.networking.k8s.io/v1alpha3, \
         gateway.networking.k8s.io/v1alpha2\n"
    );
    assert_eq!(
        of("TLSRoute", "v1alpha3", "rules: [{backendRefs: [{name: b}]}]"),
        "a.yaml:5:26: spec.rules[0].backendRefs[0].port: missing: expected a port from 1 to 65535\n"
    );
}

#[test]
fn a_service_without_ports() {
    assert_eq!(
        messages("apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {type: NodePort}\n"),
        "a.yaml:4:7: spec.ports: missing: expected at least one port, unless the Service is \
         headless or an ExternalName\n"
    );
    for fine in ["{clusterIP: None}", "{type: ExternalName, externalName: example.com}"] {
        let text = format!("apiVersion: v1\nkind: Service\nmetadata: {{name: a}}\nspec: {fine}\n");
        assert!(read(vec![Source { name: "a.yaml".into(), text }]).is_ok(), "{fine}");
    }
}

#[test]
fn of_two_objects_of_one_name_the_last_counts() {
    let last = SERVICE.replace("port: 80", "port: 81");
    let files = [("a.yaml", SERVICE.to_owned()), ("b.yaml", format!("---\n{last}"))];
    let sources = files.map(|(name, text)| Source { name: name.into(), text });
    let cluster = read(sources.into()).unwrap().cluster;
    let ports: Vec<u16> =
        cluster.services.values().map(|service| service.ports[0].port.number()).collect();
    assert_eq!(ports, [81]);
    let note = "b.yaml:2:1: Service shop/front is defined more than once, first at a.yaml:1:1";
    let noted =
        cluster.supposed.iter().find(|supposed| supposed.subject.to_string() == note).unwrap();
    assert_eq!(&*noted.assumed, "the last one counts");
}

#[test]
fn every_fault_of_an_object_comes_at_once() {
    let text = "\
apiVersion: v1
kind: Service
metadata: {name: Front}
spec:
  type: Clusterip
  clusterIP: 172.16.0
  ports:
  - port: 0
  - {name: a, port: 70000, protocol: HTTP}
  - {name: a, port: eighty}
";
    assert_eq!(
        messages(text),
        "a.yaml:3:18: metadata.name: expected a name (lower-case letters, digits, '-' and '.'), \
         found \"Front\"\n\
         a.yaml:5:9: spec.type: expected ClusterIP, NodePort, LoadBalancer or ExternalName, \
         found \"Clusterip\"\n\
         a.yaml:6:14: spec.clusterIP: expected an IP address, found \"172.16.0\"\n\
         a.yaml:8:5: spec.ports[0].name: missing: expected a name, since the Service has \
         several ports\n\
         a.yaml:8:11: spec.ports[0].port: expected a port from 1 to 65535, found the number 0\n\
         a.yaml:9:21: spec.ports[1].port: expected a port from 1 to 65535, found the number \
         70000\n\
         a.yaml:9:38: spec.ports[1].protocol: expected TCP, UDP or SCTP, found \"HTTP\"\n\
         a.yaml:10:5: spec.ports[2]: two ports have the name \"a\"\n\
         a.yaml:10:21: spec.ports[2].port: expected a port from 1 to 65535, found \"eighty\"\n"
    );
}

#[test]
fn a_fault_in_one_document_does_not_hide_the_next() {
    let bad = SERVICE.replace("port: 80", "port: 0");
    let text = format!("foo: bar\n---\na: [1\n---\n{SERVICE}---\n# nothing\n---\n{bad}");
    assert_eq!(
        messages(&text),
        "a.yaml:4:1: expected ',' or ']'\n  is the file complete? the [ at line 3, column 4 is \
         never closed\n\
         a.yaml:15:23: spec.ports[0].port: expected a port from 1 to 65535, found the number 0\n"
    );
}

#[test]
fn items_of_lists_have_paths() {
    let text = "\
apiVersion: v1
kind: ServiceList
items:
- metadata: {name: a}
  spec: {ports: [{port: 80}]}
- metadata: {name: b}
  spec: {ports: [{}]}
";
    assert_eq!(
        messages(text),
        "a.yaml:7:18: items[1].spec.ports[0].port: missing: expected a port from 1 to 65535\n"
    );
}

#[test]
fn facts_know_their_fields() {
    let text = "\
apiVersion: uturn.dev/v1alpha1
kind: Facts
spec:
  provder: tke
  network: {mode: flat}
  nodes: {n1: {rpFilter: 3}}
  securityGroups: {sg: {inbound: [{action: deny, ports: 2-1}]}}
";
    assert_eq!(
        messages(text),
        "a.yaml:4:3: spec.provder: unknown field\n  did you mean provider?\n\
         a.yaml:5:19: spec.network.mode: expected global-router, vpc-cni or routed, found \"flat\"\n\
         a.yaml:6:26: spec.nodes.n1.rpFilter: expected 0 (off), 1 (strict) or 2 (loose), \
         found the number 3\n\
         a.yaml:7:44: spec.securityGroups.sg.inbound[0].action: expected accept or drop, \
         found \"deny\"\n\
         a.yaml:7:57: spec.securityGroups.sg.inbound[0].ports: expected a port, a range such as \
         30000-32768, or all, found \"2-1\"\n"
    );
}

#[test]
fn facts_that_contradict_each_other() {
    let facts = |mode| {
        format!(
            "apiVersion: uturn.dev/v1alpha1\nkind: Facts\nspec: {{kubeProxy: {{mode: {mode}}}}}\n"
        )
    };
    let (first, other) = (facts("ipvs"), facts("iptables"));
    assert_eq!(
        messages_of(&[("a.yaml", &first), ("b.yaml", &other)]),
        "b.yaml:3:26: spec.kubeProxy.mode: contradicts what a.yaml:3:26 states\n"
    );
}

#[test]
fn labels_that_yaml_does_not_read_as_text() {
    let text = "apiVersion: v1\nkind: Node\nmetadata:\n  name: n1\n  labels: {a.b/c: yes}\n";
    assert_eq!(
        messages(text),
        "a.yaml:5:19: metadata.labels[\"a.b/c\"]: expected a text, found yes, which YAML reads as true\n  \
         put it in quotes: without them YAML does not read it as text\n"
    );
}

#[test]
fn configuration_within_a_config_map_has_places_too() {
    let text = "\
apiVersion: v1
kind: ConfigMap
metadata: {name: kube-proxy, namespace: kube-system}
data:
  config.conf: |

    kind: KubeProxyConfiguration
    mode: turbo
";
    assert_eq!(
        messages(text),
        "a.yaml:8: mode: expected iptables, ipvs or nftables, found \"turbo\"\n"
    );
}

#[test]
fn nothing_nests_too_deep() {
    for text in ["[".repeat(100_000), "{\"a\":".repeat(100_000), "a: {".repeat(100_000)] {
        assert!(messages(&text).contains("nested more than 128 levels deep"));
    }
    messages(&"- ".repeat(100_000));
    messages(&format!("a:\n{}", "  - - -\n".repeat(1000)));
}

#[test]
fn anchors_do_not_explode() {
    let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..20 {
        let below = format!("*a{}", level - 1);
        text += &format!("a{level}: &a{level} [{}]\n", vec![below; 10].join(", "));
    }
    assert!(messages(&text).contains("anchors and aliases add up to more than 1000000 values"));
    assert_eq!(
        messages("a: &a [*a]\n"),
        "a.yaml:1:8: an alias refers to the value that contains it\n"
    );
}

#[test]
fn what_goes_on_and_on_is_given_up() {
    let keys: String = (0..100_001).map(|key| format!("k{key}: 1\n")).collect();
    assert_eq!(messages(&keys), "a.yaml:100001:1: more than 100000 keys: this is not a manifest\n");
    let keys: String = (0..100_001).map(|key| format!("\"{key}\":1,\n")).collect();
    assert_eq!(
        messages(&format!("{{{keys}")),
        "a.yaml:100001:1: more than 100000 keys: this is not a manifest\n"
    );
    let faults = messages(&"a: b\n".repeat(200_000));
    assert!(faults.ends_with("more than 100000 keys: this is not a manifest\n"), "{faults}");
}

#[test]
fn very_many_faults_are_counted() {
    let text = "metadata: {}\n---\n".repeat(1500);
    let faults = read(vec![Source { name: "a.yaml".into(), text }]).unwrap_err();
    assert_eq!(faults.len(), 1001);
    assert_eq!(faults[1000].to_string(), "a.yaml: … and 500 more");
    let text = "metadata: {}\n---\n".repeat(60_000);
    let other = Source { name: "b.yaml".into(), text: "a: [".into() };
    let faults = read(vec![Source { name: "a.yaml".into(), text }, other]).unwrap_err();
    assert_eq!(faults[1000].to_string(), "a.yaml: … and 49000 more; the rest was not read");
    let items = "7,".repeat(60_000);
    let text = format!("{{\"apiVersion\": \"v1\", \"items\": [{items}7], \"kind\": \"List\"}}");
    for text in [
        text,
        "{\"metadata\":{}} ".repeat(60_000),
        "{\"metadata\":1,\"metadata\":2} ".repeat(60_000),
    ] {
        let faults = read(vec![Source { name: "a.json".into(), text }]).unwrap_err();
        assert_eq!(faults[1000].to_string(), "a.json: … and 49000 more; the rest was not read");
    }
    assert_eq!(faults[1001].origin.path(), Some("b.yaml"), "the next file has its say");
}

#[test]
fn a_folder_with_bad_files_lists_every_fault() {
    let folder = Folder::new("faults");
    folder.file("a.yaml", SERVICE.as_bytes());
    folder.file("b.yaml", b"apiVersion: v1\nkind: Service\nmetadata:\n\tname: x\n");
    folder.file("c.json", b"{\"apiVersion\": \"v1\",\n");
    folder.file("d.yaml", b"apiVersion: v1\nkind: \xff\n");
    folder.file("e/f.yml", b"\x7fELF\0\0\0");
    folder.file("e/ignored.txt", b"\0");
    let missing = folder.path("missing.yaml");
    let faults = load(&[folder.path(""), missing]).unwrap_err();
    let shown = shown(&faults).replace(&*folder.0.to_string_lossy(), "DIR");
    assert_eq!(
        shown,
        "DIR/d.yaml:2:7: not UTF-8: byte 0xff at offset 21\n\
         DIR/e/f.yml:1:5: not a text: a zero byte at offset 4\n\
         DIR/missing.yaml: no such file or folder\n\
         DIR/b.yaml:4:1: tab used for indentation: YAML requires spaces\n\
         DIR/c.json:2:1: the file ends where a key in quotes should be\n  \
         is the file complete? the { at line 1, column 1 is never closed\n"
    );
}

#[test]
fn a_folder_without_manifests() {
    let folder = Folder::new("empty");
    folder.file("sub/readme.md", b"hello");
    let faults = load(std::slice::from_ref(&folder.0)).unwrap_err();
    let shown = shown(&faults).replace(&*folder.0.to_string_lossy(), "DIR");
    assert_eq!(shown, "DIR: no .yaml, .yml or .json file in this folder\n");
}

#[cfg(unix)]
#[test]
fn an_endless_file_is_seen_early() {
    let faults = load(&["/dev/zero".into()]).unwrap_err();
    assert_eq!(shown(&faults), "/dev/zero:1:1: not a text: a zero byte at offset 0\n");
}

#[cfg(unix)]
#[test]
fn what_is_reached_twice_is_read_once() {
    let folder = Folder::new("loop");
    folder.file("a.yaml", SERVICE.as_bytes());
    std::os::unix::fs::symlink(&folder.0, folder.path("again")).unwrap();
    let loaded = load(&[folder.0.clone(), folder.path("a.yaml")]).unwrap();
    assert_eq!(loaded.seen["Service"], 1);
}

/// A folder that goes away with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("uturn-snapshot-{name}-{}", std::process::id());
        let folder = Self(std::env::temp_dir().join(name));
        let _ = std::fs::remove_dir_all(&folder.0);
        std::fs::create_dir_all(&folder.0).unwrap();
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        if name.is_empty() { self.0.clone() } else { self.0.join(name) }
    }

    fn file(&self, name: &str, content: &[u8]) {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
