//! Certificates of the account, which every region's load balancers can use.

use serde_json::{Value, json};

use super::each;
use crate::harness::{Harness, text, upload};

/// The parameters of an upload whose content is told apart by this text.
fn server_certificate(content: &str) -> Value {
    let pem = |label: &str| format!("-----BEGIN {label}-----\n{content}\n-----END {label}-----\n");
    json!({
        "CertificatePublicKey": pem("CERTIFICATE"),
        "CertificatePrivateKey": pem("PRIVATE KEY"),
        "Alias": content,
    })
}

/// Uploads a certificate and returns its id.
fn uploaded(cloud: &Harness, parameters: Value) -> String {
    text(&cloud.ok("UploadCertificate", parameters)["CertificateId"])
}

#[test]
fn a_certificate_serves_listeners_of_every_region() {
    let cloud = Harness::new();
    let id = uploaded(&cloud, server_certificate("first"));
    let of_mode = json!({ "SSLMode": "UNIDIRECTIONAL", "CertId": id });
    let mut load_balancers = Vec::new();
    for region in ["ap-guangzhou", "ap-bangkok"] {
        cloud.enter(region);
        let lb = cloud.load_balancer();
        cloud.listener(&lb, "HTTPS", 443, json!({ "Certificate": of_mode }));
        assert_eq!(cloud.listeners(&lb)[0]["Certificate"]["CertId"], id.as_str(), "{region}");
        let related = cloud.ok("DescribeLoadBalancerListByCertId", json!({ "CertIds": [id] }));
        assert_eq!(each(&related["CertSet"][0]["LoadBalancers"], "LoadBalancerId"), [&lb]);
        load_balancers.push(lb);
    }
    // It is kept as long as any region uses it.
    let bound = "FailedOperation.BoundResources";
    let delete = json!({ "CertificateId": id });
    for (region, lb) in ["ap-bangkok", "ap-guangzhou"].iter().zip(load_balancers.iter().rev()) {
        assert_eq!(cloud.code("DeleteCertificate", delete.clone(), "uses the certificate"), bound);
        cloud.enter(region);
        cloud.ok("DeleteLoadBalancerListeners", json!({ "LoadBalancerId": lb }));
    }
    assert_eq!(cloud.ok("DeleteCertificate", delete.clone())["DeleteResult"], true);
    assert_eq!(
        cloud.code("DeleteCertificate", delete, "does not exist"),
        "FailedOperation.CertificateNotFound"
    );
    let listener = json!({
        "LoadBalancerId": load_balancers[0], "Protocol": "HTTPS", "Ports": [443],
        "Certificate": of_mode,
    });
    cloud.enter("ap-guangzhou");
    assert_eq!(cloud.code("CreateListener", listener, "does not exist"), "InvalidParameter");
}

#[test]
fn a_certificate_that_a_listener_brought_is_the_accounts() {
    let cloud = Harness::new();
    let lb = cloud.load_balancer();
    let mut brought = upload();
    brought["SSLMode"] = "UNIDIRECTIONAL".into();
    cloud.listener(&lb, "HTTPS", 443, json!({ "Certificate": brought }));
    let id = text(&cloud.listeners(&lb)[0]["Certificate"]["CertId"]);
    let known = cloud.ok("DescribeCertificates", json!({}));
    assert_eq!(each(&known["Certificates"], "CertificateId"), [&id]);
    cloud.enter("ap-bangkok");
    let elsewhere = cloud.load_balancer();
    let of_mode = json!({ "SSLMode": "UNIDIRECTIONAL", "CertId": id });
    cloud.listener(&elsewhere, "HTTPS", 443, json!({ "Certificate": of_mode }));
}

#[test]
fn a_certificate_and_its_listeners_outlast_the_process() {
    let cloud = Harness::new();
    let lb = cloud.load_balancer();
    let mut brought = upload();
    brought["SSLMode"] = "UNIDIRECTIONAL".into();
    cloud.listener(&lb, "HTTPS", 443, json!({ "Certificate": brought }));
    let id = text(&cloud.listeners(&lb)[0]["Certificate"]["CertId"]);
    let described = cloud.ok("DescribeCertificates", json!({}))["Certificates"].clone();

    let cloud = cloud.restarted("a-certificate-outlasts");
    assert_eq!(cloud.ok("DescribeCertificates", json!({}))["Certificates"], described);
    let delete = json!({ "CertificateId": id });
    let bound = cloud.code("DeleteCertificate", delete, "uses the certificate");
    assert_eq!(bound, "FailedOperation.BoundResources");
}

