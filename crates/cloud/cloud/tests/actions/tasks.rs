//! Tasks: found by both of their names, and a load balancer is busy until they are done.

use serde_json::json;

use crate::harness::{Harness, text};

#[test]
fn a_task_is_found_by_the_request_and_by_its_deal() {
    let cloud = Harness::slow();
    let created = cloud.ok("CreateLoadBalancer", json!({ "LoadBalancerType": "OPEN" }));
    let deal = text(&created["DealName"]);
    assert!(deal.len() == 23 && deal.bytes().all(|byte| byte.is_ascii_digit()), "{deal}");
    assert_eq!(&deal[..8], "20251009");
    let names = [json!({ "TaskId": created["RequestId"] }), json!({ "DealName": deal })];
    let status = |expected: i64| {
        for name in &names {
            let task = cloud.ok("DescribeTaskStatus", name.clone());
            assert_eq!(task["Status"], expected);
            assert_eq!(task["LoadBalancerIds"], created["LoadBalancerIds"]);
        }
    };
    status(2);
    cloud.wait(1);
    status(0);
    for (parameters, part) in [
        (json!({ "TaskId": "absent" }), "does not exist"),
        (json!({ "DealName": "1" }), "does not exist"),
        (json!({}), "is needed"),
        (json!({ "TaskId": "a", "DealName": "b" }), "only one"),
    ] {
        assert_eq!(cloud.code("DescribeTaskStatus", parameters, part), "InvalidParameter");
    }
}

#[test]
fn a_load_balancer_is_busy_until_its_task_is_done() {
    let cloud = Harness::slow();
    let lb = cloud.load_balancer();
    assert_eq!(cloud.described(&lb)["Status"], 0);
    let rename = json!({ "LoadBalancerId": lb, "LoadBalancerName": "renamed" });
    let listener = json!({ "LoadBalancerId": lb, "Protocol": "TCP", "Ports": [80] });
    let writes = [
        ("ModifyLoadBalancerAttributes", rename.clone()),
        ("CreateListener", listener.clone()),
        ("SetLoadBalancerSecurityGroups", json!({ "LoadBalancerId": lb })),
        ("DeleteLoadBalancerListeners", json!({ "LoadBalancerId": lb })),
        ("DeleteLoadBalancer", json!({ "LoadBalancerIds": [lb] })),
    ];
    for (action, parameters) in writes {
        let code = cloud.code(action, parameters, "busy");
        assert_eq!(code, "FailedOperation.ResourceInOperating", "{action}");
    }
    cloud.wait(1);
    assert_eq!(cloud.described(&lb)["Status"], 1);
    cloud.ok("CreateListener", listener);
    assert_eq!(
        cloud.code("ModifyLoadBalancerAttributes", rename.clone(), "busy"),
        "FailedOperation.ResourceInOperating"
    );
    assert_eq!(cloud.described(&lb)["Status"], 1, "only a new one is being created");
    cloud.wait(1);
    cloud.ok("ModifyLoadBalancerAttributes", rename);
}
