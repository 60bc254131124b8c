//! Listeners.

use serde_json::{Value, json};

use crate::harness::{Harness, text, upload, with};

fn create(lb: &str, protocol: &str, more: &Value) -> Value {
    with(&json!({ "LoadBalancerId": lb, "Protocol": protocol, "Ports": [80] }), more)
}

#[test]
fn protocols_may_be_in_small_letters() {
    let cloud = Harness::new();
    let lb = cloud.load_balancer();
    cloud.ok("CreateListener", create(&lb, "tcp", &json!({})));
    assert_eq!(cloud.listeners(&lb)[0]["Protocol"], "TCP");
}

#[test]
fn a_listener_for_each_port_in_their_order() {
    let cloud = Harness::new();
    let lb = cloud.load_balancer();
    let answer = cloud.ok(
        "CreateListener",
        create(&lb, "TCP", &json!({ "Ports": [81, 80], "ListenerNames": ["b", "a"] })),
    );
    let listeners = cloud.listeners(&lb);
    assert_eq!(listeners[0]["ListenerId"], answer["ListenerIds"][0]);
    assert_eq!((&listeners[0]["Port"], &listeners[0]["ListenerName"]), (&json!(81), &json!("b")));
    assert_eq!((&listeners[1]["Port"], &listeners[1]["ListenerName"]), (&json!(80), &json!("a")));
    assert_eq!(listeners[1]["Rules"], Value::Null);
    assert_eq!(listeners[1]["KeepaliveEnable"], Value::Null);
    assert_eq!(listeners[1]["AttrFlags"], json!([]));
    assert_eq!(listeners[1]["EndPort"], 0);
    assert_eq!(
        listeners[1]["HealthCheck"],
        json!({
            "HealthSwitch": 1, "TimeOut": 2, "IntervalTime": 5, "HealthNum": 3, "UnHealthNum": 3,
            "CheckPort": null, "CheckType": "TCP", "HttpCheckDomain": null, "HttpCheckPath": null,
            "HttpCheckMethod": null, "HttpVersion": null, "HttpCode": null, "ContextType": null,
            "SendContext": null, "RecvContext": null, "ExtendedCode": null, "SourceIpType": 1,
        })
    );
    let find = |more: Value| {
        let parameters = with(&json!({ "LoadBalancerId": lb }), &more);
        cloud.ok("DescribeListeners", parameters)["TotalCount"].clone()
    };
    assert_eq!(find(json!({ "Port": 80, "Protocol": "TCP" })), 1);
    assert_eq!(find(json!({ "Protocol": "UDP" })), 0);
    assert_eq!(find(json!({ "ListenerIds": [answer["ListenerIds"][1]] })), 1);
    let many: Vec<String> = (0..101).map(|number| format!("lbl-{number}")).collect();
    let parameters = json!({ "LoadBalancerId": lb, "ListenerIds": many });
    let code = cloud.code("DescribeListeners", parameters, "101");
    assert_eq!(code, "InvalidParameterValue.Length");
}

