//! Load balancers.

use serde_json::{Value, json};

use crate::harness::{Harness, SUBNET, text, with};

const VPC: &str = "vpc-aaaaaaaa";

fn private() -> Value {
    json!({ "LoadBalancerType": "INTERNAL", "VpcId": VPC, "SubnetId": SUBNET })
}

#[test]
fn a_public_and_a_private_one_are_described() {
    let cloud = Harness::small();
    let public = cloud.load_balancer();
    let described = cloud.described(&public);
    assert_eq!(described["LoadBalancerVips"], json!(["198.51.100.1"]));
    assert_eq!(described["LoadBalancerType"], "OPEN");
    assert_eq!(described["CreateTime"], "2025-10-09 16:53:20", "the console's time, UTC+8");
    assert_eq!(described["NetworkAttributes"]["InternetMaxBandwidthOut"], 10);
    assert_eq!(described["AddressIPv6"], Value::Null);
    assert_eq!(described["LoadBalancerPassToTarget"], false);
    let answer = cloud.ok(
        "CreateLoadBalancer",
        with(
            &private(),
            &json!({
                "LoadBalancerName": "inner",
                "Vip": "10.0.1.4",
                "Tags": [{ "TagKey": "k", "TagValue": "v" }],
                "SnatPro": true,
                "SnatIps": [{ "SubnetId": SUBNET }, { "SubnetId": SUBNET, "Ip": "10.0.1.6" }],
            }),
        ),
    );
    let described = cloud.described(&text(&answer["LoadBalancerIds"][0]));
    assert_eq!(described["LoadBalancerName"], "inner");
    assert_eq!(described["LoadBalancerVips"], json!(["10.0.1.4"]));
    assert_eq!(described["VpcId"], VPC);
    assert_eq!(described["SubnetId"], SUBNET);
    assert_eq!(described["Tags"][0]["TagValue"], "v");
    assert_eq!(described["SnatIps"][0]["Ip"], "10.0.1.1");
    assert_eq!(described["SnatIps"][1]["Ip"], "10.0.1.6");
}

#[test]
fn ipv6_and_domains_have_places_of_their_own() {
    let cloud = Harness::new();
    let create = |more: Value| {
        let parameters = with(&json!({ "LoadBalancerType": "OPEN" }), &more);
        let answer = cloud.ok("CreateLoadBalancer", parameters);
        cloud.described(&text(&answer["LoadBalancerIds"][0]))
    };
    let full = create(json!({ "AddressIPVersion": "ipv6fullchain", "SubnetId": SUBNET }));
    assert_eq!(full["AddressIPVersion"], "ipv6");
    assert_eq!(full["IPv6Mode"], "IPv6FullChain");
    assert_eq!(full["LoadBalancerVips"], json!([]));
    assert!(text(&full["AddressIPv6"]).starts_with("2001:db8:1:"));
    assert_eq!(create(json!({ "AddressIPVersion": "IPV6" }))["IPv6Mode"], "IPv6Nat64");
    let domain = create(json!({ "DynamicVip": true }));
    assert_eq!(domain["LoadBalancerVips"], json!([]));
    assert!(text(&domain["Domain"]).ends_with(".clb.ap-guangzhou.tencentclb.com"));
}

