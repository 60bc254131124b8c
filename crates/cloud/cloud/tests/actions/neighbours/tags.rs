//! Tags of load balancers in several regions.

use serde_json::{Value, json};

use super::each;
use crate::harness::{Harness, text};

/// The six-segment name of a load balancer.
fn name(cloud: &Harness, region: &str, id: &str) -> String {
    let uin = text(&cloud.ok("GetUserAppId", json!({}))["OwnerUin"]);
    format!("qcs::clb:{region}:uin/{uin}:clb/{id}")
}

fn tag(key: &str, value: &str) -> Value {
    json!({ "TagKey": key, "TagValue": value })
}

#[test]
fn one_request_tags_load_balancers_of_several_regions() {
    let cloud = Harness::new();
    let names = ["ap-guangzhou", "ap-bangkok"].map(|region| {
        cloud.enter(region);
        name(&cloud, region, &cloud.load_balancer())
    });
    let request = json!({ "ResourceList": names, "Tags": [tag("owner", "a"), tag("tier", "1")] });
    assert_eq!(cloud.ok("TagResources", request)["FailedResources"], json!([]));
    cloud.ok("TagResources", json!({ "ResourceList": [names[0]], "Tags": [tag("owner", "b")] }));

    let found = |parameters: Value| {
        let found = cloud.ok("GetResources", parameters);
        let names = each(&found["ResourceTagMappingList"], "Resource");
        names.into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let owner = |value: &str| json!({ "TagKey": "owner", "TagValue": [value] });
    assert_eq!(found(json!({ "TagFilters": [owner("b")] })), [names[0].clone()]);
    assert_eq!(found(json!({ "TagFilters": [owner("a")] })), [names[1].clone()]);
    assert_eq!(found(json!({ "TagFilters": [{ "TagKey": "tier" }] })).len(), 2);
    assert_eq!(found(json!({ "TagFilters": [owner("c")] })).len(), 0);
    let first = cloud.ok("GetResources", json!({ "MaxResults": 1 }));
    let token = json!({ "MaxResults": 1, "PaginationToken": first["PaginationToken"] });
    let second = cloud.ok("GetResources", token);
    assert_ne!(first["ResourceTagMappingList"], second["ResourceTagMappingList"]);
    assert_eq!(second["PaginationToken"], "");

    // The tags are those that clb filters by.
    let filter = json!({ "Filters": [{ "Name": "tag:owner", "Values": ["a"] }] });
    assert_eq!(cloud.ok("DescribeLoadBalancers", filter.clone())["TotalCount"], 1);
    cloud.ok("UnTagResources", json!({ "ResourceList": names, "TagKeys": ["owner", "absent"] }));
    assert_eq!(cloud.ok("DescribeLoadBalancers", filter)["TotalCount"], 0);
    assert_eq!(found(json!({ "TagFilters": [{ "TagKey": "tier" }] })).len(), 2);
}

#[test]
fn a_busy_load_balancer_can_be_tagged() {
    let cloud = Harness::slow();
    let lb = cloud.load_balancer();
    let name = name(&cloud, "ap-guangzhou", &lb);
    cloud.ok("TagResources", json!({ "ResourceList": [name], "Tags": [tag("owner", "a")] }));
    assert_eq!(cloud.described(&lb)["Tags"], json!([tag("owner", "a")]));
    assert_eq!(cloud.described(&lb)["Status"], 0, "it is still being created");
    cloud.wait(1);
    assert_eq!(cloud.described(&lb)["Status"], 1);
}

#[test]
fn a_load_balancer_that_is_not_there_is_named_and_the_others_are_tagged() {
    let cloud = Harness::new();
    let lb = cloud.load_balancer();
    let names = [name(&cloud, "ap-guangzhou", "lb-absent"), name(&cloud, "ap-guangzhou", &lb)];
    let request = json!({ "ResourceList": names, "Tags": [tag("owner", "a")] });
    let failed = cloud.ok("TagResources", request)["FailedResources"].clone();
    assert_eq!(each(&failed, "Resource"), [&names[0]]);
    assert_eq!(each(&failed, "Code"), ["InvalidParameterValue.ResourceIdInvalid"]);
    assert_eq!(cloud.described(&lb)["Tags"], json!([tag("owner", "a")]));
}

#[test]
fn each_faulty_request_has_its_code() {
    let cloud = Harness::new();
    let lb = cloud.load_balancer();
    let name = name(&cloud, "ap-guangzhou", &lb);
    let long = "x".repeat(256);
    for (tags, code) in [
        (json!([]), "InvalidParameter"),
        (json!([tag("", "a")]), "InvalidParameterValue.TagKeyEmpty"),
        (json!([tag("qcs:a", "a")]), "InvalidParameterValue.ReservedTagKey"),
        (json!([tag("a", "a"), tag("a", "b")]), "InvalidParameterValue.TagKeyDuplicate"),
        (json!([tag(&long[..128], "a")]), "InvalidParameterValue.TagKeyLengthExceeded"),
        (json!([tag("a", &long)]), "InvalidParameterValue.TagValueLengthExceeded"),
        (json!(vec![tag("a", "a"); 11]), "LimitExceeded.TagNumPerRequest"),
    ] {
        let request = json!({ "ResourceList": [name], "Tags": tags });
        assert_eq!(cloud.code("TagResources", request, ""), code);
    }
    let description = "InvalidParameterValue.ResourceDescriptionError";
    for (name, code) in [
        (lb, description),
        (name.replace("clb:", "cvm:"), "InvalidParameterValue.ServiceTypeInvalid"),
        (name.replace("ap-guangzhou", "nowhere"), "InvalidParameterValue.RegionInvalid"),
        (name.replace("uin/1", "uin/2"), "InvalidParameterValue.UinInvalid"),
        (name.replace("clb/", "listener/"), "InvalidParameterValue.ResourcePrefixInvalid"),
    ] {
        let request = json!({ "ResourceList": [name], "TagKeys": ["a"] });
        assert_eq!(cloud.code("UnTagResources", request, &name), code);
        let request = json!({ "ResourceList": [name] });
        // Other services' resources have no tags here.
        match code {
            "InvalidParameterValue.ServiceTypeInvalid" => {
                let found = cloud.ok("GetResources", request);
                assert_eq!(found["ResourceTagMappingList"], json!([]));
            }
            _ => assert_eq!(cloud.code("GetResources", request, &name), code),
        }
    }
    let many = json!({ "ResourceList": vec![name.as_str(); 11] });
    assert_eq!(cloud.code("GetResources", many, "11"), "LimitExceeded.ResourceNumPerRequest");
    let token = json!({ "PaginationToken": "x" });
    let code = "InvalidParameter.PaginationTokenInvalid";
    assert_eq!(cloud.code("GetResources", token, "token"), code);
}

#[test]
fn a_named_load_balancer_without_tags_is_left_out() {
    let cloud = Harness::new();
    let names = [(); 2].map(|()| name(&cloud, "ap-guangzhou", &cloud.load_balancer()));
    cloud.ok("TagResources", json!({ "ResourceList": [names[1]], "Tags": [tag("owner", "a")] }));
    let found = cloud.ok("GetResources", json!({ "ResourceList": names }));
    assert_eq!(each(&found["ResourceTagMappingList"], "Resource"), [&names[1]]);
    assert_eq!(found["PaginationToken"], "");
}

#[test]
fn tags_are_found_by_the_ids_of_their_load_balancers() {
    let cloud = Harness::new();
    let lb = cloud.load_balancer();
    let by_ids = json!({
        "ServiceType": "clb", "ResourcePrefix": "clb", "ResourceRegion": "ap-guangzhou",
        "ResourceIds": [lb, "lb-absent"], "Offset": 0, "Limit": 20,
    });
    let none = cloud.ok("DescribeResourceTagsByResourceIds", by_ids.clone());
    assert_eq!((&none["Tags"], &none["TotalCount"]), (&json!([]), &json!(0)));
    let resource = name(&cloud, "ap-guangzhou", &lb);
    let put = json!({ "Resource": resource, "ReplaceTags": [tag("a", "1"), tag("b", "2")] });
    cloud.ok("ModifyResourceTags", put);
    let change = json!({
        "Resource": resource, "ReplaceTags": [tag("a", "3")],
        "DeleteTags": [{ "TagKey": "b" }, { "TagKey": "absent" }],
    });
    cloud.ok("ModifyResourceTags", change);
    let found = cloud.ok("DescribeResourceTagsByResourceIds", by_ids);
    assert_eq!(found["TotalCount"], 1);
    assert_eq!(each(&found["Tags"], "ResourceId"), [&lb]);
    assert_eq!(each(&found["Tags"], "TagValue"), ["3"]);
    let rows = cloud.ok("DescribeResourceTags", json!({ "ResourceId": lb }));
    assert_eq!(rows["Rows"], found["Tags"]);
    let other = cloud.ok("DescribeResourceTags", json!({ "ServiceType": "cvm" }));
    assert_eq!(other["Rows"], json!([]));

    let absent = json!({
        "Resource": name(&cloud, "ap-guangzhou", "lb-absent"), "ReplaceTags": [tag("a", "1")],
    });
    let code = "InvalidParameterValue.ResourceIdInvalid";
    assert_eq!(cloud.code("ModifyResourceTags", absent, "does not exist"), code);
    let nothing = json!({ "Resource": resource });
    assert_eq!(cloud.code("ModifyResourceTags", nothing, "ReplaceTags"), "InvalidParameter");
}

#[test]
fn keys_and_values_are_listed_once_and_in_parts() {
    let cloud = Harness::new();
    for value in ["1", "2", "2"] {
        let resource = name(&cloud, "ap-guangzhou", &cloud.load_balancer());
        let tags = json!([tag("a", value), tag("b", "same")]);
        cloud.ok("TagResources", json!({ "ResourceList": [resource], "Tags": tags }));
    }
    assert_eq!(cloud.ok("GetTagKeys", json!({}))["TagKeys"], json!(["a", "b"]));
    let first = cloud.ok("GetTagValues", json!({ "TagKeys": ["a"], "MaxResults": 1 }));
    assert_eq!(each(&first["Tags"], "TagValue"), ["1"]);
    let rest = json!({ "TagKeys": ["a"], "PaginationToken": first["PaginationToken"] });
    let rest = cloud.ok("GetTagValues", rest);
    assert_eq!(each(&rest["Tags"], "TagValue"), ["2"]);
    assert_eq!(rest["PaginationToken"], "");
    assert_eq!(each(&cloud.ok("GetTags", json!({}))["Tags"], "TagKey"), ["a", "a", "b"]);
}
