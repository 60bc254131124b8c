//! Cures of names in CoreDNS's configuration.

use super::more_cures::{CLIENT, IPTABLES, changes, client, cures, offered, service, web};

/// The cluster's DNS with this Corefile, whose lines are indented.
fn dns(corefile: &str, custom: &str) -> String {
    let mut text = format!(
        "---
apiVersion: v1
kind: Service
metadata: {{name: kube-dns, namespace: kube-system, labels: {{k8s-app: kube-dns}}}}
spec: {{clusterIP: 172.16.0.2, selector: {{k8s-app: kube-dns}}, ports: [{{name: dns, port: 53, protocol: UDP}}]}}
---
apiVersion: v1
kind: Pod
metadata: {{name: coredns-1, namespace: kube-system, labels: {{k8s-app: kube-dns}}}}
spec: {{nodeName: n1, containers: [{{name: coredns, image: 'coredns:1.11.1', ports: [{{name: dns, containerPort: 53, protocol: UDP}}]}}]}}
status: {{phase: Running, podIP: 10.1.1.53, conditions: [{{type: Ready, status: \"True\"}}]}}
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: coredns, namespace: kube-system}}
data:
  Corefile: |
{corefile}
"
    );
    if !custom.is_empty() {
        text.push_str(&format!(
            "---
apiVersion: v1
kind: ConfigMap
metadata: {{name: coredns-custom, namespace: kube-system}}
data:
  own.server: |
{custom}
"
        ));
    }
    text
}

/// Returns the cures of a call of a name, with these files of CoreDNS.
fn of_name(to: &str, corefile: &str, custom: &str) -> Vec<uturn_diagnose::cure::Cure> {
    let service = service("clusterIP: 172.16.0.10, ports: [{port: 80, targetPort: 8080}]");
    let objects = [&*service, &web(1), &client(2), &dns(corefile, custom)].concat();
    cures(&[IPTABLES], &objects, CLIENT, to)
}

const USUAL: &str = "    .:53 {
        errors
        kubernetes cluster.local in-addr.arpa ip6.arpa {
           pods insecure
           fallthrough in-addr.arpa ip6.arpa
        }
        forward . /etc/resolv.conf
        reload
        import custom/*.override
    }
    import custom/*.server";

#[test]
fn hosts_without_fallthrough_get_it() {
    for (hosts, new) in [
        ("hosts {\n          192.0.2.1 a.example\n        }", vec!["+          fallthrough"]),
        (
            "hosts /dev/null",
            vec![
                "-        hosts /dev/null",
                "+        hosts /dev/null {",
                "+           fallthrough",
                "+        }",
            ],
        ),
    ] {
        let corefile = USUAL.replace("errors", hosts);
        let all = of_name("http://web/", &corefile, "");
        let title = "fallthrough for hosts, line 2 of Corefile in ConfigMap kube-system/coredns";
        assert_eq!(offered(&all), [("dns-fallthrough", title)]);
        assert_eq!(changes(&all, "dns-fallthrough"), new);
    }
}

/// The domain of the name, which a chart may have written down, beside the cluster's own.
#[test]
fn the_domain_of_the_called_name_is_served() {
    let corefile = USUAL.replace("cluster.local", "prod.example");
    let to = "http://web.shop.svc.cluster.local/";
    let all = of_name(to, &corefile, "");
    assert_eq!(offered(&all), [("dns-domain", "let CoreDNS serve cluster.local")]);
    let new = "+        kubernetes prod.example cluster.local in-addr.arpa ip6.arpa {";
    assert_eq!(changes(&all, "dns-domain")[1], new);
    // No Service has that name.
    let all = of_name("http://wep.shop.svc.cluster.local/", &corefile, "");
    assert!(all.iter().all(|cure| cure.name != "dns-domain"), "{all:#?}");
}

/// A rewrite by a part of the name leaves answers with another name, which glibc drops.
#[test]
fn a_rewrite_answers_with_the_name_that_was_asked() {
    let rule = "name regex (.*)\\.shop\\.example {1}.shop.svc.cluster.local";
    for (rewrite, new) in [
        (format!("rewrite {rule}"), format!("+        rewrite {rule} answer auto")),
        (
            format!("rewrite stop {{\n          {rule}\n        }}"),
            "+          answer auto".to_owned(),
        ),
    ] {
        let corefile = USUAL.replace("errors", &rewrite);
        let all = of_name("http://web.shop.example/", &corefile, "");
        let title =
            "answer auto for the rewrite, line 2 of Corefile in ConfigMap kube-system/coredns";
        assert_eq!(offered(&all), [("dns-answer", title)]);
        assert_eq!(changes(&all, "dns-answer").last(), Some(&new));
    }
}

/// A block of its own that rewrites to the cluster's domain, and asks the nodes' name server for it.
#[test]
fn a_block_without_the_clusters_names_gets_them() {
    let custom = "    shop.example:53 {
        rewrite name exact web.shop.example web.shop.svc.cluster.local
        forward . /etc/resolv.conf
    }";
    let all = of_name("http://web.shop.example/", USUAL, custom);
    let titles = [
        ("dns-kubernetes", "the plugin kubernetes in the block shop.example:53 of own.server"),
        (
            "dns-forward",
            "forward to the cluster's own DNS in the block shop.example:53 of own.server",
        ),
    ];
    assert_eq!(offered(&all), titles);
    assert_eq!(changes(&all, "dns-kubernetes"), ["+        kubernetes cluster.local"]);
    assert_eq!(
        changes(&all, "dns-forward"),
        ["-        forward . /etc/resolv.conf", "+        forward . 172.16.0.2"]
    );
    // A rewrite by a part has to change answers back as well.
    let custom = custom.replace(
        "name exact web.shop.example web.shop.svc.cluster.local",
        "name substring shop.example shop.svc.cluster.local",
    );
    let all = of_name("http://web.shop.example/", USUAL, &custom);
    let title = "the plugin kubernetes in the block shop.example:53 of own.server, and answer auto \
                 for its rewrites";
    assert_eq!(offered(&all)[0], ("dns-kubernetes", title));
    assert_eq!(changes(&all, "dns-kubernetes").len(), 3);
}
