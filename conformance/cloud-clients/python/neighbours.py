"""Replays the documented exchanges of neighbour services whose actions the server performs, through
the SDK's typed clients. Names of resources are replaced by those of a load balancer and of
certificates made before."""

from tencentcloud.cam.v20190116 import cam_client, models as cam
from tencentcloud.clb.v20180317 import clb_client, models as clb
from tencentcloud.cvm.v20170312 import cvm_client, models as cvm
from tencentcloud.ssl.v20191205 import ssl_client, models as ssl
from tencentcloud.sts.v20180813 import models as sts, sts_client
from tencentcloud.tag.v20180813 import models as tag, tag_client
from tencentcloud.vpc.v20170312 import models as vpc, vpc_client

import cloud
from cloud import expect
from exchanges import PEM, nested
from schema import documented

#: Services, with their clients and the actions that the server performs.
SERVICES = {
    "cam": (cam_client.CamClient, cam, ["GetUserAppId"]),
    "cvm": (cvm_client.CvmClient, cvm, ["DescribeInstances", "DescribeRegions", "DescribeZones"]),
    "ssl": (
        ssl_client.SslClient,
        ssl,
        ["UploadCertificate", "DescribeCertificates", "DescribeCertificateDetail",
         "DeleteCertificate"],
    ),
    "sts": (sts_client.StsClient, sts, ["GetCallerIdentity"]),
    "tag": (
        tag_client.TagClient,
        tag,
        ["TagResources", "GetResources", "UnTagResources", "DescribeResourceTags",
         "DescribeResourceTagsByResourceIds"],
    ),
    "vpc": (
        vpc_client.VpcClient,
        vpc,
        ["DescribeAddresses", "DescribeSecurityGroupPolicies", "DescribeSecurityGroups",
         "DescribeSubnets", "DescribeVpcs"],
    ),
}
#: How many documented exchanges these actions have.
REPLAYED = 35
#: Numbers that are documented as texts, which the types forbid.
NUMBERS = {"DescribeCertificates": ["Offset", "Limit"], "UploadCertificate": ["ProjectId"]}


def call(service, action, method="POST", **members):
    kind, models, _ = SERVICES[service]
    request = getattr(models, f"{action}Request")()
    request._deserialize(members)
    return getattr(cloud.client(kind, method), action)(request)


def load_balancer():
    request = clb.CreateLoadBalancerRequest()
    request.LoadBalancerType = "OPEN"
    client = cloud.client(clb_client.ClbClient)
    lb = client.CreateLoadBalancer(request).LoadBalancerIds[0]
    uin = call("cam", "GetUserAppId").OwnerUin
    return f"qcs::clb:{cloud.REGION}:uin/{uin}:clb/{lb}"


def certificate():
    uploaded = call(
        "ssl", "UploadCertificate", CertificatePublicKey=PEM.format("CERTIFICATE"),
        CertificatePrivateKey=PEM.format("PRIVATE KEY"),
    )
    return uploaded.CertificateId


def replaced(service, action, given):
    result = dict(given)
    if "ResourceList" in given:
        result["ResourceList"] = [load_balancer()]
    if "CertificateId" in given:
        result["CertificateId"] = certificate()
    # An open inventory has no address; ids of others are what was asked for.
    if action == "DescribeAddresses":
        result.pop("AddressIds", None)
    for name in NUMBERS.get(action, []):
        if name in given:
            result[name] = int(given[name])
    return result


def main():
    count = 0
    for service, (_, models, actions) in SERVICES.items():
        version = models.__name__.split(".")[-2]
        for action, method, given, _ in documented(service, version):
            if action in actions:
                given = nested(given) if method == "GET" else given
                call(service, action, method, **replaced(service, action, given))
                count += 1
    expect(count, REPLAYED, "replayed")
    cloud.ended(count)


main()
