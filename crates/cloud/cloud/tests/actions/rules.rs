//! Rules, their domains, and redirections.

use serde_json::{Value, json};

use crate::harness::{Harness, text, upload, with};

/// A load balancer with a listener of this protocol.
fn listener(cloud: &Harness, protocol: &str, port: u16, more: Value) -> (String, String) {
    let lb = cloud.load_balancer();
    let listener = cloud.listener(&lb, protocol, port, more);
    (lb, listener)
}

fn ids(lb: &str, listener: &str) -> Value {
    json!({ "LoadBalancerId": lb, "ListenerId": listener })
}

fn rules(cloud: &Harness, lb: &str) -> Vec<Value> {
    cloud.listeners(lb)[0]["Rules"].as_array().unwrap().clone()
}

/// The domains that are the default.
fn defaults(cloud: &Harness, lb: &str) -> Vec<Value> {
    let rules = rules(cloud, lb).into_iter().filter(|rule| rule["DefaultServer"] == true);
    rules.map(|rule| rule["Domain"].clone()).collect()
}

#[test]
fn rules_are_described_with_their_defaults() {
    let cloud = Harness::new();
    let (lb, listener) = listener(&cloud, "HTTP", 80, json!({}));
    let rule = json!({ "Domain": "a.test", "Url": "/", "SessionExpireTime": 30 });
    let id = cloud.rule(&lb, &listener, rule);
    let rule = rules(&cloud, &lb)[0].clone();
    assert_eq!(rule["LocationId"], id.as_str());
    assert_eq!(rule["DefaultServer"], true, "the first one is");
    assert_eq!((&rule["Scheduler"], &rule["ForwardType"]), (&json!("WRR"), &json!("HTTP")));
    assert_eq!(rule["SessionExpireTime"], 30);
    let check = &rule["HealthCheck"];
    assert_eq!((&check["CheckType"], &check["HttpCode"]), (&json!("HTTP"), &json!(31)));
    assert_eq!(
        (&check["HttpCheckPath"], &check["HttpCheckDomain"]),
        (&json!("/"), &json!("a.test"))
    );
    assert_eq!(check["SourceIpType"], 1);
    assert_eq!(rule["RewriteTarget"]["TargetListenerId"], Value::Null);
    cloud.rule(&lb, &listener, json!({ "Url": "/" }));
    let vip = cloud.described(&lb)["LoadBalancerVips"][0].clone();
    assert_eq!(rules(&cloud, &lb)[1]["Domain"], vip, "a rule without a domain is the VIP's");
}

