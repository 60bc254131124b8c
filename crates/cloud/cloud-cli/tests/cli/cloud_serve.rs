//! `uturn cloud serve` drives `uturn lb run`: both as processes, on loopback.
#![cfg(target_os = "linux")]

mod chain;
mod changes;
mod clients;
mod mutual;
mod planes;
mod processes;
mod rules;
mod signatures;
mod unserved;

use std::fs;
use std::net::TcpListener;
use std::thread;

use serde_json::{Value, json};
use uturn_cloud_api::clb;
use uturn_cloud_api::client::CallError;

use self::clients::{Target, certificate, shown_certificate, web};
use self::processes::Site;

/// A health check that decides within some seconds.
fn health_check() -> Value {
    json!({
        "HealthSwitch": 1, "TimeOut": 2, "IntervalTime": 3, "HealthNum": 2, "UnHealthNum": 2,
        "SourceIpType": 0, "HttpCheckPath": "/",
    })
}

/// A listener with one rule for `shop.example.com` and these targets. Returns its id and the
/// rule's.
fn listener(
    site: &Site,
    lb: &str,
    port: u16,
    more: &Value,
    targets: &[&Target],
) -> (String, String) {
    let mut parameters = json!({
        "LoadBalancerId": lb, "Protocol": "HTTP", "Ports": [port], "KeepaliveEnable": 1,
    });
    for (name, value) in more.as_object().unwrap() {
        parameters[name] = value.clone();
    }
    let made = site.ok::<clb::CreateListenerRequest>(parameters);
    let listener = made.listener_ids.unwrap().remove(0);
    let made = site.ok::<clb::CreateRuleRequest>(json!({
        "LoadBalancerId": lb, "ListenerId": listener, "Rules": [{
            "Domain": "shop.example.com", "Url": "/", "HealthCheck": health_check(),
        }],
    }));
    let rule = made.location_ids.unwrap().remove(0);
    if !targets.is_empty() {
        register(site, lb, &listener, &rule, targets);
    }
    (listener, rule)
}

fn register(site: &Site, lb: &str, listener: &str, rule: &str, targets: &[&Target]) {
    site.ok::<clb::RegisterTargetsRequest>(registration(lb, listener, rule, targets));
}

fn registration(lb: &str, listener: &str, rule: &str, targets: &[&Target]) -> Value {
    let targets: Vec<Value> = targets
        .iter()
        .map(|target| json!({ "EniIp": target.address.ip(), "Port": target.address.port() }))
        .collect();
    json!({ "LoadBalancerId": lb, "ListenerId": listener, "LocationId": rule, "Targets": targets })
}

/// The health of each target: ports and details.
fn health(site: &Site, lb: &str) -> Vec<(i64, String)> {
    let answer = site.ok::<clb::DescribeTargetHealthRequest>(json!({ "LoadBalancerIds": [lb] }));
    let listeners = answer.load_balancers.unwrap().remove(0).listeners.unwrap();
    let rules = listeners.into_iter().flat_map(|listener| listener.rules.unwrap());
    let targets = rules.flat_map(|rule| rule.targets.unwrap());
    targets.map(|target| (target.port.unwrap(), target.health_status_detail.unwrap())).collect()
}

/// Waits until the targets are so.
fn wait_for_health(site: &Site, lb: &str, expected: &[(&Target, &str)]) {
    let expected: Vec<(i64, String)> = expected
        .iter()
        .map(|(target, detail)| (target.address.port().into(), (*detail).to_owned()))
        .collect();
    while health(site, lb) != expected {
        thread::yield_now();
    }
}

