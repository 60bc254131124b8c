//! Domains and URLs with wildcards and regular expressions.

use serde_json::json;
use uturn_cloud_api::clb;

use super::clients::Target;
use super::processes::Site;
use crate::site::try_exchange;

#[test]
fn domains_and_urls_are_matched_as_documented() {
    let site = Site::start("cloud-rules");
    let (lb, vip) = site.load_balancer();
    let port = site.port();
    let made = site.ok::<clb::CreateListenerRequest>(json!({
        "LoadBalancerId": lb, "Protocol": "HTTP", "Ports": [port], "KeepaliveEnable": 1,
    }));
    let listener = made.listener_ids.unwrap().remove(0);
    let rules = [
        (r"~^www\d+\.example\.com$", "/", "expression"),
        ("shop.*", "/", "end"),
        ("*.example.com", "/", "begin"),
        ("shop.example.com", "/", "prefix"),
        ("shop.example.com", r"~ \.(gif|jpg)$", "cased"),
        ("shop.example.com", r"~* \.png$", "uncased"),
        ("shop.example.com", "^~ /static/", "first"),
        ("shop.example.com", "= /a.gif", "exact"),
    ];
    let targets: Vec<Target> = rules.iter().map(|(.., name)| Target::start(name)).collect();
    let inputs: Vec<_> = rules
        .iter()
        .map(|(domain, url, name)| {
            json!({
                "Domain": domain, "Url": url, "DefaultServer": *name == "end",
                "HealthCheck": { "HealthSwitch": 0 },
            })
        })
        .collect();
    // The default is a domain, not a rule of it.
    let made = site.ok::<clb::CreateRuleRequest>(
        json!({ "LoadBalancerId": lb, "ListenerId": listener, "Rules": inputs }),
    );
    let bound: Vec<_> = made
        .location_ids
        .unwrap()
        .iter()
        .zip(&targets)
        .map(|(rule, target)| {
            json!({
                "ListenerId": listener, "LocationId": rule,
                "EniIp": target.address.ip(), "Port": target.address.port(),
            })
        })
        .collect();
    site.ok::<clb::BatchRegisterTargetsRequest>(json!({ "LoadBalancerId": lb, "Targets": bound }));
    assert_eq!(site.status()["left_out"], json!([]));
    let ask = |host: &str, path: &str| {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        let answer = try_exchange((vip, port).into(), &request).unwrap();
        answer.split_once("\r\n\r\n").unwrap().1.to_owned()
    };
    for (host, path, name) in [
        ("shop.example.com", "/b", "prefix"),
        ("shop.example.com", "/b.gif", "cased"),
        ("shop.example.com", "/b.GIF", "prefix"),
        ("shop.example.com", "/b.PNG?x=1", "uncased"),
        ("shop.example.com", "/static/b.gif", "first"),
        ("shop.example.com", "/a.gif", "exact"),
        ("www1.example.com", "/", "begin"),
        ("a.b.example.com", "/", "begin"),
        ("shop.example.org", "/", "end"),
        ("other.org", "/", "end"),
    ] {
        assert_eq!(ask(host, path), name, "{host}{path}");
    }
    let wildcard = json!({
        "LoadBalancerId": lb, "ListenerId": listener, "Domain": "*.example.com",
    });
    site.ok::<clb::DeleteRuleRequest>(wildcard);
    assert_eq!(ask("www1.example.com", "/"), "expression");
    assert_eq!(ask("WWW22.example.com", "/"), "expression");
    assert_eq!(ask("a.example.com", "/"), "end");
}
