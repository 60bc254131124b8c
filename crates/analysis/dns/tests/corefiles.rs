//! What a real CoreDNS 1.12.4 does with Corefiles that are rare, where there is none to ask.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use uturn_dns::{Answer, Corefile, NoUpstream, QueryContext, Question, Rcode, RecordType};
use uturn_model::{Origin, Version, dns};
use uturn_snapshot::Source;

const OLDER: Option<Version> = Some(Version::new(1, 14, 6));
const NEWER: Option<Version> = Some(Version::new(1, 14, 7));

fn read(block: &str, release: Option<Version>) -> Result<Corefile, String> {
    let corefile = dns::Corefile {
        text: format!(".:53 {{\n{block}\n}}\n").into(),
        origin: Origin::file("Corefile"),
        beside: Vec::new(),
        release,
    };
    Corefile::read("coredns", &corefile).map_err(|faults| faults.first().unwrap().message.clone())
}

/// The code of the answer for `a.test`; `None` if it is unknown.
fn code(block: &str, release: Option<Version>) -> Option<Rcode> {
    let corefile = read(block, release).unwrap();
    let nothing = Source { name: "objects".into(), text: String::new() };
    let cluster = uturn_snapshot::read(vec![nothing]).unwrap().cluster;
    let context = QueryContext { cluster: &cluster, client: None, upstream_servers: &NoUpstream };
    match corefile.ask(&context, None, 53, Question::new("a.test.", RecordType::A)).0 {
        Answer::Reply(reply) => Some(reply.rcode),
        Answer::Silence => panic!("no answer"),
        Answer::Unknown(_) => None,
    }
}

#[test]
fn corefiles_are_refused_as_coredns_refuses_them() {
    for (block, expected) in [
        ("bind", "bind expects at least one address or interface"),
        ("bind eth0 {\nexcept\n}", "except expects at least one address or interface"),
        ("bind eth0 {\nunless 10.0.0.1\n}", "bind does not know unless"),
        ("bind 127.0.0.1 127.0.0.1", "zone . is served twice on port 53"),
        ("bind 127.0.0.1\nbind 127.0.0.1", "zone . is served twice on port 53"),
        (
            "rewrite name suffix .a .b answer name {1} answer",
            "{1} is not a regular expression: a repetition has nothing to repeat",
        ),
        (
            "rewrite name regex a** b",
            "a** is not a regular expression: a repetition of a repetition",
        ),
        ("template IN A {\nmatch (a\n}", "(a is not a regular expression: a group is not closed"),
        ("kubernetes 10.in-addr.arpa", "kubernetes needs a zone that is not a reverse one"),
        ("forward . .", "expected 1 to 15 servers, found 0"),
    ] {
        assert_eq!(read(block, None).err().as_deref(), Some(expected), "{block}");
    }
    for block in [
        "bind 127.0.0.1 ::1\nwhoami",
        "bind eth0 127.0.0.1 {\nexcept 127.0.0.1\n}\nbind 127.0.0.1\nwhoami",
        "kubernetes in-addr.arpa ip6.arpa",
        "forward . . 10.0.0.1",
    ] {
        assert_eq!(read(block, None).err(), None, "{block}");
    }
}

/// Before 1.14.7 only records lead to the rules for codes.
#[test]
fn codes_of_answers_are_changed_with_the_records() {
    let rule = "rewrite rcode regex (.*) NOERROR NXDOMAIN\n";
    let bare = format!("{rule}template IN A {{\nrcode NOERROR\n}}");
    let authority = "authority \"a.test. 60 IN NS b.test.\"";
    let with_authority = format!("{rule}template IN A {{\nrcode NOERROR\n{authority}\n}}");
    let with_edns = format!("rewrite continue edns0 local replace 0xffee 0x61\n{bare}");
    for (block, older, newer, unknown) in [
        (&bare, Some(Rcode::NoError), Some(Rcode::NxDomain), None),
        (&with_authority, Some(Rcode::NxDomain), Some(Rcode::NxDomain), Some(Rcode::NxDomain)),
        (
            &format!("{rule}whoami"),
            Some(Rcode::NxDomain),
            Some(Rcode::NxDomain),
            Some(Rcode::NxDomain),
        ),
        // Whether the answer has an EDNS record is not known.
        (&with_edns, None, Some(Rcode::NxDomain), None),
    ] {
        assert_eq!(code(block, OLDER), older, "{block}");
        assert_eq!(code(block, NEWER), newer, "{block}");
        assert_eq!(code(block, None), unknown, "{block}");
    }
}
