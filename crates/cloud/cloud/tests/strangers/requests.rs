//! A request of each action that its owner may make, and the objects that they are about.

mod neighbours;

use serde_json::{Value, json};

use crate::cloud::{REGION, Served, Signer, failed};

/// A request that the owner's account allows.
pub(crate) struct OwnersRequest {
    pub(crate) service: &'static str,
    pub(crate) action: &'static str,
    pub(crate) parameters: Value,
    /// A text that the owner sees in the answer.
    pub(crate) sees: Option<&'static str>,
    /// Whether the request names nothing that only the owner has, so that it may succeed, with
    /// its own account, for another.
    pub(crate) may_succeed_elsewhere: bool,
}

/// What the owner has made. Every name of it begins with `secret-`.
pub(crate) struct Made {
    load_balancer: String,
    spare: String,
    task: String,
    certificate: String,
    /// One that no listener uses.
    spare_certificate: String,
    /// The number of a deployment of it.
    record: String,
    /// The first load balancer's name among the resources of all services.
    resource: String,
    config: String,
    snat_address: String,
    tcp: String,
    http: String,
    https: String,
    /// The rules of the listener `http`.
    rules: Vec<String>,
}

impl Made {
    pub(crate) fn new(served: &Served) -> Self {
        let ok = |request: OwnersRequest| {
            let answer = served.send(Signer::Owner, &request);
            assert_eq!(failed(&answer), None, "{}: {answer}", request.action);
            answer
        };
        let send = |action, parameters| ok(request(action, parameters));
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let balancer = |name: &str| {
            let parameters = json!({
                "LoadBalancerType": "OPEN", "LoadBalancerName": name,
                "Tags": [{ "TagKey": "secret-key", "TagValue": "secret-value" }],
            });
            send("CreateLoadBalancer", parameters)
        };
        let created = balancer("secret-balancer");
        let load_balancer = text(&created["LoadBalancerIds"][0]);
        let spare = text(&balancer("secret-spare")["LoadBalancerIds"][0]);
        let listener = |protocol: &str, port: u16, more: Value| {
            let mut parameters = more;
            parameters["LoadBalancerId"] = json!(load_balancer);
            parameters["ListenerNames"] = json!([format!("secret-{port}")]);
            parameters["Protocol"] = json!(protocol);
            parameters["Ports"] = json!([port]);
            text(&send("CreateListener", parameters)["ListenerIds"][0])
        };
        let tcp = listener("TCP", 5432, json!({}));
        let http = listener("HTTP", 8080, json!({}));
        let https = listener("HTTPS", 443, json!({ "Certificate": upload() }));
        let rule = |listener: &str, rules: Value| {
            let parameters =
                json!({ "LoadBalancerId": load_balancer, "ListenerId": listener, "Rules": rules });
            let made = send("CreateRule", parameters);
            made["LocationIds"].as_array().unwrap().iter().map(text).collect::<Vec<String>>()
        };
        let domains = ["a", "b", "c", "d"]
            .map(|domain| json!({ "Domain": format!("secret-{domain}.test"), "Url": "/" }));
        let rules = rule(&http, json!(domains));
        rule(&https, json!([{ "Domain": "secret-s.test", "Url": "/" }]));
        send(
            "RegisterTargets",
            json!({ "LoadBalancerId": load_balancer, "ListenerId": tcp, "Targets": [target()] }),
        );
        send(
            "ManualRewrite",
            json!({
                "LoadBalancerId": load_balancer, "SourceListenerId": http,
                "TargetListenerId": http,
                "RewriteInfos": [{ "SourceLocationId": rules[0], "TargetLocationId": rules[1] }],
            }),
        );
        send(
            "CreateLoadBalancerSnatIps",
            json!({ "LoadBalancerId": load_balancer, "SnatIps": [{ "SubnetId": "subnet-aaaaaaaa" }] }),
        );
        let config = send(
            "SetCustomizedConfigForLoadBalancer",
            json!({
                "OperationType": "ADD", "ConfigName": "secret-config",
                "ConfigContent": "client_max_body_size 1m;",
            }),
        );
        let spare_certificate = text(&ok(neighbours_upload("secret-spare"))["CertificateId"]);
        // The listener keeps its certificate: a deployment changes one that is deleted again.
        let deployed = listener("HTTPS", 444, json!({ "Certificate": upload() }));
        let record = ok(neighbour(
            "ssl",
            "DeployCertificateInstance",
            json!({
                "CertificateId": spare_certificate,
                "InstanceIdList": [format!("{load_balancer}|{deployed}")],
            }),
        ));
        let record = record["DeployRecordId"].to_string();
        send("DeleteListener", json!({ "LoadBalancerId": load_balancer, "ListenerId": deployed }));
        let user = text(&ok(neighbour("cam", "GetUserAppId", json!({})))["OwnerUin"]);
        let described =
            send("DescribeLoadBalancers", json!({ "LoadBalancerIds": [load_balancer] }));
        let listeners = send("DescribeListeners", json!({ "LoadBalancerId": load_balancer }));
        let listeners = listeners["Listeners"].as_array().unwrap().clone();
        let with_certificate = listeners.iter().find(|found| found["ListenerId"] == *https);
        Self {
            task: text(&created["RequestId"]),
            spare_certificate,
            record,
            resource: format!("qcs::clb:{REGION}:uin/{user}:clb/{load_balancer}"),
            certificate: text(&with_certificate.unwrap()["Certificate"]["CertId"]),
            config: text(&config["ConfigId"]),
            snat_address: text(&described["LoadBalancerSet"][0]["SnatIps"][0]["Ip"]),
            load_balancer,
            spare,
            tcp,
            http,
            https,
            rules,
        }
    }