#[test]
fn each_rule_of_creation_has_its_code() {
    let cloud = Harness::new();
    let (lb, http) = listener(&cloud, "HTTP", 80, json!({}));
    let tcp = cloud.listener(&lb, "TCP", 81, json!({}));
    let sni = cloud.listener(&lb, "HTTPS", 443, json!({ "SniSwitch": 1 }));
    cloud.rule(&lb, &http, json!({ "Domains": ["a.test", "b.test"], "Url": "/" }));
    let base = json!({ "Domain": "c.test", "Url": "/" });
    let (parameter, value) = ("InvalidParameter", "InvalidParameterValue");
    let (length, format) = ("InvalidParameterValue.Length", "InvalidParameter.FormatError");
    for (listener, more, code, part) in [
        ("lbl-x", json!({}), parameter, "does not exist"),
        (&*tcp, json!({}), parameter, "has no rules"),
        (&*http, json!({ "Url": "" }), length, "0 characters"),
        (&*http, json!({ "Url": format!("/{}", "x".repeat(200)) }), length, "201"),
        (&*http, json!({ "Url": "x" }), format, "no path"),
        (&*http, json!({ "Url": "~ ^/a(?!b)" }), format, "look-around"),
        (&*http, json!({ "Url": "~ (a|b)*a(a|b){12}" }), format, "make it smaller"),
        (&*http, json!({ "Domain": "~^a(?!b)$" }), format, "look-around"),
        (&*http, json!({ "Domain": "~a.{20}b" }), format, "make it smaller"),
        (&*http, json!({ "Domain": "x".repeat(81) }), length, "81"),
        (&*http, json!({ "Domain": "a b" }), format, "no domain"),
        (&*http, json!({ "Domain": "a.*.test" }), format, "no domain"),
        (&*http, json!({ "Domains": ["d.test"] }), parameter, "only one"),
        (&*http, json!({ "Domain": null, "Domains": ["d.test", "d.test"] }), value, "twice"),
        (&*http, json!({ "Domain": "a.test" }), parameter, "part of other"),
        (&*http, json!({ "Domain": null, "Domains": ["b.test", "a.test"] }), parameter, "already"),
        (&*http, json!({ "SessionExpireTime": 29 }), value, "30 to 86400"),
        (&*http, json!({ "Scheduler": "RANDOM" }), value, "IP_HASH"),
        (&*http, json!({ "ForwardType": "HTTPS" }), value, "HTTP"),
        (&*sni, json!({ "ForwardType": "TRPC" }), value, "GRPC"),
        (&*http, json!({ "Http2": true }), parameter, "HTTPS"),
        (&*http, json!({ "TargetType": "TARGETGROUP" }), value, "NODE"),
        (&*http, json!({ "Certificate": upload() }), parameter, "SNI"),
        (&*sni, json!({}), "MissingParameter", "Certificate"),
        (&*http, json!({ "HealthCheck": { "CheckType": "PING" } }), value, "HTTP, GRPC"),
    ] {
        let rule = with(&base, &more);
        let parameters = with(&ids(&lb, listener), &json!({ "Rules": [rule] }));
        assert_eq!(cloud.code("CreateRule", parameters, part), code, "{more}");
    }
    let two = json!([
        { "Domain": "x.test", "Url": "/", "DefaultServer": true },
        { "Domain": "y.test", "Url": "/", "DefaultServer": true },
    ]);
    for (rules, code) in [
        (json!([]), value),
        (two, parameter),
        (json!([base, { "Domain": "e.test", "Url": "x" }]), format),
    ] {
        let parameters = with(&ids(&lb, &http), &json!({ "Rules": rules }));
        assert_eq!(cloud.code("CreateRule", parameters, ""), code);
    }
    let many: Vec<Value> =
        (0..50).map(|number| json!({ "Domain": "c.test", "Url": format!("/{number}") })).collect();
    let parameters = with(&ids(&lb, &http), &json!({ "Rules": many }));
    assert_eq!(cloud.code("CreateRule", parameters, "quota"), "LimitExceeded");
}

#[test]
fn rules_of_a_domain_share_what_is_the_domains() {
    let cloud = Harness::new();
    let (lb, https) = listener(&cloud, "HTTPS", 443, json!({ "SniSwitch": 1 }));
    let first = json!({ "Domain": "a.test", "Url": "/", "Certificate": upload(), "Http2": true });
    cloud.rule(&lb, &https, first);
    cloud.rule(&lb, &https, json!({ "Domain": "a.test", "Url": "/b" }));
    let found = rules(&cloud, &lb);
    assert_eq!(found[0]["Certificate"], found[1]["Certificate"]);
    assert_eq!(found[1]["Http2"], true);
    let change = json!({ "Domain": "a.test", "Certificate": upload(), "Http2": false });
    cloud.ok("ModifyDomainAttributes", with(&ids(&lb, &https), &change));
    let after = rules(&cloud, &lb);
    assert_ne!(after[1]["Certificate"], found[1]["Certificate"]);
    assert_eq!(after[0]["Certificate"], after[1]["Certificate"]);
    assert_eq!(after[1]["Http2"], false);
}

