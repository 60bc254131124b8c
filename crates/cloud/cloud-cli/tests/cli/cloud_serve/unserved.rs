//! What no data plane serves is not told as done: tasks fail, flags and `/readyz` say why.

use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use uturn_cloud_api::clb;
use uturn_cloud_api::client::CallError;

use super::clients::{Target, certificate, web};
use super::processes::Site;
use super::{health_check, listener, register, registration};
use crate::site::try_exchange;

/// The flags of a load balancer and of its listeners that say that they are not served.
fn flags(site: &Site, lb: &str) -> (Vec<String>, Vec<Vec<String>>) {
    let unserved = |flags: Option<Vec<String>>| -> Vec<String> {
        flags.unwrap().into_iter().filter(|flag| flag.starts_with("NotServed")).collect()
    };
    let query = json!({ "LoadBalancerIds": [lb] });
    let found = site.ok::<clb::DescribeLoadBalancersRequest>(query);
    let balancer = found.load_balancer_set.unwrap().remove(0);
    let query = json!({ "LoadBalancerId": lb });
    let found = site.ok::<clb::DescribeListenersRequest>(query).listeners.unwrap();
    let listeners = found.into_iter().map(|listener| unserved(listener.attr_flags)).collect();
    (unserved(balancer.attribute_flags), listeners)
}

fn failure(error: CallError) -> String {
    let CallError::Task { message, .. } = error else { panic!("{error}") };
    message
}

#[test]
fn a_missing_source_of_health_checks_is_told_until_it_is_mended() {
    let site = Site::start("cloud-no-source");
    let target = Target::start("served");
    let (lb, vip) = site.load_balancer();
    let port = site.port();
    let (served, rule) = listener(&site, &lb, port, &json!({}), &[]);
    let set_source = |source: u8| {
        let mut check = health_check();
        check["SourceIpType"] = source.into();
        site.call::<clb::ModifyRuleRequest>(json!({
            "LoadBalancerId": lb, "ListenerId": served, "LocationId": rule, "HealthCheck": check,
        }))
    };
    set_source(1).unwrap();
    assert_eq!(site.readiness(), (200, "ok\n".to_owned()));

    // This machine has no route for 100.64.0.0/10, from which health checks would come.
    let bound = registration(&lb, &served, &rule, &[&target]);
    let why = failure(site.call::<clb::RegisterTargetsRequest>(bound).unwrap_err());
    assert_eq!(why, "the data plane does not have the address that its health checks come from");
    let flag = "NotServed.NoProbeSource".to_owned();
    assert_eq!(flags(&site, &lb), (vec![], vec![vec![flag]]));
    let (status, problems) = site.readiness();
    assert_eq!(status, 503);
    assert!(
        problems.contains(&format!("refuses {lb}: {served}: cannot send the health checks")),
        "{problems}"
    );
    let metrics = site.metrics();
    assert!(metrics.contains("uturn_cloud_unserved{reason=\"NoProbeSource\"} 1\n"), "{metrics}");
    assert!(metrics.contains("uturn_cloud_failed_tasks_total 1\n"), "{metrics}");

    // Another listener of the same load balancer is served, and its tasks are done.
    let other_port = site.port();
    listener(&site, &lb, other_port, &json!({}), &[&target]);
    assert_eq!(web((vip, other_port), "shop.example.com").unwrap(), "served");
    assert_eq!(web((vip, port), "shop.example.com").unwrap(), "503", "as before the last change");

    set_source(0).unwrap();
    assert_eq!(flags(&site, &lb), (vec![], vec![vec![], vec![]]));
    assert_eq!(site.readiness(), (200, "ok\n".to_owned()));
    assert_eq!(web((vip, port), "shop.example.com").unwrap(), "served");
}

