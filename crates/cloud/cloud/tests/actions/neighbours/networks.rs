//! Instances, networks, subnets, security groups and addresses.

use serde_json::{Value, json};

use super::each;
use crate::harness::Harness;

const INVENTORY: &str = r#"{ "regions": [{
    "name": "ap-test",
    "publicAddresses": ["2001:db8:9::/64"],
    "networks": [
        { "id": "vpc-aaaaaaaa", "addresses": "10.0.0.0/16", "subnets": [
            { "id": "subnet-aaaaaaaa", "addresses": "10.0.1.0/24", "zone": "ap-test-2" },
            { "id": "subnet-bbbbbbbb", "addresses": "10.0.2.0/24" }] },
        { "id": "vpc-bbbbbbbb", "addresses": "2001:db8:7::/56", "subnets": [
            { "id": "subnet-cccccccc", "addresses": "2001:db8:7::/64" }] }
    ],
    "instances": [
        { "id": "ins-aaaaaaaa", "name": "first", "privateAddresses": ["10.0.1.4"],
          "publicAddresses": ["203.0.113.4"], "network": "vpc-aaaaaaaa", "zone": "ap-test-2" },
        { "id": "ins-bbbbbbbb", "name": "second", "privateAddresses": ["10.0.2.4"],
          "network": "vpc-aaaaaaaa" }
    ],
    "securityGroups": ["sg-aaaaaaaa", "sg-bbbbbbbb"]
}]}"#;

fn stated() -> Harness {
    Harness::of(INVENTORY)
}

fn filters(name: &str, values: &[&str]) -> Value {
    json!({ "Filters": [{ "Name": name, "Values": values }] })
}

#[test]
fn instances_are_found_by_id_and_by_filter() {
    let cloud = stated();
    let ids = |parameters: Value| {
        let found = cloud.ok("DescribeInstances", parameters);
        assert_eq!(found["TotalCount"], found["InstanceSet"].as_array().unwrap().len());
        each(&found["InstanceSet"], "InstanceName").join(" ")
    };
    assert_eq!(ids(json!({})), "first second");
    assert_eq!(ids(json!({ "InstanceIds": ["ins-bbbbbbbb"] })), "second");
    assert_eq!(ids(filters("private-ip-address", &["10.0.1.4", "10.9.9.9"])), "first");
    assert_eq!(ids(filters("public-ip-address", &["203.0.113.4"])), "first");
    assert_eq!(ids(filters("vpc-id", &["vpc-bbbbbbbb"])), "");
    assert_eq!(ids(filters("subnet-id", &["subnet-bbbbbbbb"])), "second");
    assert_eq!(ids(filters("zone", &["ap-test-1"])), "second", "the region's first zone");
    assert_eq!(ids(filters("project-id", &["0"])), "first second");
    assert_eq!(ids(filters("tag:owner", &["a"])), "", "no inventory has tags of instances");
    let found = cloud.ok("DescribeInstances", json!({ "InstanceIds": ["ins-aaaaaaaa"] }));
    let instance = &found["InstanceSet"][0];
    assert_eq!(instance["Placement"]["Zone"], "ap-test-2");
    assert_eq!(instance["PrivateIpAddresses"], json!(["10.0.1.4"]));
    assert_eq!(instance["PublicIpAddresses"], json!(["203.0.113.4"]));
    let network = json!([instance["VirtualPrivateCloud"]["VpcId"], "subnet-aaaaaaaa"]);
    assert_eq!(network, json!(["vpc-aaaaaaaa", instance["VirtualPrivateCloud"]["SubnetId"]]));
    assert_eq!(instance["InstanceState"], "RUNNING");
}

