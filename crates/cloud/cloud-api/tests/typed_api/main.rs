//! The typed requests and answers in `src/api` are what the schema says. To write them anew
//! after a change of the schema or of the list below: `UTURN_API=update cargo test -p uturn-cloud-api
//! --test typed_api`.

mod generate;

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use uturn_cloud_api::schema::services;
use uturn_testing::variables;

/// The actions with types, by service.
const TYPED: &[(&str, &[&str])] = &[
    (
        "clb",
        &[
            "AutoRewrite",
            "BatchDeregisterTargets",
            "BatchModifyTargetTag",
            "BatchModifyTargetWeight",
            "BatchRegisterTargets",
            "CreateListener",
            "CreateLoadBalancer",
            "CreateLoadBalancerSnatIps",
            "CreateRule",
            "DeleteListener",
            "DeleteLoadBalancer",
            "DeleteLoadBalancerListeners",
            "DeleteLoadBalancerSnatIps",
            "DeleteRewrite",
            "DeleteRule",
            "DeregisterTargets",
            "DescribeClusterResources",
            "DescribeCrossTargets",
            "DescribeCustomizedConfigAssociateList",
            "DescribeCustomizedConfigList",
            "DescribeExclusiveClusters",
            "DescribeLBListeners",
            "DescribeLBOperateProtect",
            "DescribeListeners",
            "DescribeLoadBalancerListByCertId",
            "DescribeLoadBalancers",
            "DescribeLoadBalancersDetail",
            "DescribeQuota",
            "DescribeResources",
            "DescribeRewrite",
            "DescribeTargetGroupList",
            "DescribeTargetGroups",
            "DescribeTargetHealth",
            "DescribeTargets",
            "DescribeTaskStatus",
            "ManualRewrite",
            "ModifyDomain",
            "ModifyDomainAttributes",
            "ModifyListener",
            "ModifyLoadBalancerAttributes",
            "ModifyLoadBalancersProject",
            "ModifyRule",
            "ModifyTargetPort",
            "ModifyTargetWeight",
            "RegisterTargets",
            "ReplaceCertForLoadBalancers",
            "SetCustomizedConfigForLoadBalancer",
            "SetLoadBalancerSecurityGroups",
            "SetLoadBalancerStartStatus",
            "SetSecurityGroupForLoadbalancers",
        ],
    ),
    ("cvm", &["DescribeInstances", "DescribeRegions", "DescribeZones"]),
    (
        "vpc",
        &[
            "DescribeAddresses",
            "DescribeSecurityGroupPolicies",
            "DescribeSecurityGroups",
            "DescribeSubnets",
            "DescribeVpcs",
        ],
    ),
    (
        "tag",
        &[
            "DescribeResourceTags",
            "DescribeResourceTagsByResourceIds",
            "GetResources",
            "GetTagKeys",
            "GetTagValues",
            "GetTags",
            "ModifyResourceTags",
            "TagResources",
            "UnTagResources",
        ],
    ),
    ("cam", &["GetUserAppId"]),
    ("sts", &["GetCallerIdentity"]),
    (
        "ssl",
        &[
            "DeleteCertificate",
            "DeployCertificateInstance",
            "DescribeCertificateDetail",
            "DescribeCertificates",
            "DescribeHostDeployRecordDetail",
            "UploadCertificate",
        ],
    ),
];

#[test]
fn the_typed_api_is_what_the_schema_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/api");
    for (name, actions) in TYPED {
        let service = services().iter().find(|service| service.name == *name).unwrap();
        let generated = format_code(&generate::service(service, actions));
        let file = folder.join(format!("{name}.rs"));
        if variables::is_update(variables::API) {
            fs::write(&file, &generated).unwrap();
        }
        let found = fs::read_to_string(&file).unwrap_or_default();
        assert!(
            found == generated,
            "{} is not what the schema says; {}=update writes it",
            file.display(),
            variables::API
        );
    }
}

fn format_code(code: &str) -> String {
    let mut rustfmt = Command::new("rustfmt")
        .args(["--edition", "2024", "--config-path"])
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.."))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("rustfmt is part of the toolchain");
    let mut input = rustfmt.stdin.take().expect("standard input is a pipe");
    input.write_all(code.as_bytes()).expect("rustfmt reads its input");
    drop(input);
    let output = rustfmt.wait_with_output().expect("rustfmt ends");
    assert!(output.status.success());
    String::from_utf8(output.stdout).expect("Rust is UTF-8")
}
