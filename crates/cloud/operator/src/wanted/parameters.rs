//! The parameters that an annotation adds to the request that creates a load balancer.
//!
//! The author of an object writes the annotation, so it may only set how the object's own load
//! balancer is made. The number of load balancers, their network, their client token and the tags
//! by which they are found again are set by the controllers.

use serde_json::{Map, Value};
use uturn_cloud_api::clb::CreateLoadBalancerRequest;

/// The members that an annotation may set.
const MEMBERS: [&str; 15] = [
    "AddressIPVersion",
    "BandwidthPackageId",
    "DynamicVip",
    "EipAddressId",
    "InternetAccessible",
    "LBChargePrepaid",
    "LBChargeType",
    "LoadBalancerPassToTarget",
    "MasterZoneId",
    "SlaType",
    "SlaveZoneId",
    "Tags",
    "Vip",
    "VipIsp",
    "ZoneId",
];

/// The prefix of the controllers' tags.
const RESERVED: &str = "tke-";

/// Adds the members in a text to a request.
///
/// # Errors
///
/// Returns which members may not be set, or why the text cannot be read.
pub(super) fn add(
    request: CreateLoadBalancerRequest,
    text: &str,
) -> Result<CreateLoadBalancerRequest, String> {
    let more: Map<String, Value> = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let refused: Vec<&str> =
        more.keys().map(String::as_str).filter(|name| !MEMBERS.contains(name)).collect();
    if !refused.is_empty() {
        return Err(format!(
            "{} may not be set there, only {}",
            refused.join(", "),
            MEMBERS.join(", ")
        ));
    }
    let mut all = serde_json::to_value(request).map_err(|error| error.to_string())?;
    for (name, value) in more {
        all[name] = value;
    }
    let request: CreateLoadBalancerRequest =
        serde_json::from_value(all).map_err(|error| error.to_string())?;
    let tags = request.tags.iter().flatten();
    let reserved: Vec<&str> =
        tags.map(|tag| tag.tag_key.as_str()).filter(|key| is_reserved(key)).collect();
    if reserved.is_empty() {
        Ok(request)
    } else {
        Err(format!(
            "the tag {} is the controllers', as all are that begin with {RESERVED}",
            reserved.join(", ")
        ))
    }
}

/// Returns whether the key of a tag is reserved for the controllers. Ignores case and outer spaces,
/// because a cloud may do so too.
fn is_reserved(key: &str) -> bool {
    key.trim().get(..RESERVED.len()).is_some_and(|start| start.eq_ignore_ascii_case(RESERVED))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_the_objects_own_may_be_set() {
        let token = Some("token".to_owned());
        let request =
            || CreateLoadBalancerRequest { client_token: token.clone(), ..Default::default() };
        for (text, words) in [
            (r#"{"Number": 20}"#, "Number may not be set"),
            (r#"{"VpcId": "vpc-bbbbbbbb"}"#, "VpcId may not be set"),
            (r#"{"ClientToken": "another"}"#, "ClientToken may not be set"),
            (r#"{"SubnetId": "subnet-bbbbbbbb"}"#, "SubnetId may not be set"),
            (r#"{"LoadBalancerType": "OPEN"}"#, "LoadBalancerType may not be set"),
            (r#"{"LoadBalancerName": "prod"}"#, "LoadBalancerName may not be set"),
            (r#"{"SnatPro": true, "ClusterIds": []}"#, "SnatPro, ClusterIds may not be set"),
            (r#"{"tags": []}"#, "tags may not be set"),
            (
                r#"{"Tags": [{"TagKey": "tke-lb-ingress-uuid", "TagValue": "u"}]}"#,
                "the tag tke-lb-ingress-uuid is the controllers'",
            ),
            (r#"{"Tags": [{"TagKey": " TKE-clusterId", "TagValue": "c"}]}"#, "TKE-clusterId"),
            (
                r#"{"Tags": [{"TagKey": "a", "TagValue": ""},
                    {"TagKey": "tke-lifecycle-owner", "TagValue": "user"}]}"#,
                "the tag tke-lifecycle-owner",
            ),
            (r#"{"VipIsp": 7}"#, "invalid type"),
            (r#"[]"#, "invalid type"),
            ("", "EOF"),
        ] {
            let error = add(request(), text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
        let text = r#"{"VipIsp": "CTCC", "Tags": [{"TagKey": "team", "TagValue": "shop"}],
            "InternetAccessible": {"InternetMaxBandwidthOut": 10}}"#;
        let made = add(request(), text).unwrap();
        assert_eq!((made.vip_isp.as_deref(), made.client_token), (Some("CTCC"), token.clone()));
        assert_eq!(made.tags.map(|tags| tags.len()), Some(1));
    }
}
