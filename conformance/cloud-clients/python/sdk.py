"""The Python SDK: the life of a load balancer, with POST, GET and unsigned payloads; then
requests that have to fail, each with its documented code."""

import time

from tencentcloud.cam.v20190116 import cam_client, models as cam
from tencentcloud.clb.v20180317 import clb_client, models as clb
from tencentcloud.cvm.v20170312 import cvm_client, models as cvm
from tencentcloud.ssl.v20191205 import ssl_client, models as ssl
from tencentcloud.tag.v20180813 import models as tag, tag_client
from tencentcloud.vpc.v20170312 import models as vpc, vpc_client

import cloud
from cloud import code_of, expect, until_done

PEM = "-----BEGIN {0}-----\nMII=\n-----END {0}-----\n"
HTTP, HTTPS, TCP = "HTTP", "HTTPS", "TCP"


def request(kind, **members):
    made = kind()
    made._deserialize(members)
    return made


class Life:
    """A load balancer from its creation to its deletion, through one client."""

    def __init__(self, name, client, neighbours):
        self.name = name
        self.client = client
        self.neighbours = neighbours
        self.steps = 0

    def call(self, action, **members):
        self.steps += 1
        return getattr(self.client, action)(request(getattr(clb, f"{action}Request"), **members))

    def write(self, action, **members):
        return until_done(self.client, clb, self.call(action, **members))

    def of(self, service, action, **members):
        self.steps += 1
        client, models = self.neighbours[service]
        return getattr(client, action)(request(getattr(models, f"{action}Request"), **members))

    def create(self):
        token = f"token-{self.name}"
        members = dict(LoadBalancerType="OPEN", LoadBalancerName=self.name, ClientToken=token)
        members["Tags"] = [{"TagKey": "owner", "TagValue": self.name}]
        self.lb = self.write("CreateLoadBalancer", **members).LoadBalancerIds[0]
        again = self.write("CreateLoadBalancer", **members).LoadBalancerIds
        expect(again, [self.lb], "the same client token")
        name = f"负载 均衡&= {self.name}"
        self.write("ModifyLoadBalancerAttributes", LoadBalancerId=self.lb, LoadBalancerName=name)
        found = self.call("DescribeLoadBalancers", LoadBalancerIds=[self.lb])
        expect(found.LoadBalancerSet[0].LoadBalancerName, name, "a name that has to be escaped")
        expect((found.TotalCount, found.LoadBalancerSet[0].Status), (1, 1), "running")
        expect(len(found.LoadBalancerSet[0].LoadBalancerVips), 1, "addresses")
        filters = [{"Name": "tag:owner", "Values": [self.name]}]
        expect(self.call("DescribeLoadBalancers", Filters=filters).TotalCount, 1, "by tag")

    def listen(self):
        check = {"HealthSwitch": 1, "IntervalTime": 5, "TimeOut": 2, "SourceIpType": 1}
        made = self.write(
            "CreateListener", LoadBalancerId=self.lb, Ports=[8080, 8081], Protocol=TCP,
            ListenerNames=["a", "b"], HealthCheck=check, SnatEnable=True,
        )
        self.tcp, second = made.ListenerIds
        made = self.write(
            "CreateListener", LoadBalancerId=self.lb, Ports=[80], Protocol=HTTP, KeepaliveEnable=1
        )
        self.http = made.ListenerIds[0]
        certificate = self.of(
            "ssl", "UploadCertificate", CertificatePublicKey=PEM.format("CERTIFICATE"),
            CertificatePrivateKey=PEM.format("PRIVATE KEY"), Alias=self.name,
        )
        of_mode = {"SSLMode": "UNIDIRECTIONAL", "CertId": certificate.CertificateId}
        made = self.write(
            "CreateListener", LoadBalancerId=self.lb, Ports=[443], Protocol=HTTPS,
            Certificate=of_mode,
        )
        self.https = made.ListenerIds[0]
        self.write("ModifyListener", LoadBalancerId=self.lb, ListenerId=self.http,
                   ListenerName="web", KeepaliveEnable=0)
        listeners = self.call("DescribeListeners", LoadBalancerId=self.lb)
        expect(listeners.TotalCount, 4, "listeners")
        by_id = {listener.ListenerId: listener for listener in listeners.Listeners}
        expect(by_id[self.tcp].ListenerName, "a", "names in the order of the ports")
        expect(by_id[self.tcp].HealthCheck.SourceIpType, 1, "where probes come from")
        assert "SnatEnable" in by_id[self.tcp].AttrFlags, by_id[self.tcp].AttrFlags
        expect(by_id[self.http].KeepaliveEnable, 0, "keepalive")
        expect(by_id[self.https].Certificate.CertId, certificate.CertificateId, "certificate")
        self.write("DeleteListener", LoadBalancerId=self.lb, ListenerId=second)
        self.certificate = certificate.CertificateId

    def rule(self):
        rules = [
            {"Domain": "a.example", "Url": "/", "HealthCheck": {"HealthSwitch": 0}},
            {"Domain": "a.example", "Url": "/api", "Scheduler": "LEAST_CONN"},
        ]
        made = self.write(
            "CreateRule", LoadBalancerId=self.lb, ListenerId=self.http, Rules=rules
        )
        self.location, self.api = made.LocationIds
        self.write(
            "ModifyRule", LoadBalancerId=self.lb, ListenerId=self.http, LocationId=self.api,
            Url="/v1", SessionExpireTime=60,
        )
        found = self.call("DescribeListeners", LoadBalancerId=self.lb, ListenerIds=[self.http])
        urls = [rule.Url for rule in found.Listeners[0].Rules]
        expect(sorted(urls), ["/", "/v1"], "paths")

    def register(self):
        filters = [{"Name": "private-ip-address", "Values": ["10.0.0.9"]}]
        instances = self.of("cvm", "DescribeInstances", Filters=filters)
        instance = instances.InstanceSet[0].InstanceId
        targets = [{"InstanceId": instance, "Port": 30080, "Weight": 5}]
        at = dict(LoadBalancerId=self.lb, ListenerId=self.http, LocationId=self.location)
        self.write("RegisterTargets", Targets=targets, **at)
        batch = [{"ListenerId": self.tcp, "EniIp": "10.0.0.9", "Port": 80, "Weight": 0}]
        batch += [{"ListenerId": self.tcp, "EniIp": "10.0.0.8", "Port": 80}]
        answer = self.write("BatchRegisterTargets", LoadBalancerId=self.lb, Targets=batch)
        expect(answer.FailListenerIdSet, [], "all are registered")
        self.write("ModifyTargetWeight", Targets=targets, Weight=7, **at)
        found = self.call("DescribeTargets", LoadBalancerId=self.lb)
        by_id = {listener.ListenerId: listener for listener in found.Listeners}
        rules = {rule.LocationId: rule for rule in by_id[self.http].Rules}
        backend = rules[self.location].Targets[0]
        expect((backend.InstanceId, backend.PrivateIpAddresses), (instance, ["10.0.0.9"]), "CVM")
        expect(backend.Weight, 5, "a target's own weight wins")
        weights = sorted(target.Weight for target in by_id[self.tcp].Targets)
        expect(weights, [0, 10], "weights")

    def health(self):
        found = self.call("DescribeTargetHealth", LoadBalancerIds=[self.lb])
        listeners = {found.ListenerId: found for found in found.LoadBalancers[0].Listeners}
        target = listeners[self.tcp].Rules[0].Targets[0]
        expect(target.HealthStatusDetail, target.HealthStatusDetial, "both spellings")
        assert target.HealthStatusDetail is not None
        expect(listeners[self.tcp].Rules[0].Domain, None, "a listener of layer 4 has no domain")

    def others(self):
        self.write(
            "SetLoadBalancerSecurityGroups", LoadBalancerId=self.lb, SecurityGroups=["sg-1"]
        )
        uin = self.of("cam", "GetUserAppId").OwnerUin
        resource = f"qcs::clb:{cloud.REGION}:uin/{uin}:clb/{self.lb}"
        self.of("tag", "TagResources", ResourceList=[resource],
                Tags=[{"TagKey": "tier", "TagValue": "1"}])
        tags = self.of("tag", "GetResources", TagFilters=[{"TagKey": "tier"}])
        expect(tags.ResourceTagMappingList[0].Resource, resource, "by tag")
        assert self.call("DescribeQuota").QuotaSet
        subnets = self.of("vpc", "DescribeSubnets", SubnetIds=["subnet-1a2b3c4d"])
        expect(subnets.TotalCount, 1, "subnets")
        self.write("ModifyLoadBalancerAttributes", LoadBalancerId=self.lb, DeleteProtect=True)

    def delete(self):
        ids = [self.lb]
        code = code_of(lambda: self.call("DeleteLoadBalancer", LoadBalancerIds=ids))
        assert code.startswith("FailedOperation"), code
        self.write("ModifyLoadBalancerAttributes", LoadBalancerId=self.lb, DeleteProtect=False)
        self.write("DeleteRule", LoadBalancerId=self.lb, ListenerId=self.http,
                   LocationIds=[self.api])
        self.write("DeleteLoadBalancerListeners", LoadBalancerId=self.lb)
        self.write("DeleteLoadBalancer", LoadBalancerIds=ids)
        expect(self.call("DescribeLoadBalancers", LoadBalancerIds=ids).TotalCount, 0, "gone")
        deleted = self.of("ssl", "DeleteCertificate", CertificateId=self.certificate)
        expect(deleted.DeleteResult, True, "certificate")

    def run(self):
        for step in (self.create, self.listen, self.rule, self.register, self.health, self.others,
                     self.delete):
            step()
        print(f"{self.name}: {self.steps} calls")
        return self.steps


