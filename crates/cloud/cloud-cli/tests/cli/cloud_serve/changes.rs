//! A change costs what it changes.

use serde_json::{Value, json};
use uturn_cloud_api::clb;

use super::clients::{Target, web};
use super::processes::Site;
use super::{health_check, register};

/// How many listeners there are.
const LISTENERS: usize = 40;

/// What was sent to the data plane: everything, changes, and the bytes of both.
fn sent(site: &Site) -> [u64; 3] {
    let sent = &site.status()["data_planes"][0]["sent"];
    ["whole", "changes", "bytes"].map(|name| sent[name].as_u64().unwrap())
}

/// How many listeners the data plane has changed, each time.
fn changed(site: &mut Site, count: u64) -> Vec<Value> {
    let running = site.planes[0].running.as_mut().unwrap();
    let mut changed = Vec::new();
    while (changed.len() as u64) < count {
        let event = running.event();
        if event["event"] == "reloaded" {
            changed.push(event["changed"].clone());
        }
    }
    changed
}

#[test]
fn a_change_costs_what_it_changes() {
    let mut site = Site::start("cloud-changes");
    let target = Target::start("first");
    let (lb, vip) = site.load_balancer();
    let ports: Vec<u16> = (0..LISTENERS).map(|_| site.port()).collect();
    let made = site.ok::<clb::CreateListenerRequest>(json!({
        "LoadBalancerId": lb, "Protocol": "HTTP", "Ports": ports, "KeepaliveEnable": 1,
    }));
    let listeners = made.listener_ids.unwrap();
    let rules: Vec<String> = listeners
        .iter()
        .map(|listener| {
            let rule = json!({ "Domain": "a.test", "Url": "/", "HealthCheck": health_check() });
            let made = site.ok::<clb::CreateRuleRequest>(json!({
                "LoadBalancerId": lb, "ListenerId": listener, "Rules": [rule],
            }));
            made.location_ids.unwrap().remove(0)
        })
        .collect();
    let [whole, changes, bytes] = sent(&site);
    changed(&mut site, whole + changes);

    register(&site, &lb, &listeners[7], &rules[7], &[&target]);
    let delete = json!({ "LoadBalancerId": lb, "ListenerId": listeners[8] });
    site.ok::<clb::DeleteListenerRequest>(delete);
    assert_eq!(web((vip, ports[7]), "a.test").as_deref(), Some("first"));
    assert_eq!(web((vip, ports[8]), "a.test"), None);
    assert_eq!(web((vip, ports[9]), "a.test").as_deref(), Some("503"));

    let [now_whole, now_changes, now_bytes] = sent(&site);
    assert_eq!((now_whole, now_changes), (whole, changes + 2), "what is known is not sent again");
    let all = site.config(0).len() as u64;
    assert!((now_bytes - bytes) * 5 < all, "{} of {all} bytes", now_bytes - bytes);
    assert_eq!(changed(&mut site, 2), [1, 1], "and all others are left as they are");
}