#[test]
fn each_rule_of_creation_has_its_code() {
    let cloud = Harness::small();
    let open = json!({ "LoadBalancerType": "OPEN" });
    let tag = |key: String| json!({ "TagKey": key, "TagValue": "" });
    let many: Vec<Value> = (0..21).map(|number| tag(number.to_string())).collect();
    let twice = [tag("a".to_owned()), tag("a".to_owned())];
    let (value, missing) = ("InvalidParameterValue", "MissingParameter");
    let (length, range) = ("InvalidParameterValue.Length", "InvalidParameterValue.Range");
    for (base, more, code, part) in [
        (&open, json!({ "LoadBalancerType": "PUBLIC" }), value, "OPEN, INTERNAL"),
        (&open, json!({ "Forward": 0 }), value, "only 1"),
        (&open, json!({ "LoadBalancerName": "x".repeat(81) }), length, "81 characters"),
        (
            &open,
            json!({ "LoadBalancerName": "\u{1f600}" }),
            "InvalidParameter.FormatError",
            "names",
        ),
        (&open, json!({ "Number": 0 }), range, "1 to 20"),
        (&open, json!({ "Number": 21 }), range, "1 to 20"),
        (&open, json!({ "AddressIPVersion": "IPV5" }), value, "IPv6FullChain"),
        (&open, json!({ "AddressIPVersion": "IPv6FullChain" }), missing, "SubnetId"),
        (&open, json!({ "AddressIPVersion": "IPV6" }), "ResourceInsufficient", "no public"),
        (&open, json!({ "SubnetId": SUBNET }), "InvalidParameter", "not for public"),
        (&open, json!({ "VpcId": "vpc-cccccccc" }), value, "does not exist"),
        (&open, json!({ "ProjectId": -1 }), value, "negative"),
        (&open, json!({ "Tags": many }), length, "21 items"),
        (&open, json!({ "Tags": twice }), value, "twice"),
        (&open, json!({ "ClientToken": "t".repeat(65) }), length, "65 characters"),
        (&open, json!({ "ClientToken": "ä" }), "InvalidParameter.FormatError", "ASCII"),
        (&open, json!({ "SnatIps": [{ "SubnetId": SUBNET }] }), "InvalidParameter", "SnatPro"),
        (&open, json!({ "Vip": "x" }), value, "not an address"),
        (&open, json!({ "Vip": "192.0.2.1" }), value, "not there"),
        (&open, json!({ "Vip": "2001:db8::1" }), value, "IP version"),
        (&open, json!({ "Vip": "198.51.100.1", "Number": 2 }), "InvalidParameter", "`Number` 1"),
        (&open, json!({ "ZoneId": "ap-other-1" }), value, "no zone"),
        (&open, json!({ "SlaveZoneId": "ap-test-1" }), "InvalidParameter", "MasterZoneId"),
        (&open, json!({ "LBChargeType": "FREE" }), value, "PREPAID"),
        (&open, json!({ "LBChargeType": "PREPAID" }), missing, "Period"),
        (&open, json!({ "SlaType": "large" }), value, "clb.c2.medium"),
        (&open, json!({ "VipIsp": "CMCC" }), "InvalidParameter", "BANDWIDTH_PACKAGE"),
        (&open, json!({ "ClusterTag": "x" }), "UnsupportedOperation", "ClusterTag"),
        (
            &open,
            json!({ "InternetAccessible": { "InternetMaxBandwidthOut": 2049 } }),
            value,
            "1 to 2048",
        ),
        (&open, json!({ "Number": 3 }), "ResourceInsufficient", "no public address left"),
        (&private(), json!({ "VpcId": null }), missing, "VpcId"),
        (&private(), json!({ "SubnetId": null }), missing, "SubnetId"),
        (&private(), json!({ "VpcId": "vpc-bbbbbbbb" }), value, "has no subnet"),
        (&private(), json!({ "AddressIPVersion": "IPV6" }), value, "only public"),
        (&private(), json!({ "ZoneId": "ap-test-1" }), "InvalidParameter", "public IPv4"),
        (&private(), json!({ "Vip": "10.0.2.1" }), value, "not there"),
        (&private(), json!({ "Number": 7 }), "ResourceInsufficient", "no address left"),
    ] {
        let parameters = with(base, &more);
        assert_eq!(cloud.code("CreateLoadBalancer", parameters, part), code, "{more}");
    }
    cloud.ok("CreateLoadBalancer", with(&private(), &json!({ "Vip": "10.0.1.4" })));
    let again = with(&private(), &json!({ "Vip": "10.0.1.4" }));
    assert_eq!(cloud.code("CreateLoadBalancer", again, "in use"), "FailedOperation");
}

