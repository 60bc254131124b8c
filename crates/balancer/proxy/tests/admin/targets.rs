//! The state of targets.

use std::time::Duration;

use serde_json::Value;
use uturn_model::lb::PassiveCheck;

use crate::common::health;
use crate::support::{Balancer, OK, closed_address, page_of, target};

#[test]
fn targets_are_shown_with_their_health() {
    let good = target("\r\n\r\n", OK);
    let check = health::check(Duration::from_millis(10), 2);
    let balancer = Balancer::with(
        &[closed_address(), good],
        |profile| profile.health_check = Some(check),
        |_| {},
    );
    let page = balancer.page_with("/targets", |page| !page.contains("\"decided\": false"));
    let page: Value = serde_json::from_str(&page).unwrap();
    let [dead, alive] = page["targets"].as_array().unwrap().as_slice() else { panic!("{page}") };
    let listener = balancer.address().to_string();
    let expected = serde_json::json!({
        "load_balancer": "lb", "listener": listener, "protocol": "HTTP",
        "rule": "*.example.com/", "rule_index": 0, "target": closed_address().to_string(), "weight": 10,
        "alive": false, "decided": true, "probe": "refused", "resting_until": null, "open": 0,
    });
    assert_eq!(*dead, expected);
    assert_eq!((&alive["alive"], &alive["target"]), (&true.into(), &good.to_string().into()));
    let labels = format!(",rule=\"*.example.com/\",target=\"{}\"", closed_address());
    balancer.expect(&[("uturn_lb_target_healthy", &labels, 0)]);
    let refused = format!("{labels},result=\"answered\"");
    balancer.expect(&[("uturn_lb_target_probes_total", &refused, 0)]);
}

#[test]
fn a_target_that_is_not_probed_any_more_is_alive() {
    let check = health::check(Duration::from_millis(10), 1);
    let mut balancer =
        Balancer::with(&[closed_address()], |profile| profile.health_check = Some(check), |_| {});
    balancer.page_with("/targets", |page| page.contains("\"alive\": false"));
    let mut config = balancer.config.clone();
    config.load_balancers[0].load_balancer.listeners[0].profile.health_check = None;
    balancer.server.as_mut().unwrap().reload(&config).unwrap();
    let page = page_of(balancer.admin(), "/targets");
    assert!(page.contains("\"alive\": true") && page.contains("\"probe\": null"), "{page}");
}

#[test]
fn a_target_that_rests_says_until_when() {
    let good = target("\r\n\r\n", OK);
    let check = PassiveCheck { failures: 1, rest: Duration::from_secs(3600) };
    let balancer = Balancer::with(
        &[closed_address(), good],
        |profile| profile.passive_check = Some(check),
        |_| {},
    );
    balancer.get("/");
    let page = page_of(balancer.admin(), "/targets");
    let page: Value = serde_json::from_str(&page).unwrap();
    let until = page["targets"][0]["resting_until"].as_str().unwrap();
    assert!(until.starts_with("20") && until.ends_with('Z'), "{until}");
    assert_eq!(page["targets"][1]["resting_until"], Value::Null);
    let labels = format!(",rule=\"*.example.com/\",target=\"{}\"", closed_address());
    balancer.expect(&[
        ("uturn_lb_target_resting", &labels, 1),
        ("uturn_lb_target_rests_total", &labels, 1),
    ]);
}