#[test]
fn what_a_modification_leaves_out_stays() {
    let cloud = Harness::new();
    let (lb, listener) = listener(&cloud, "HTTP", 80, json!({}));
    let rule = json!({ "Domain": "a.test", "Url": "/", "HealthCheck": { "IntervalTime": 9 } });
    let id = cloud.rule(&lb, &listener, rule);
    cloud.rule(&lb, &listener, json!({ "Domain": "a.test", "Url": "/taken" }));
    let base = with(&ids(&lb, &listener), &json!({ "LocationId": id }));
    let before = rules(&cloud, &lb)[0].clone();
    let change = json!({ "HealthCheck": { "SourceIpType": 0 }, "Scheduler": "LEAST_CONN" });
    cloud.ok("ModifyRule", with(&base, &change));
    let check = with(&before["HealthCheck"], &json!({ "SourceIpType": 0 }));
    let expected = with(&before, &json!({ "HealthCheck": check, "Scheduler": "LEAST_CONN" }));
    assert_eq!(rules(&cloud, &lb)[0], expected);
    for (more, code) in [
        (json!({}), "MissingParameter"),
        (json!({ "LocationId": "loc-x", "Url": "/x" }), "InvalidParameter"),
        (json!({ "Url": "/taken" }), "InvalidParameter"),
        (json!({ "Url": "x" }), "InvalidParameter.FormatError"),
        (json!({ "Url": "~ a.{20}b" }), "InvalidParameter.FormatError"),
        (json!({ "ForwardType": "GRPC" }), "InvalidParameterValue"),
        (json!({ "SessionExpireTime": 1 }), "InvalidParameterValue"),
        (json!({ "OAuth": { "OAuthEnable": true } }), "InvalidParameterValue"),
    ] {
        assert_eq!(cloud.code("ModifyRule", with(&base, &more), ""), code, "{more}");
    }
}

#[test]
fn domains_are_renamed_and_one_is_the_default() {
    let cloud = Harness::new();
    let (lb, http) = listener(&cloud, "HTTP", 80, json!({}));
    for domain in ["a.test", "b.test", "c.test"] {
        cloud.rule(&lb, &http, json!({ "Domain": domain, "Url": "/" }));
    }
    let attributes = |more: Value| with(&ids(&lb, &http), &more);
    let modify = |more: Value| cloud.ok("ModifyDomainAttributes", attributes(more));
    assert_eq!(defaults(&cloud, &lb), ["a.test"]);
    modify(json!({ "Domain": "b.test", "DefaultServer": true }));
    assert_eq!(defaults(&cloud, &lb), ["b.test"]);
    modify(json!({
        "Domain": "b.test", "DefaultServer": false, "NewDefaultServerDomain": "c.test",
    }));
    assert_eq!(defaults(&cloud, &lb), ["c.test"]);
    modify(json!({ "Domain": "c.test", "NewDomains": ["d.test", "e.test"] }));
    assert_eq!(defaults(&cloud, &lb), ["d.test"]);
    let rename = |from: &str, to: &str| attributes(json!({ "Domain": from, "NewDomain": to }));
    cloud.ok("ModifyDomain", rename("e.test", "*.test"));
    assert_eq!(rules(&cloud, &lb)[2]["Domains"], json!(["d.test", "*.test"]));
    for (action, parameters, code) in [
        ("ModifyDomain", rename("x.test", "y.test"), "InvalidParameter"),
        ("ModifyDomain", rename("a.test", "b.test"), "InvalidParameter"),
        ("ModifyDomain", rename("a.test", &"x".repeat(121)), "InvalidParameterValue.Length"),
        ("ModifyDomainAttributes", rename("a.test", "b.test"), "InvalidParameter"),
        (
            "ModifyDomainAttributes",
            attributes(json!({ "Domain": "d.test", "DefaultServer": false })),
            "MissingParameter",
        ),
        (
            "ModifyDomainAttributes",
            attributes(json!({ "Domain": "d.test", "NewDefaultServerDomain": "x.test" })),
            "InvalidParameter",
        ),
        (
            "ModifyDomainAttributes",
            attributes(json!({ "Domain": "a.test", "Http2": true })),
            "InvalidParameter",
        ),
    ] {
        assert_eq!(cloud.code(action, parameters.clone(), ""), code, "{parameters}");
    }
}

