//! nftables dumps: the text and JSON of one node parse into the same model, and print back.
#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]

use crate::common::read;
use proptest::prelude::*;
use uturn_netfilter::nft::{self, Expr, Rule, Ruleset, Statement};

const NODES: [&str; 3] = ["nftables-n1", "nftables-n2", "nftables-n3"];

fn parse(name: &str, text: &str) -> Ruleset {
    nft::parse(name, text).unwrap_or_else(|errors| panic!("{name}: {errors:#?}"))
}

/// Removes what the JSON of nft 1.0 omits.
fn as_json_says(mut ruleset: Ruleset) -> Ruleset {
    for table in &mut ruleset.tables {
        table.comment = None;
        for chain in &mut table.chains {
            chain.comment = None;
            for device in chain.base.iter_mut() {
                device.devices.clear();
            }
        }
        for set in &mut table.sets {
            set.auto_merge = false;
            set.timeout = set.timeout.filter(|time| time.as_secs() > 0);
            if set.typeof_key {
                set.key.clear();
            }
            (set.typeof_key, set.typeof_data) = (false, false);
            for element in &mut set.elements {
                element.expires = None;
            }
        }
    }
    ruleset
}

#[test]
fn rules_print_back_to_the_letter() {
    for (node, file) in NODES.map(|node| (node, "nft.txt")).into_iter().chain([("nft", "all.txt")])
    {
        let text = read(node, file);
        let printed = parse(file, &text).to_string();
        for (at, (mine, theirs)) in printed.lines().zip(text.lines()).enumerate() {
            assert_eq!(mine, theirs, "{node}/{file}:{}", at + 1);
        }
        assert_eq!(printed, text, "{node}");
    }
}

#[test]
fn nothing_of_them_is_unknown() {
    for node in NODES {
        for file in ["nft.txt", "nft.json"] {
            let ruleset = parse(file, &read(node, file));
            let rules =
                ruleset.tables.iter().flat_map(|table| &table.chains).flat_map(|c| &c.rules);
            for rule in rules {
                assert!(
                    !rule
                        .statements
                        .iter()
                        .any(|statement| matches!(statement, Statement::Unknown(_))),
                    "{rule:?}"
                );
            }
        }
    }
}

#[test]
fn text_and_json_are_one_model() {
    for (node, text, json) in NODES
        .map(|node| (node, "nft.txt", "nft.json"))
        .into_iter()
        .chain([("nft", "all.txt", "all.json")])
    {
        let text = as_json_says(parse(text, &read(node, text)));
        let json = as_json_says(parse(json, &read(node, json)));
        assert_eq!(text.tables.len(), json.tables.len());
        for (text, json) in text.tables.iter().zip(&json.tables) {
            for (text, json) in text.chains.iter().zip(&json.chains) {
                for (text, json) in text.rules.iter().zip(&json.rules) {
                    let known = |rule: &Rule| {
                        let mut rule = rule.clone();
                        for statement in &mut rule.statements {
                            match statement {
                                // Kept as written, which differs between the two.
                                Statement::Unknown(text) => *text = "".into(),
                                Statement::Match { left: Expr::Other(left), right, .. } => {
                                    (*left, *right) = ("".into(), Expr::Any);
                                }
                                Statement::Match {
                                    left: Expr::Ct(_, "expiration"), right, ..
                                } => {
                                    *right = Expr::Any;
                                }
                                _ => {}
                            }
                        }
                        rule
                    };
                    assert_eq!(known(text), known(json), "{node}");
                }
            }
            for (text, json) in text.sets.iter().zip(&json.sets) {
                if text.key.is_empty() {
                    continue;
                }
                assert_eq!(text, json, "{node}");
            }
            assert_eq!(text.objects, json.objects, "{node}");
        }
    }
}

#[test]
fn a_cut_text_says_so_and_where() {
    let text = read("nftables-n1", "nft.txt");
    let all = read("nft", "all.txt");
    let end = text.find("chain service-EKJBYN4T").unwrap();
    for (text, end) in [(&text, end), (&all, all.len())] {
        for at in (0..end).filter(|at| text.is_char_boundary(*at)) {
            match nft::parse("cut", &text[..at]) {
                // A cut between two tables is undetectable.
                Ok(ruleset) => {
                    let whole = text[..at].trim_end();
                    assert!(whole.is_empty() || whole.ends_with("\n}"), "{at}: {ruleset:?}");
                }
                Err(errors) => assert!(errors.iter().all(|error| error.origin.line() > 0)),
            }
        }
    }
}

