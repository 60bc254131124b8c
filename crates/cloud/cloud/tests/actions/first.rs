//! The load balancers that an inventory states.

use serde_json::json;

use crate::harness::{Harness, SMALL, SUBNET, text};

fn with_first() -> Harness {
    let list = format!(
        r#""loadBalancers": [
            {{ "id": "lb-first", "name": "inner", "address": "10.0.1.4", "subnet": "{SUBNET}",
               "tags": {{ "k": "v" }} }},
            {{ "id": "lb-other", "address": "198.51.100.1" }}
        ], "networks""#
    );
    Harness::of(&SMALL.replacen("\"networks\"", &list, 1))
}

#[test]
fn they_are_there_from_the_start_and_can_be_used() {
    let cloud = with_first();
    cloud.create_first();
    let private = cloud.described("lb-first");
    assert_eq!(private["LoadBalancerName"], "inner");
    assert_eq!(private["LoadBalancerType"], "INTERNAL");
    assert_eq!(private["LoadBalancerVips"], json!(["10.0.1.4"]));
    assert_eq!(private["VpcId"], "vpc-aaaaaaaa");
    assert_eq!(private["Tags"][0]["TagValue"], "v");
    let public = cloud.described("lb-other");
    assert_eq!(public["LoadBalancerName"], "lb-other");
    assert_eq!(public["LoadBalancerType"], "OPEN");
    cloud.listener("lb-first", "TCP", 80, json!({}));
    // Its address is not given out again.
    let created = cloud.described(&cloud.load_balancer());
    assert_eq!(created["LoadBalancerVips"], json!(["198.51.100.2"]));
}

#[test]
fn what_was_deleted_does_not_come_back() {
    let cloud = with_first();
    cloud.create_first();
    cloud.ok("DeleteLoadBalancer", json!({ "LoadBalancerIds": ["lb-first"] }));
    cloud.create_first();
    let answer = cloud.ok("DescribeLoadBalancers", json!({}));
    let ids = answer["LoadBalancerSet"].as_array().unwrap().iter();
    let ids: Vec<String> = ids.map(|found| text(&found["LoadBalancerId"])).collect();
    assert_eq!(ids, ["lb-other"]);
}