#[test]
fn a_list_of_instances_that_cannot_be_given_has_its_code() {
    let cloud = stated();
    let code = |parameters: Value, part: &str| cloud.code("DescribeInstances", parameters, part);
    let unknown = json!({ "InstanceIds": ["ins-aaaaaaaa", "ins-zzzzzzzz"] });
    assert_eq!(code(unknown, "ins-zzzzzzzz"), "InvalidInstanceId.NotFound");
    assert_eq!(code(json!({ "InstanceIds": ["i-1"] }), "i-1"), "InvalidInstanceId.Malformed");
    let both = json!({ "InstanceIds": ["ins-aaaaaaaa"], "Filters": [] });
    assert_eq!(cloud.ok("DescribeInstances", both)["TotalCount"], 1, "no filter is no filter");
    let mut both = filters("zone", &["ap-test-1"]);
    both["InstanceIds"] = json!(["ins-aaaaaaaa"]);
    assert_eq!(code(both, "Filters"), "InvalidParameterCombination");
    assert_eq!(code(filters("colour", &["red"]), "colour"), "InvalidFilter");
    assert_eq!(code(json!({ "Limit": 101 }), "Limit"), "InvalidParameterValueLimit");
    assert_eq!(code(json!({ "Offset": -1 }), "Offset"), "InvalidParameterValueOffset");
    assert_eq!(code(json!({ "Limit": "1" }), "Limit"), "InvalidParameter");
    assert_eq!(code(json!({ "Colour": 1 }), "Colour"), "UnknownParameter");
}

#[test]
fn an_open_inventory_has_the_instance_of_every_address() {
    let cloud = Harness::new();
    let of_address = filters("private-ip-address", &["10.1.2.3"]);
    let found = cloud.ok("DescribeInstances", of_address);
    let id = &each(&found["InstanceSet"], "InstanceId")[0];
    let again = cloud.ok("DescribeInstances", json!({ "InstanceIds": [id] }));
    assert_eq!(again["InstanceSet"], found["InstanceSet"]);
    assert_eq!(again["InstanceSet"][0]["PrivateIpAddresses"], json!(["10.1.2.3"]));
    let subnets = json!({ "SubnetIds": ["subnet-1a2b3c4d"] });
    let found = cloud.ok("DescribeSubnets", subnets);
    assert_eq!(found["SubnetSet"][0]["SubnetId"], "subnet-1a2b3c4d");
    // A load balancer there gets an address out of the range that the subnet is described with.
    assert_eq!(found["SubnetSet"][0]["CidrBlock"], "198.19.0.0/16");
}

#[test]
fn networks_and_subnets_are_described() {
    let cloud = stated();
    let found = cloud.ok("DescribeVpcs", json!({}));
    assert_eq!(each(&found["VpcSet"], "VpcId"), ["vpc-aaaaaaaa", "vpc-bbbbbbbb"]);
    assert_eq!(found["VpcSet"][0]["IsDefault"], true);
    assert_eq!(each(&found["VpcSet"], "CidrBlock"), ["10.0.0.0/16", ""]);
    let found = cloud.ok("DescribeVpcs", filters("is-default", &["false"]));
    assert_eq!(each(&found["VpcSet"], "VpcId"), ["vpc-bbbbbbbb"]);

    let ids = |parameters: Value| {
        each(&cloud.ok("DescribeSubnets", parameters)["SubnetSet"], "SubnetId").join(" ")
    };
    let all = "subnet-aaaaaaaa subnet-bbbbbbbb subnet-cccccccc";
    assert_eq!(ids(json!({})), all);
    assert_eq!(ids(filters("vpc-id", &["vpc-bbbbbbbb"])), "subnet-cccccccc");
    assert_eq!(ids(filters("zone", &["ap-test-2"])), "subnet-aaaaaaaa");
    assert_eq!(ids(filters("cidr-block", &["10.0.2.0"])), "subnet-bbbbbbbb");
    assert_eq!(ids(filters("cidr-block", &["10.0.2.0/24", "10.0.3.0/24"])), "subnet-bbbbbbbb");
    assert_eq!(ids(filters("address-type", &["GUA"])), "subnet-cccccccc");
    assert_eq!(ids(filters("tag:owner", &["a"])), "", "no inventory has tags of subnets");
    assert_eq!(ids(json!({ "Offset": "1", "Limit": "1" })), "subnet-bbbbbbbb");
    let first = cloud.ok("DescribeSubnets", json!({ "MaxResults": 2 }));
    let rest = cloud.ok("DescribeSubnets", json!({ "NextToken": first["NextToken"] }));
    assert_eq!(each(&rest["SubnetSet"], "SubnetId"), ["subnet-cccccccc"]);
    assert_eq!(rest["NextToken"], Value::Null);
    for action in ["DescribeSubnets", "DescribeVpcs"] {
        let code = |parameters: Value, part: &str| cloud.code(action, parameters, part);
        assert_eq!(
            code(filters("colour", &["red"]), "colour"),
            "InvalidParameter.FilterInvalidKey"
        );
        assert_eq!(code(json!({ "Limit": "many" }), "many"), "InvalidParameterValue");
        assert_eq!(code(json!({ "Limit": "101" }), "101"), "InvalidParameterValue.Range");
    }
    let absent = json!({ "SubnetIds": ["subnet-zzzzzzzz"] });
    assert_eq!(cloud.code("DescribeSubnets", absent, "does not exist"), "ResourceNotFound");
}