#[test]
fn certificates_are_listed_by_what_is_asked() {
    let cloud = Harness::new();
    let first = uploaded(&cloud, server_certificate("first"));
    cloud.wait(1);
    let authority = json!({
        "CertificatePublicKey": server_certificate("second")["CertificatePublicKey"],
        "CertificateType": "CA", "Alias": "second",
    });
    let second = uploaded(&cloud, authority);
    let ids = |parameters: Value| {
        let found = cloud.ok("DescribeCertificates", parameters);
        each(&found["Certificates"], "CertificateId").join(" ")
    };
    assert_eq!(ids(json!({})), format!("{second} {first}"), "the latest first");
    assert_eq!(ids(json!({ "SearchKey": "irs" })), first);
    assert_eq!(ids(json!({ "CertificateType": "CA" })), second);
    assert_eq!(ids(json!({ "CertIds": [first, "absent"] })), first);
    assert_eq!(ids(json!({ "Limit": 1, "Offset": 1 })), first);
    assert_eq!(ids(json!({ "CertificateStatus": [3] })), "");
    let counted = cloud.ok("DescribeCertificates", json!({ "Limit": 1 }));
    assert_eq!(counted["TotalCount"], 2);

    let detail = cloud.ok("DescribeCertificateDetail", json!({ "CertificateId": first }));
    let uploaded = server_certificate("first");
    assert_eq!(detail["CertificatePublicKey"], uploaded["CertificatePublicKey"]);
    assert_eq!(detail["CertificatePrivateKey"], Value::Null, "a key is not shown again");
    assert_eq!(detail["Alias"], "first");
    assert_eq!(
        cloud.code("DescribeCertificateDetail", json!({ "CertificateId": "absent" }), "absent"),
        "FailedOperation.CertificateNotFound"
    );
}

#[test]
fn what_is_no_certificate_is_refused() {
    let cloud = Harness::new();
    let broken = |member: &str, value: Value| {
        let mut parameters = server_certificate("first");
        parameters[member] = value;
        parameters
    };
    for (member, value, part, code) in [
        ("CertificatePublicKey", json!("x"), "PEM", "FailedOperation.CertificateParseError"),
        ("CertificatePrivateKey", json!("x"), "PEM", "FailedOperation.CertificateParseError"),
        ("CertificatePrivateKey", Value::Null, "missing", "MissingParameter"),
        ("CertificateType", json!("SM"), "SVR", "InvalidParameterValue"),
        ("KeyPassword", json!("secret"), "password", "InvalidParameter"),
    ] {
        assert_eq!(cloud.code("UploadCertificate", broken(member, value), part), code, "{member}");
    }
}

#[test]
fn the_same_certificate_can_be_kept_from_being_there_twice() {
    let cloud = Harness::new();
    let first = uploaded(&cloud, server_certificate("first"));
    let mut again = server_certificate("first");
    again["Repeatable"] = false.into();
    let answer = cloud.ok("UploadCertificate", again.clone());
    assert_eq!((&answer["CertificateId"], &answer["RepeatCertId"]), (&json!(first), &json!(first)));
    again["Repeatable"] = true.into();
    assert_ne!(uploaded(&cloud, again), first);
}

/// A certificate for `shop.test` and `*.shop.test` of 2024 and 2034.
const SHOP: &str = "\
-----BEGIN CERTIFICATE-----
MIIBezCCASGgAwIBAgICEAAwCgYIKoZIzj0EAwIwEjEQMA4GA1UEAwwHVGVzdCBD
QTAeFw0yNDAxMDIwMzA0MDVaFw0zNDAxMDIwMzA0MDVaMBQxEjAQBgNVBAMMCXNo
b3AudGVzdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABCYLlI9J7PtAFKOED5LG
nlcfsqMvt1IKs5kNpp+SVc0zK/zZ8KqW6cI74MAj5t+MwOjK7cK1DD06OHHUdG9n
DtOjZTBjMCEGA1UdEQQaMBiCCXNob3AudGVzdIILKi5zaG9wLnRlc3QwHQYDVR0O
BBYEFDvB1iQ+s1MS+8eZnljQppH8o3owMB8GA1UdIwQYMBaAFNHr0Hph25ByuiTO
QyF3tVg1mqwfMAoGCCqGSM49BAMCA0gAMEUCIQDpRJeudj9WglJtKcvlrgVgI5HP
q30+/379w9/F8qLJNQIgTDFtX7L+n+m608mpD31gdASBGZbeMnHqFhlPZVs7rhA=
-----END CERTIFICATE-----
";

#[test]
fn a_certificate_says_what_it_is_for() {
    let cloud = Harness::new();
    let parameters = json!({
        "CertificatePublicKey": SHOP,
        "CertificatePrivateKey": server_certificate("x")["CertificatePrivateKey"],
        "Alias": "shop",
    });
    let id = uploaded(&cloud, parameters);
    let detail = cloud.ok("DescribeCertificateDetail", json!({ "CertificateId": id }));
    assert_eq!(detail["Domain"], "shop.test");
    assert_eq!(detail["SubjectAltName"], json!(["shop.test", "*.shop.test"]));
    assert_eq!(detail["ProductZhName"], "Test CA");
    assert_eq!(detail["CertBeginTime"], "2024-01-02 11:04:05");
    assert_eq!(detail["CertEndTime"], "2034-01-02 11:04:05");
    let listed = cloud.ok("DescribeCertificates", json!({}))["Certificates"][0].clone();
    for member in ["Domain", "SubjectAltName", "ProductZhName", "CertBeginTime", "CertEndTime"] {
        assert_eq!(listed[member], detail[member], "{member}");
    }
    assert_eq!(listed["IsWildcard"], true);
}