def life(name, method, **profile):
    kinds = {
        "cam": (cam_client.CamClient, cam),
        "cvm": (cvm_client.CvmClient, cvm),
        "ssl": (ssl_client.SslClient, ssl),
        "tag": (tag_client.TagClient, tag),
        "vpc": (vpc_client.VpcClient, vpc),
    }
    neighbours = {
        service: (cloud.client(kind, method, **profile), models)
        for service, (kind, models) in kinds.items()
    }
    return Life(name, cloud.client(clb_client.ClbClient, method, **profile), neighbours).run()


def failures():
    """Requests as no typed client writes them."""
    client = cloud.client(clb_client.ClbClient)
    create = {"LoadBalancerType": "OPEN"}
    lb = client.call_json("CreateLoadBalancer", create)["Response"]["LoadBalancerIds"][0]
    listener = {"LoadBalancerId": lb, "Protocol": "TCP", "Ports": [80]}
    cases = [
        # Wrong types.
        ("CreateListener", {**listener, "Ports": 80}, "InvalidParameter"),
        ("CreateListener", {**listener, "Ports": ["80"]}, "InvalidParameter"),
        ("CreateListener", {**listener, "Protocol": 6}, "InvalidParameter"),
        ("CreateListener", {**listener, "SnatEnable": "true"}, "InvalidParameter"),
        ("CreateListener", {**listener, "HealthCheck": []}, "InvalidParameter"),
        ("CreateListener", {**listener, "Ports": [80.5]}, "InvalidParameter"),
        # Members that are not there, or that are missing.
        ("CreateListener", {**listener, "Keepalive": 1}, "UnknownParameter"),
        ("CreateListener", {**listener, "HealthCheck": {"Switch": 1}}, "UnknownParameter"),
        ("CreateListener", {"LoadBalancerId": lb, "Protocol": "TCP"}, "MissingParameter"),
        ("CreateLoadBalancer", {}, "MissingParameter"),
        # Ranges.
        ("CreateListener", {**listener, "Ports": [0]}, "InvalidParameterValue"),
        ("CreateListener", {**listener, "Ports": [65536]}, "InvalidParameterValue"),
        ("CreateListener", {**listener, "Protocol": "SCTP"}, "InvalidParameterValue"),
        # Ids that are not there.
        ("DescribeListeners", {"LoadBalancerId": "lb-absent00"}, "InvalidParameter.LBIdNotFound"),
        ("DeleteLoadBalancer", {"LoadBalancerIds": ["lb-absent00"]},
         "InvalidParameter.LBIdNotFound"),
        ("ModifyListener", {"LoadBalancerId": lb, "ListenerId": "lbl-absent0", "ListenerName": "a"},
         "InvalidParameter"),
        ("DescribeTaskStatus", {"TaskId": "absent"}, "InvalidParameter"),
        ("CreateListeners", {}, "InvalidAction"),
    ]
    until_idle(client, lb)
    long = {"LoadBalancerName": "x" * 40_000}
    code = code_of(
        cloud.client(clb_client.ClbClient, "GET").call_json, "DescribeLoadBalancers", long
    )
    expect(code, "RequestSizeLimitExceeded", "a query string of more than 32 KiB")
    for action, parameters, code in cases:
        expect(code_of(client.call_json, action, parameters), code, f"{action} {parameters}")
    # A load balancer is busy until its task is done, and clients are told so.
    client.call_json("CreateListener", listener)
    code = code_of(client.call_json, "CreateListener", {**listener, "Ports": [81]})
    expect(code, "FailedOperation.ResourceInOperating", "a write beside another")
    until_idle(client, lb)
    client.call_json("DeleteLoadBalancer", {"LoadBalancerIds": [lb]})
    return len(cases) + 2