#[test]
fn a_token_stands_for_what_it_created() {
    let cloud = Harness::slow();
    let open = json!({ "LoadBalancerType": "OPEN", "Number": 2, "ClientToken": "token" });
    let first = cloud.ok("CreateLoadBalancer", open.clone());
    let again = with(&open, &json!({ "Tags": [{ "TagKey": "k", "TagValue": "v" }] }));
    let second = cloud.ok("CreateLoadBalancer", again);
    assert_eq!(first["LoadBalancerIds"], second["LoadBalancerIds"]);
    let task = cloud.ok("DescribeTaskStatus", json!({ "TaskId": second["RequestId"] }));
    assert_eq!(task["Status"], 2, "it is still being created");
    assert_eq!(task["LoadBalancerIds"], first["LoadBalancerIds"]);
    for other in [
        json!({ "Number": 1 }),
        json!({ "VpcId": "vpc-bbbbbbbb" }),
        json!({ "AddressIPVersion": "IPV6" }),
        json!({ "LoadBalancerType": "INTERNAL", "VpcId": VPC, "SubnetId": SUBNET }),
    ] {
        let code = cloud.code("CreateLoadBalancer", with(&open, &other), "ClientToken");
        assert_eq!(code, "InvalidParameter", "{other}");
    }
    assert_eq!(cloud.ok("DescribeLoadBalancers", json!({}))["TotalCount"], 2);
    cloud.wait(1);
    cloud.ok("DeleteLoadBalancer", json!({ "LoadBalancerIds": first["LoadBalancerIds"] }));
    let third = cloud.ok("CreateLoadBalancer", open);
    assert_ne!(first["LoadBalancerIds"], third["LoadBalancerIds"]);
}

#[test]
fn names_are_unique_and_numbers_limited() {
    let cloud = Harness::new();
    let named = json!({ "LoadBalancerType": "OPEN", "LoadBalancerName": "same" });
    cloud.ok("CreateLoadBalancer", named.clone());
    let answer = cloud.ok("CreateLoadBalancer", named);
    let second = text(&answer["LoadBalancerIds"][0]);
    assert_ne!(cloud.described(&second)["LoadBalancerName"], "same");
    for number in [20, 20, 20, 20, 18] {
        let parameters = json!({ "LoadBalancerType": "OPEN", "Number": number });
        cloud.ok("CreateLoadBalancer", parameters);
    }
    let one_more = json!({ "LoadBalancerType": "OPEN" });
    assert_eq!(cloud.code("CreateLoadBalancer", one_more, "quota"), "LimitExceeded");
    cloud.ok("CreateLoadBalancer", private());
    let quotas = cloud.ok("DescribeQuota", json!({}));
    let expected = json!([
        { "QuotaId": "TOTAL_OPEN_CLB_QUOTA", "QuotaCurrent": 100, "QuotaLimit": 100 },
        { "QuotaId": "TOTAL_INTERNAL_CLB_QUOTA", "QuotaCurrent": 1, "QuotaLimit": 100 },
        { "QuotaId": "TOTAL_LISTENER_QUOTA", "QuotaCurrent": null, "QuotaLimit": 50 },
    ]);
    assert_eq!(quotas["QuotaSet"].as_array().unwrap()[..3], expected.as_array().unwrap()[..]);
}

