//! Listeners that check clients' certificates.

use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair,
};
use rustls::crypto::ring;
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::sign::CertifiedKey;
use serde_json::{Value, json};
use uturn_cloud_api::clb;

use super::clients::{Target, certificate, web_over_tls};
use super::listener;
use super::processes::Site;

/// An authority for clients.
fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// The certificate of a client, with its key.
fn client(issuer: &CertifiedIssuer<'static, KeyPair>) -> Arc<CertifiedKey> {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["client".to_owned()]).unwrap();
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let certificate = params.signed_by(&key, issuer).unwrap();
    let key = PrivatePkcs8KeyDer::from(key.serialize_der()).into();
    let provider = ring::default_provider();
    Arc::new(CertifiedKey::from_der(vec![certificate.into()], key, &provider).unwrap())
}

#[test]
fn clients_show_a_certificate_of_the_authority() {
    let site = Site::start("cloud-mutual");
    let target = Target::start("first");
    let (lb, vip) = site.load_balancer();
    let (ours, others) = (authority(), authority());
    let (chain, key, _) = certificate("shop.example.com");
    let tls = |verify: &str, ca: Value| {
        let mut certificate = json!({
            "SSLMode": "MUTUAL", "SSLVerifyClient": verify,
            "CertName": "shop", "CertContent": chain, "CertKey": key,
        });
        for (name, value) in ca.as_object().unwrap() {
            certificate[name] = value.clone();
        }
        json!({ "Protocol": "HTTPS", "Certificate": certificate })
    };
    let ca = json!({ "CertCaName": "ours", "CertCaContent": ours.pem() });
    let (port, other_port) = (site.port(), site.port());
    let (strict, _) = listener(&site, &lb, port, &tls("ON", ca.clone()), &[&target]);
    listener(&site, &lb, other_port, &tls("OPTIONAL", ca), &[&target]);
    assert_eq!(site.status()["left_out"], json!([]));

    let web = |port, shown| web_over_tls((vip, port), "shop.example.com", shown).ok();
    let first = Some("first".to_owned());
    assert_eq!(web(port, Some(client(&ours))), first);
    assert_eq!(web(port, Some(client(&others))), None, "of another authority");
    assert_eq!(web(port, None), None, "no certificate");
    assert_eq!(web(other_port, Some(client(&ours))), first);
    assert_eq!(web(other_port, None), first);
    assert_eq!(web(other_port, Some(client(&others))), None);

    // Another authority takes its place, and then none.
    let described = site.ok::<clb::DescribeListenersRequest>(
        json!({ "LoadBalancerId": lb, "ListenerIds": [strict] }),
    );
    let shown = described.listeners.unwrap().remove(0).certificate.unwrap();
    let server = shown.cert_id.unwrap();
    let modify = |certificate: Value| {
        site.ok::<clb::ModifyListenerRequest>(
            json!({ "LoadBalancerId": lb, "ListenerId": strict, "Certificate": certificate }),
        )
    };
    modify(json!({
        "SSLMode": "MUTUAL", "CertId": server, "CertCaName": "others",
        "CertCaContent": others.pem(),
    }));
    assert_eq!(web(port, Some(client(&others))), first);
    assert_eq!(web(port, Some(client(&ours))), None);
    modify(json!({ "SSLMode": "UNIDIRECTIONAL", "CertId": server }));
    assert_eq!(web(port, None), first);
}
