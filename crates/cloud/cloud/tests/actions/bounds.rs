//! What tenants may not have: targets that are no other machine's, texts that would be more than a
//! part of a request, and more certificates than the quota.

use std::net::IpAddr;

use serde_json::{Value, json};
use uturn_cloud::cloud::Settings;
use uturn_cloud::quotas::Quotas;
use uturn_cloud::refused_targets::RefusedTargets;

use crate::harness::{Harness, text, upload};

const VALUE: &str = "InvalidParameterValue";

fn guarded() -> Harness {
    let addresses: Vec<IpAddr> = vec!["10.9.9.9".parse().unwrap()];
    let refused_targets = RefusedTargets { local: true, addresses };
    Harness::set(Settings { refused_targets, ..Settings::default() })
}

#[test]
fn targets_that_are_no_other_machines_are_refused() {
    let cloud = guarded();
    let lb = cloud.load_balancer();
    let listener = cloud.listener(&lb, "TCP", 80, json!({}));
    let described = cloud.ok("DescribeLoadBalancers", json!({ "LoadBalancerIds": [lb] }));
    let vip = text(&described["LoadBalancerSet"][0]["LoadBalancerVips"][0]);
    let register = |address: &str| {
        json!({ "LoadBalancerId": lb, "ListenerId": listener,
            "Targets": [{ "EniIp": address, "Port": 9900 }] })
    };
    let batch = |address: &str| {
        json!({ "LoadBalancerId": lb, "Targets": [
            { "ListenerId": listener, "EniIp": "10.0.0.1", "Port": 80 },
            { "ListenerId": listener, "EniIp": address, "Port": 9900 }] })
    };
    for (address, why) in [
        ("127.0.0.1", "loopback"),
        ("127.255.255.254", "loopback"),
        ("::1", "loopback"),
        ("::ffff:127.0.0.1", "loopback"),
        ("169.254.0.23", "link-local"),
        ("169.254.169.254", "link-local"),
        ("fe80::1", "link-local"),
        ("224.0.0.1", "multicast"),
        ("ff02::1", "multicast"),
        ("0.0.0.0", "unspecified"),
        ("0.1.2.3", "unspecified"),
        ("::", "unspecified"),
        ("255.255.255.255", "reserved"),
        ("240.0.0.1", "reserved"),
        ("::127.0.0.1", "loopback"),
        ("::ffff:0:127.0.0.1", "loopback"),
        ("64:ff9b::127.0.0.1", "loopback"),
        ("64:ff9b:1::7f00:1", "loopback"),
        ("2002:7f00:1::1", "loopback"),
        ("64:ff9b::a9fe:a9fe", "link-local"),
        ("2002:a9fe:a9fe::", "link-local"),
        ("64:ff9b::10.9.9.9", "of the cloud itself"),
        ("2002:a09:909::1", "of the cloud itself"),
        (vip.as_str(), "of a load balancer"),
        ("10.9.9.9", "of the cloud itself"),
        ("::ffff:10.9.9.9", "of the cloud itself"),
    ] {
        assert_eq!(cloud.code("RegisterTargets", register(address), why), VALUE, "{address}");
        assert_eq!(cloud.code("BatchRegisterTargets", batch(address), why), VALUE, "{address}");
    }
    // Other spellings are no addresses.
    for spelled in [
        "2130706433",
        "0177.0.0.1",
        "127.1",
        "0x7f.0.0.1",
        "127.0.0.1%lo",
        "[::1]",
        "localhost",
        " 127.0.0.1",
    ] {
        let why = "not an IP address";
        assert_eq!(cloud.code("RegisterTargets", register(spelled), why), VALUE, "{spelled}");
    }
    let bound = cloud.ok("DescribeTargets", json!({ "LoadBalancerId": lb }));
    assert_eq!(bound["Listeners"][0]["Targets"], json!([]), "of a batch nothing is kept");
    cloud.ok("RegisterTargets", register("10.9.9.8"));

    // A lab on one machine says that it wants them.
    let cloud = Harness::new();
    let lb = cloud.load_balancer();
    let listener = cloud.listener(&lb, "TCP", 80, json!({}));
    cloud.ok(
        "RegisterTargets",
        json!({ "LoadBalancerId": lb, "ListenerId": listener,
        "Targets": [{ "EniIp": "127.0.0.1", "Port": 80 }] }),
    );
    // But for what no machine can be called at.
    for address in ["0.0.0.0", "255.255.255.255", "224.0.0.1", "::ffff:0.0.0.0"] {
        let parameters = json!({ "LoadBalancerId": lb, "ListenerId": listener,
            "Targets": [{ "EniIp": address, "Port": 80 }] });
        assert_eq!(cloud.code("RegisterTargets", parameters, "cannot be a target"), VALUE);
    }
}

#[test]
fn texts_that_become_parts_of_requests_are_visible() {
    let cloud = Harness::new();
    let lb = cloud.load_balancer();
    let listener = cloud.listener(&lb, "HTTP", 80, json!({}));
    let create = |more: Value| {
        let mut rule = json!({ "Domain": "a.example.com", "Url": "/" });
        for (name, value) in more.as_object().unwrap() {
            rule[name] = value.clone();
        }
        json!({ "LoadBalancerId": lb, "ListenerId": listener, "Rules": [rule] })
    };
    let check = |member: &str, value: &str| create(json!({ "HealthCheck": { member: value } }));
    for (member, value) in [
        ("HttpCheckPath", "/a\r\nX: y"),
        ("HttpCheckPath", "/a\nb"),
        ("HttpCheckPath", "/a HTTP/1.1"),
        ("HttpCheckPath", "/\u{1b}]52;c;"),
        ("HttpCheckPath", "/\u{202e}x"),
        ("HttpCheckDomain", "a.example.com\r\nX: y"),
        ("HttpCheckDomain", "a b"),
    ] {
        let code = cloud.code("CreateRule", check(member, value), "visible ASCII");
        assert_eq!(code, VALUE, "{member} {value:?}");
    }
    for cookie in ["a\r\nX: y", "a=b", "a;b", "a b"] {
        let parameters = create(json!({ "CookieName": cookie, "SessionExpireTime": 60 }));
        assert_eq!(cloud.code("CreateRule", parameters, "cookie"), VALUE, "{cookie:?}");
    }
    cloud.ok("CreateRule", check("HttpCheckPath", "/healthz?full=1&x=%0d%0a"));
}

#[test]
fn certificates_have_a_quota_and_a_size() {
    let quotas = Quotas { certificates: 2, ..Quotas::default() };
    let cloud = Harness::set(Settings { quotas, ..Settings::default() });
    let lb = cloud.load_balancer();
    for port in [443, 444] {
        cloud.listener(&lb, "TCP_SSL", port, json!({ "Certificate": upload() }));
    }
    let more = json!({ "LoadBalancerId": lb, "Protocol": "TCP_SSL", "Ports": [445],
        "Certificate": upload() });
    assert_eq!(cloud.code("CreateListener", more, "quota of certificates"), "LimitExceeded");
}