#[test]
fn cut_json_says_so_and_where() {
    let text = read("nftables-n1", "nft.json");
    let cut = 20_000;
    for at in (1..cut).chain(text.trim_end().len() - 500..text.trim_end().len()) {
        let errors = nft::parse("cut", &text[..at]).unwrap_err();
        assert_eq!(errors.len(), 1);
        assert!(errors[0].origin.line() == 1 && errors[0].origin.column() > 0);
    }
}

#[test]
fn every_fault_is_named_with_its_place() {
    let text = "table ip t {\n\tset s {\n\t\ttype ipv4_addr\n\t\telements = { 10.0.0.1 10.0.0.2 }\n\t}\n\
                \tchain c {\n\t\ttype filter hook nowhere priority 0; policy accept;\n\t}\n\tnonsense\n}\n\
                tabel ip u {\n}\n";
    let errors = nft::parse("nft.txt", text).unwrap_err();
    let shown: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(
        shown,
        [
            "nft.txt:4:25: found \"10.0.0.2\", expected `,` or `}`",
            "nft.txt:7:20: found \"nowhere\", expected a hook, such as `prerouting`",
            "nft.txt:9:10: expected a chain, a set, a map or an object",
            "nft.txt:11:1: found \"tabel\", expected `table`",
            "nft.txt:12:1: found `}`, expected `table`",
        ]
    );
    let errors =
        nft::parse("nft.json", r#"{"nftables": [{"rule": {"family": "ip"}}]}"#).unwrap_err();
    assert_eq!(errors[0].to_string(), "nft.json:1:24: expected a `table` in this rule");
}

#[test]
fn what_would_be_read_as_something_else_is_refused() {
    let errors = |text: &str| -> Vec<String> {
        nft::parse("nft.txt", text).unwrap_err().iter().map(ToString::to_string).collect()
    };
    let twice = "table ip t {\n\tset c {\n\t\ttype mark\n\t}\n\tchain c {\n\t}\n\tchain c {\n\t}\n}\n\
                 table ip t {\n\tset c {\n\t\ttype mark\n\t}\n}\ntable ip6 t {\n\tchain c {\n\t}\n}\n";
    assert_eq!(
        errors(twice),
        [
            "nft.txt:7: chain c a second time, first at nft.txt:5",
            "nft.txt:11: set c a second time, first at nft.txt:2",
        ]
    );
    let table = r#"{"table": {"family": "ip", "name": "t"}}"#;
    let json = format!("{{\"nftables\": [{table},\n{table}]}}");
    assert_eq!(errors(&json), ["nft.txt:2:1: table ip t a second time, first at nft.txt:1:15"]);
}

#[test]
fn what_nft_could_not_print_is_no_rule_without_it() {
    let rules = [
        ("xt match \"statistic\" counter packets 0 bytes 0 accept", 2),
        ("ip daddr 10.0.0.1 # match-set foo dst counter packets 3 bytes 4 drop", 3),
        ("foo # match-set foo dst drop", 3),
        ("osf name \"Linux\" ttl skip drop", 2),
        ("frobnicate { 1, 2 } ip saddr 10.0.0.1 jump c", 2),
        ("# xt_addrtype counter packets 0 bytes 0 jump c", 3),
        ("# match-set foo dst counter packets 0 bytes 0 drop", 3),
        ("counter name ip saddr map { 10.0.0.1 : \"a\" } drop", 2),
        ("udp dport 4789 vxlan ip saddr 10.0.0.1 drop", 3),
    ];
    for (rule, least) in rules {
        let text = format!("table ip t {{\n\tchain c {{\n\t\t{rule}\n\t}}\n}}\n");
        let ruleset = parse("xt", &text);
        let statements = &ruleset.tables[0].chains[0].rules[0].statements;
        assert!(statements.len() >= least, "{statements:?}");
        let open = |statement: &Statement| {
            matches!(statement, Statement::Unknown(_) | Statement::Xt(..))
                || matches!(statement, Statement::Match { left: Expr::Other(_), .. })
        };
        assert!(statements.iter().any(open), "{statements:?}");
        assert!(matches!(statements.last(), Some(Statement::Verdict(_))), "{statements:?}");
        assert_eq!(ruleset.to_string(), text);
    }
}

/// A condition after an unknown statement may refer to another packet.
#[test]
fn behind_what_is_not_understood_only_acts_are_trusted() {
    let text = "table ip t {\n\tchain c {\n\t\tfrobnicate ip saddr 10.0.0.1 drop\n\t}\n}\n";
    let ruleset = parse("nft.txt", text);
    let statements = &ruleset.tables[0].chains[0].rules[0].statements;
    assert!(
        !statements.iter().any(|statement| matches!(statement, Statement::Match { .. })),
        "{statements:?}"
    );
    // A comment in a file written by hand is not a rule.
    let remarks = "table ip t {\n\tchain c {\n\t\t# all others drop\n\t\taccept\n\t}\n}\n";
    assert_eq!(parse("nft.conf", remarks).tables[0].chains[0].rules.len(), 1);
}

/// The named priorities of each family and hook, with their values.
#[test]
fn priorities_have_names_in_their_hooks() {
    let priority = |family: &str, hook: &str, priority: &str| {
        let hook = match (family, hook) {
            ("netdev", _) | (_, "ingress" | "egress") => format!("{hook} device \"eth0\""),
            _ => hook.to_owned(),
        };
        let text = format!(
            "table {family} t {{\n\tchain c {{\n\t\ttype filter hook {hook} priority \
             {priority}; policy accept;\n\t}}\n}}\n"
        );
        let ruleset = nft::parse("nft.txt", &text).map_err(|errors| errors[0].to_string())?;
        Ok::<i32, String>(ruleset.tables[0].chains[0].base.as_ref().unwrap().priority)
    };
    for family in ["ip", "ip6", "inet"] {
        for (hook, name, number) in [
            ("prerouting", "raw", -300),
            ("output", "raw - 5", -305),
            ("forward", "mangle + 3", -147),
            ("prerouting", "dstnat", -100),
            ("prerouting", "dstnat + 5", -95),
            ("output", "dstnat", -100),
            ("output", "dstnat - 10", -110),
            ("input", "filter - 10", -10),
            ("input", "security", 50),
            ("postrouting", "srcnat", 100),
            ("input", "srcnat + 1", 101),
            ("forward", "-42", -42),
        ] {
            assert_eq!(priority(family, hook, name), Ok(number), "{family} {hook} {name}");
        }
    }
    assert_eq!(priority("inet", "ingress", "mangle"), Ok(-150));
    for (family, hook, name, number) in [
        ("bridge", "prerouting", "dstnat", -300),
        ("bridge", "forward", "filter + 1", -199),
        ("bridge", "output", "out", 100),
        ("bridge", "postrouting", "srcnat - 2", 298),
        ("arp", "input", "filter", 0),
        ("netdev", "ingress", "filter + 5", 5),
        ("netdev", "egress", "filter", 0),
    ] {
        assert_eq!(priority(family, hook, name), Ok(number), "{family} {hook} {name}");
    }
    for (family, hook, name) in [
        ("ip", "forward", "dstnat"),
        ("ip", "prerouting", "srcnat"),
        ("ip", "output", "out"),
        ("bridge", "output", "dstnat"),
        ("bridge", "input", "mangle"),
        ("arp", "input", "raw"),
        ("netdev", "ingress", "srcnat"),
    ] {
        let error = priority(family, hook, name).unwrap_err();
        assert!(error.contains(&format!("found {name:?}")) && error.contains(hook), "{error}");
    }
    assert_eq!(
        priority("bridge", "output", "dstnat").unwrap_err(),
        "nft.txt:3:36: found \"dstnat\", expected a number or a priority of the hook output in a \
         table of bridge: `filter`, `out`"
    );
}

/// The forms in which different releases print one rule.
#[test]
fn releases_print_one_rule_in_several_ways() {
    for (older, newer) in [
        ("fib saddr . iif oif missing drop", "fib saddr . iif check missing drop"),
        (
            "tcp flags syn / fin,syn,rst,ack accept",
            "tcp flags & (fin | syn | rst | ack) == syn accept",
        ),
        (
            "tcp flags syn,ack / syn,rst,ack accept",
            "tcp flags & (syn | rst | ack) == syn | ack accept",
        ),
        ("reject with icmp type host-unreachable", "reject with icmp host-unreachable"),
        ("reject with icmpx type port-unreachable", "reject with icmpx port-unreachable"),
        ("flow offload @f", "flow add @f"),
    ] {
        let rule = |text: &str| {
            let text = format!("table inet t {{\n\tchain c {{\n\t\t{text}\n\t}}\n}}\n");
            parse("nft.txt", &text).tables[0].chains[0].rules[0].clone()
        };
        assert_eq!(rule(older), rule(newer), "{older}");
        let known = |statement: &Statement| !matches!(statement, Statement::Unknown(_));
        assert!(rule(newer).statements.iter().all(known), "{newer}");
    }
}

/// `jump { … }` jumps to an anonymous chain.
#[test]
fn chains_without_a_name_are_chains() {
    let text = "table ip t {\n\tchain c {\n\t\ttype filter hook forward priority filter; policy accept;\n\
        \t\ttcp dport { 80, 443 } jump { # handle 2\n\t\t\tip saddr 10.0.0.0/8 goto {\n\t\t\t\tdrop\n\t\t\t}\n\
        \t\t\tfrobnicate 1 jump {\n\t\t\t\taccept\n\t\t\t}\n\t\t} comment \"web\" # handle 5\n\t\taccept\n\t}\n}\n";
    let ruleset = parse("nft.txt", text);
    let table = &ruleset.tables[0];
    let rules: Vec<usize> = table.chains.iter().map(|chain| chain.rules.len()).collect();
    assert_eq!(rules, [2, 1, 1, 2], "{ruleset}");
    assert_eq!(table.chains[0].rules[0].comment.as_deref(), Some("web"));
    assert_eq!(parse("again", &ruleset.to_string()), ruleset);
    let cut = nft::parse("nft.txt", &text[..text.find("drop").unwrap()]).unwrap_err();
    assert!(cut[0].to_string().contains("it is cut"), "{cut:?}");
}

#[test]
fn keys_of_sets_and_what_elements_keep() {
    let set = |lines: &str| {
        let text = format!("table inet t {{\n\tset s {{\n\t\t{lines}\n\t}}\n}}\n");
        let ruleset = parse("nft.txt", &text);
        assert_eq!(parse("again", &ruleset.to_string()), ruleset);
        ruleset.tables[0].sets[0].clone()
    };
    let flags = set("type tcp_flag\n\t\telements = { fin | ack, syn,\n\t\t\t     rst }");
    assert_eq!(flags.elements.len(), 3);
    let raw = set("typeof udp length . @ih,32,32\n\t\telements = { 30 . 0x1e }");
    assert_eq!(raw.key.len(), 2);
    let kept = set(
        "type ipv4_addr\n\t\tct count over 2\n\t\telements = { 10.0.0.1 ct count over 5 timeout 1h expires 30m5s100ms comment \"a, b\", 10.0.0.2 last used 3s }",
    );
    assert_eq!(kept.elements.len(), 2);
    assert!(kept.elements[0].timeout.is_some() && kept.elements[0].comment.is_some());
    let timed = set(
        "type ipv4_addr\n\t\tsize 128\t# count 1\n\t\tflags timeout\n\t\telements = { 10.0.0.1 timeout 1h expires 30m }",
    );
    assert_eq!((timed.size, timed.elements.len()), (Some(128), 1));
}

#[test]
fn handles_say_nothing() {
    let plain = "table ip t {\n\tchain c {\n\t\tcounter packets 1 bytes 2\n\t}\n}\n";
    let handles = "table ip t { # handle 4\n\tchain c { # handle 1\n\t\tcounter packets 1 bytes 2 # handle 2\n\t}\n}\n";
    assert_eq!(parse("a", plain), parse("b", handles));
}

proptest! {
    #[test]
    fn what_is_printed_reads_back(picks in prop::collection::vec((0usize..200, 0usize..200), 1..20)) {
        // Statements of real rules, mixed.
        let all = parse("all", &read("nft", "all.txt"));
        let rules: Vec<&Rule> =
            all.tables.iter().flat_map(|table| &table.chains).flat_map(|chain| &chain.rules).collect();
        let mut table = all.tables[0].clone();
        table.chains.truncate(1);
        for (base, other) in picks {
            let (base, other) = (rules[base % rules.len()], rules[other % rules.len()]);
            let mut rule = base.clone();
            let is_end = |statement: &Statement| matches!(statement, Statement::Unknown(_));
            if !rule.statements.iter().any(is_end) {
                rule.statements.extend(other.statements.iter().cloned());
            }
            table.chains[0].rules.push(rule);
        }
        let ruleset = Ruleset { tables: vec![table] };
        prop_assert_eq!(parse("printed", &ruleset.to_string()), ruleset);
    }

    #[test]
    fn no_text_makes_it_panic(text in "(table ip t \\{\n|chain c \\{\n|set s \\{\n|type filter hook input priority|elements = \\{|[a-z0-9@:. /{}(),;#\"\n-]|ip saddr |meta mark set |\\|){0,60}") {
        let _ = nft::parse("any", &text);
    }

    #[test]
    fn no_json_makes_it_panic(text in "\\{(\"nftables\": ?\\[|\\{\"[a-z]{1,5}\":|\\[|\\]|\\}|,|[0-9]{1,3}|\"[a-z]*\"|null|:){0,40}") {
        let _ = nft::parse("any", &text);
    }
}
