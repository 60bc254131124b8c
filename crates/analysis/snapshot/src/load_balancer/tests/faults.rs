//! Tests every fault with its place, and configurations without faults.

use super::schema::{schema, violations};
use super::{balancer, read};

/// Returns the faults of a listener, without their common beginning.
fn faults(listener: &str) -> Vec<String> {
    let text = balancer(&format!("  - {listener}\n"));
    let shown = match read(&text) {
        Ok(_) => return Vec::new(),
        Err(shown) => shown,
    };
    shown
        .lines()
        .filter(|line| !line.starts_with("  "))
        .map(|line| {
            let (_, rest) = line.split_once(": ").unwrap();
            rest.strip_prefix("spec.listeners[0].").unwrap_or(rest).to_owned()
        })
        .collect()
}

/// Each fault of one listener states what would be right.
#[test]
fn faults_of_a_listener() {
    let http = "port: 80, protocol: HTTP";
    let one = "targets: ['10.0.0.11:80']";
    let rules = |rules: &str| format!("{{{http}, rules: [{rules}]}}");
    let cases: Vec<(String, bool, &[&str])> = vec![
        (format!("{{{http}}}"), false, &["rules: missing: expected rules, or targets"]),
        (format!("{{{http}, rules: []}}"), false, &["rules: expected at least one rule"]),
        (
            format!("{{{http}, {one}, rules: [{{{one}}}]}}"),
            false,
            &["targets: a listener has targets or rules, not both"],
        ),
        (
            format!("{{{http}, {one}, certificates: [{{certificate: a, key: b}}]}}"),
            false,
            &["certificates: only TCP_SSL and HTTPS listeners end TLS, and this one is HTTP"],
        ),
        (
            format!("{{port: 80, protocol: TCP, {one}, http2: true, limits: {{headers: 5}}}}"),
            false,
            &[
                "http2: only HTTP and HTTPS listeners have it, and this one is TCP",
                "limits.headers: only HTTP and HTTPS listeners have it, and this one is TCP",
            ],
        ),
        (
            format!("{{port: 80, protocol: TCP, rules: [{{host: a, {one}}}]}}"),
            false,
            &["rules[0].host: only rules of HTTP and HTTPS listeners have it, and this one is TCP"],
        ),
        (
            // The first is wrong, the others would cost a worker seconds for one long path.
            format!(
                "{{{http}, rules: [{{host: '~(?=a)', {one}}}, {{host: '~a.{{20}}b', {one}}}, \
                 {{path: {{path: '~ (a|b)*a(a|b){{12}}', type: ImplementationSpecific}}, {one}}}]}}"
            ),
            false,
            &[
                "rules[0].host: ~(?=a) is not a regular expression that uturn supports: \
                 look-around, \
                 including look-ahead and look-behind, is not supported",
                "rules[1].host: ~a.{20}b is not a regular expression that uturn supports: to match \
                 it \
                 in one step for each byte takes a table of more than 256 KiB. Smaller counts in \
                 {}, or ^ at its beginning, make it smaller",
                "rules[2].path.path: ~ (a|b)*a(a|b){12} is not a regular expression that uturn \
                 supports: to match it in one step for each byte takes a table of more than 256 \
                 KiB. \
                 Smaller counts in {}, or ^ at its beginning, make it smaller",
            ],
        ),
        (
            format!("{{port: 80, protocol: TCP, rules: [{{{one}}}, {{{one}}}]}}"),
            false,
            &["rules[1]: expected a single rule: on layer 4 nothing tells requests apart"],
        ),
        (
            format!("{{port: 80, protocol: UDP, nextTarget: true, proxyTo: v1, {one}}}"),
            false,
            &[
                "nextTarget: only TCP_SSL, HTTP and HTTPS listeners, and TCP with endsConnections, \
                 connect to targets themselves, and this one is UDP",
                "proxyTo: UDP has no connection that a PROXY header could begin, and this one is \
                 UDP",
            ],
        ),
        (
            format!(
                "{{port: 80, protocol: TCP, endsConnections: true, connectTimeout: 1s, {one}}}"
            ),
            false,
            &[],
        ),
        (
            format!("{{{http}, {one}, endsConnections: true}}"),
            false,
            &[
                "endsConnections: only TCP listeners have it: UDP has no connections, others end them \
               in any case, and this one is HTTP",
            ],
        ),
        (
            format!("{{{http}, {one}, healthCheck: {{interval: 1s, timeout: 1s}}}}"),
            false,
            &["healthCheck.timeout: expected less than the interval, which is 1s"],
        ),
        (
            format!("{{{http}, {one}, healthCheck: {{rise: 0, interval: 5}}}}"),
            true,
            &[
                "healthCheck.rise: expected a number from 1 to 100, found the number 0",
                "healthCheck.interval: expected a time from 100ms to 5m, found the number 5",
            ],
        ),
        (
            format!("{{{http}, {one}, healthCheck: {{probe: {{http: {{path: x, codes: [6]}}}}}}}}"),
            true,
            &[
                "healthCheck.probe.http.path: expected a path that begins with /, found \"x\"",
                "healthCheck.probe.http.codes[0]: expected a class of status codes from 1 to 5, \
                 found the number 6",
            ],
        ),
        (
            format!("{{{http}, {one}, healthCheck: {{probe: udp}}}}"),
            false,
            &["healthCheck.probe: the targets of this listener speak TCP: expected tcp, \
                 {http: …} or {exchange: …}"],
        ),
        (
            format!(
                "{{port: 53, protocol: UDP, {one}, healthCheck: {{probe: {{exchange: {{send: a}}}}}}}}"
            ),
            false,
            &["healthCheck.probe.exchange.expect: missing: expected the answer of a target, \
               since UDP has no connections"],
        ),
        (
            format!("{{{http}, {one}, allDeadAllAlive: false, panicThreshold: 20}}"),
            false,
            &["panicThreshold: allDeadAllAlive is false, so no share of dead targets makes all \
                 alive"],
        ),
        (
            format!("{{{http}, {one}, panicThreshold: 100}}"),
            true,
            &["panicThreshold: expected a percentage from 0 to 99, found the number 100"],
        ),
        (
            format!("{{{http}, {one}, source: kept, profile: {{source: kept}}}}"),
            false,
            &["profile.source: source is set on the listener already"],
        ),
        (
            format!("{{{http}, {one}, limits: {{headerBytes: 0, headers: 0, connections: 0}}}}"),
            true,
            &[
                "limits.headerBytes: expected a size from 256 to 1Mi bytes, found the number 0",
                "limits.headers: expected a number from 1 to 1000, found the number 0",
                "limits.connections: expected a number from 1 to 10000000, found the number 0",
            ],
        ),
        (
            format!(
                "{{{http}, defaultHost: b.example.com, rules: [{{host: a.example.com, {one}}}]}}"
            ),
            false,
            &[
                "defaultHost: no rule is for b.example.com; expected the host of a rule: a.example.com",
            ],
        ),
        (
            format!(
                "{{{http}, targets: [{{address: '10.0.0.11:80', weight: 101}}, '10.0.0.11:80']}}"
            ),
            true,
            &[
                "targets[0].weight: expected a weight from 0 to 100, found the number 101",
                "targets[1]: 10.0.0.11:80 is listed twice, first at line 7",
            ],
        ),
        (
            format!("{{{http}, targets: ['10.0.0.100:80', '[fd00::1]:80', '10.0.0.11:0']}}"),
            false,
            &[
                "targets[0]: this is the listener's own address: it would call itself",
                "targets[1]: the target is IPv6: the client's address is kept, and the VIP is IPv4",
                "targets[2]: expected a port from 1 to 65535, found 0",
            ],
        ),
        (
            format!("{{{http}, source: 'fd00:1::/64', targets: ['[fd00::1]:80']}}"),
            false,
            &["targets[0]: the target is IPv6: its health checks come from IPv4"],
        ),
        (
            rules("{host: a}"),
            false,
            &["rules[0].targets: missing: expected targets, or a redirect"],
        ),
        (
            rules(&format!("{{{one}, redirect: {{tls: true}}}}")),
            false,
            &["rules[0].redirect: a rule has targets or a redirect"],
        ),
        (
            rules("{redirect: {port: 80}}"),
            false,
            &["rules[0].redirect: clients that follow this redirect come to this rule again"],
        ),
        (
            rules("{redirect: {tls: true, status: 200}}"),
            true,
            &["rules[0].redirect.status: expected 301, 302, 307 or 308, found the number 200"],
        ),
        (
            rules(&format!(
                "{{host: A.example.com, {one}}}, {{host: a.example.com, path: /, {one}}}"
            )),
            false,
            &["rules[1]: the rule at line 7 has this host and path already"],
        ),
        (
            format!("{{port: 80, protocol: TCP, {one}, pathNormalization: merge}}"),
            false,
            &["pathNormalization: only HTTP and HTTPS listeners have it, and this one is TCP"],
        ),
        (
            format!("{{port: 80, protocol: TCP, {one}, forwardedFor: replace}}"),
            false,
            &["forwardedFor: only HTTP and HTTPS listeners have it, and this one is TCP"],
        ),
        (
            format!("{{{http}, {one}, forwardedFor: off}}"),
            true,
            &["forwardedFor: expected append or replace, found off, which YAML reads as false"],
        ),
        (
            format!("{{{http}, {one}, pathNormalization: yes}}"),
            true,
            &[
                "pathNormalization: expected off, merge or reject, found yes, which YAML reads as true",
            ],
        ),
        (
            format!("{{{http}, {one}, pathNormalization: 'on'}}"),
            true,
            &["pathNormalization: expected off, merge or reject, found \"on\""],
        ),
        (
            rules(&format!(
                "{{path: //a, {one}}}, {{path: /a/../b, {one}}}, {{path: /%7ea, {one}}}, \
                 {{path: {{path: /c%, type: Exact}}, {one}}}, \
                 {{path: {{path: /d/%2e, type: ImplementationSpecific}}, {one}}}, \
                 {{path: {{path: ^~ /e//, type: ImplementationSpecific}}, {one}}}, \
                 {{path: {{path: /f/., type: ImplementationSpecific}}, {one}}}"
            )),
            false,
            &[
                "rules[0].path: expected /a, since paths of requests are compared in their normal \
                 form, found //a",
                "rules[1].path: expected /b, since paths of requests are compared in their normal \
                 form, found /a/../b",
                "rules[2].path: expected /~a, since paths of requests are compared in their normal \
                 form, found /%7ea",
                "rules[3].path.path: requests for it are refused: the path has a % without two \
                 hexadecimal digits",
                "rules[4].path.path: expected /d/., since paths of requests are compared in their \
                 normal form, found /d/%2e",
                "rules[5].path.path: expected /e/, since paths of requests are compared in their \
                 normal form, found /e//",
            ],
        ),
        (
            format!(
                "{{{http}, pathNormalization: off, rules: [{{path: //a, {one}}}, {{path: /%, {one}}}]}}"
            ),
            false,
            &[],
        ),
        (
            rules(&format!("{{host: 'a:80', path: 'a b', {one}}}")),
            true,
            &[
                "rules[0].host: expected a host such as shop.example.com or *.example.com, \
                 without a port, found \"a:80\"",
                "rules[0].path: expected a path that begins with /, found \"a b\"",
            ],
        ),
        (
            format!("{{port: 80, protocol: TCP, rules: [{{{one}, stickiness: {{cookie: a}}}}]}}"),
            false,
            &["rules[0].stickiness.cookie: only HTTP and HTTPS have cookies: expected source"],
        ),
        (
            rules(&format!("{{{one}, stickiness: {{source: 1m, maxAge: 1m}}}}")),
            true,
            &["rules[0].stickiness.maxAge: only a cookie has a maxAge; source has its time \
                 itself"],
        ),
        (
            format!("{{{http}, healthCheck: none, rules: [{{{one}, probe: tcp}}]}}"),
            false,
            &["rules[0].probe: the listener has no health checks: its healthCheck is none"],
        ),
    ];
    let (schema, mut otherwise) = (schema(), Vec::new());
    for (listener, schema_refuses, expected) in cases {
        assert_eq!(faults(&listener), expected, "{listener}");
        let violations = violations(&schema, &balancer(&format!("  - {listener}\n")));
        if violations.is_empty() == schema_refuses {
            otherwise.push(format!("{listener}: {violations:?}"));
        }
    }
    assert_eq!(otherwise, [""; 0], "the schema");
}