#[test]
fn each_rule_of_creation_has_its_code() {
    let cloud = Harness::new();
    let lb = cloud.load_balancer();
    let ports: Vec<u16> = (1..=50).collect();
    let check = |check: Value| json!({ "HealthCheck": check });
    let both = json!({ "Certificate": upload(), "MultiCertInfo": {
        "SSLMode": "UNIDIRECTIONAL", "CertList": [upload()] } });
    let mutual = json!({ "Certificate": with(&upload(), &json!({ "SSLMode": "MUTUAL" })) });
    let (parameter, value) = ("InvalidParameter", "InvalidParameterValue");
    let length = "InvalidParameterValue.Length";
    for (protocol, more, code, part) in [
        ("TCP", json!({ "LoadBalancerId": "lb-x" }), parameter, "does not exist"),
        ("SCTP", json!({}), value, "TCP, UDP"),
        ("TCP", json!({ "Ports": [] }), length, "0 items"),
        ("TCP", json!({ "Ports": ports }), length, "1 to 49"),
        ("TCP", json!({ "Ports": [0] }), value, "not a port"),
        ("TCP", json!({ "Ports": [65536] }), value, "not a port"),
        ("TCP", json!({ "Ports": [80, 80] }), "InvalidParameter.PortCheckFailed", "another one"),
        ("TCP", json!({ "EndPort": 80 }), value, "is empty"),
        ("TCP", json!({ "Ports": [1, 2], "EndPort": 80 }), parameter, "exactly one"),
        ("TCP", json!({ "ListenerNames": ["a", "b"] }), parameter, "as many"),
        ("TCP", json!({ "ListenerNames": ["a".repeat(81)] }), length, "81"),
        ("TCP", json!({ "SessionExpireTime": 29 }), value, "30 to 3600"),
        (
            "TCP_SSL",
            json!({ "Certificate": upload(), "SessionExpireTime": 30 }),
            parameter,
            "TCP_SSL",
        ),
        ("TCP", json!({ "Scheduler": "RANDOM" }), value, "unknown"),
        ("TCP", json!({ "Scheduler": "IP_HASH" }), value, "ModifyListener"),
        ("HTTP", json!({ "Scheduler": "LEAST_CONN" }), parameter, "HTTP"),
        ("HTTP", check(json!({ "HealthSwitch": 1 })), parameter, "HealthCheck"),
        ("HTTP", json!({ "KeepaliveEnable": 2 }), value, "0 to 1"),
        ("TCP", json!({ "KeepaliveEnable": 1 }), parameter, "TCP"),
        ("TCP", json!({ "SniSwitch": 1 }), parameter, "HTTPS"),
        ("TCP", json!({ "SessionType": "QUIC_CID" }), parameter, "SessionType"),
        ("TCP", json!({ "TargetType": "TARGETGROUP" }), value, "NODE"),
        ("UDP", json!({ "DeregisterTargetRst": true }), "FailedOperation", "reschedule"),
        ("TCP", json!({ "RescheduleInterval": 3601 }), value, "0 to 3600"),
        ("TCP", json!({ "MaxConn": 0 }), value, "MaxConn"),
        ("TCP", json!({ "IdleConnectTimeout": 901 }), value, "10 to 900"),
        ("TCP", json!({ "ProxyProtocol": true }), parameter, "ProxyProtocol"),
        ("TCP", json!({ "SslCloseSwitch": true }), value, "does not offer"),
        ("TCP_SSL", json!({}), "MissingParameter", "Certificate"),
        ("HTTPS", json!({}), "MissingParameter", "Certificate"),
        ("HTTPS", both, parameter, "only one"),
        ("HTTPS", mutual, parameter, "CertCaId"),
        ("HTTPS", json!({ "SniSwitch": 1, "Certificate": upload() }), parameter, "without SNI"),
        ("HTTP", json!({ "Certificate": upload() }), parameter, "certificates are for"),
        ("HTTPS", json!({ "Certificate": { "CertId": "absent00" } }), parameter, "does not exist"),
        (
            "HTTPS",
            json!({ "Certificate": with(&upload(), &json!({ "CertKey": "key" })) }),
            value,
            "PEM",
        ),
        ("TCP", check(json!({ "TimeOut": 1 })), value, "2 to 60"),
        ("TCP", check(json!({ "TimeOut": 5 })), value, "not shorter"),
        ("TCP", check(json!({ "IntervalTime": 301 })), value, "2 to 300"),
        ("TCP", check(json!({ "HealthNum": 11 })), value, "2 to 10"),
        ("TCP", check(json!({ "HttpCode": 32 })), value, "1 to 31"),
        ("TCP", check(json!({ "SourceIpType": 2 })), value, "0 to 1"),
        ("TCP", check(json!({ "CheckType": "ICMP" })), value, "PING"),
        ("TCP", check(json!({ "CheckType": "PING" })), value, "TCP, HTTP, CUSTOM"),
        ("UDP", check(json!({ "CheckType": "TCP" })), value, "PING, CUSTOM"),
        ("TCP", check(json!({ "CheckType": "HTTP" })), parameter, "HttpCheckDomain cannot be None"),
        ("UDP", check(json!({ "CheckType": "CUSTOM" })), parameter, "SendContext"),
        (
            "UDP",
            check(json!({
                "CheckType": "CUSTOM", "ContextType": "HEX", "SendContext": "0A1", "RecvContext": "00",
            })),
            value,
            "pairs",
        ),
    ] {
        let parameters = create(&lb, protocol, &more);
        assert_eq!(cloud.code("CreateListener", parameters, part), code, "{protocol} {more}");
    }
}

