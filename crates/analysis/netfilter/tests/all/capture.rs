//! Captures: every file of a folder, in text and as `ip -j` prints it.
#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]

use crate::common::read;
use uturn_model::capture::CapturedText;
use uturn_model::{Capture, CaptureFile};
use uturn_netfilter::{NodeState, ParseError, addr, conntrack, policy_rules, routes};

const ADDRESSES: [&str; 2] = [
    "1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536\n    inet 127.0.0.1/8 scope host lo\n    inet6 ::1/128 scope host \n\
     2: vb@va: <BROADCAST,MULTICAST> mtu 1500\n3: va@vb: <UP> mtu 1500\n    inet 10.0.0.5 peer 10.0.0.6/32 scope global va\n",
    r#"[{"ifindex":1,"ifname":"lo","flags":["LOOPBACK","UP","LOWER_UP"],"mtu":65536,"addr_info":[
        {"family":"inet","local":"127.0.0.1","prefixlen":8,"scope":"host"},
        {"family":"inet6","local":"::1","prefixlen":128,"scope":"host"}]},
       {"ifindex":2,"link":"va","ifname":"vb","flags":["BROADCAST","MULTICAST"]},{},
       {"ifindex":3,"ifname":"va","flags":["UP"],"addr_info":[
        {"family":"inet","local":"10.0.0.5","address":"10.0.0.6","prefixlen":32}]}]"#,
];

const ROUTES: [&str; 2] = [
    "blackhole 10.9.0.0/16 table 100 \n\
     default metric 9 \n\tnexthop via 10.0.0.2 dev va weight 1 \n\tnexthop via 10.0.0.3 dev va weight 2 \n\
     10.0.0.0/24 dev va proto kernel scope link src 10.0.0.1 \n\
     10.8.0.0/16 via inet6 fe80::1 dev va \n\
     local 10.0.0.1 dev va table local proto kernel scope host src 10.0.0.1 \n\
     fd00:9::/64 metric 1024 pref medium\n\tnexthop via fe80::2 dev va weight 1 \n\tnexthop via fe80::3 dev va weight 1 \n\
     default via fe80::1 dev va metric 7 pref medium\n",
    r#"[{"type":"blackhole","dst":"10.9.0.0/16","table":"100","flags":[]},
        {"dst":"default","metric":9,"flags":[],"nexthops":[{"gateway":"10.0.0.2","dev":"va","weight":1,"flags":[]},{"gateway":"10.0.0.3","dev":"va","weight":2,"flags":[]}]},
        {"dst":"10.0.0.0/24","dev":"va","protocol":"kernel","scope":"link","prefsrc":"10.0.0.1","flags":[]},
        {"dst":"10.8.0.0/16","via":{"family":"inet6","host":"fe80::1"},"dev":"va","flags":[]},
        {"type":"local","dst":"10.0.0.1","dev":"va","table":"local","prefsrc":"10.0.0.1","flags":[]},
        {"dst":"10.5.0.0/16","dev":"va","flags":["dead","linkdown"]}]
       [{"dst":"fd00:9::/64","metric":1024,"flags":[],"pref":"medium","nexthops":[{"gateway":"fe80::2","dev":"va","weight":1,"flags":[]},{"gateway":"fe80::3","dev":"va","weight":1,"flags":[]}]},
        {"dst":"default","gateway":"fe80::1","dev":"va","metric":7,"flags":[],"pref":"medium"}]"#,
];

const RULES: [&str; 2] = [
    "0:\tfrom all lookup local\n200:\tnot from all fwmark 0x2 blackhole\n\
     32765:\tfrom 10.0.0.0/8 to 1.2.3.4 fwmark 0x1/0xff iif a [detached] lookup 100\n\
     32766:\tfrom all lookup main\n",
    r#"[{"priority":32766,"src":"all","table":"main"},{"priority":0,"src":"all","table":"local"},
        {"priority":200,"not":null,"src":"all","fwmark":"0x2","action":"blackhole"},
        {"priority":32765,"src":"10.0.0.0","srclen":8,"dst":"1.2.3.4","fwmark":"0x1","fwmask":"0xff","iif":"a","iif_detached":null,"table":"100"}]"#,
];