def until_idle(client, lb):
    """Waits for all tasks of a load balancer: a write without effect passes once they are done."""
    rename = {"LoadBalancerId": lb, "LoadBalancerName": lb}
    while True:
        try:
            answer = client.call_json("ModifyLoadBalancerAttributes", rename)["Response"]
            task = {"TaskId": answer["RequestId"]}
            while client.call_json("DescribeTaskStatus", task)["Response"]["Status"] == 2:
                time.sleep(0.01)
            return
        except cloud.TencentCloudSDKException as error:
            expect(error.get_code(), "FailedOperation.ResourceInOperating", "until it is idle")
            time.sleep(0.01)


def strangers():
    """Requests that the server must not answer."""
    def call(**more):
        return code_of(cloud.client(clb_client.ClbClient, **more).call_json, "DescribeQuota", {})

    expect(call(key="other"), "AuthFailure.SignatureFailure", "another key")
    expect(call(method="GET", key="other"), "AuthFailure.SignatureFailure", "another key")
    for signature in ("HmacSHA1", "HmacSHA256"):
        code = call(signature=signature)
        expect(code, "AuthFailure.InvalidAuthorization", "an older form of signatures")
    expect(call(token="temporary"), "AuthFailure.TokenFailure", "a temporary key")
    expect(call(region="nowhere"), "UnsupportedRegion", "no region")
    expect(call(id="absent"), "AuthFailure.SecretIdNotFound", "no such id")

    class OtherVersion(clb_client.ClbClient):
        _apiVersion = "2017-03-12"

    code = code_of(cloud.client(OtherVersion).call_json, "DescribeQuota", {})
    expect(code, "NoSuchVersion", "another version")

    # The SDK takes the time from this function of its module.
    real = time.time
    for seconds in (310, -310):
        time.time = lambda: real() + seconds
        try:
            expect(call(), "AuthFailure.SignatureExpire", f"a clock that is off by {seconds} s")
        finally:
            time.time = real
    return 10


steps = life("post", "POST") + life("get", "GET") + life("unsigned", "POST", is_payload_signed=False)
cloud.ended(steps + failures() + strangers())