#[test]
fn ports_conflict_within_a_transport_only() {
    let cloud = Harness::new();
    let lb = cloud.load_balancer();
    cloud.listener(&lb, "TCP", 80, json!({}));
    cloud.listener(&lb, "UDP", 80, json!({}));
    cloud.listener(&lb, "TCP", 1000, json!({ "EndPort": 2000 }));
    for (protocol, port) in [("HTTP", 80), ("TCP", 80), ("UDP", 80), ("TCP", 1500)] {
        let parameters = create(&lb, protocol, &json!({ "Ports": [port] }));
        let code = cloud.code("CreateListener", parameters, "conflicts");
        assert_eq!(code, "InvalidParameter.PortCheckFailed", "{protocol} {port}");
    }
    cloud.listener(&lb, "UDP", 1500, json!({}));
    let ports: Vec<u16> = (3000..3046).collect();
    cloud.ok("CreateListener", create(&lb, "TCP", &json!({ "Ports": ports })));
    let parameters = create(&lb, "TCP", &json!({ "Ports": [9] }));
    assert_eq!(cloud.code("CreateListener", parameters, "50"), "LimitExceeded");
}

#[test]
fn ipv6_probes_come_from_the_load_balancer() {
    let cloud = Harness::new();
    let parameters = json!({ "LoadBalancerType": "OPEN", "AddressIPVersion": "IPV6" });
    let lb = text(&cloud.ok("CreateLoadBalancer", parameters)["LoadBalancerIds"][0]);
    cloud.listener(&lb, "TCP", 80, json!({}));
    assert_eq!(cloud.listeners(&lb)[0]["HealthCheck"]["SourceIpType"], 0);
    for check in [json!({ "SourceIpType": 1 }), json!({ "IntervalTime": 4 })] {
        let parameters = create(&lb, "UDP", &json!({ "HealthCheck": check }));
        assert_eq!(cloud.code("CreateListener", parameters, ""), "InvalidParameterValue");
    }
}

#[test]
fn what_a_modification_leaves_out_stays() {
    let cloud = Harness::new();
    let lb = cloud.load_balancer();
    let check = json!({ "TimeOut": 3, "IntervalTime": 10, "SourceIpType": 0 });
    let listener = cloud.listener(&lb, "TCP", 80, json!({ "HealthCheck": check }));
    let before = cloud.listeners(&lb)[0].clone();
    let ids = json!({ "LoadBalancerId": lb, "ListenerId": listener });
    let modify = |more: Value| cloud.ok("ModifyListener", with(&ids, &more));
    modify(json!({ "HealthCheck": { "SourceIpType": 1 } }));
    let check = with(&before["HealthCheck"], &json!({ "SourceIpType": 1 }));
    assert_eq!(cloud.listeners(&lb)[0], with(&before, &json!({ "HealthCheck": check })));
    modify(json!({ "Scheduler": "IP_HASH", "SnatEnable": true, "ListenerName": "n" }));
    let after = cloud.listeners(&lb)[0].clone();
    assert_eq!(after["Scheduler"], "IP_HASH");
    assert_eq!(after["AttrFlags"], json!(["SnatEnable"]));
    assert_eq!(after["ListenerName"], "n");
    for (more, code) in [
        (json!({}), "MissingParameter"),
        (json!({ "ListenerId": "lbl-x", "Scheduler": "WRR" }), "InvalidParameter"),
        (json!({ "LoadBalancerId": "lb-x", "Scheduler": "WRR" }), "InvalidParameter"),
        (json!({ "KeepaliveEnable": 1 }), "InvalidParameter"),
        (json!({ "SniSwitch": 1 }), "InvalidParameter"),
        (json!({ "Certificate": upload() }), "InvalidParameter"),
        (json!({ "HealthCheck": { "TimeOut": 10 } }), "InvalidParameterValue"),
        (json!({ "ListenerName": "" }), "InvalidParameterValue.Length"),
    ] {
        let found = cloud.code("ModifyListener", with(&ids, &more), "");
        assert_eq!(found, code, "{more}");
    }
}

#[test]
fn keepalive_is_turned_on_and_off() {
    let cloud = Harness::new();
    let lb = cloud.load_balancer();
    let listener = cloud.listener(&lb, "HTTP", 80, json!({}));
    let keepalive = || cloud.listeners(&lb)[0]["KeepaliveEnable"].clone();
    assert_eq!(keepalive(), 0);
    for value in [1, 0] {
        let parameters =
            json!({ "LoadBalancerId": lb, "ListenerId": listener, "KeepaliveEnable": value });
        cloud.ok("ModifyListener", parameters);
        assert_eq!(keepalive(), value);
    }
}

