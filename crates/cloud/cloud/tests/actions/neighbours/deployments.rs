//! Certificates put on listeners and domains through the certificates' service.

use serde_json::{Value, json};

use crate::harness::{Harness, text, upload};

/// A cloud with a listener and one with SNI, and a certificate that neither has.
struct Made {
    cloud: Harness,
    lb: String,
    listener: String,
    sni: String,
    certificate: String,
}

impl Made {
    fn new(cloud: Harness) -> Self {
        let lb = cloud.load_balancer();
        cloud.wait(1);
        let listener = cloud.listener(&lb, "HTTPS", 443, json!({ "Certificate": upload() }));
        cloud.wait(1);
        let sni = cloud.listener(&lb, "HTTPS", 8443, json!({ "SniSwitch": 1 }));
        cloud.wait(1);
        cloud.rule(&lb, &sni, json!({ "Domain": "b.test", "Url": "/", "Certificate": upload() }));
        cloud.wait(1);
        let pem = |label: &str| format!("-----BEGIN {label}-----\nMIIB\n-----END {label}-----\n");
        let uploaded = cloud.ok(
            "UploadCertificate",
            json!({
                "CertificatePublicKey": pem("CERTIFICATE"),
                "CertificatePrivateKey": pem("PRIVATE KEY"),
            }),
        );
        let certificate = text(&uploaded["CertificateId"]);
        Self { cloud, lb, listener, sni, certificate }
    }

    fn deploy(&self, places: Value) -> Value {
        json!({
            "CertificateId": self.certificate, "ResourceType": "clb", "Status": 1,
            "InstanceIdList": places,
        })
    }

    /// How a deployment stands: all, done, failed and running.
    fn counts(&self, record: &Value) -> [i64; 4] {
        let request = json!({ "DeployRecordId": record.to_string(), "Limit": 200 });
        let detail = self.cloud.ok("DescribeHostDeployRecordDetail", request);
        ["TotalCount", "SuccessTotalCount", "FailedTotalCount", "RunningTotalCount"]
            .map(|member| detail[member].as_i64().unwrap())
    }
}

#[test]
fn a_certificate_is_deployed_to_a_listener_and_a_domain() {
    let made = Made::new(Harness::slow());
    let Made { cloud, lb, listener, sni, certificate } = &made;
    let places = json!([format!("{lb}|{listener}"), format!("{lb}|{sni}|b.test")]);
    let deployed = cloud.ok("DeployCertificateInstance", made.deploy(places));
    assert_eq!(deployed["DeployStatus"], 1);
    let record = &deployed["DeployRecordId"];
    assert_eq!(made.counts(record), [1, 0, 0, 1], "one load balancer, which is being changed");
    cloud.wait(1);
    assert_eq!(made.counts(record), [1, 1, 0, 0]);
    let listeners = cloud.listeners(lb);
    assert_eq!(listeners[0]["Certificate"]["CertId"], certificate.as_str());
    assert_eq!(listeners[1]["Rules"][0]["Certificate"]["CertId"], certificate.as_str());
}

#[test]
fn all_places_are_deployed_to_or_none() {
    let made = Made::new(Harness::new());
    let Made { cloud, lb, listener, sni, .. } = &made;
    let before = cloud.listeners(lb);
    let first = format!("{lb}|{listener}");
    for (place, part) in [
        (format!("{lb}|lbl-absent"), "lbl-absent"),
        (format!("lb-absent|{listener}"), "lb-absent"),
        (format!("{lb}|{sni}|absent.test"), "absent.test"),
        (format!("{lb}|{sni}"), "ModifyDomainAttributes"),
        (lb.clone(), "LOAD_BALANCER|LISTENER"),
    ] {
        let request = made.deploy(json!([first, place]));
        assert_eq!(cloud.code("DeployCertificateInstance", request, part), "InvalidParameter");
    }
    assert_eq!(cloud.listeners(lb), before);
    let absent = json!({ "CertificateId": "absent", "InstanceIdList": [first] });
    let code = "FailedOperation.CertificateNotFound";
    assert_eq!(cloud.code("DeployCertificateInstance", absent, "absent"), code);
    let record = json!({ "DeployRecordId": "7" });
    let code = cloud.code("DescribeHostDeployRecordDetail", record, "does not exist");
    assert_eq!(code, "InvalidParameter");
}