#[test]
fn every_filter_finds_what_it_names() {
    let cloud = Harness::new();
    let create = |more: Value| {
        cloud.wait(1);
        let answer =
            cloud.ok("CreateLoadBalancer", with(&json!({ "LoadBalancerType": "OPEN" }), &more));
        text(&answer["LoadBalancerIds"][0])
    };
    let first = create(json!({ "LoadBalancerName": "first-shop", "MasterZoneId": "100003" }));
    let second = create(json!({
        "LoadBalancerName": "second-shop",
        "ProjectId": 7,
        "SlaType": "clb.c2.medium",
        "Tags": [{ "TagKey": "tke-clusterId", "TagValue": "cls-1" }],
    }));
    let third = create(with(&private(), &json!({ "LoadBalancerName": "inner" })));
    let group = json!({ "LoadBalancerId": second, "SecurityGroups": ["sg-aaaaaaaa"] });
    cloud.ok("SetLoadBalancerSecurityGroups", group);
    let listener = cloud.listener(&first, "TCP", 80, json!({}));
    cloud.ok(
        "RegisterTargets",
        json!({
            "LoadBalancerId": first,
            "ListenerId": listener,
            "Targets": [{ "Port": 8080, "EniIp": "10.9.8.7" }],
        }),
    );
    let filter =
        |name: &str, value: &str| json!({ "Filters": [{ "Name": name, "Values": [value] }] });
    let vip = cloud.described(&first)["LoadBalancerVips"].clone();
    for (parameters, expected) in [
        (json!({}), vec![&third, &second, &first]),
        (json!({ "OrderType": 0 }), vec![&first, &second, &third]),
        (json!({ "OrderBy": "LoadBalancerName", "OrderType": 0 }), vec![&first, &third, &second]),
        (json!({ "OrderType": 0, "Offset": 1, "Limit": 1 }), vec![&second]),
        (json!({ "LoadBalancerIds": [first, "lb-unknown0"] }), vec![&first]),
        (json!({ "LoadBalancerIds": ["lb-unknown0"] }), vec![]),
        (json!({ "LoadBalancerType": "INTERNAL" }), vec![&third]),
        (json!({ "Forward": 0 }), vec![]),
        (json!({ "LoadBalancerName": "shop" }), vec![&second, &first]),
        (json!({ "LoadBalancerVips": vip }), vec![&first]),
        (json!({ "SearchKey": "inner" }), vec![&third]),
        (json!({ "SearchKey": second }), vec![&second]),
        (json!({ "ProjectId": 7 }), vec![&second]),
        (json!({ "WithRs": 1 }), vec![&first]),
        (json!({ "WithRs": 0 }), vec![&third, &second]),
        (json!({ "BackendPrivateIps": ["10.9.8.7"] }), vec![&first]),
        (json!({ "BackendPublicIps": ["10.9.8.7"] }), vec![]),
        (json!({ "VpcId": VPC }), vec![&third]),
        (json!({ "SecurityGroup": "sg-aaaaaaaa" }), vec![&second]),
        (json!({ "MasterZone": "100003" }), vec![&first]),
        (filter("master-zone-id", "100003"), vec![&first]),
        (filter("tag-key", "tke-clusterId"), vec![&second]),
        (filter("tag:tke-clusterId", "cls-1"), vec![&second]),
        (filter("tag:tke-clusterId", "cls-2"), vec![]),
        (filter("vip-isp", "INTERNAL"), vec![&third]),
        (filter("sla-type", "clb.c2.medium"), vec![&second]),
        (filter("internet-charge-type", "TRAFFIC_POSTPAID_BY_HOUR"), vec![&second, &first]),
        (filter("charge-type", "PREPAID"), vec![]),
        (filter("exclusive", "1"), vec![]),
        (filter("function-name", "f"), vec![]),
    ] {
        let answer = cloud.ok("DescribeLoadBalancers", parameters.clone());
        let found = answer["LoadBalancerSet"].as_array().unwrap();
        let found: Vec<String> = found.iter().map(|one| text(&one["LoadBalancerId"])).collect();
        assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{parameters}");
        if parameters.get("Limit").is_none() {
            assert_eq!(answer["TotalCount"], expected.len(), "{parameters}");
        }
    }
    let counted = json!({ "LoadBalancerIds": [first], "AdditionalFields": ["TargetCount"] });
    assert_eq!(cloud.ok("DescribeLoadBalancers", counted)["LoadBalancerSet"][0]["TargetCount"], 1);
    let many: Vec<String> = (0..21).map(|number| format!("lb-{number}")).collect();
    for (parameters, code) in [
        (json!({ "Limit": 101 }), "InvalidParameterValue.Range"),
        (json!({ "Offset": -1 }), "InvalidParameterValue.Range"),
        (json!({ "LoadBalancerIds": many }), "InvalidParameterValue.Length"),
        (filter("color", "red"), "InvalidParameterValue.InvalidFilter"),
        (json!({ "OrderBy": "Color" }), "InvalidParameterValue"),
        (json!({ "WithRs": 2 }), "InvalidParameterValue"),
        (json!({ "Ids": [] }), "UnknownParameter"),
    ] {
        assert_eq!(
            cloud.code("DescribeLoadBalancers", parameters.clone(), ""),
            code,
            "{parameters}"
        );
    }
}