#[test]
fn what_only_works_together_is_accepted() {
    for listener in [
        // An IPv6 address in front of IPv4 targets, as a proxy whose source is its own.
        "{port: 80, protocol: HTTP, targets: ['10.0.0.11:80'], source: 10.1.0.0/24}",
        "{port: 80, protocol: HTTP, rules: [{targets: []}]}",
        "{port: 80, protocol: HTTP, rules: [{redirect: {tls: true}}]}",
        "{port: 80, protocol: HTTP, rules: [{path: /old, redirect: {port: 80, path: /new}}, \
         {targets: ['10.0.0.11:80']}]}",
        "{port: 53, protocol: UDP, targets: ['10.0.0.11:53'], healthCheck: {probe: udp}}",
        "{port: 53, protocol: TCP, targets: ['10.0.0.11:53'], healthCheck: none}",
    ] {
        assert_eq!(faults(listener), [""; 0], "{listener}");
    }
}

#[test]
fn a_vip_is_one_address() {
    let listener = "  - {port: 80, protocol: TCP, targets: ['10.0.0.11:80']}\n";
    let faults = |vip: &str| {
        let text = balancer(listener).replace("10.0.0.100", vip);
        read(&text).unwrap_err().lines().next().unwrap().to_owned()
    };
    assert_eq!(
        faults("0.0.0.0"),
        "lb.yaml:5:8: spec.vip: expected one address that clients call, found 0.0.0.0; write a \
         document for each address, because the VIP is also what packets are matched by and \
         health checks are sent from"
    );
    assert_eq!(
        faults("224.0.0.1"),
        "lb.yaml:5:8: spec.vip: expected one address that clients call, found 224.0.0.1"
    );
}

