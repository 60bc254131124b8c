//! Tests that the published schema agrees with the reader.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use jsonschema::Validator;
use serde_json::Value as Json;
use uturn_document::{self as document, Keep};

use super::{EVERYTHING, read};
use crate::load_balancer::write_lb_config;

/// Returns the published schema. A test of whole commands compares it with the types.
pub(super) fn schema() -> Validator {
    let file = root().join("docs/schema/lb.json");
    let schema: Json = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    jsonschema::options().should_validate_formats(true).build(&schema).unwrap()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// Returns the places where documents do not conform to the schema.
pub(super) fn violations(schema: &Validator, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    document::read(text, Keep::All, &mut |document| {
        let json = document.unwrap().to_json();
        let errors = schema.iter_errors(&json);
        found.extend(errors.map(|error| format!("{}: {error}", error.instance_path())));
        ControlFlow::Continue(())
    });
    found
}

/// The documents of the repository are read without faults, and conform to the schema.
#[test]
fn documents_conform_to_the_schema() {
    let schema = schema();
    let page = fs::read_to_string(root().join("docs/lb.md")).unwrap();
    let blocks = page.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let mut texts: Vec<String> = blocks.map(str::to_owned).collect();
    assert!(texts.len() >= 4, "{}", texts.len());
    texts.push(fs::read_to_string(root().join("examples/lb/lb.yaml")).unwrap());
    texts.push(EVERYTHING.to_owned());
    for text in texts {
        let config = read(&text).unwrap_or_else(|faults| panic!("{text}\n{faults}"));
        assert_eq!(violations(&schema, &text), [""; 0], "{text}");
        let written = write_lb_config(&config);
        assert_eq!(violations(&schema, &written), [""; 0], "{written}");
    }
}

/// The schema also refuses each value that is wrong by itself.
#[test]
fn what_is_misspelt_is_refused_by_both() {
    let schema = schema();
    let spoils = [
        ("workers: 2", "workers: 0"),
        ("workers: 2", "worker: 2"),
        ("address: 127.0.0.1:9900", "address: localhost"),
        ("tokenFile: admin.token", "token: secret"),
        ("drain: 1m", "drain: 60"),
        ("action: drop", "action: refuse"),
        ("protocol: tcp", "protocol: icmp"),
        ("ports: 80-443", "ports: http"),
        ("name: sg-web}", "title: sg-web}"),
        ("vip: 10.0.0.100", "vip: example.com"),
        ("scope: public", "scope: open"),
        ("securityGroups: [sg-web]", "securityGroups: sg-web"),
        ("port: 443\n", "port: 70000\n"),
        ("protocol: HTTPS", "protocol: https"),
        ("source: 100.127.0.0/16", "source: any"),
        ("avoidsClient: false", "avoidsClient: 0"),
        ("scheduler: LEAST_CONN", "scheduler: LEAST"),
        ("panicThreshold: 30", "panicThreshold: 100"),
        ("interval: 1s", "interval: often"),
        ("rise: 1\n", "rise: 0\n"),
        ("method: GET", "method: POST"),
        ("path: /healthz", "path: healthz"),
        ("codes: [2, 3xx]", "codes: [200]"),
        ("passiveCheck: none", "passiveCheck: no"),
        ("key: /etc/tls/shop.key}", "keys: /etc/tls/shop.key}"),
        ("proxyFrom: [192.168.0.0/16]", "proxyFrom: [all]"),
        ("proxyTo: v2", "proxyTo: 2"),
        ("connections: 10\n", "connections: 0\n"),
        ("headerBytes: 8Ki", "headerBytes: 8KB"),
        ("headers: 50", "headers: 0"),
        ("idle: 30s", "idle: -1s"),
        ("tunnel: 2h", "tunnel: long"),
        ("http2: false", "http2: never"),
        ("abortOnClose: true", "abortOnClose: reset"),
        ("host: shop.example.com\n", "host: shop example com\n"),
        ("weight: 0", "weight: 101"),
        ("forward: h2c", "forward: h3"),
        ("cookie: shop", "cookie: 'a b'"),
        ("type: Exact", "type: exact"),
        ("service: shop/api", "service: api"),
        ("probe: tcp", "probe: icmp"),
        ("status: 308", "status: 303"),
        ("hex: \"00ff\"", "hex: \"0ff\""),
        ("kind: DataPlane", "kind: Dataplane"),
    ];
    for (right, wrong) in spoils {
        assert!(EVERYTHING.contains(right), "{right}");
        let text = EVERYTHING.replacen(right, wrong, 1);
        assert!(read(&text).is_err(), "the reader takes {wrong}");
        assert!(!violations(&schema, &text).is_empty(), "the schema takes {wrong}");
    }
}