fn shown<T: std::fmt::Debug>(read: &[T]) -> Vec<String> {
    // Origins differ.
    let without = |parsed: &T| {
        let text = format!("{parsed:?}");
        text.split(", origin:").next().unwrap().to_owned()
    };
    read.iter().map(without).collect()
}

#[test]
fn both_forms_say_the_same() {
    let (text, json) = (ADDRESSES[0], ADDRESSES[1]);
    assert_eq!(addr::parse("a", text).unwrap(), addr::parse("a", json).unwrap());
    let of = |text: &str| shown(&routes::parse("r", text).unwrap());
    assert_eq!(of(ROUTES[0]), of(ROUTES[1]));
    assert_eq!(of(ROUTES[0]).len(), 9);
    let of = |text: &str| shown(&policy_rules::parse("r", text).unwrap());
    assert_eq!(of(RULES[0]), of(RULES[1]));
    let odd = r#"[{"priority":199,"src":"all","flowlabel":"0x7","table":"7"}]"#;
    let rules = policy_rules::parse("r", odd).unwrap();
    assert!(format!("{:?}", rules[0].action).contains("with flowlabel"));
}

#[test]
fn objects_know_their_place() {
    let routes = routes::parse("route", ROUTES[1]).unwrap();
    assert_eq!(routes[3].origin.to_string(), "route:3:9");
    let bad = "[{\"dst\":\"default\",\"dev\":\"a\"},\n {\"dst\":\"10.0.0.0/99\",\"dev\":\"a\"},\n 7, {\"dev\":\"a\"}]";
    let errors = |read: Vec<ParseError>| read.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(
        errors(routes::parse("r", bad).unwrap_err()),
        ["r:3:2: found a value, expected an object"]
    );
    assert_eq!(
        errors(routes::parse("r", &bad.replace("7, ", "")).unwrap_err()),
        [
            r#"r:2:2: "dst": found "10.0.0.0/99", expected a destination"#,
            r#"r:3:2: found no "dst", expected a destination"#,
        ]
    );
    assert_eq!(
        errors(
            addr::parse("a", "[{\"ifname\":\"a\",\"addr_info\":[{\"local\":\"x\"}]}]").unwrap_err()
        ),
        [r#"a:1:2: "local": found "x", expected an address"#]
    );
    assert_eq!(
        errors(policy_rules::parse("r", "[{\"priority\":1,\"src\":\"all\"}]").unwrap_err()),
        [r#"r:1:2: found no "table", expected an action"#]
    );
}

#[test]
fn a_file_cut_anywhere_is_read_or_refused() {
    for text in [ADDRESSES, ROUTES, RULES].concat() {
        for end in 0..text.len() {
            let cut = &text[..end];
            let refused = [
                addr::parse("a", cut).is_err(),
                routes::parse("r", cut).is_err(),
                policy_rules::parse("r", cut).is_err(),
                conntrack::parse("c", cut).is_err(),
            ];
            // JSON ends with its last bracket; before the second list, it is a whole one.
            let whole = cut.ends_with(']') || cut.trim_end().ends_with("]}]") || cut.is_empty();
            let json = text.starts_with('[') && !whole;
            assert!(!json || refused[..3].iter().all(|refused| *refused), "{cut:?}");
        }
    }
}

#[test]
fn every_file_of_a_capture_is_read_and_every_fault_is_named() {
    let capture = |files: &[(CaptureFile, String)]| Capture {
        node: "n1".parse().unwrap(),
        files: files
            .iter()
            .map(|(file, text)| {
                let path = format!("captures/n1/{}", file.file_name());
                (*file, CapturedText { path: path.into(), text: text.clone().into() })
            })
            .collect(),
    };
    let golden: Vec<(CaptureFile, String)> = CaptureFile::ALL
        .into_iter()
        .filter(|file| {
            use CaptureFile::{Manifest, NftJson, OtherIp6tables, OtherIptables};
            ![NftJson, OtherIptables, OtherIp6tables, Manifest].contains(file)
        })
        .map(|file| {
            if file == CaptureFile::Nft {
                return (file, "table ip filter {\n}\n".to_owned());
            }
            let set = matches!(file, CaptureFile::Ipset | CaptureFile::Ipvs);
            let node = if set { "ipvs-n1" } else { "iptables-n1" };
            (file, read(node, file.file_name()))
        })
        .collect();
    let state = NodeState::from_capture(&capture(&golden)).unwrap();
    assert!(!state.iptables.tables.is_empty() && !state.ip6tables.tables.is_empty());
    assert_eq!(state.nft.tables.len(), 1);
    assert!(!state.interfaces.is_empty() && !state.routes.is_empty() && !state.rules.is_empty());
    assert_eq!((state.sets.0.len(), state.ipvs.0.len()), (34, 67));
    assert!(state.sysctls.get("net.ipv4.conf.all.route_localnet").is_some());

    let bad: Vec<(CaptureFile, String)> =
        golden.iter().map(|(file, _)| (*file, "?! bad\n".to_owned())).collect();
    let errors = NodeState::from_capture(&capture(&bad)).unwrap_err();
    for (file, _) in &bad {
        let place = format!("captures/n1/{}:1:", file.file_name());
        assert!(errors.iter().any(|error| error.to_string().starts_with(&place)), "{place}");
    }
}

/// Compares both output formats of the real tool in a network namespace.
#[test]
fn the_real_tool_says_the_same_in_both_forms() {
    // On links, the kernel adds IPv6 routes some time after they are up: between two listings.
    let set_up = "echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6; ip link set lo up; \
        ip -6 addr add fd00::1/64 dev lo; ip link add va type veth peer name vb; ip link set va up; \
        ip link set vb up; ip addr add 10.0.0.1/24 dev va; ip addr add 10.0.0.5 peer 10.0.0.6/32 dev va; \
        ip route add default metric 9 nexthop via 10.0.0.2 dev va nexthop via 10.0.0.3 dev va; \
        ip route add blackhole 10.9.0.0/16 table 100; \
        ip rule add from 10.0.0.0/8 to 1.2.3.4 fwmark 0x1/0xff iif va lookup 100; \
        ip rule add not fwmark 0x2 blackhole pref 200; ";
    let run = |commands: &str| uturn_testing::in_a_namespace(&format!("{set_up}{commands}"), "");
    // The same namespace for both: hardware addresses are random.
    let both = |object: &str| {
        run(&format!("ip {object}; echo ===; ip -j {object}")).map(|text| {
            text.split_once("===\n").map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap()
        })
    };
    let (text, json) = match both("addr") {
        Ok(both) => both,
        Err(why) => {
            uturn_testing::skip(
                uturn_testing::Requirement::Kernel,
                "reading what the real ip prints",
                why,
            );
            return;
        }
    };
    assert_eq!(addr::parse("a", &text).unwrap(), addr::parse("a", &json).unwrap());
    let (text, json) = both("link").unwrap();
    assert_eq!(addr::parse("a", &text).unwrap(), addr::parse("a", &json).unwrap());
    let (text, json) = both("route show table all").unwrap();
    let of = |text: &str| shown(&routes::parse("r", text).unwrap());
    assert_eq!(of(&text), of(&json));
    let (text, json) = both("rule").unwrap();
    let of = |text: &str| shown(&policy_rules::parse("r", text).unwrap());
    assert_eq!(of(&text), of(&json));
    assert_eq!(of(&text).len(), 5);
}