#[test]
fn faults_across_documents() {
    let listener = "  - {port: 9900, protocol: HTTP, targets: ['10.0.0.11:80']}\n";
    let process = "apiVersion: uturn.dev/v1alpha1\nkind: DataPlane\n\
                   spec: {admin: '10.0.0.100:9900', accessLog: off}\n";
    let group = "apiVersion: uturn.dev/v1alpha1\nkind: SecurityGroup\nmetadata: {name: sg-1}\n\
                 spec: {inbound: []}\n";
    let named = balancer(listener).replace("  vip:", "  securityGroups: [sg-1, sg-2]\n  vip:");
    let again = balancer(listener);
    let text = [process, process, group, group, &named, &again].join("---\n");
    assert_eq!(
        read(&text).unwrap_err(),
        "lb.yaml:5:1: a second DataPlane: the first is at lb.yaml:1:1\n\
         lb.yaml:7:15: spec.admin: 10.0.0.100:9900 is a listener's address, at lb.yaml:26:5\n\
         lb.yaml:16:18: metadata.name: security group sg-1 is defined more than once, first at \
         lb.yaml:11:18\n\
         lb.yaml:23:26: spec.securityGroups[1]: no SecurityGroup document defines sg-2\n\
         lb.yaml:30:18: metadata.name: load balancer web is defined more than once, first at \
         lb.yaml:21:18\n\
         lb.yaml:34:5: spec.listeners[0]: TCP 10.0.0.100:9900 has a listener already, at \
         lb.yaml:26:5\n"
    );
}

