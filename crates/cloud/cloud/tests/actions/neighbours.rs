//! The actions of neighbour services that controllers call beside those of clb.

mod certificates;
mod deployments;
mod networks;
mod tags;

use serde_json::{Value, json};

use crate::harness::Harness;

#[test]
fn an_account_has_the_same_numbers_each_time() {
    let cloud = Harness::new();
    let numbers = cloud.ok("GetUserAppId", json!({}));
    assert_eq!(numbers["Uin"], numbers["OwnerUin"]);
    assert!(numbers["AppId"].as_u64().unwrap() >= 1_250_000_000, "{numbers}");
    let again = Harness::new().ok("GetUserAppId", json!({}));
    assert_eq!(again["Uin"], numbers["Uin"]);
}

#[test]
fn the_caller_is_the_account_that_signed() {
    let cloud = Harness::new();
    let uin = cloud.ok("GetUserAppId", json!({}))["Uin"].clone();
    let caller = cloud.ok("GetCallerIdentity", json!({}));
    assert_eq!((&caller["AccountId"], &caller["PrincipalId"]), (&uin, &uin));
    assert!(caller["Arn"].as_str().unwrap().starts_with("qcs::cam::uin/"), "{caller}");
}

#[test]
fn regions_and_zones_are_those_of_the_inventory() {
    let cloud = Harness::small();
    assert_eq!(each(&cloud.ok("DescribeRegions", json!({}))["RegionSet"], "Region"), ["ap-test"]);
    let zones = cloud.ok("DescribeZones", json!({}));
    assert_eq!(each(&zones["ZoneSet"], "Zone"), ["ap-test-1"]);
    let open = Harness::new();
    assert_eq!(open.ok("DescribeZones", json!({}))["ZoneSet"][0]["ZoneId"], "100001");
    let regions = open.ok("DescribeRegions", json!({}));
    assert!(each(&regions["RegionSet"], "Region").contains(&"ap-guangzhou"));
}

/// What clients read without asking whether it is `null`.
#[test]
fn what_is_always_there_is_never_null() {
    let cloud = Harness::new();
    let ids = json!({ "Filters": [{ "Name": "private-ip-address", "Values": ["10.0.0.5"] }] });
    let instance = cloud.ok("DescribeInstances", ids)["InstanceSet"][0].clone();
    for member in ["InstanceType", "CPU", "Memory", "SystemDisk", "CreatedTime", "ImageId"] {
        assert!(!instance[member].is_null(), "{member} of {instance}");
    }
    let network = cloud.ok("DescribeVpcs", json!({}))["VpcSet"][0].clone();
    for member in ["CreatedTime", "EnableDhcp", "DomainName", "AssistantCidrSet"] {
        assert!(!network[member].is_null(), "{member} of {network}");
    }
    let subnet = json!({ "SubnetIds": ["subnet-aaaaaaaa"] });
    let subnet = cloud.ok("DescribeSubnets", subnet)["SubnetSet"][0].clone();
    for member in ["CreatedTime", "Zone", "RouteTableId", "NetworkAclId", "IsRemoteVpcSnat"] {
        assert!(!subnet[member].is_null(), "{member} of {subnet}");
    }
    let first = cloud.load_balancer();
    let numbers = [first, cloud.load_balancer()].map(|lb| cloud.described(&lb));
    assert!(numbers[0]["NumericalVpcId"].is_u64(), "{}", numbers[0]);
    assert_eq!(numbers[0]["NumericalVpcId"], numbers[1]["NumericalVpcId"]);
    let group = json!({ "SecurityGroupId": "sg-aaaaaaaa" });
    let rules = cloud.ok("DescribeSecurityGroupPolicies", group)["SecurityGroupPolicySet"].clone();
    assert_eq!((&rules["Ingress"], &rules["Egress"]), (&json!([]), &json!([])));
}

/// What a member of each item of a list is.
fn each<'v>(list: &'v Value, member: &str) -> Vec<&'v str> {
    let items = list.as_array().unwrap_or_else(|| panic!("{list} is no list"));
    items.iter().map(|item| item[member].as_str().unwrap()).collect()
}
