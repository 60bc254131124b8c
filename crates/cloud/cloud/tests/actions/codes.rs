//! The codes that actions are documented with: of clb by action, of other services those that the
//! service has.

/// The codes of clb's actions.
const CLB: &str = include_str!("codes.txt");
/// The codes of the schema, which come before any action.
const OF_SCHEMA: [&str; 2] = ["MissingParameter", "UnknownParameter"];
/// The server's answer while a load balancer is busy, whichever write it is.
const BUSY: &str = "FailedOperation.ResourceInOperating";

/// Whether an action is documented with a code. Actions that need `MissingParameter` for more
/// than the schema says share it with the schema.
pub(crate) fn has(action: &str, code: &str) -> bool {
    if OF_SCHEMA.contains(&code) {
        return true;
    }
    let mut lines = CLB.lines().map(|line| line.split(' '));
    match lines.find_map(|mut words| (words.next() == Some(action)).then_some(words)) {
        Some(mut codes) => code == BUSY || codes.any(|known| known == code),
        None => of_neighbours(action).contains(&code),
    }
}

fn of_neighbours(action: &str) -> &'static [&'static str] {
    match action {
        "DescribeInstances" => &[
            "InvalidParameter",
            "InvalidFilter",
            "InvalidFilterValue.LimitExceeded",
            "InvalidInstanceId.Malformed",
            "InvalidInstanceId.NotFound",
            "InvalidParameterCombination",
            "InvalidParameterValueLimit",
            "InvalidParameterValueOffset",
        ],
        "DescribeVpcs"
        | "DescribeSubnets"
        | "DescribeSecurityGroups"
        | "DescribeSecurityGroupPolicies"
        | "DescribeAddresses" => &[
            "InvalidAddressId.NotFound",
            "InvalidParameter",
            "InvalidParameter.Coexist",
            "InvalidParameter.FilterInvalidKey",
            "InvalidParameterValue",
            "InvalidParameterValue.LimitExceeded",
            "InvalidParameterValue.Range",
            "ResourceNotFound",
        ],
        "TagResources" | "UnTagResources" | "GetResources" | "ModifyResourceTags" => &[
            "InvalidParameter",
            "InvalidParameter.PaginationTokenInvalid",
            "InvalidParameterValue.RegionInvalid",
            "InvalidParameterValue.ReservedTagKey",
            "InvalidParameterValue.ResourceDescriptionError",
            "InvalidParameterValue.ResourceIdInvalid",
            "InvalidParameterValue.ResourcePrefixInvalid",
            "InvalidParameterValue.ServiceTypeInvalid",
            "InvalidParameterValue.TagFiltersLengthExceeded",
            "InvalidParameterValue.TagKeyDuplicate",
            "InvalidParameterValue.TagKeyEmpty",
            "InvalidParameterValue.TagKeyLengthExceeded",
            "InvalidParameterValue.TagValueLengthExceeded",
            "InvalidParameterValue.UinInvalid",
            "LimitExceeded.ResourceNumPerRequest",
            "LimitExceeded.TagNumPerRequest",
        ],
        "UploadCertificate"
        | "DescribeCertificateDetail"
        | "DeleteCertificate"
        | "DeployCertificateInstance"
        | "DescribeHostDeployRecordDetail" => &[
            "FailedOperation.BoundResources",
            "FailedOperation.CertificateNotFound",
            "FailedOperation.CertificateParseError",
            "InvalidParameter",
            "InvalidParameterValue",
        ],
        _ => &[],
    }
}
