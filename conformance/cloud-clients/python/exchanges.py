"""Replays the documented exchanges whose actions the server performs: with the documented
parameters, but for ids and addresses, which are replaced by those of objects made before, and for
what the documentation itself masked. Each goes through the SDK's typed client."""

import collections
import itertools
import json

from tencentcloud.clb.v20180317 import clb_client, models
from tencentcloud.cvm.v20170312 import cvm_client, models as cvm
from tencentcloud.ssl.v20191205 import ssl_client, models as ssl

import cloud
from cloud import code_of, expect, until_done
from schema import documented

#: How many documented exchanges the server performs.
REPLAYED = 73
#: The documented text of PEM lost its spaces and line ends.
PEM = "-----BEGIN {0}-----\nMII=\n-----END {0}-----\n"
NUMBERS = itertools.count(1)


class World:
    """A load balancer with listeners, rules and targets as the exchanges take them for granted."""

    def __init__(self):
        self.client = cloud.client(clb_client.ClbClient)
        self.certificates = [self.certificate(), self.certificate()]
        self.lb = self.load_balancer()
        self.tcp, self.second_tcp = self.write(
            "CreateListener", LoadBalancerId=self.lb, Ports=[333, 334], Protocol="TCP"
        ).ListenerIds
        self.http = self.listener("HTTP", 80)
        of_mode = {"SSLMode": "UNIDIRECTIONAL", "CertId": self.certificates[0]}
        self.https = self.listener("HTTPS", 443, Certificate=of_mode)
        self.rules = self.rules_of(self.http, ["/bar2", "/bar8", "/bar9"])
        self.secure_rules = self.rules_of(self.https, ["/", "/b"])
        client = cloud.client(cvm_client.CvmClient)
        request = cvm.DescribeInstancesRequest()
        request._deserialize(
            {"Filters": [{"Name": "private-ip-address", "Values": ["10.0.0.9"]}]}
        )
        self.instance = client.DescribeInstances(request).InstanceSet[0].InstanceId
        config = self.write(
            "SetCustomizedConfigForLoadBalancer", OperationType="ADD",
            ConfigContent="client_max_body_size 1M;", ConfigName=f"config{next(NUMBERS)}",
        )
        self.config, self.last_task = config.ConfigId, config.RequestId

    def certificate(self):
        client = cloud.client(ssl_client.SslClient)
        request = ssl.UploadCertificateRequest()
        request.CertificatePublicKey = PEM.format("CERTIFICATE")
        request.CertificatePrivateKey = PEM.format("PRIVATE KEY")
        return client.UploadCertificate(request).CertificateId

    def call(self, action, client=None, **members):
        request = getattr(models, f"{action}Request")()
        request._deserialize(members)
        return getattr(client or self.client, action)(request)

    def write(self, action, **members):
        return until_done(self.client, models, self.call(action, **members))

    def load_balancer(self):
        return self.write("CreateLoadBalancer", LoadBalancerType="OPEN").LoadBalancerIds[0]

    def listener(self, protocol, port, **more):
        more.update(LoadBalancerId=self.lb, Ports=[port], Protocol=protocol)
        return self.write("CreateListener", **more).ListenerIds[0]

    def rules_of(self, listener, urls):
        rules = [{"Domain": "foo.net", "Url": url} for url in urls]
        made = self.write(
            "CreateRule", LoadBalancerId=self.lb, ListenerId=listener, Rules=rules
        )
        return made.LocationIds

    def register(self, port, listener, location=None, **target):
        target = target or {"InstanceId": self.instance}
        at = {"LoadBalancerId": self.lb, "ListenerId": listener, "LocationId": location}
        self.write("RegisterTargets", Targets=[{"Port": port, **target}], **at)

    def rewrite(self, sources, target):
        self.write(
            "ManualRewrite", LoadBalancerId=self.lb, SourceListenerId=self.http,
            TargetListenerId=self.https,
            RewriteInfos=[{"SourceLocationId": source, "TargetLocationId": target}
                          for source in sources],
        )


def nested(flat):
    """Parameters of a GET as objects and lists. Their values stay texts."""
    tree = {}
    for name, value in flat.items():
        *path, last = name.split(".")
        node = tree
        for part in path:
            node = node.setdefault(part, {})
        node[last] = value

    def lists(node):
        if not isinstance(node, dict):
            return node
        if node and all(part.isdigit() for part in node):
            return [lists(node[str(index)]) for index in range(len(node))]
        return {name: lists(value) for name, value in node.items()}

    return lists(tree)


