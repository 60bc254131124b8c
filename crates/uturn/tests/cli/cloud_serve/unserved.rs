//! What no data plane serves is not told as done: tasks fail, flags and `/readyz` say why.

use serde_json::{Value, json};
use uturn_cloud::api::clb;
use uturn_cloud::client::CallError;

use super::clients::{Target, certificate, web};
use super::processes::Site;
use super::{health_check, listener, registration};

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
    assert_eq!(flags(&site, &lb), (vec![flag], vec![vec![]]));
    let (status, problems) = site.readiness();
    assert_eq!(status, 503);
    assert!(
        problems.contains(&format!("refuses {lb}: cannot send the health checks")),
        "{problems}"
    );
    let metrics = site.metrics();
    assert!(metrics.contains("uturn_cloud_unserved{reason=\"NoProbeSource\"} 1\n"), "{metrics}");
    assert!(metrics.contains("uturn_cloud_failed_tasks_total 1\n"), "{metrics}");

    set_source(0).unwrap();
    assert_eq!(flags(&site, &lb), (vec![], vec![vec![]]));
    assert_eq!(site.readiness(), (200, "ok\n".to_owned()));
    assert_eq!(web((vip, port), "shop.example.com").unwrap(), "served");
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
    assert!(why.contains("no regular expression that is known here: look-around"), "{why}");
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
