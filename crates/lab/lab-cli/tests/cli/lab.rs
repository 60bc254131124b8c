//! The lab: prediction held against a real kernel.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Output, Stdio};

use crate::conforms::assert_conforms;
use serde_json::Value;
use uturn_testing::commands::{Folder, transcript, uturn};

/// Runs a command of the lab. Returns `None` if no lab can be built here, and
/// notes the reason in the test's output.
fn lab(args: &[&str]) -> Option<Output> {
    let output = uturn(&[&["lab"], args].concat()).output().unwrap();
    if output.status.code() != Some(3) {
        return Some(output);
    }
    let why = String::from_utf8_lossy(&output.stderr);
    uturn_testing::skip(
        uturn_testing::Requirement::Kernel,
        &format!("lab {}", args.join(" ")),
        why,
    );
    None
}

#[test]
fn the_kernel_agrees() {
    let args =
        ["verify", "l7-loop", "l4-iptables", "--nodes", "2", "--connects", "10", "-o", "json"];
    let Some(output) = lab(&args) else { return };
    assert_eq!(output.status.code(), Some(0), "{}", transcript(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_conforms("lab-verify", &report);
    let scenarios = report["scenarios"].as_array().unwrap();
    assert_eq!(scenarios.len(), 5, "one scenario in three modes, one in two");
    for flow in scenarios.iter().flat_map(|scenario| scenario["flows"].as_array().unwrap()) {
        assert_eq!(flow["agrees"], true, "{flow}");
        let measured = flow["measured"].as_array().unwrap();
        let connects: u64 = measured.iter().map(|group| group["count"].as_u64().unwrap()).sum();
        assert!(connects >= 10, "{flow}");
    }
}

/// What a capture says of a node is loaded there, and walked. Where a bridge shows its frames to
/// no rule, an answer between its pods is not translated back.
#[test]
fn captures_are_loaded_and_walked() {
    let folder = Folder::new("captures-are-loaded");
    let off = "net.bridge.bridge-nf-call-iptables = 0\nnet.ipv4.ip_forward = 1\n";
    let scenario = include_str!("../../../../../scenarios/answers-unseen.yaml")
        .replace("    nodes: {n1: {bridgeRules: false}}\n", "")
        .replace("name: answers-unseen", "name: captured");
    assert!(!scenario.contains("bridgeRules"));
    folder.file("captured.yaml", &scenario).file("nodes/n1/sysctl", off);
    let path = |name: &str| folder.0.join(name).to_str().unwrap().to_owned();
    let (file, rules) = (path("captured.yaml"), path("nodes"));
    let args = ["verify", "captured", "-f", &file, "--rules", &rules, "--connects", "3"];
    let Some(output) = lab(&args) else { return };
    assert_eq!(output.status.code(), Some(0), "{}", transcript(&output));
}

/// A lab that is kept says how to look inside, and is taken down when Enter is pressed.
#[test]
fn a_lab_is_kept_until_enter() {
    let args = ["lab", "run", "l7-host-one-node", "--connects", "1", "--keep"];
    let Some(_) = lab(&["run", "l7-host-one-node", "--connects", "1"]) else { return };
    let mut command = uturn(&args);
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let stderr = BufReader::new(child.stderr.take().unwrap());
    let mut printed = Vec::new();
    for line in stderr.lines().map_while(Result::ok) {
        let is_last = line.starts_with("Enter or Ctrl-C");
        printed.push(line);
        if is_last {
            break;
        }
    }
    let space = |line: &String| line.split_whitespace().nth(3).map(ToOwned::to_owned);
    let ways: Vec<String> =
        printed.iter().filter(|line| line.contains("ip netns exec")).filter_map(space).collect();
    assert!(ways.iter().any(|name| name.ends_with("-fabric")), "{printed:?}");
    let stands = |name: &String| Path::new("/run/netns").join(name).exists();
    assert!(ways.iter().all(stands), "{ways:?}");
    child.stdin.take().unwrap().write_all(b"\n").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(!ways.iter().any(stands), "{ways:?}");
}

#[test]
fn the_machine_cannot_be_kept() {
    let output = uturn(&["lab", "run", "l7-loop", "--vm", "--keep"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", transcript(&output));
    assert!(transcript(&output).contains("run it without --vm"), "{}", transcript(&output));
}

/// What `--explain` found, with its own mechanism and the engine's, and the lines that give
/// the reason. `None` where there can be no lab.
fn explained(args: &[&str]) -> Option<Vec<Value>> {
    let words = [&["verify", "--explain", "--connects", "2", "-o", "json"], args].concat();
    let output = lab(&words)?;
    assert_eq!(output.status.code(), Some(0), "{}", transcript(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_conforms("lab-verify", &report);
    Some(report["explained"].as_array().unwrap().clone())
}

/// Rules of nftables mode have no counters: the kernel's trace names the one that drops.
#[test]
fn a_rule_without_a_counter_is_named() {
    let Some(all) = explained(&["rules-missing", "--nodes", "2", "--mode", "nftables"]) else {
        return;
    };
    let [explanation] = &all[..] else { panic!("one flow fails: {all:#?}") };
    assert_eq!(explanation["mechanism"], "rule-missing", "{explanation:#}");
    assert_eq!(explanation["agrees"], true, "{explanation:#}");
    let because = explanation["because"].as_str().unwrap();
    assert!(because.contains("in chain cluster-ips-check of table kube-proxy"), "{because}");
}

/// Where a health check of a target that is dead ended: at a rule of the node's own.
#[test]
fn a_dead_target_s_health_check_is_followed() {
    let args = ["probe-firewall", "--nodes", "2", "--mode", "iptables"];
    let Some(all) = explained(&args) else { return };
    let probes: Vec<_> =
        all.iter().filter(|explanation| explanation["health_check_of"].is_string()).collect();
    assert!(!probes.is_empty(), "{all:#?}");
    for explanation in probes {
        assert_eq!(explanation["mechanism"], "firewall", "{explanation:#}");
        assert_eq!(explanation["agrees"], true, "{explanation:#}");
        let last = explanation["packets"].as_array().unwrap().last().unwrap();
        assert!(last["place"].as_str().unwrap().starts_with("node "), "{explanation:#}");
    }
}

/// A flow without a scheme uses TLS where a listener ends it, and plain text where
/// the node short-cuts the listener.
#[test]
fn tls_is_spoken_where_it_is_spoken() {
    let folder = Folder::new("lab-tls");
    let ssl = r#"'{"443":{"protocol":["TCP_SSL"],"tls":"shop-tls"}}'"#;
    let text = TLS.replace("SPECIFY", ssl);
    let file = folder.file("own-tls.yaml", &text).0.join("own-tls.yaml");
    let args = ["verify", "own-tls", "-f", file.to_str().unwrap(), "--connects", "2", "-o", "json"];
    let Some(output) = lab(&args) else { return };
    assert_eq!(output.status.code(), Some(0), "{}", transcript(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_conforms("lab-verify", &report);
    let flows = report["scenarios"][0]["flows"].as_array().unwrap();
    assert_eq!(flows.len(), 5, "{}", transcript(&output));
}

const TLS: &str = r#"
apiVersion: uturn.dev/v1alpha1
kind: Scenario
metadata: {name: own-tls}
spec:
  shows: A flow without a scheme uses TLS where the listener ends it.
  nodes: [2]
  shape: {network: global-router, backends: last, clients: first}
  facts:
    provider: tke
    kubeProxy: {mode: iptables, version: v1.34.4, variant: tke}
    dns: {outside: {shop.example.com: 10.0.0.100}}
  objects:
  - apiVersion: v1
    kind: Service
    metadata: {name: web, namespace: shop}
    spec:
      type: NodePort
      clusterIP: 172.16.0.10
      selector: {app: web}
      ports:
      - {port: 80, targetPort: http, nodePort: 30080}
  - apiVersion: networking.k8s.io/v1
    kind: Ingress
    metadata:
      name: web
      namespace: shop
      annotations: {kubernetes.io/ingress.subnetId: subnet-private}
    spec:
      tls: [{secretName: shop-tls}]
      rules:
      - host: "*.example.com"
        http: &paths
          paths:
          - path: /
            pathType: Prefix
            backend: {service: {name: web, port: {number: 80}}}
      - http: *paths
    status: {loadBalancer: {ingress: [{ip: 10.0.0.100}]}}
  - apiVersion: v1
    kind: Service
    metadata:
      name: ssl
      namespace: shop
      annotations:
        service.kubernetes.io/qcloud-loadbalancer-internal-subnetid: subnet-private
        service.cloud.tencent.com/specify-protocol: SPECIFY
    spec:
      type: LoadBalancer
      clusterIP: 172.16.0.11
      selector: {app: web}
      ports:
      - {port: 443, targetPort: http, nodePort: 30081}
    status: {loadBalancer: {ingress: [{ip: 10.0.0.101}]}}
  flows:
  - from: node/n1
    to: 10.0.0.100:443
    expect: [{outcomes: [{outcome: answered}]}]
  - from: node/n1
    to: shop.example.com:443
    expect: [{outcomes: [{outcome: answered}]}]
  - from: node/n1
    to: ingress/shop/web
    expect: [{outcomes: [{outcome: answered}]}]
  - from: node/n1
    to: http://10.0.0.100:443/
    expect: [{outcomes: [{status: 400}]}]
  - from: pod/shop/client-1
    to: 10.0.0.101:443
    expect: [{outcomes: [{outcome: answered}]}]
"#;

#[test]
fn a_seed_draws_the_same_scenarios_again() {
    let folder = Folder::new("fuzz-drawn");
    let args = ["lab", "fuzz", "--seed", "5", "--first", "3", "--count", "2", "--generate-only"];
    let printed = folder.run(&args);
    assert!(printed.contains("exit 0") && printed.contains("uturn-fuzz-5-4.yaml"), "{printed}");
    let text = || fs::read_to_string(folder.0.join("uturn-fuzz-5-3.yaml")).unwrap();
    let first = text();
    assert!(first.contains("kind: Scenario"), "{first}");
    folder.run(&args);
    assert_eq!(text(), first);
    assert!(folder.run(&["lab", "list", "-f", "uturn-fuzz-5-3.yaml"]).contains("fuzz-5-3"));
}

#[test]
fn random_scenarios_are_measured_and_counted() {
    let folder = Folder::new("fuzz-measured");
    let place = folder.0.display().to_string();
    let args = ["fuzz", "--seed", "1", "--count", "3", "--connects", "2", "-o", "json"];
    let Some(output) = lab(&[&args[..], &["--folder", &place]].concat()) else { return };
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_conforms("lab-fuzz", &report);
    assert_eq!(report["seed"], 1, "{}", transcript(&output));
    assert_eq!(report["scenarios"], 3, "{}", transcript(&output));
    assert!(report["flows"].as_u64().unwrap() >= 3, "{}", transcript(&output));
    let found = report["disagreements"].as_array().unwrap();
    let failed = report["failed"].as_array().unwrap();
    let clean = found.is_empty() && failed.is_empty();
    assert_eq!(output.status.code(), Some(if clean { 0 } else { 1 }), "{}", transcript(&output));
    for case in found {
        assert!(fs::exists(case["file"].as_str().unwrap()).unwrap(), "{case}");
    }
}

/// A pod of the image nginx is the real one, with the configuration that its ConfigMap brings:
/// it routes by host and path, to Services by name.
#[test]
fn an_nginx_has_the_configuration_of_its_config_map() {
    let is_there =
        ["/usr/sbin/nginx", "/usr/bin/nginx"].iter().any(|path| Path::new(path).exists());
    if !is_there {
        return uturn_testing::skip(
            uturn_testing::Requirement::Nginx,
            "an nginx with a ConfigMap",
            "nginx is not installed",
        );
    }
    let folder = Folder::new("lab-nginx");
    let file = folder.file("own-nginx.yaml", NGINX).0.join("own-nginx.yaml");
    let args = ["run", "own-nginx", "-f", file.to_str().unwrap(), "--connects", "2", "-o", "json"];
    let Some(output) = lab(&args) else { return };
    assert_eq!(output.status.code(), Some(0), "{}", transcript(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_conforms("lab-verify", &report);
    let flows = report["scenarios"][0]["flows"].as_array().unwrap();
    assert_eq!(flows.len(), 4, "{}", transcript(&output));
    assert!(flows.iter().all(|flow| flow["agrees"] == true), "{}", transcript(&output));
}

const NGINX: &str = r#"
apiVersion: uturn.dev/v1alpha1
kind: Scenario
metadata: {name: own-nginx}
spec:
  shows: An nginx in the cluster routes by host and path.
  nodes: [2]
  shape: {network: global-router, backends: last, clients: first}
  facts:
    provider: tke
    kubeProxy: {mode: iptables, version: v1.34.4}
    dns: {outside: {shop.example.com: 172.16.0.12, else.example.com: 10.1.1.81}}
  objects:
  - apiVersion: v1
    kind: Service
    metadata: {name: web, namespace: shop}
    spec:
      clusterIP: 172.16.0.10
      selector: {app: web}
      ports: [{port: 80, targetPort: http}]
  - apiVersion: v1
    kind: Service
    metadata: {name: ingress, namespace: shop}
    spec:
      clusterIP: 172.16.0.12
      selector: {app: ingress}
      ports: [{port: 80, targetPort: http}]
  - apiVersion: v1
    kind: ConfigMap
    metadata: {name: whole, namespace: shop}
    data:
      nginx.conf: |
        user  nginx;
        worker_processes  auto;
        error_log  /var/log/nginx/error.log notice;
        pid        /var/run/nginx.pid;
        events { worker_connections 1024; }
        http {
            include /etc/nginx/mime.types;
            access_log /var/log/nginx/access.log;
            include /etc/nginx/conf.d/*.conf;
        }
      shop: |
        server {
            listen 80 default_server;
            return 404;
        }
        server {
            listen 80;
            server_name shop.example.com;
            location / { return 403; }
            location /api { proxy_pass http://web.shop.svc.cluster.local; }
        }
  - apiVersion: v1
    kind: ConfigMap
    metadata: {name: part, namespace: shop}
    data:
      else.conf: |
        server { listen 8080; location / { proxy_pass http://web; } }
  - apiVersion: v1
    kind: Pod
    metadata: {name: ingress, namespace: shop, labels: {app: ingress}}
    spec:
      nodeName: n1
      containers:
      - name: nginx
        image: docker.example.com/library/nginx:1.29-alpine@sha256:00
        ports: [{name: http, containerPort: 80}]
        volumeMounts:
        - {name: whole, mountPath: /etc/nginx/nginx.conf, subPath: nginx.conf}
        - {name: routes, mountPath: /etc/nginx/conf.d}
      volumes:
      - {name: whole, configMap: {name: whole}}
      - {name: routes, configMap: {name: whole, items: [{key: shop, path: shop.conf}]}}
    status: {phase: Running, podIP: 10.1.1.80, conditions: [{type: Ready, status: "True"}]}
  - apiVersion: v1
    kind: Pod
    metadata: {name: else, namespace: shop, labels: {app: else}}
    spec:
      nodeName: n1
      containers:
      - name: nginx
        image: nginx
        ports: [{containerPort: 8080}]
        volumeMounts: [{name: part, mountPath: /etc/nginx/conf.d}]
      volumes: [{name: part, configMap: {name: part}}]
    status: {phase: Running, podIP: 10.1.1.81, conditions: [{type: Ready, status: "True"}]}
  flows:
  - from: pod/shop/client-1
    to: http://shop.example.com/api/x
    expect: [{outcomes: [{outcome: answered}]}]
  - from: pod/shop/client-1
    to: http://shop.example.com/
    expect: [{outcomes: [{status: 403}]}]
  - from: pod/shop/client-1
    to: http://172.16.0.12/
    expect: [{outcomes: [{status: 404}]}]
  - from: pod/shop/client-1
    to: http://else.example.com:8080/
    expect: [{outcomes: [{outcome: answered}]}]
"#;

/// A file may have a scenario of a built-in name: it alone is run, also with a cure.
#[test]
fn a_file_takes_the_place_of_a_built_in_scenario() {
    let file = uturn_testing::commands::root().join("scenarios/l7-loop.yaml");
    let case = ["run", "-f", file.to_str().unwrap(), "--nodes", "2", "--mode", "iptables"];
    let args = [&case[..], &["--cure", "l7-snat", "--connects", "2", "-o", "json"]].concat();
    let Some(output) = lab(&args) else { return };
    assert_eq!(output.status.code(), Some(0), "{}", transcript(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let all = report["scenarios"].as_array().unwrap().iter();
    let names: Vec<&str> = all.map(|scenario| scenario["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["l7-loop", "l7-loop.l7-snat.2.iptables"]);
}