    /// Parameters for the first load balancer.
    fn of_balancer(&self, more: Value) -> Value {
        let mut parameters = more;
        parameters["LoadBalancerId"] = json!(self.load_balancer);
        parameters
    }

    /// Parameters for one of its listeners.
    fn of(&self, listener: &str, more: Value) -> Value {
        let mut parameters = self.of_balancer(more);
        parameters["ListenerId"] = json!(listener);
        parameters
    }
}

fn target() -> Value {
    json!({ "EniIp": "10.0.0.9", "Port": 5432 })
}

fn upload() -> Value {
    json!({
        "CertName": "secret-certificate",
        "CertContent": "-----BEGIN CERTIFICATE-----\nMII=\n-----END CERTIFICATE-----\n",
        "CertKey": "-----BEGIN PRIVATE KEY-----\nMII=\n-----END PRIVATE KEY-----\n",
    })
}

/// A request of the service `clb`.
pub(crate) fn request(action: &'static str, parameters: Value) -> OwnersRequest {
    neighbour("clb", action, parameters)
}

/// A request of any service.
fn neighbour(service: &'static str, action: &'static str, parameters: Value) -> OwnersRequest {
    OwnersRequest { service, action, parameters, sees: None, may_succeed_elsewhere: false }
}

/// The upload of a certificate whose content and name are this text.
fn neighbours_upload(content: &str) -> OwnersRequest {
    let pem = |label: &str| format!("-----BEGIN {label}-----\n{content}\n-----END {label}-----\n");
    let parameters = json!({
        "CertificatePublicKey": pem("CERTIFICATE"), "CertificatePrivateKey": pem("PRIVATE KEY"),
        "Alias": content,
    });
    neighbour("ssl", "UploadCertificate", parameters)
}

impl OwnersRequest {
    fn sees(mut self, part: &'static str) -> Self {
        self.sees = Some(part);
        self
    }

    fn may_succeed_elsewhere(mut self) -> Self {
        self.may_succeed_elsewhere = true;
        self
    }
}