#[test]
fn a_subnet_counts_the_addresses_of_its_load_balancers() {
    let cloud = stated();
    let left = || {
        let found = cloud.ok("DescribeSubnets", json!({ "SubnetIds": ["subnet-aaaaaaaa"] }));
        found["SubnetSet"][0]["AvailableIpAddressCount"].as_u64().unwrap()
    };
    let before = left();
    let parameters = json!({
        "LoadBalancerType": "INTERNAL", "VpcId": "vpc-aaaaaaaa", "SubnetId": "subnet-aaaaaaaa",
    });
    cloud.ok("CreateLoadBalancer", parameters);
    assert_eq!(left(), before - 1);
}

#[test]
fn an_ipv6_load_balancer_does_not_get_the_routers_address() {
    let cloud = stated();
    let parameters = json!({
        "LoadBalancerType": "OPEN", "VpcId": "vpc-bbbbbbbb", "SubnetId": "subnet-cccccccc",
        "AddressIPVersion": "IPv6FullChain",
    });
    let created = cloud.ok("CreateLoadBalancer", parameters);
    let id = created["LoadBalancerIds"][0].as_str().unwrap();
    assert_eq!(cloud.described(id)["AddressIPv6"], "2001:db8:9::1");
}

#[test]
fn security_groups_and_addresses_are_described() {
    let cloud = stated();
    let found = cloud.ok("DescribeSecurityGroups", json!({}));
    let groups = each(&found["SecurityGroupSet"], "SecurityGroupId");
    assert_eq!(groups, ["sg-aaaaaaaa", "sg-bbbbbbbb"]);
    let absent = json!({ "SecurityGroupIds": ["sg-zzzzzzzz"] });
    assert_eq!(cloud.code("DescribeSecurityGroups", absent, "sg-zzzzzzzz"), "ResourceNotFound");

    let found = cloud.ok("DescribeAddresses", filters("instance-id", &["ins-aaaaaaaa"]));
    assert_eq!(found["AddressSet"][0]["AddressIp"], "203.0.113.4");
    assert_eq!(found["AddressSet"][0]["PrivateAddressIp"], "10.0.1.4");
    let id = &found["AddressSet"][0]["AddressId"];
    assert_eq!(cloud.ok("DescribeAddresses", json!({ "AddressIds": [id] }))["TotalCount"], 1);
    let elastic = cloud.ok("DescribeAddresses", filters("address-type", &["EIP"]));
    assert_eq!(elastic["TotalCount"], 1);
    let none = cloud.ok("DescribeAddresses", filters("instance-id", &["ins-bbbbbbbb"]));
    assert_eq!((&none["TotalCount"], &none["AddressSet"]), (&json!(0), &json!([])));
    let absent = json!({ "AddressIds": ["eip-zzzzzzzz"] });
    assert_eq!(cloud.code("DescribeAddresses", absent, "eip-"), "InvalidAddressId.NotFound");
}
