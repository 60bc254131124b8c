//! Addresses of several accounts: one data plane serves them all, so that each is given out once.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::cloud::{Served, Signer, failed};
use crate::requests::request;

/// Six public addresses, and five in the subnet.
const INVENTORY: &str = r#"{ "regions": [{
    "name": "ap-guangzhou",
    "publicAddresses": ["198.51.100.0/29"],
    "networks": [{
        "id": "vpc-aaaaaaaa", "addresses": "10.0.0.0/16",
        "subnets": [{ "id": "subnet-aaaaaaaa", "addresses": "10.0.1.0/29" }]
    }],
    "instances": [{
        "id": "ins-aaaaaaaa", "privateAddresses": ["10.0.1.1"], "network": "vpc-aaaaaaaa"
    }]
}]}"#;

fn create(served: &Served, signer: Signer, parameters: Value) -> Result<String, String> {
    let created = served.send(signer, &request("CreateLoadBalancer", parameters));
    match failed(&created) {
        Some(code) => Err(code.to_owned()),
        None => Ok(created["LoadBalancerIds"][0].as_str().unwrap().to_owned()),
    }
}

fn internal() -> Value {
    json!({
        "LoadBalancerType": "INTERNAL", "VpcId": "vpc-aaaaaaaa", "SubnetId": "subnet-aaaaaaaa",
    })
}

fn address(served: &Served, signer: Signer, id: &str) -> String {
    let described = json!({ "LoadBalancerIds": [id] });
    let described = served.send(signer, &request("DescribeLoadBalancers", described));
    described["LoadBalancerSet"][0]["LoadBalancerVips"][0].as_str().unwrap().to_owned()
}

#[test]
fn no_two_accounts_get_the_same_address() {
    let served = Served::with(INVENTORY);
    for (parameters, count) in [(json!({ "LoadBalancerType": "OPEN" }), 6), (internal(), 5)] {
        let signers = [Signer::Owner, Signer::Other].into_iter().cycle();
        let mut addresses = BTreeSet::new();
        let mut last = None;
        for signer in signers.take(count) {
            let id = create(&served, signer, parameters.clone()).unwrap();
            assert!(addresses.insert(address(&served, signer, &id)), "{addresses:?}");
            last = Some((signer, id));
        }
        for signer in [Signer::Owner, Signer::Other] {
            let exhausted = create(&served, signer, parameters.clone()).unwrap_err();
            assert_eq!(exhausted, "ResourceInsufficient", "{addresses:?}");
        }
        // What one account gives back, the other gets.
        let (signer, id) = last.unwrap();
        let delete = request("DeleteLoadBalancer", json!({ "LoadBalancerIds": [id] }));
        assert_eq!(failed(&served.send(signer, &delete)), None);
        let other = if signer == Signer::Owner { Signer::Other } else { Signer::Owner };
        let id = create(&served, other, parameters.clone()).unwrap();
        assert!(!addresses.insert(address(&served, other, &id)), "{addresses:?}");
    }
}

#[test]
fn an_address_of_another_account_is_in_use() {
    let served = Served::with(INVENTORY);
    let parameters = json!({ "LoadBalancerType": "OPEN", "Vip": "198.51.100.3" });
    create(&served, Signer::Owner, parameters.clone()).unwrap();
    let refused = create(&served, Signer::Other, parameters).unwrap_err();
    assert_eq!(refused, "FailedOperation");

    let id = create(&served, Signer::Owner, internal()).unwrap();
    let taken = address(&served, Signer::Owner, &id);
    let id = create(&served, Signer::Other, json!({ "LoadBalancerType": "OPEN" })).unwrap();
    let snat = json!({
        "LoadBalancerId": id, "SnatIps": [{ "SubnetId": "subnet-aaaaaaaa", "Ip": taken }],
    });
    let snat = request("CreateLoadBalancerSnatIps", snat);
    assert_eq!(failed(&served.send(Signer::Other, &snat)), Some("FailedOperation"));
}