#[test]
fn details_have_a_row_for_what_is_asked_for() {
    let cloud = Harness::new();
    let lb = cloud.load_balancer();
    cloud.listener(&lb, "UDP", 53, json!({}));
    let http = cloud.listener(&lb, "HTTP", 80, json!({}));
    let rule = cloud.rule(&lb, &http, json!({ "Domain": "a.test", "Url": "/" }));
    cloud.ok(
        "RegisterTargets",
        json!({
            "LoadBalancerId": lb,
            "ListenerId": http,
            "LocationId": rule,
            "Targets": [{ "Port": 80, "EniIp": "10.0.0.1" }, { "Port": 81, "EniIp": "10.0.0.1" }],
        }),
    );
    let rows = |fields: Value| {
        let parameters = json!({ "Fields": fields, "TargetType": "NODE" });
        cloud.ok("DescribeLoadBalancersDetail", parameters)["LoadBalancerDetailSet"].clone()
    };
    let plain = cloud.ok("DescribeLoadBalancersDetail", json!({}));
    assert_eq!(plain["TotalCount"], 1);
    assert_eq!(plain["LoadBalancerDetailSet"][0]["LoadBalancerType"], "Public");
    assert_eq!(rows(json!(["Protocol"])).as_array().unwrap().len(), 2);
    let of_targets = rows(json!(["Url", "TargetPort"]));
    let ports: Vec<&Value> =
        of_targets.as_array().unwrap().iter().map(|row| &row["TargetPort"]).collect();
    assert_eq!(ports, [&Value::Null, &json!(80), &json!(81)]);
    assert_eq!(of_targets[1]["Url"], "/");
    assert_eq!(of_targets[1]["VpcId"], Value::Null, "it was not asked for");
    assert_eq!(of_targets[1]["LoadBalancerId"], lb.as_str());
    let code = |parameters, part| cloud.code("DescribeLoadBalancersDetail", parameters, part);
    assert_eq!(code(json!({ "Fields": ["Color"] }), "Color"), "InvalidParameterValue");
    assert_eq!(code(json!({ "Fields": ["Url"] }), "TargetType"), "InvalidParameter");
}

#[test]
fn deletion_is_refused_where_it_would_hurt() {
    let cloud = Harness::new();
    let lb = cloud.load_balancer();
    let delete = |more: Value| with(&json!({ "LoadBalancerIds": [lb] }), &more);
    let protect = |on: bool| json!({ "LoadBalancerId": lb, "DeleteProtect": on });
    cloud.ok("ModifyLoadBalancerAttributes", protect(true));
    assert_eq!(cloud.described(&lb)["AttributeFlags"], json!(["DeleteProtect"]));
    let forced = delete(json!({ "ForceDelete": true }));
    assert_eq!(
        cloud.code("DeleteLoadBalancer", forced.clone(), "DeleteProtect"),
        "FailedOperation"
    );
    cloud.ok("ModifyLoadBalancerAttributes", protect(false));
    let listener = cloud.listener(&lb, "TCP", 80, json!({}));
    let targets: Vec<Value> =
        (1..=20).map(|host| json!({ "Port": 80, "EniIp": format!("10.0.0.{host}") })).collect();
    cloud.ok(
        "RegisterTargets",
        json!({ "LoadBalancerId": lb, "ListenerId": listener, "Targets": targets }),
    );
    assert_eq!(
        cloud.code("DeleteLoadBalancer", delete(json!({})), "20 targets"),
        "FailedOperation.TargetNumCheckRisk"
    );
    let unknown = json!({ "LoadBalancerIds": [lb, "lb-unknown0"], "ForceDelete": true });
    assert_eq!(
        cloud.code("DeleteLoadBalancer", unknown, "lb-unknown0"),
        "InvalidParameter.LBIdNotFound"
    );
    let none = json!({ "LoadBalancerIds": [] });
    assert_eq!(cloud.code("DeleteLoadBalancer", none, "0 items"), "InvalidParameterValue.Length");
    cloud.ok("DeleteLoadBalancer", forced);
    assert_eq!(
        cloud.code("DescribeListeners", json!({ "LoadBalancerId": lb }), "does not exist"),
        "InvalidParameter.LBIdNotFound"
    );
}

