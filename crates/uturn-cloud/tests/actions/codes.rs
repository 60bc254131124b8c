//! The codes that each action is documented with, from the comments of the Go SDK, and of other
//! services than clb those that the service has.

/// The codes that all actions have. `ResourceInOperating` is the server's answer while a load
/// balancer is busy, whichever write it is.
const COMMON: [&str; 7] = [
    "FailedOperation",
    "FailedOperation.ResourceInOperating",
    "InternalError",
    "InvalidParameter",
    "InvalidParameter.FormatError",
    "InvalidParameterValue",
    "UnauthorizedOperation",
];
/// The codes of the schema, which come before any action.
const OF_SCHEMA: [&str; 2] = ["MissingParameter", "UnknownParameter"];

const LENGTH: &str = "InvalidParameterValue.Length";
const RANGE: &str = "InvalidParameterValue.Range";
const FILTER: &str = "InvalidParameterValue.InvalidFilter";
const NO_LB: &str = "InvalidParameter.LBIdNotFound";
const NO_LISTENER: &str = "InvalidParameter.ListenerIdNotFound";
const NO_RULE: &str = "InvalidParameter.LocationNotFound";
const PORT: &str = "InvalidParameter.PortCheckFailed";
const PROTOCOL: &str = "InvalidParameter.ProtocolCheckFailed";
const REGION: &str = "InvalidParameter.RegionNotFound";
const REWRITTEN: &str = "InvalidParameter.RewriteAlreadyExist";
const NOT_REWRITTEN: &str = "InvalidParameter.SomeRewriteNotFound";
const LIMIT: &str = "LimitExceeded";
const INSUFFICIENT: &str = "ResourceInsufficient";
const UNSUPPORTED: &str = "UnsupportedOperation";

/// Whether an action is documented with a code. Actions that need `MissingParameter` for more
/// than the schema says share it with the schema.
pub(crate) fn has(action: &str, code: &str) -> bool {
    let own: &[&str] = match action {
        "CreateLoadBalancer" => &[LENGTH, RANGE, LIMIT, INSUFFICIENT, UNSUPPORTED],
        "DescribeLoadBalancers" => &[LENGTH, RANGE, FILTER, REGION, UNSUPPORTED],
        "DescribeLoadBalancersDetail" => &[LENGTH, RANGE, FILTER],
        "DeleteLoadBalancer" => &[
            LENGTH,
            NO_LB,
            LIMIT,
            INSUFFICIENT,
            "FailedOperation.FrequencyCheckRisk",
            "FailedOperation.TargetNumCheckRisk",
        ],
        "ModifyLoadBalancerAttributes" => {
            &[LENGTH, NO_LB, REGION, LIMIT, INSUFFICIENT, "InvalidParameterValue.Duplicate"]
        }
        "SetLoadBalancerSecurityGroups" => &[LENGTH, NO_LB, LIMIT],
        "SetSecurityGroupForLoadbalancers" | "DescribeLBOperateProtect" => &[LENGTH, NO_LB],
        "CreateLoadBalancerSnatIps" => &[LENGTH, NO_LB, LIMIT, REGION],
        "DeleteLoadBalancerSnatIps" => &[NO_LB, LIMIT],
        "SetLoadBalancerStartStatus" => &[LENGTH, NO_LISTENER, "FailedOperation.NoListenerInLB"],
        "SetCustomizedConfigForLoadBalancer" => &[LENGTH, NO_LB, LIMIT],
        "DescribeCustomizedConfigList" => &[LENGTH, FILTER],
        "DescribeResources" => &[LENGTH, RANGE, FILTER],
        "CreateListener" => &[LENGTH, PORT, LIMIT, INSUFFICIENT],
        "DescribeListeners" => &[LENGTH, NO_LB, REGION, FILTER],
        "CreateRule" => &[LENGTH, LIMIT, INSUFFICIENT],
        "ModifyDomainAttributes" => &[LENGTH, LIMIT],
        "AutoRewrite" => {
            &[LENGTH, NO_LB, NO_LISTENER, NO_RULE, PROTOCOL, REWRITTEN, LIMIT, INSUFFICIENT, PORT]
        }
        "ManualRewrite" => &[
            LENGTH,
            NO_LB,
            NO_LISTENER,
            NO_RULE,
            PROTOCOL,
            REWRITTEN,
            LIMIT,
            INSUFFICIENT,
            NOT_REWRITTEN,
        ],
        "DeleteRewrite" => &[LENGTH, NO_LB, NOT_REWRITTEN, LIMIT],
        "DescribeRewrite" => &[LENGTH, NO_LB],
        "DescribeTaskStatus" | "DescribeQuota" => &[],
        "DescribeInstances" => &[
            "InvalidFilter",
            "InvalidFilterValue.LimitExceeded",
            "InvalidInstanceId.Malformed",
            "InvalidInstanceId.NotFound",
            "InvalidParameterCombination",
            "InvalidParameterValueLimit",
            "InvalidParameterValueOffset",
        ],
        "DescribeVpcs" | "DescribeSubnets" | "DescribeSecurityGroups" | "DescribeAddresses" => &[
            RANGE,
            "InvalidAddressId.NotFound",
            "InvalidParameter.Coexist",
            "InvalidParameter.FilterInvalidKey",
            "InvalidParameterValue.LimitExceeded",
            "ResourceNotFound",
        ],
        "TagResources" | "UnTagResources" | "GetResources" => &[
            "InvalidParameter.PaginationTokenInvalid",
            "InvalidParameterValue.RegionInvalid",
            "InvalidParameterValue.ReservedTagKey",
            "InvalidParameterValue.ResourceDescriptionError",
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
        "UploadCertificate" | "DescribeCertificateDetail" | "DeleteCertificate" => &[
            "FailedOperation.BoundResources",
            "FailedOperation.CertificateNotFound",
            "FailedOperation.CertificateParseError",
        ],
        _ => &[LENGTH],
    };
    COMMON.contains(&code) || OF_SCHEMA.contains(&code) || own.contains(&code)
}
