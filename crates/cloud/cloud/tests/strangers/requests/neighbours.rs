//! Requests of other services than the load balancers'.

use serde_json::json;

use super::{Made, OwnersRequest, neighbour, neighbours_upload};
use crate::cloud::REGION;

/// A request of each action of the services beside load balancers.
pub(super) fn requests(made: &Made) -> Vec<OwnersRequest> {
    let of_all = |service, action| neighbour(service, action, json!({})).may_succeed_elsewhere();
    let spare = json!({ "CertificateId": made.spare_certificate });
    let tags = json!([{ "TagKey": "secret-new", "TagValue": "a" }]);
    let tagged = json!({ "ResourceList": [made.resource], "Tags": tags });
    let place = format!("{}|{}", made.load_balancer, made.https);
    let deployed = json!({ "CertificateId": made.spare_certificate, "InstanceIdList": [place] });
    let id = &made.load_balancer;
    let by_ids = json!({
        "ServiceType": "clb", "ResourcePrefix": "clb", "ResourceRegion": REGION,
        "ResourceIds": [id],
    });
    let modified = json!({ "Resource": made.resource, "DeleteTags": [{ "TagKey": "secret-key" }] });
    let untagged = json!({ "ResourceList": [made.resource], "TagKeys": ["secret-key"] });
    vec![
        of_all("cam", "GetUserAppId"),
        of_all("cvm", "DescribeInstances"),
        of_all("cvm", "DescribeRegions"),
        of_all("cvm", "DescribeZones"),
        of_all("sts", "GetCallerIdentity"),
        neighbour("ssl", "DeployCertificateInstance", deployed),
        neighbour(
            "ssl",
            "DescribeHostDeployRecordDetail",
            json!({ "DeployRecordId": made.record }),
        ),
        of_all("tag", "DescribeResourceTags").sees("secret-value"),
        neighbour("tag", "DescribeResourceTagsByResourceIds", by_ids)
            .sees("secret-value")
            .may_succeed_elsewhere(),
        of_all("tag", "GetTagKeys").sees("secret-key"),
        neighbour("tag", "GetTagValues", json!({ "TagKeys": ["secret-key"] }))
            .sees("secret-value")
            .may_succeed_elsewhere(),
        of_all("tag", "GetTags").sees("secret-value"),
        neighbour("tag", "ModifyResourceTags", modified),
        neighbour(
            "vpc",
            "DescribeSecurityGroupPolicies",
            json!({ "SecurityGroupId": "sg-aaaaaaaa" }),
        )
        .may_succeed_elsewhere(),
        neighbours_upload("other").may_succeed_elsewhere(),
        neighbour("ssl", "DeleteCertificate", spare.clone()),
        neighbour("ssl", "DescribeCertificateDetail", spare).sees("secret-spare"),
        of_all("ssl", "DescribeCertificates").sees("secret-certificate"),
        of_all("tag", "GetResources").sees("secret-value"),
        // What cannot be tagged is named in the answer.
        neighbour("tag", "TagResources", tagged).may_succeed_elsewhere(),
        neighbour("tag", "UnTagResources", untagged).may_succeed_elsewhere(),
        of_all("vpc", "DescribeAddresses"),
        of_all("vpc", "DescribeSecurityGroups"),
        of_all("vpc", "DescribeSubnets"),
        of_all("vpc", "DescribeVpcs"),
    ]
}