#[test]
fn deletions_are_counted_for_five_minutes() {
    let cloud = Harness::new();
    let create = |number: u32| {
        let parameters = json!({ "LoadBalancerType": "OPEN", "Number": number });
        cloud.ok("CreateLoadBalancer", parameters)["LoadBalancerIds"].clone()
    };
    let (first, second, third) = (create(20), create(10), create(1));
    cloud.ok("DeleteLoadBalancer", json!({ "LoadBalancerIds": first }));
    cloud.ok("DeleteLoadBalancer", json!({ "LoadBalancerIds": second }));
    let one_more = json!({ "LoadBalancerIds": third });
    assert_eq!(
        cloud.code("DeleteLoadBalancer", one_more.clone(), "five minutes"),
        "FailedOperation.FrequencyCheckRisk"
    );
    cloud.wait(301);
    cloud.ok("DeleteLoadBalancer", one_more);
}

#[test]
fn what_a_modification_leaves_out_stays() {
    let cloud = Harness::new();
    let (lb, other) = (cloud.load_balancer(), cloud.load_balancer());
    let modify = |more: Value| with(&json!({ "LoadBalancerId": lb }), &more);
    let before = cloud.described(&lb);
    let answer = cloud
        .ok("ModifyLoadBalancerAttributes", modify(json!({ "LoadBalancerPassToTarget": true })));
    assert_eq!(text(&answer["DealName"]).len(), 23);
    let expected = with(&before, &json!({ "LoadBalancerPassToTarget": true }));
    assert_eq!(cloud.described(&lb), expected);
    cloud.ok(
        "ModifyLoadBalancerAttributes",
        modify(json!({
            "LoadBalancerName": "new", "InternetChargeInfo": { "InternetMaxBandwidthOut": 5 },
        })),
    );
    assert_eq!(cloud.described(&lb)["LoadBalancerName"], "new");
    assert_eq!(cloud.described(&lb)["NetworkAttributes"]["InternetMaxBandwidthOut"], 5);
    let region = |name: &str| json!({ "TargetRegionInfo": { "Region": name, "VpcId": VPC } });
    for (more, code) in [
        (json!({}), "MissingParameter"),
        (json!({ "LoadBalancerName": other }), "InvalidParameterValue.Duplicate"),
        (json!({ "LoadBalancerName": "" }), "InvalidParameterValue.Length"),
        (json!({ "SwitchFlag": 3 }), "InvalidParameterValue"),
        (json!({ "InternetChargeInfo": { "InternetChargeType": "x" } }), "InvalidParameterValue"),
        (region("nowhere"), "InvalidParameter.RegionNotFound"),
        (json!({ "LoadBalancerId": "lb-x", "SnatPro": true }), "InvalidParameter.LBIdNotFound"),
    ] {
        let found = cloud.code("ModifyLoadBalancerAttributes", modify(more.clone()), "");
        assert_eq!(found, code, "{more}");
    }
}