def replaced(world, action, given):
    """The parameters with ids of objects that are there."""
    result = dict(given)

    def put(name, value):
        if name in given:
            result[name] = value

    put("LoadBalancerId", world.lb)
    more = given.get("LoadBalancerIds", [])[1:]
    put("LoadBalancerIds", [world.lb, *(world.load_balancer() for _ in more)])
    put("ListenerId", world.tcp)
    count = len(given.get("ListenerIds", []))
    put("ListenerIds", [world.tcp, world.second_tcp][:count])
    put("UconfigId", world.config)
    put("TaskId", world.last_task)
    prepare = PREPARED[action]
    if prepare:
        prepare(world, given, result)
    return result


def with_target(world, given, result):
    """One target of a listener or of a rule, registered first unless that is what is asked."""
    is_of_rule = "LocationId" in given or "Domain" in given
    listener = world.http if is_of_rule else world.tcp
    result["ListenerId"] = listener
    if "LocationId" in given:
        result["LocationId"] = world.rules[0]
    result["Targets"] = [{**target, "InstanceId": world.instance} for target in given["Targets"]]


def with_registered_target(world, given, result):
    with_target(world, given, result)
    for target in given["Targets"]:
        world.register(int(target["Port"]), result["ListenerId"], result.get("LocationId"))


def batch(world, given, result):
    targets = [{**target, "ListenerId": world.tcp, "InstanceId": world.instance}
               for target in given["Targets"]]
    result["Targets"] = targets


def registered_batch(world, given, result):
    batch(world, given, result)
    for target in result["Targets"]:
        world.register(target["Port"], world.tcp)


def several(world, given, result):
    """Targets of several listeners and rules, which are registered first."""
    result["ModifyList"] = []
    for item, location in zip(given["ModifyList"], world.rules):
        listener = world.http if "LocationId" in item else world.tcp
        location = location if "LocationId" in item else None
        targets = [dict(target) for target in item["Targets"]]
        for target in targets:
            if "InstanceId" in target:
                target["InstanceId"] = world.instance
            named = {name: target[name] for name in ("InstanceId", "EniIp") if name in target}
            world.register(int(target["Port"]), listener, location, **named)
        changed = {**item, "ListenerId": listener, "Targets": targets}
        if location:
            changed["LocationId"] = location
        result["ModifyList"].append(changed)


def certificate(world, given, result):
    if "Certificate" not in given:
        return
    members = dict(given["Certificate"])
    if "CertId" in members:
        members["CertId"] = world.certificates[1]
    if "CertContent" in members:
        members["CertContent"] = PEM.format("CERTIFICATE")
        members["CertKey"] = PEM.format("RSA PRIVATE KEY")
    result["Certificate"] = members
    if "ListenerId" in given:
        result["ListenerId"] = world.https


def rule(world, given, result):
    result["ListenerId"] = world.http
    if "LocationId" in given:
        result["LocationId"] = world.rules[0]


def rewrite(world, given, result):
    result["SourceListenerId"] = world.http
    result["TargetListenerId"] = world.https
    sources = world.rules[: len(given["RewriteInfos"])]
    result["RewriteInfos"] = [
        {"SourceLocationId": source, "TargetLocationId": world.secure_rules[0]}
        for source in sources
    ]


def existing_rewrite(world, given, result):
    rewrite(world, given, result)
    infos = result["RewriteInfos"]
    world.rewrite([info["SourceLocationId"] for info in infos], world.secure_rules[0])


def described_rewrite(world, given, result):
    result["SourceListenerIds"] = [world.http]
    result["SourceLocationIds"] = [world.rules[0]]
    world.rewrite([world.rules[0]], world.secure_rules[0])


def auto_rewrite(world, given, result):
    rules = [{"Domain": domain, "Url": "/"} for domain in given["Domains"]]
    listener = world.https
    world.write("CreateRule", LoadBalancerId=world.lb, ListenerId=listener, Rules=rules)
    result["ListenerId"] = listener


def snat(world, given, result):
    result["SnatIps"] = [{**item, "SubnetId": "subnet-12345678"} for item in given["SnatIps"]]


def snat_of(world, given, result):
    items = [{"SubnetId": "subnet-12345678", "Ip": ip} for ip in given["Ips"]]
    world.write("CreateLoadBalancerSnatIps", LoadBalancerId=world.lb, SnatIps=items)


def masked(world, given, result):
    if "LoadBalancerVips" in given:
        found = world.call("DescribeLoadBalancers", LoadBalancerIds=[world.lb])
        result["LoadBalancerVips"] = found.LoadBalancerSet[0].LoadBalancerVips


def by_filter(world, given, result):
    if "Filters" in given:
        result["Filters"] = [{"Name": "location-id", "Values": [world.rules[0]]}]