/// Derived documents are not checked for mistakes of people.
#[test]
fn a_derived_document_may_be_odd() {
    let odd = "  - {port: 80, protocol: TCP, http2: true, rules: [{}, {host: '', path: x}]}\n\
               \x20 - {port: 80, protocol: TCP, rules: []}\n";
    let text =
        balancer(odd).replace("  vip:", "  securityGroups: [unknown]\n  derived: true\n  vip:");
    let config = read(&text).unwrap();
    assert!(config.load_balancers[0].derived);
    assert!(read(&text.replace("  derived: true\n", "")).is_err());
    let wrong = text.replace("port: 80", "port: no");
    assert!(read(&wrong).unwrap_err().contains("expected a port"), "its form is checked");
}

#[test]
fn a_health_check_has_no_line_ends_whoever_wrote_it() {
    for (field, place) in
        [("path", "/a\\r\\nX: y"), ("path", "/\\u0000"), ("host", "a\\r\\nX: y"), ("host", "a\\n")]
    {
        let probe = format!("{{http: {{{field}: \"{place}\"}}}}");
        for derived in [false, true] {
            let text = balancer(&format!(
                "  - {{port: 80, protocol: HTTP, healthCheck: {{probe: {probe}}}, \
                 targets: ['10.0.0.11:80']}}\n"
            ));
            let text = text.replace("spec:\n", &format!("spec:\n  derived: {derived}\n"));
            let fault = read(&text).unwrap_err();
            let expected = format!(
                "spec.listeners[0].healthCheck.probe.http.{field}: expected no control characters"
            );
            assert!(fault.starts_with("lb.yaml:8:") && fault.contains(&expected), "{fault}");
            assert_eq!(fault.lines().count(), 1, "{fault}");
        }
    }
}