#[test]
fn security_groups_are_a_set_from_both_sides() {
    let cloud = Harness::small();
    let lb = cloud.load_balancer();
    let groups = || cloud.described(&lb)["SecureGroups"].clone();
    let set = |groups: Value| json!({ "LoadBalancerId": lb, "SecurityGroups": groups });
    cloud.ok("SetLoadBalancerSecurityGroups", set(json!(["sg-aaaaaaaa", "sg-aaaaaaaa"])));
    assert_eq!(groups(), json!(["sg-aaaaaaaa"]));
    cloud.ok("SetLoadBalancerSecurityGroups", json!({ "LoadBalancerId": lb }));
    assert_eq!(groups(), json!([]));
    let bind = |operation: &str, group: &str| json!({ "SecurityGroup": group, "OperationType": operation, "LoadBalancerIds": [lb] });
    cloud.ok("SetSecurityGroupForLoadbalancers", bind("ADD", "sg-aaaaaaaa"));
    assert_eq!(groups(), json!(["sg-aaaaaaaa"]));
    cloud.ok("SetSecurityGroupForLoadbalancers", bind("DEL", "sg-aaaaaaaa"));
    assert_eq!(groups(), json!([]));
    let code = |action: &str, parameters| cloud.code(action, parameters, "");
    let unknown = set(json!(["sg-bbbbbbbb"]));
    assert_eq!(code("SetLoadBalancerSecurityGroups", unknown), "InvalidParameterValue");
    let unknown = json!({ "LoadBalancerId": "lb-x" });
    assert_eq!(code("SetLoadBalancerSecurityGroups", unknown), "InvalidParameter.LBIdNotFound");
    let wrong = bind("SET", "sg-aaaaaaaa");
    assert_eq!(code("SetSecurityGroupForLoadbalancers", wrong), "InvalidParameterValue");
}

#[test]
fn snat_addresses_come_from_subnets() {
    let cloud = Harness::small();
    let lb = cloud.load_balancer();
    let create =
        |ips: Value, number: u64| json!({ "LoadBalancerId": lb, "SnatIps": ips, "Number": number });
    let subnet = json!([{ "SubnetId": SUBNET }]);
    cloud.ok("CreateLoadBalancerSnatIps", create(subnet.clone(), 2));
    assert_eq!(cloud.described(&lb)["SnatPro"], true);
    assert_eq!(cloud.described(&lb)["SnatIps"][1]["Ip"], "10.0.1.2");
    let turn_off = json!({ "LoadBalancerId": lb, "SnatPro": false });
    assert_eq!(cloud.code("ModifyLoadBalancerAttributes", turn_off, "SNAT"), "FailedOperation");
    let named = json!([{ "SubnetId": SUBNET, "Ip": "10.0.1.2" }]);
    for (parameters, code) in [
        (create(subnet.clone(), 9), "LimitExceeded"),
        (create(subnet.clone(), 11), "InvalidParameterValue"),
        (create(subnet, 5), "FailedOperation"),
        (create(named.clone(), 2), "InvalidParameter"),
        (create(named, 1), "FailedOperation"),
        (create(json!([{ "SubnetId": "subnet-b" }]), 1), "InvalidParameterValue"),
        (create(json!([]), 1), "InvalidParameterValue"),
    ] {
        let found = cloud.code("CreateLoadBalancerSnatIps", parameters.clone(), "");
        assert_eq!(found, code, "{parameters}");
    }
    let delete = |ips: Value| json!({ "LoadBalancerId": lb, "Ips": ips });
    let unknown = delete(json!(["10.0.1.1", "10.0.1.5"]));
    assert_eq!(
        cloud.code("DeleteLoadBalancerSnatIps", unknown, "10.0.1.5"),
        "InvalidParameterValue"
    );
    cloud.ok("DeleteLoadBalancerSnatIps", delete(json!(["10.0.1.1", "10.0.1.2"])));
    assert_eq!(cloud.described(&lb)["SnatIps"], json!([]));
}

#[test]
fn listeners_are_started_and_stopped() {
    let cloud = Harness::new();
    let lb = cloud.load_balancer();
    let stop = |listeners: Value| json!({ "OperationType": "Stop", "LoadBalancerId": lb, "ListenerIds": listeners });
    let code = |parameters| cloud.code("SetLoadBalancerStartStatus", parameters, "");
    assert_eq!(code(stop(json!([]))), "FailedOperation.NoListenerInLB");
    let listener = cloud.listener(&lb, "TCP", 80, json!({}));
    assert_eq!(code(stop(json!(["lbl-x"]))), "InvalidParameter.ListenerIdNotFound");
    cloud.ok("SetLoadBalancerStartStatus", stop(json!([listener])));
    assert_eq!(cloud.listeners(&lb)[0]["AttrFlags"], json!(["Stop"]));
}