#[test]
fn sni_goes_on_and_never_off() {
    let cloud = Harness::new();
    let lb = cloud.load_balancer();
    let listener = cloud.listener(&lb, "HTTPS", 443, json!({ "Certificate": upload() }));
    cloud.rule(&lb, &listener, json!({ "Domain": "a.test", "Url": "/" }));
    let certificate = cloud.listeners(&lb)[0]["Certificate"].clone();
    assert_eq!(certificate["SSLMode"], "UNIDIRECTIONAL");
    let ids = json!({ "LoadBalancerId": lb, "ListenerId": listener });
    cloud.ok("ModifyListener", with(&ids, &json!({ "SniSwitch": 1 })));
    let described = cloud.listeners(&lb)[0].clone();
    assert_eq!(described["SniSwitch"], 1);
    assert_eq!(described["Certificate"], Value::Null);
    assert_eq!(described["Rules"][0]["Certificate"], certificate);
    let off = with(&ids, &json!({ "SniSwitch": 0 }));
    assert_eq!(cloud.code("ModifyListener", off, "turned off"), "InvalidParameter");
}

#[test]
fn certificates_are_uploaded_found_and_replaced() {
    let cloud = Harness::new();
    let lb = cloud.load_balancer();
    let authority = with(&upload(), &json!({ "CertKey": null }));
    let several = json!({ "SSLMode": "MUTUAL", "CertList": [upload(), authority] });
    let listener = cloud.listener(&lb, "HTTPS", 443, json!({ "MultiCertInfo": several }));
    let certificate = || cloud.listeners(&lb)[0]["Certificate"].clone();
    let before = certificate();
    assert_eq!((&before["SSLMode"], &before["SSLVerifyClient"]), (&json!("MUTUAL"), &json!("ON")));
    let (server, authority) = (text(&before["CertId"]), text(&before["CertCaId"]));
    let using = |id: &str| {
        let answer = cloud.ok("DescribeLoadBalancerListByCertId", json!({ "CertIds": [id] }));
        answer["CertSet"][0]["LoadBalancers"].as_array().unwrap().len()
    };
    assert_eq!((using(&server), using(&authority), using("absent00")), (1, 1, 0));
    let replace = |old: &str, new: Value| {
        ("ReplaceCertForLoadBalancers", json!({ "OldCertificateId": old, "Certificate": new }))
    };
    let (action, parameters) = replace(&server, upload());
    cloud.ok(action, parameters);
    let after = certificate();
    assert_ne!(after["CertId"], before["CertId"]);
    assert_eq!(after["CertCaId"], before["CertCaId"]);
    for (old, new) in [
        ("absent00", upload()),
        (server.as_str(), json!({ "CertId": "absent00" })),
        (server.as_str(), json!({})),
    ] {
        let (action, parameters) = replace(old, new);
        assert_eq!(cloud.code(action, parameters, ""), "InvalidParameter");
    }
    let kind = json!({
        "LoadBalancerId": lb, "ListenerId": listener, "Certificate": { "CertId": authority },
    });
    assert_eq!(cloud.code("ModifyListener", kind, "no server"), "InvalidParameterValue");
}

#[test]
fn listeners_are_deleted_one_by_one_and_all_or_none() {
    let cloud = Harness::new();
    let lb = cloud.load_balancer();
    let ids: Vec<String> =
        (80..84).map(|port| cloud.listener(&lb, "TCP", port, json!({}))).collect();
    let one = |id: &str| json!({ "LoadBalancerId": lb, "ListenerId": id });
    cloud.ok("DeleteListener", one(&ids[0]));
    assert_eq!(cloud.code("DeleteListener", one(&ids[0]), "does not exist"), "InvalidParameter");
    let several = |ids: &[&str]| json!({ "LoadBalancerId": lb, "ListenerIds": ids });
    let with_unknown = several(&[&ids[1], "lbl-unknown0", &ids[0]]);
    let part = format!("some ListenerId lbl-unknown0,{} not found", ids[0]);
    let code = cloud.code("DeleteLoadBalancerListeners", with_unknown, &part);
    assert_eq!(code, "InvalidParameter");
    cloud.ok("DeleteLoadBalancerListeners", several(&[&ids[1]]));
    assert_eq!(cloud.listeners(&lb).as_array().unwrap().len(), 2);
    cloud.ok("DeleteLoadBalancerListeners", json!({ "LoadBalancerId": lb }));
    assert_eq!(cloud.listeners(&lb), json!([]));
    let many = vec!["lbl-x"; 21];
    let code = cloud.code("DeleteLoadBalancerListeners", several(&many), "21");
    assert_eq!(code, "InvalidParameterValue.Length");
}
