//! Random Corefiles, and questions that match their contents.

use std::fmt::Write as _;

use uturn_dice::Dice;
use uturn_dns::{Question, RecordType};

use crate::world::{NAMESPACES, SERVICES};

const ZONES: [&str; 7] = [
    "example.com",
    "cluster.local",
    "shop.example.com",
    "test",
    "svc.cluster.local",
    "com",
    "internal",
];
const NAMES: [&str; 14] = [
    "shop.example.com",
    "www.example.com",
    "a.shop.example.com",
    "web.example.com",
    "api.shop.internal",
    "outside.test",
    "deep.down.outside.test",
    "web.shop.svc.cluster.local",
    "db.pay.svc.cluster.local",
    "ext.default.svc.cluster.local",
    "localhost",
    "localhost.shop.svc.cluster.local",
    "web.shop",
    "pre-web.shop.example.com",
];

/// A Corefile that listens on `port`, and on `behind` for forwarded queries.
pub(crate) fn corefile(dice: &mut Dice, api: u16, port: u16, behind: u16) -> String {
    let mut text = String::new();
    let snippet = dice.once_in(3);
    if snippet {
        let _ = writeln!(text, "(shared) {{\n    errors\n{}}}", rewrites(dice));
    }
    let mut zones: Vec<&str> = ZONES.to_vec();
    dice.shuffle(&mut zones);
    let blocks = 1 + dice.below(3);
    for at in 0..blocks {
        let zone = match at {
            0 if !dice.once_in(6) => ".",
            _ => zones[at],
        };
        let _ = write!(text, "{zone}:{port}");
        if dice.once_in(4) {
            let _ = write!(text, ", {}:{port}", zones[at + 3]);
        }
        let mut parts = vec!["    bind 127.0.0.1\n".to_owned()];
        if snippet && dice.once_in(2) {
            parts.push("    import shared # here\n".to_owned());
        }
        let root = zone == ".";
        let mut add = |dice: &mut Dice, one_in: usize, part: fn(&mut Dice) -> String| {
            if dice.once_in(one_in) {
                let part = part(dice);
                parts.push(part);
            }
        };
        add(dice, 1, rewrites);
        add(dice, 2, hosts);
        add(dice, 2, template);
        add(dice, 5, acl);
        add(dice, 3, |_| "    cache 30\n".to_owned());
        add(dice, 6, |_| "    local\n".to_owned());
        add(dice, 8, |_| "    whoami\n".to_owned());
        add(dice, 4, |_| "    loadbalance\n".to_owned());
        if !dice.once_in(4) {
            parts.push(kubernetes(dice, api));
        }
        if dice.once_in(3) {
            parts.push(forward(dice, behind, !root));
        }
        if !dice.once_in(5) {
            parts.push(forward(dice, behind, false));
        }
        dice.shuffle(&mut parts);
        let _ = writeln!(text, " {{\n{}}}", parts.concat());
    }
    let front = if dice.once_in(6) { spoiled(dice, &text) } else { text };
    // The first block is never spoiled, and comes before what is: an open quote would take it in,
    // and what another program answers at its port is nothing to predict.
    format!("{}{front}", upstream(behind))
}

/// The block that answers what the others forward.
fn upstream(port: u16) -> String {
    format!(
        ".:{port} {{\n    bind 127.0.0.1\n    hosts /dev/null {{\n        192.0.2.1 outside.test \
         www.example.com\n        2001:db8::1 outside.test\n        192.0.2.2 deep.down.outside.test \
         web.shop\n        fallthrough\n    }}\n    template ANY ANY {{\n        match \
         (^|[.])(example[.]com|test)[.]$\n        rcode NXDOMAIN\n        fallthrough\n    }}\n    \
         template IN A {{\n        answer \"{{{{ .Name }}}} 60 IN A 192.0.2.99\"\n    }}\n    \
         template ANY ANY {{\n        rcode NXDOMAIN\n    }}\n}}\n"
    )
}

/// The text with one token removed or added.
fn spoiled(dice: &mut Dice, text: &str) -> String {
    let words: Vec<(usize, &str)> = text
        .split_inclusive([' ', '\n'])
        .scan(0, |at, piece| {
            *at += piece.len();
            Some((*at - piece.len(), piece.trim_end()))
        })
        .filter(|(_, word)| !word.is_empty())
        .collect();
    let (at, word) = dice.choose(&words);
    let (before, after) = (&text[..at], &text[at + word.len()..]);
    match dice.below(3) {
        0 => format!("{before}{after}"),
        1 => format!("{before}{word} {word}{after}"),
        _ => format!("{before}\"{word}{after}"),
    }
}