/// One request or more of every action.
pub(crate) fn owners_requests(made: &Made) -> Vec<OwnersRequest> {
    let mut requests = writes_of_balancers(made);
    requests.extend(writes_of_listeners(made));
    requests.extend(writes_of_targets(made));
    requests.extend(reads(made));
    requests.extend(neighbours::requests(made));
    requests
}

fn writes_of_balancers(made: &Made) -> Vec<OwnersRequest> {
    let (balancer, config) = (&made.load_balancer, &made.config);
    let upload_by_id = json!({ "CertName": "secret-new", "CertContent": upload()["CertContent"],
        "CertKey": upload()["CertKey"] });
    vec![
        request("CreateLoadBalancer", json!({ "LoadBalancerType": "OPEN" }))
            .may_succeed_elsewhere(),
        request("DeleteLoadBalancer", json!({ "LoadBalancerIds": [made.spare] })),
        request("ModifyLoadBalancerAttributes", made.of_balancer(json!({ "DeleteProtect": true }))),
        request(
            "ModifyLoadBalancersProject",
            json!({ "LoadBalancerIds": [made.load_balancer], "ProjectId": 7 }),
        ),
        request(
            "SetLoadBalancerSecurityGroups",
            made.of_balancer(json!({ "SecurityGroups": ["sg-aaaaaaaa"] })),
        ),
        request(
            "SetSecurityGroupForLoadbalancers",
            json!({
                "SecurityGroup": "sg-bbbbbbbb", "OperationType": "ADD", "LoadBalancerIds": [balancer],
            }),
        ),
        request("SetLoadBalancerStartStatus", made.of_balancer(json!({ "OperationType": "Stop" }))),
        request(
            "CreateLoadBalancerSnatIps",
            made.of_balancer(json!({ "SnatIps": [{ "SubnetId": "subnet-aaaaaaaa" }] })),
        ),
        request(
            "DeleteLoadBalancerSnatIps",
            made.of_balancer(json!({ "Ips": [made.snat_address] })),
        ),
        request(
            "SetCustomizedConfigForLoadBalancer",
            json!({ "OperationType": "BIND", "UconfigId": config, "LoadBalancerIds": [balancer] }),
        ),
        request(
            "SetCustomizedConfigForLoadBalancer",
            json!({ "OperationType": "DELETE", "UconfigId": config }),
        ),
        request(
            "ReplaceCertForLoadBalancers",
            json!({ "OldCertificateId": made.certificate, "Certificate": upload_by_id }),
        ),
    ]
}

fn writes_of_listeners(made: &Made) -> Vec<OwnersRequest> {
    let of_http = |more| made.of(&made.http, more);
    let redirect = |from: usize, to: usize| {
        made.of_balancer(json!({
            "SourceListenerId": made.http, "TargetListenerId": made.http,
            "RewriteInfos": [{
                "SourceLocationId": made.rules[from], "TargetLocationId": made.rules[to],
            }],
        }))
    };
    vec![
        request("CreateListener", made.of_balancer(json!({ "Protocol": "UDP", "Ports": [53] }))),
        request("ModifyListener", made.of(&made.tcp, json!({ "ListenerName": "renamed" }))),
        request("DeleteListener", made.of(&made.tcp, json!({}))),
        request(
            "DeleteLoadBalancerListeners",
            made.of_balancer(json!({ "ListenerIds": [made.tcp] })),
        ),
        request("CreateRule", of_http(json!({ "Rules": [{ "Domain": "n.test", "Url": "/" }] }))),
        request("ModifyRule", of_http(json!({ "LocationId": made.rules[3], "Url": "/moved" }))),
        request("DeleteRule", of_http(json!({ "LocationIds": [made.rules[3]] }))),
        request(
            "ModifyDomain",
            of_http(json!({ "Domain": "secret-d.test", "NewDomain": "n.test" })),
        ),
        request(
            "ModifyDomainAttributes",
            of_http(json!({ "Domain": "secret-d.test", "DefaultServer": true })),
        ),
        request("AutoRewrite", made.of(&made.https, json!({ "Domains": ["secret-s.test"] }))),
        request("ManualRewrite", redirect(2, 3)),
        request("DeleteRewrite", redirect(0, 1)),
    ]
}

