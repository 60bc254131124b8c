//! Several data planes, and the channel to them.

use std::fs;
use std::net::SocketAddr;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde_json::{Value, json};
use uturn_cloud_api::clb;

use super::clients::{Target, web};
use super::processes::Site;
use super::{listener, register};
use crate::site::{Running, free_address};
use uturn_testing::commands::uturn;

/// The load balancers that a data plane serves.
fn balancers(site: &Site, number: usize) -> Vec<Value> {
    let config: Value = serde_json::from_str(&site.config(number)).unwrap();
    let items = config["items"].as_array().unwrap().iter();
    items.filter(|item| item["kind"] == "LoadBalancer").cloned().collect()
}

#[test]
fn two_data_planes_serve_the_same() {
    let mut site = Site::new("cloud-two");
    site.add_plane();
    site.start_plane(0);
    site.start_plane(1);
    site.start_cloud();
    site.wait_until_driven(0);
    site.wait_until_driven(1);
    let (first, second) = (Target::start("first"), Target::start("second"));
    let (lb, vip) = site.load_balancer();
    let (port, other) = (site.port(), site.port());
    let (served, rule) = listener(&site, &lb, port, &json!({}), &[&first]);
    let (gone, _) = listener(&site, &lb, other, &json!({}), &[&first]);
    assert_eq!(balancers(&site, 0), balancers(&site, 1));
    assert_eq!(balancers(&site, 0).len(), 1);

    // One is away, and comes back with what it served before.
    let old = site.config(1);
    site.kill_plane(1);
    site.ok::<clb::DeleteListenerRequest>(json!({ "LoadBalancerId": lb, "ListenerId": gone }));
    register(&site, &lb, &served, &rule, &[&second]);
    assert_eq!(web((vip, other), "shop.example.com"), None);
    let file = site.planes[1].file.clone();
    site.folder.file(&file, &old);
    site.start_plane(1);
    site.wait_until_driven(1);
    assert_eq!(balancers(&site, 0), balancers(&site, 1));
    assert_eq!(web((vip, other), "shop.example.com"), None);
    assert_eq!(site.readiness(), (200, "ok\n".to_owned()));

    // The other one is away: this one serves alone, and takes changes.
    site.kill_plane(0);
    site.wait_for_error(&format!("{} is not driven", site.planes[0].url));
    let third = Target::start("third");
    register(&site, &lb, &served, &rule, &[&third]);
    let mut answers = [(); 3].map(|()| web((vip, port), "shop.example.com").unwrap());
    answers.sort();
    assert_eq!(answers, ["first", "second", "third"]);
}

/// An authority, in this file, and a certificate of it for an address with its key, in that one.
fn certify(site: &Site, authority: &str, file: &str, address: SocketAddr) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec![address.ip().to_string()]).unwrap();
    let certificate = params.signed_by(&key, &issuer).unwrap();
    let pem = format!("{}{}", certificate.pem(), key.serialize_pem());
    site.folder.file(authority, &issuer.pem()).file(file, &pem);
}

/// A load balancer that ends TLS before an admin address.
fn front(site: &Site, address: SocketAddr, certificate: &str, admin: SocketAddr) -> Running {
    let document = json!({
        "apiVersion": "uturn.dev/v1alpha1", "kind": "LoadBalancer", "metadata": { "name": "front" },
        "spec": { "vip": address.ip(), "listeners": [{
            "port": address.port(), "protocol": "HTTPS", "source": "127.0.0.1/32",
            "avoidsClient": false, "healthCheck": "none", "targets": [admin],
            "certificates": [{ "certificate": certificate, "key": certificate }],
        }]},
    });
    site.folder.file("front.yaml", &document.to_string());
    let mut command = uturn(&["lb", "run", "-f", "front.yaml"]);
    command.current_dir(&site.folder.0);
    Running::start(command)
}

#[test]
fn a_data_plane_is_driven_over_tls_if_its_certificate_is_trusted() {
    let mut site = Site::new("cloud-tls");
    site.start_data_plane();
    let at = free_address();
    certify(&site, "authority.pem", "front.pem", at);
    certify(&site, "other.pem", "other-front.pem", at);
    let front_of = |site: &Site, file| front(site, at, file, site.planes[0].admin);
    let first = front_of(&site, "front.pem");
    site.planes[0].url = format!("https://{at}");
    let away = format!("https://{at} is not driven: ");

    // An authority that did not issue it.
    site.authorities = Some("other.pem");
    site.start_cloud();
    site.wait_for_error(&format!("{away}client error"));
    site.wait_for_error("invalid peer certificate: ");
    assert_eq!(site.status()["data_planes"][0]["is_reached"], false);
    site.kill_cloud();

    // The one that did.
    site.authorities = Some("authority.pem");
    site.start_cloud();
    site.wait_until_driven(0);
    let target = Target::start("first");
    let (lb, vip) = site.load_balancer();
    let port = site.port();
    listener(&site, &lb, port, &json!({}), &[&target]);
    assert_eq!(web((vip, port), "shop.example.com").as_deref(), Some("first"));

    // Another machine at its address is not told anything.
    drop(first);
    let other = front_of(&site, "other-front.pem");
    site.wait_for_error("invalid peer certificate: ");
    assert_eq!(web((vip, port), "shop.example.com").as_deref(), Some("first"));
    drop(other);

    // One certificate alone may be trusted, too.
    let own = rcgen::generate_simple_self_signed(vec![at.ip().to_string()]).unwrap();
    let pem = format!("{}{}", own.cert.pem(), own.signing_key.serialize_pem());
    site.folder.file("own.pem", &pem).file("pinned.pem", &own.cert.pem());
    let _own = front_of(&site, "own.pem");
    site.kill_cloud();
    site.authorities = Some("pinned.pem");
    site.start_cloud();
    site.wait_until_driven(0);
}

#[test]
fn a_data_plane_with_another_token_is_not_driven() {
    let mut site = Site::new("cloud-token");
    site.start_data_plane();
    let before = site.config(0);
    fs::write(site.folder.0.join("wrong.token"), "another-token-0123456789").unwrap();
    site.planes[0].token = "wrong.token";
    site.start_cloud();
    site.wait_for_error("is not driven: it answered with HTTP status 401 Unauthorized");
    let (status, message) = site.readiness();
    assert_eq!(status, 503);
    assert!(message.contains("401") && !message.contains("another-token"), "{message}");
    assert_eq!(site.config(0), before);
}