fn rewrites(dice: &mut Dice) -> String {
    let mut text = String::new();
    for _ in 0..dice.below(4) {
        let mode = dice.choose(&["", "", "stop ", "continue ", "continue "]);
        let (from, to) = (dice.choose(&NAMES), dice.choose(&NAMES));
        let answer = dice.choose(&[
            "",
            " answer auto",
            r" answer name (.*)\.shop\.svc\.cluster\.local {1}.example.com",
            r" answer name (.+)\. {1} answer value (.*)\.svc\.cluster\.local\. {1}.internal",
        ]);
        let rule = match dice.below(13) {
            0..=3 => format!("name {from} {to}"),
            4 => format!("name exact {from} {to}{answer}"),
            5 => {
                let (from, to) =
                    (dice.choose(&["shop", "pre-web", "a"]), dice.choose(&["web", "api.x"]));
                format!("name prefix {from} {to}{answer}")
            }
            6 => {
                let from = dice.choose(&[".example.com", ".internal", "shop.example.com"]);
                let to = dice.choose(&[".shop.svc.cluster.local", ".test", ".example.com"]);
                format!("name suffix {from} {to}{answer}")
            }
            7 => format!("name substring shop.example.com {to}{answer}"),
            8 => {
                let pattern = dice.choose(&[
                    r"(.*)\.example\.com",
                    r"^([a-z-]+)\.(shop|pay)\.example\.com\.$",
                    r"^pre-(.*)\.shop\.(?:example|other)\.com\.$",
                    r"(w+)(\w*)[.]",
                ]);
                let to = dice.choose(&[
                    "{1}.shop.svc.cluster.local",
                    "{1}.{0}",
                    "web.shop.svc.cluster.local",
                    "{1}.test",
                ]);
                format!("name regex {pattern} {to}{answer}")
            }
            9 => dice
                .choose(&[
                    "type AAAA A",
                    "type A AAAA",
                    "type ANY HINFO",
                    "class CH IN",
                    "type A HINFO",
                ])
                .to_owned(),
            10 => format!("ttl {} 30-60", dice.choose(&NAMES)),
            11 => {
                let code =
                    dice.choose(&["NXDOMAIN NOERROR", "NOERROR NXDOMAIN", "SERVFAIL NXDOMAIN"]);
                format!("rcode regex {} {code}", dice.choose(&["(.*)", r"svc\.cluster\.local\.$"]))
            }
            _ => match dice.below(3) {
                0 => "edns0 local set 0xffee 0x61".to_owned(),
                1 => "edns0 local replace 0xffee 0x61".to_owned(),
                _ => format!("cname exact {from}. {to}."),
            },
        };
        match mode {
            "continue " if dice.once_in(3) => {
                let _ = writeln!(text, "    rewrite continue {{\n        {rule}\n    }}");
            }
            _ => {
                let _ = writeln!(text, "    rewrite {mode}{rule}");
            }
        }
    }
    text
}

fn fallthrough(dice: &mut Dice) -> &'static str {
    dice.choose(&[
        "",
        "        fallthrough\n",
        "        fallthrough\n",
        "        fallthrough example.com in-addr.arpa\n",
        "        fallthrough cluster.local\n",
    ])
}

fn hosts(dice: &mut Dice) -> String {
    let zones = dice.choose(&["", " example.com", " cluster.local test", " ."]);
    let mut text = format!("    hosts /dev/null{zones} {{\n");
    for at in 1..=dice.below(4) {
        let (first, other) = (dice.choose(&NAMES), dice.choose(&NAMES));
        let ip = dice.choose(&["198.51.100", "2001:db8:1:"]);
        let dot = if ip.contains('.') { "." } else { ":" };
        let _ = writeln!(text, "        {ip}{dot}{at} {first} {other} # {at}");
    }
    text + fallthrough(dice) + "    }\n"
}

fn template(dice: &mut Dice) -> String {
    let mut text = String::new();
    for _ in 0..=dice.below(2) {
        let (class, kind) =
            (dice.choose(&["IN", "IN", "ANY"]), dice.choose(&["A", "A", "AAAA", "ANY"]));
        let zones = dice.choose(&["", " example.com", " internal", " test cluster.local"]);
        let _ = writeln!(text, "    template {class} {kind}{zones} {{");
        text += dice.choose(&[
            "",
            "        match ^web[.](?P<where>.*)[.]com[.]$\n",
            "        match \"^(.*)[.]shop[.](internal|example[.]com)[.]$\"\n",
            "        match example internal[.]$\n",
        ]);
        text += match kind {
            "AAAA" => dice.choose(&[
                "        rcode NXDOMAIN\n",
                "        rcode NOERROR\n",
                "        answer \"{{ .Name }} AAAA 2001:db8::7\"\n",
            ]),
            "A" => dice.choose(&[
                "        answer \"{{ .Name }} 60 IN A 203.0.113.7\"\n        answer \"{{.Name}} A 203.0.113.8\"\n",
                "        answer \"{{ .Name }} IN 60 CNAME web.shop.svc.cluster.local.\"\n",
                "        answer \"{{ index .Match 1 }}.test. A 203.0.113.9\"\n",
                "        answer \"{{ .Group.where }}.{{ .Zone }} {{ .Class }} {{ .Type }} 203.0.113.10\"\n",
                "        rcode NXDOMAIN\n",
                "        answer \"{{ .Name }} 60 IN A 203.0.113\"\n",
            ]),
            _ => dice.choose(&[
                "        rcode REFUSED\n",
                "        rcode SERVFAIL\n",
                "        answer \"{{ .Name }} 60 IN CNAME outside.test.\"\n",
            ]),
        };
        text += fallthrough(dice);
        text += "    }\n";
    }
    text
}