fn writes_of_targets(made: &Made) -> Vec<OwnersRequest> {
    let of_tcp = |more| made.of(&made.tcp, more);
    let in_batch = |port: u16| {
        let mut target = target();
        target["ListenerId"] = json!(made.tcp);
        target["Port"] = json!(port);
        target
    };
    let list = |name: &str, value: Value| {
        let mut change = json!({ "ListenerId": made.tcp, "Targets": [target()] });
        change[name] = value;
        made.of_balancer(json!({ "ModifyList": [change] }))
    };
    let other = json!({ "EniIp": "10.0.0.8", "Port": 5432 });
    vec![
        request("RegisterTargets", of_tcp(json!({ "Targets": [other] }))),
        request("DeregisterTargets", of_tcp(json!({ "Targets": [target()] }))),
        request("ModifyTargetPort", of_tcp(json!({ "Targets": [target()], "NewPort": 5433 }))),
        request("ModifyTargetWeight", of_tcp(json!({ "Targets": [target()], "Weight": 7 }))),
        request("BatchRegisterTargets", made.of_balancer(json!({ "Targets": [in_batch(5434)] })))
            .may_succeed_elsewhere(),
        request("BatchDeregisterTargets", made.of_balancer(json!({ "Targets": [in_batch(5432)] })))
            .may_succeed_elsewhere(),
        request("BatchModifyTargetWeight", list("Weight", json!(7))),
        request("BatchModifyTargetTag", list("Tag", json!("tag"))),
    ]
}

fn reads(made: &Made) -> Vec<OwnersRequest> {
    let balancers = json!({ "LoadBalancerIds": [made.load_balancer] });
    let of_all = |action| request(action, json!({})).may_succeed_elsewhere();
    let of_balancer = |action| request(action, made.of_balancer(json!({}))).may_succeed_elsewhere();
    vec![
        of_all("DescribeLoadBalancers").sees("secret-balancer"),
        request("DescribeLoadBalancers", balancers.clone())
            .sees("secret-balancer")
            .may_succeed_elsewhere(),
        of_all("DescribeLoadBalancersDetail").sees("secret-balancer"),
        of_all("DescribeQuota"),
        of_all("DescribeClusterResources"),
        of_all("DescribeCrossTargets"),
        of_all("DescribeExclusiveClusters"),
        of_all("DescribeTargetGroupList"),
        of_all("DescribeTargetGroups"),
        request(
            "DescribeLBListeners",
            json!({ "Backends": [{ "VpcId": "vpc-00000000", "PrivateIp": "10.0.0.9" }] }),
        )
        .may_succeed_elsewhere(),
        of_all("DescribeResources"),
        request("DescribeCustomizedConfigList", json!({ "ConfigType": "CLB" }))
            .sees("secret-config")
            .may_succeed_elsewhere(),
        request("DescribeCustomizedConfigAssociateList", json!({ "UconfigId": made.config })),
        request("DescribeLBOperateProtect", balancers.clone()).may_succeed_elsewhere(),
        request("DescribeLoadBalancerListByCertId", json!({ "CertIds": [made.certificate] }))
            .sees("secret-balancer")
            .may_succeed_elsewhere(),
        of_balancer("DescribeListeners").sees("secret-5432"),
        of_balancer("DescribeRewrite"),
        of_balancer("DescribeTargets").sees("10.0.0.9"),
        request("DescribeTargetHealth", balancers).may_succeed_elsewhere(),
        request("DescribeTaskStatus", json!({ "TaskId": made.task })),
    ]
}