#[test]
fn what_the_api_says_is_served() {
    let mut site = Site::start("cloud-drives");
    let (first, second) = (Target::start("first"), Target::start("second"));
    let (lb, vip) = site.load_balancer();
    let (port, tls_port) = (site.port(), site.port());

    // Each task is done when the data plane serves its change, so that nothing has to be waited
    // for after it.
    let (plain, rule) = listener(&site, &lb, port, &json!({}), &[&first]);
    assert_eq!(web((vip, port), "shop.example.com").unwrap(), "first");
    register(&site, &lb, &plain, &rule, &[&second]);
    let answers = || [(); 2].map(|()| web((vip, port), "shop.example.com").unwrap());
    let mut both = answers();
    both.sort();
    assert_eq!(both, ["first", "second"]);

    // Health is what the data plane sees.
    wait_for_health(&site, &lb, &[(&first, "Alive"), (&second, "Alive")]);
    let dead = second.stop();
    wait_for_health(&site, &lb, &[(&first, "Alive"), (&dead, "Dead")]);
    assert_eq!(answers(), ["first", "first"]);

    // TLS: the key comes over the admin address, and stays in a folder of the data plane.
    let (chain, key, der) = certificate("shop.example.com");
    let tls = json!({
        "Protocol": "HTTPS",
        "Certificate": {
            "SSLMode": "UNIDIRECTIONAL", "CertName": "shop", "CertContent": chain, "CertKey": key,
        },
    });
    let (secure, _) = listener(&site, &lb, tls_port, &tls, &[&first]);
    assert_eq!(shown_certificate((vip, tls_port), "shop.example.com"), (der, "first".to_owned()));
    assert_eq!(site.certificates().len(), 1);
    let kept = fs::read_to_string(&site.certificates()[0]).unwrap();
    assert!(kept.contains("PRIVATE KEY"));
    assert!(!site.status().to_string().contains("PRIVATE KEY"));

    // A data plane that was away is told again, with what changed meanwhile.
    site.kill_data_plane();
    assert_eq!(web((vip, port), "shop.example.com"), None);
    site.wait_for_status(|plane| plane["is_reached"] == false);
    let third = Target::start("third");
    let task = site.request_id::<clb::DeregisterTargetsRequest>(registration(
        &lb,
        &plain,
        &rule,
        &[&first],
    ));
    assert_eq!(site.task(&task), (2, Some("the data plane has not taken it yet".to_owned())));
    let busy =
        site.call::<clb::RegisterTargetsRequest>(registration(&lb, &plain, &rule, &[&third]));
    let CallError::Api { code, .. } = busy.unwrap_err() else { panic!("it was not refused") };
    assert_eq!(code, "FailedOperation.ResourceInOperating");
    assert_eq!(site.readiness().0, 503);
    site.start_data_plane();
    site.wait_for_task(&task);
    register(&site, &lb, &plain, &rule, &[&third]);
    wait_for_health(&site, &lb, &[(&dead, "Dead"), (&third, "Alive"), (&first, "Alive")]);
    assert_eq!(answers(), ["third", "third"]);
    assert_eq!(site.readiness(), (200, "ok\n".to_owned()));

    // So is one whose cloud was killed, and that was changed by hand.
    site.kill_cloud();
    assert_eq!(answers(), ["third", "third"]);
    site.put_config("");
    assert_eq!(web((vip, port), "shop.example.com"), None);
    site.start_cloud();
    site.wait_for_status(|plane| plane["is_reached"] == true);
    assert_eq!(answers(), ["third", "third"]);

    let delete = |listener: &str| json!({ "LoadBalancerId": lb, "ListenerId": listener });
    site.ok::<clb::DeleteListenerRequest>(delete(&plain));
    assert_eq!(web((vip, port), "shop.example.com"), None);
    assert_eq!(shown_certificate((vip, tls_port), "shop.example.com").1, "first");
    site.ok::<clb::DeleteListenerRequest>(delete(&secure));
    assert_eq!(site.certificates().len(), 0, "the key is removed with the listener");
    site.ok::<clb::DeleteLoadBalancerRequest>(json!({ "LoadBalancerIds": [lb] }));
    assert_eq!(site.status()["data_planes"][0]["load_balancers"], 0);
}

#[test]
fn what_the_data_plane_refuses_fails_and_stops_nothing_else() {
    let site = Site::start("cloud-refused");
    let target = Target::start("served");
    let (lb, vip) = site.load_balancer();
    let (other, other_vip) = site.load_balancer();
    let port = site.port();
    let (served, rule) = listener(&site, &lb, port, &json!({}), &[]);

    // Something else has the port, so the data plane cannot listen there.
    let taken = TcpListener::bind((other_vip, port)).unwrap();
    let creation = json!({ "LoadBalancerId": other, "Protocol": "HTTP", "Ports": [port] });
    let failed = site.call::<clb::CreateListenerRequest>(creation).unwrap_err();
    let CallError::Task { message, .. } = failed else { panic!("{failed}") };
    assert!(message.contains(&format!("cannot listen on {other_vip}:{port}")), "{message}");
    site.wait_for_error(&format!("refuses {other}: "));
    let refused = &site.status()["data_planes"][0]["refused"];
    assert!(refused[&other].as_str().unwrap().contains("cannot listen on"), "{refused}");

    register(&site, &lb, &served, &rule, &[&target]);
    assert_eq!(web((vip, port), "shop.example.com").unwrap(), "served");

    // What it does not do at all is listed.
    let quic = json!({
        "LoadBalancerId": lb, "Protocol": "QUIC", "Ports": [site.port()], "Certificate": {
            "SSLMode": "UNIDIRECTIONAL", "CertName": "s", "CertContent": certificate("s").0,
            "CertKey": certificate("s").1,
        },
    });
    site.call::<clb::CreateListenerRequest>(quic).unwrap_err();
    let left_out = &site.status()["left_out"][0];
    assert_eq!(left_out["load_balancer"], lb.as_str());
    assert_eq!(left_out["reason"], "QUIC is not served");
    drop(taken);
}

#[test]
fn without_a_data_plane_tasks_say_so() {
    let mut site = Site::new("cloud-alone");
    site.drives = false;
    site.start_cloud();
    let (lb, _) = site.load_balancer();
    let task = site.request_id::<clb::ModifyLoadBalancerAttributesRequest>(
        json!({ "LoadBalancerId": lb, "LoadBalancerName": "shop" }),
    );
    let message = "there is no data plane that serves it".to_owned();
    assert_eq!(site.task(&task), (0, Some(message)));
    assert_eq!(site.readiness(), (200, "ok\n".to_owned()));
    assert_eq!(site.status()["data_planes"], json!([]));
}