fn acl(dice: &mut Dice) -> String {
    let zones = dice.choose(&["", " example.com", " cluster.local"]);
    let rule = dice.choose(&[
        "block type AAAA net *",
        "filter type A net 127.0.0.0/8",
        "allow net 10.0.0.0/8\n        block type HINFO",
        "allow type A\n        block net 127.0.0.1",
        "filter net 192.168.0.0/16",
    ]);
    format!("    acl{zones} {{\n        {rule}\n    }}\n")
}

fn kubernetes(dice: &mut Dice, api: u16) -> String {
    let zones = dice.choose(&[
        " cluster.local in-addr.arpa ip6.arpa",
        " cluster.local",
        " cluster.local svc.internal",
        " cluster.local example.com",
    ]);
    let mut text = format!("    kubernetes{zones} {{\n        endpoint http://127.0.0.1:{api}\n");
    text += dice.choose(&[
        "",
        "        pods disabled\n",
        "        pods insecure\n",
        "        pods insecure\n",
        "        pods verified\n",
    ]);
    let mut add = |dice: &mut Dice, one_in: usize, line: &str| {
        if dice.once_in(one_in) {
            let _ = writeln!(text, "        {line}");
        }
    };
    add(dice, 4, "namespaces shop pay");
    add(dice, 4, "endpoint_pod_names");
    add(dice, 8, "noendpoints");
    add(dice, 5, "ignore empty_service");
    add(dice, 5, "ttl 30");
    text + fallthrough(dice) + "    }\n"
}

fn forward(dice: &mut Dice, behind: u16, narrow: bool) -> String {
    let from = if narrow { dice.choose(&["test", "outside.test", "example.com"]) } else { "." };
    let rest = dice.choose(&[
        "",
        "",
        " {\n        except internal svc.cluster.local\n    }",
        " {\n        except example.com\n        next NXDOMAIN\n        max_fails 0\n    }",
        " {\n        policy sequential\n        force_tcp\n    }",
    ]);
    format!("    forward {from} 127.0.0.1:{behind}{rest}\n")
}

/// A question that is likely to match something.
pub(crate) fn question(dice: &mut Dice) -> Question {
    let zone = dice.choose(&[
        "cluster.local",
        "cluster.local",
        "cluster.local",
        "cluster.local",
        "svc.internal",
        "example.com",
    ]);
    let (service, namespace) = (dice.choose(&SERVICES), dice.choose(&NAMESPACES));
    let namespace = if dice.once_in(10) { "nowhere" } else { namespace };
    let full = format!("{service}.{namespace}.svc.{zone}");
    let number = dice.below(50);
    let name = match dice.below(16) {
        0..=3 => full,
        4 => {
            let first = dice.choose(&["host0", "host1", "p0", "p2", "_tcp", "x"]);
            format!("{first}.{full}")
        }
        5 => {
            let first = if dice.once_in(2) {
                format!("10-2-{number}-{}", dice.below(3))
            } else {
                format!("fd00-2--{number:x}-{}", dice.below(3))
            };
            format!("{first}.{full}")
        }
        6 => {
            let (port, protocol) =
                (dice.choose(&["_http", "_dns", "dns"]), dice.choose(&["_tcp", "_udp"]));
            format!("{port}.{protocol}.{full}")
        }
        7 => {
            let ip = dice.choose(&[
                "10-1-0-1",
                "10-1-1-2",
                "10-1-2-9",
                "fd00--1",
                "a-b-c-d",
                "1-2-3",
                "--ffff-102-304",
            ]);
            format!("{ip}.{namespace}.pod.{zone}")
        }
        8 => {
            let part = dice.choose(&[
                "svc",
                "pod",
                "a.b",
                "shop.svc",
                "pay.pod",
                "nowhere.svc",
                "one.two.three.web.shop.svc",
            ]);
            format!("{part}.{zone}")
        }
        9 => zone.to_owned(),
        10 => format!("{}.{}", dice.choose(&SERVICES), dice.choose(&ZONES)),
        11 => format!("always.{namespace}.svc.{zone}"),
        _ => dice.choose(&NAMES).to_owned(),
    };
    let kind = match dice.below(10) {
        0..=4 => RecordType::A,
        5..=8 => RecordType::Aaaa,
        _ => RecordType::Other("HINFO".into()),
    };
    Question::new(&name, kind)
}