#[test]
fn rules_are_deleted_by_id_by_domain_and_by_url() {
    let cloud = Harness::new();
    let (lb, http) = listener(&cloud, "HTTP", 80, json!({}));
    let rule =
        |domain: &str, url: &str| cloud.rule(&lb, &http, json!({ "Domain": domain, "Url": url }));
    let first = rule("a.test", "/");
    for (domain, url) in [("b.test", "/"), ("b.test", "/x"), ("c.test", "/"), ("d.test", "/")] {
        rule(domain, url);
    }
    let delete = |more: Value| with(&ids(&lb, &http), &more);
    for (more, part) in [
        (json!({}), "are needed"),
        (json!({ "Url": "/" }), "are needed"),
        (json!({ "LocationIds": [first, "loc-x"] }), "loc-x"),
        (json!({ "Domain": "x.test" }), "x.test"),
        (json!({ "Domain": "b.test", "Url": "/y" }), "b.test/y"),
        (json!({ "Domain": "a.test", "NewDefaultServerDomain": "a.test" }), "a.test"),
    ] {
        assert_eq!(cloud.code("DeleteRule", delete(more), part), "InvalidParameter");
    }
    cloud.ok(
        "DeleteRule",
        delete(json!({
            "LocationIds": [first], "NewDefaultServerDomain": "c.test",
        })),
    );
    assert_eq!(defaults(&cloud, &lb), ["c.test"]);
    cloud.ok("DeleteRule", delete(json!({ "Domain": "c.test" })));
    assert_eq!(defaults(&cloud, &lb), ["b.test", "b.test"], "the oldest that is left");
    cloud.ok("DeleteRule", delete(json!({ "Domain": "b.test", "Url": "/" })));
    let left: Vec<Value> = rules(&cloud, &lb).into_iter().map(|rule| rule["Url"].clone()).collect();
    assert_eq!(left, ["/x", "/"]);
}

#[test]
fn https_is_redirected_to_automatically() {
    let cloud = Harness::new();
    let (lb, https) = listener(&cloud, "HTTPS", 443, json!({ "Certificate": upload() }));
    for (domain, url) in [("a.test", "/"), ("a.test", "/x"), ("b.test", "/")] {
        cloud.rule(&lb, &https, json!({ "Domain": domain, "Url": url }));
    }
    let base = ids(&lb, &https);
    let code = |more: Value| cloud.code("AutoRewrite", with(&base, &more), "");
    assert_eq!(code(json!({ "LoadBalancerId": "lb-x" })), "InvalidParameter.LBIdNotFound");
    assert_eq!(code(json!({ "ListenerId": "lbl-x" })), "InvalidParameter.ListenerIdNotFound");
    assert_eq!(code(json!({ "Domains": ["x.test"] })), "InvalidParameter.LocationNotFound");
    assert_eq!(code(json!({ "RewriteCodes": [303] })), "InvalidParameterValue");
    assert_eq!(code(json!({ "RewriteCodes": [301, 302] })), "InvalidParameterValue");
    cloud.ok("AutoRewrite", with(&base, &json!({ "Domains": ["a.test"], "RewriteCodes": [301] })));
    let listeners = cloud.listeners(&lb);
    assert_eq!((&listeners[1]["Protocol"], &listeners[1]["Port"]), (&json!("HTTP"), &json!(80)));
    let created = listeners[1]["Rules"].as_array().unwrap();
    assert_eq!(created.len(), 2);
    assert_eq!(created[0]["BeAutoCreated"], true);
    assert_eq!(
        created[0]["RewriteTarget"],
        json!({
            "TargetListenerId": https, "TargetLocationId": listeners[0]["Rules"][0]["LocationId"],
            "RewriteCode": 301, "TakeUrl": true, "RewriteType": "Auto",
        })
    );
    assert_eq!(code(json!({})), "InvalidParameter.RewriteAlreadyExist");
    cloud.ok("AutoRewrite", with(&base, &json!({ "Domains": ["b.test"] })));
    let all = cloud.ok("DescribeRewrite", json!({ "LoadBalancerId": lb }));
    assert_eq!(all["RewriteSet"].as_array().unwrap().len(), 3);
    assert_eq!(all["RewriteSet"][2]["RewriteTarget"]["RewriteCode"], 302);
    let other = cloud.listener(&lb, "HTTPS", 8443, json!({ "Certificate": upload() }));
    assert_eq!(code(json!({ "ListenerId": other })), "InvalidParameter.PortCheckFailed");
    let http = listeners[1]["ListenerId"].clone();
    assert_eq!(code(json!({ "ListenerId": http })), "InvalidParameter.ProtocolCheckFailed");
    cloud.ok("DeleteListener", base);
    let left = cloud.ok("DescribeRewrite", json!({ "LoadBalancerId": lb }));
    assert_eq!(left["RewriteSet"], json!([]), "their target is gone");
}