def certificates(world, given, result):
    result["CertIds"] = [world.certificates[0]]


def replacement(world, given, result):
    result["OldCertificateId"] = world.certificates[0]
    result["Certificate"] = {"CertId": world.certificates[1]}


def own_name(world, given, result):
    result["ConfigName"] = f"{given['ConfigName']}{next(NUMBERS)}"


#: The actions that the server performs, and what prepares their requests beyond `replaced`.
PREPARED = {
    "AutoRewrite": auto_rewrite,
    "BatchDeregisterTargets": registered_batch,
    "BatchModifyTargetTag": several,
    "BatchModifyTargetWeight": several,
    "BatchRegisterTargets": batch,
    "CreateListener": certificate,
    "CreateLoadBalancer": None,
    "CreateLoadBalancerSnatIps": snat,
    "CreateRule": rule,
    "DeleteListener": None,
    "DeleteLoadBalancer": None,
    "DeleteLoadBalancerListeners": None,
    "DeleteLoadBalancerSnatIps": snat_of,
    "DeleteRewrite": existing_rewrite,
    "DeleteRule": rule,
    "DeregisterTargets": with_registered_target,
    "DescribeClusterResources": None,
    "DescribeCrossTargets": None,
    "DescribeCustomizedConfigAssociateList": None,
    "DescribeCustomizedConfigList": None,
    "DescribeExclusiveClusters": None,
    "DescribeLBListeners": None,
    "DescribeLBOperateProtect": None,
    "DescribeListeners": None,
    "DescribeLoadBalancerListByCertId": certificates,
    "DescribeLoadBalancers": masked,
    "DescribeLoadBalancersDetail": None,
    "DescribeQuota": None,
    "DescribeResources": None,
    "DescribeRewrite": described_rewrite,
    "DescribeTargetGroupList": None,
    "DescribeTargetGroups": None,
    "DescribeTargetHealth": None,
    "DescribeTargets": by_filter,
    "DescribeTaskStatus": None,
    "ManualRewrite": rewrite,
    "ModifyDomain": rule,
    "ModifyDomainAttributes": rule,
    "ModifyListener": certificate,
    "ModifyLoadBalancerAttributes": None,
    "ModifyLoadBalancersProject": None,
    "ModifyRule": rule,
    "ModifyTargetPort": with_registered_target,
    "ModifyTargetWeight": with_registered_target,
    "RegisterTargets": with_target,
    "ReplaceCertForLoadBalancers": replacement,
    "SetCustomizedConfigForLoadBalancer": own_name,
    "SetLoadBalancerSecurityGroups": None,
    "SetLoadBalancerStartStatus": None,
    "SetSecurityGroupForLoadbalancers": None,
}


def members_missing(answer, expected, path=""):
    """Members of a documented answer that the server's lacks. Lists are compared by their first
    items, where both have one."""
    if isinstance(expected, dict) and isinstance(answer, dict):
        for name, value in expected.items():
            if name not in answer:
                yield f"{path}{name}"
            else:
                yield from members_missing(answer[name], value, f"{path}{name}.")
    elif isinstance(expected, list) and isinstance(answer, list) and expected and answer:
        yield from members_missing(answer[0], expected[0], path)


def replay(action, method, given, expected):
    """Sends a documented request, and returns which documented members its answer lacks."""
    world = World()
    parameters = replaced(world, action, nested(given) if method == "GET" else given)
    client = cloud.client(clb_client.ClbClient, method)
    call, bodies = client.call, []

    def keep(*words, **named):
        bodies.append(call(*words, **named))
        return bodies[-1]

    client.call = keep
    answer = world.call(action, client, **parameters)
    if not action.startswith("Describe"):
        until_done(world.client, models, answer)
    return list(members_missing(json.loads(bodies[0])["Response"], expected))


def main():
    replayed, faults = collections.Counter(), []
    for action, method, given, expected in documented():
        if action not in PREPARED:
            client = cloud.client(clb_client.ClbClient, method)
            code = code_of(client.call_json, action, given)
            # Two documented requests lack what they need.
            assert code in ("UnsupportedOperation", "MissingParameter"), (action, code)
            continue
        replayed[action] += 1
        try:
            missing = replay(action, method, given, expected)
        except cloud.TencentCloudSDKException as error:
            missing = error
        if missing:
            faults.append(f"{action} {method} {given}: {missing}")
    for fault in faults:
        print(fault)
    assert not faults
    expect((sum(replayed.values()), len(replayed)), (REPLAYED, len(PREPARED)), "replayed")
    cloud.ended(REPLAYED)


if __name__ == "__main__":
    main()