#[test]
fn custom_configurations_are_bound_and_unbound() {
    let cloud = Harness::new();
    let lb = cloud.load_balancer();
    let action = "SetCustomizedConfigForLoadBalancer";
    let add = |name: &str, content: &str| json!({ "OperationType": "ADD", "ConfigName": name, "ConfigContent": content });
    let answer = cloud.ok(action, add("timeouts", "proxy_connect_timeout 10s;"));
    let id = text(&answer["ConfigId"]);
    assert!(id.starts_with("pz-"));
    let operate = |operation: &str| json!({ "OperationType": operation, "UconfigId": id });
    let bound =
        |operation: &str, lb: &str| with(&operate(operation), &json!({ "LoadBalancerIds": [lb] }));
    for (parameters, code) in [
        (add("timeouts", "server_tokens off;"), "InvalidParameterValue"),
        (add("x", "proxy_connect_timeout 3s;"), "InvalidParameterValue"),
        (add("x", "proxy_connect_timeout 10s"), "InvalidParameterValue"),
        (json!({ "OperationType": "ADD", "ConfigName": "x" }), "MissingParameter"),
        (json!({ "OperationType": "DELETE" }), "MissingParameter"),
        (json!({ "OperationType": "DELETE", "UconfigId": "pz-x" }), "InvalidParameter"),
        (operate("UPDATE"), "MissingParameter"),
        (operate("BIND"), "MissingParameter"),
        (operate("COPY"), "InvalidParameterValue"),
        (bound("BIND", "lb-x"), "InvalidParameter.LBIdNotFound"),
        (bound("UNBIND", &lb), "InvalidParameter"),
    ] {
        assert_eq!(cloud.code(action, parameters.clone(), ""), code, "{parameters}");
    }
    cloud.ok(action, bound("BIND", &lb));
    assert_eq!(cloud.described(&lb)["ConfigId"], id.as_str());
    assert_eq!(cloud.code(action, operate("DELETE"), "is bound"), "FailedOperation");
    let list = |filter: &str| {
        let filters = json!([{ "Name": "loadbalancer-id", "Values": [filter] }]);
        let parameters = json!({ "ConfigType": "CLB", "Filters": filters });
        cloud.ok("DescribeCustomizedConfigList", parameters)["TotalCount"].clone()
    };
    assert_eq!((list(&lb), list("lb-x")), (json!(1), json!(0)));
    let parameters = json!({ "UconfigId": id });
    let associated = cloud.ok("DescribeCustomizedConfigAssociateList", parameters);
    assert_eq!(associated["BindList"][0]["LoadBalancerId"], lb.as_str());
    cloud.ok(action, bound("UNBIND", &lb));
    cloud.ok(action, operate("DELETE"));
}

#[test]
fn resources_and_protection_are_what_the_inventory_says() {
    let cloud = Harness::small();
    let resources = cloud.ok("DescribeResources", json!({}));
    assert_eq!(resources["TotalCount"], 1);
    assert_eq!(resources["ZoneResourceSet"][0]["MasterZone"], "ap-test-1");
    let filters = json!([{ "Name": "ip-version", "Values": ["IPv6"] }]);
    assert_eq!(cloud.ok("DescribeResources", json!({ "Filters": filters }))["TotalCount"], 0);
    let lb = cloud.load_balancer();
    let state = cloud.ok("DescribeLBOperateProtect", json!({ "LoadBalancerIds": [lb] }));
    assert_eq!(state["LoadBalancerSet"][0]["ProtectState"], false);
    assert_eq!(
        cloud.code("DescribeLBOperateProtect", json!({ "LoadBalancerIds": ["lb-x"] }), ""),
        "InvalidParameter.LBIdNotFound"
    );
}