#[test]
fn rules_are_redirected_by_hand_but_not_in_chains() {
    let cloud = Harness::new();
    let (lb, http) = listener(&cloud, "HTTP", 80, json!({}));
    let other = cloud.listener(&lb, "HTTP", 81, json!({}));
    let tcp = cloud.listener(&lb, "TCP", 82, json!({}));
    let rule = |listener: &str, url: &str| {
        cloud.rule(&lb, listener, json!({ "Domain": "a.test", "Url": url }))
    };
    let (a, b, c) = (rule(&http, "/a"), rule(&other, "/b"), rule(&other, "/c"));
    let request = |from: (&str, &str), to: (&str, &str), more: Value| {
        let map = json!({ "SourceLocationId": from.1, "TargetLocationId": to.1 });
        json!({
            "LoadBalancerId": lb, "SourceListenerId": from.0, "TargetListenerId": to.0,
            "RewriteInfos": [with(&map, &more)],
        })
    };
    let (from, to, third) = ((&*http, &*a), (&*other, &*b), (&*other, &*c));
    let code = |parameters: Value| cloud.code("ManualRewrite", parameters, "");
    let none = json!({});
    for (parameters, expected) in [
        (request(("lbl-x", &a), to, none.clone()), "InvalidParameter.ListenerIdNotFound"),
        (request((&tcp, &a), to, none.clone()), "InvalidParameter.ProtocolCheckFailed"),
        (request((&http, "loc-x"), to, none.clone()), "InvalidParameter.LocationNotFound"),
        (request(from, (&other, "loc-x"), none.clone()), "InvalidParameter.LocationNotFound"),
        (request(from, from, none.clone()), "InvalidParameter"),
        (request(from, to, json!({ "RewriteCode": 308 })), "InvalidParameterValue"),
        (request(from, to, json!({ "SourceDomain": "x.test" })), "InvalidParameter"),
    ] {
        assert_eq!(code(parameters.clone()), expected, "{parameters}");
    }
    let redirect = request(from, to, json!({ "RewriteCode": 307, "SourceDomain": "a.test" }));
    cloud.ok("ManualRewrite", redirect.clone());
    assert_eq!(code(request(from, third, none.clone())), "InvalidParameter.RewriteAlreadyExist");
    assert_eq!(code(request(to, third, none.clone())), "InvalidParameter", "it is a target");
    assert_eq!(code(request(third, from, none.clone())), "InvalidParameter", "it is redirected");
    let described =
        cloud.ok("DescribeRewrite", json!({ "LoadBalancerId": lb, "SourceLocationIds": [a] }));
    assert_eq!(described["RewriteSet"][0]["RewriteTarget"]["RewriteType"], "Manual");
    assert_eq!(text(&described["RewriteSet"][0]["RewriteTarget"]["TargetLocationId"]), b);
    let wrong = request(from, third, none);
    let code = cloud.code("DeleteRewrite", wrong, "no redirection");
    assert_eq!(code, "InvalidParameter.SomeRewriteNotFound");
    cloud.ok("DeleteRewrite", redirect);
    let left = cloud.ok("DescribeRewrite", json!({ "LoadBalancerId": lb }));
    assert_eq!(left["RewriteSet"], json!([]));
}