/// A port that is taken on the machine is a matter of its listener.
#[test]
fn a_refusal_counts_for_the_listener_that_it_is_about() {
    let site = Site::start("cloud-refused-listener");
    let target = Target::start("served");
    let (lb, vip) = site.load_balancer();
    let ports = [(); 5].map(|()| site.port());
    let (taken, bad) = (TcpListener::bind((vip, ports[2])).unwrap(), ports[2]);
    let mut ids = Vec::new();
    for port in ports {
        let creation = json!({
            "LoadBalancerId": lb, "Protocol": "HTTP", "Ports": [port], "KeepaliveEnable": 1,
        });
        let made = site.call::<clb::CreateListenerRequest>(creation.clone());
        match made {
            Ok(made) => ids.push(made.listener_ids.unwrap().remove(0)),
            Err(error) => {
                assert_eq!(port, bad, "{error}");
                let why = failure(error);
                assert!(why.contains(&format!("cannot listen on {vip}:{bad}: another")), "{why}");
            }
        }
    }
    // All others are changed together: each is served.
    for id in &ids {
        let rules = json!([{
            "Domain": "shop.example.com", "Url": "/", "HealthCheck": health_check(),
        }]);
        let rule = json!({ "LoadBalancerId": lb, "ListenerId": id, "Rules": rules });
        let rule = site.ok::<clb::CreateRuleRequest>(rule).location_ids.unwrap().remove(0);
        site.ok::<clb::RegisterTargetsRequest>(registration(&lb, id, &rule, &[&target]));
    }
    let good = ports.iter().filter(|port| **port != bad);
    let is_served = || {
        let mut pages = good.clone().map(|port| web((vip, *port), "shop.example.com"));
        pages.all(|page| page.as_deref() == Some("served"))
    };
    assert!(is_served());
    let flag = vec!["NotServed.PortInUse".to_owned()];
    let (of_balancer, of_listeners) = flags(&site, &lb);
    assert_eq!(of_balancer, [""; 0]);
    assert_eq!(of_listeners, [vec![], vec![], flag.clone(), vec![], vec![]]);
    let query = json!({ "LoadBalancerIds": [lb] });
    let listed = site.ok::<clb::DescribeLoadBalancersRequest>(query).load_balancer_set.unwrap();
    let flags_of_list = listed[0].attribute_flags.clone().unwrap();
    assert!(flags_of_list.contains(&"ListenersNotServed".to_owned()), "{flags_of_list:?}");
    // So it is for a data plane that is told everything anew.
    let mut site = site;
    site.kill_data_plane();
    site.start_data_plane();
    while !is_served() || flags(&site, &lb).1[2] != flag {
        thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(site.readiness().0, 503);
    // It is tried again by itself.
    drop(taken);
    while flags(&site, &lb).1[2] != [""; 0] {
        thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(site.readiness(), (200, "ok\n".to_owned()));
    assert!(is_served());
    assert_eq!(web((vip, bad), "shop.example.com"), Some("404".to_owned()), "it has no rule");
}

/// Of two rules with one normal form only the first can be found; and one whose path is no path is
/// never found.
#[test]
fn rules_that_cannot_be_found_are_left_out() {
    let site = Site::start("cloud-twins");
    let (first, other) = (Target::start("first"), Target::start("other"));
    let (lb, vip) = site.load_balancer();
    let port = site.port();
    let (served, rule) = listener(&site, &lb, port, &json!({}), &[]);
    register(&site, &lb, &served, &rule, &[&other]);
    let add_rule = |url: &str| {
        site.call::<clb::CreateRuleRequest>(json!({
            "LoadBalancerId": lb, "ListenerId": served, "Rules": [{
                "Domain": "shop.example.com", "Url": url, "HealthCheck": health_check(),
            }],
        }))
    };
    let admin = add_rule("/%61dmin").unwrap().location_ids.unwrap().remove(0);
    register(&site, &lb, &served, &admin, &[&first]);
    let ask = |path: &str| {
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: shop.example.com\r\nConnection: close\r\n\r\n");
        let answer = try_exchange((vip, port).into(), &request).unwrap();
        (answer[9..12].to_owned(), answer.split_once("\r\n\r\n").unwrap().1.to_owned())
    };
    let ok = |name: &str| ("200".to_owned(), name.to_owned());
    // However the path is written, the rule is the same.
    for path in ["/admin", "//admin", "/./admin", "/x/../admin", "/%61dmin", "/x/%2e%2e/admin"] {
        assert_eq!(ask(path), ok("first"), "{path}");
    }
    assert_eq!(ask("/other"), ok("other"));
    assert_eq!(ask("/x/..%2fadmin").0, "400");
    assert_eq!(flags(&site, &lb), (vec![], vec![vec![]]));

    for url in ["//admin", "/adm%69n", "/x/../admin", "/100%"] {
        let why = failure(add_rule(url).unwrap_err());
        assert_eq!(why, "some of its rules cannot be served by a data plane", "{url}");
        let flag = "NotServed.RuleLeftOut".to_owned();
        assert_eq!(flags(&site, &lb), (vec![], vec![vec![flag]]), "{url}");
        assert_eq!(ask("/admin"), ok("first"), "the others are served");
        // A tenant's wish does not make the cloud unready.
        assert_eq!(site.readiness(), (200, "ok\n".to_owned()));
        let all = site.ok::<clb::DescribeListenersRequest>(json!({ "LoadBalancerId": lb }));
        let rules = all.listeners.unwrap().remove(0).rules.unwrap();
        let left = rules.iter().find(|rule| rule.url.as_deref() == Some(url)).unwrap();
        site.ok::<clb::DeleteRuleRequest>(json!({
            "LoadBalancerId": lb, "ListenerId": served, "LocationIds": [left.location_id],
        }));
        assert_eq!(flags(&site, &lb), (vec![], vec![vec![]]));
    }
}

/// Who wants paths as they were sent says so.
#[test]
fn paths_may_be_left_as_they_are() {
    let mut site = Site::new("cloud-raw-paths");
    site.options = vec!["--path-normalization", "off"];
    site.start_data_plane();
    site.start_cloud();
    site.wait_for_status(|plane| plane["is_reached"] == true);
    let target = Target::start("served");
    let (lb, vip) = site.load_balancer();
    let port = site.port();
    let (served, _) = listener(&site, &lb, port, &json!({}), &[]);
    let made = site.ok::<clb::CreateRuleRequest>(json!({
        "LoadBalancerId": lb, "ListenerId": served, "Rules": [{
            "Domain": "raw.example.com", "Url": "//a", "HealthCheck": health_check(),
        }],
    }));
    register(&site, &lb, &served, &made.location_ids.unwrap()[0], &[&target]);
    let ask = |path: &str| {
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: raw.example.com\r\nConnection: close\r\n\r\n");
        try_exchange((vip, port).into(), &request).unwrap()[9..12].to_owned()
    };
    assert_eq!(ask("//a"), "200");
    assert_ne!(ask("/a"), "200", "another path");
}

#[test]
fn what_no_data_plane_can_serve_fails_once() {
    let site = Site::start("cloud-left-out");
    let target = Target::start("served");
    let (lb, vip) = site.load_balancer();
    let port = site.port();
    let (served, rule) = listener(&site, &lb, port, &json!({}), &[]);
    let add_rule = |url: &str| {
        site.call::<clb::CreateRuleRequest>(json!({
            "LoadBalancerId": lb, "ListenerId": served, "Rules": [{
                "Domain": "shop.example.com", "Url": url, "HealthCheck": health_check(),
            }],
        }))
    };
    // An expression that no data plane has is refused at once, and nothing is left of it.
    let why = add_rule("~ ^/a(?!b)").unwrap_err().to_string();
    assert!(why.contains("not a regular expression that uturn supports: look-around"), "{why}");
    assert_eq!(flags(&site, &lb), (vec![], vec![vec![]]));

    let authority: Value = json!({
        "SSLMode": "UNIDIRECTIONAL", "CertName": "s", "CertContent": certificate("s").0,
        "CertKey": certificate("s").1,
    });
    let quic = json!({
        "LoadBalancerId": lb, "Protocol": "QUIC", "Ports": [site.port()], "Certificate": authority,
    });
    let why = failure(site.call::<clb::CreateListenerRequest>(quic).unwrap_err());
    assert!(why.starts_with("no data plane can serve this kind of listener"), "{why}");

    // Other changes of the same load balancer are served, and say so.
    site.call::<clb::RegisterTargetsRequest>(registration(&lb, &served, &rule, &[&target]))
        .unwrap();
    assert_eq!(web((vip, port), "shop.example.com").unwrap(), "served");
    // A tenant's wish does not make the cloud unready.
    assert_eq!(site.readiness(), (200, "ok\n".to_owned()));
}
