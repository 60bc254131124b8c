//! Small inputs whose work doubles with each of their levels unless something limits it.
//! `tests/families.rs` checks their cost, in a process with limits.
//!
//! [`crate::shape`] repeats parts of seeds, and finds work that grows faster than the length of an
//! input. In the inputs here, parts refer to each other.

pub mod clusters;

use crate::small_node::{ADDRESSES, DEFAULT_ROUTE, OTHER_ROUTES};

/// A family of inputs.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// A description of the part that doubles.
    pub name: &'static str,
    /// The target that takes the inputs.
    pub target: &'static str,
    /// Whether the target has to accept all of the inputs.
    pub is_taken: bool,
    /// Returns the input with this number of levels.
    pub text: fn(usize) -> String,
}

const fn taken(name: &'static str, target: &'static str, text: fn(usize) -> String) -> Family {
    Family { name, target, is_taken: true, text }
}

const fn may_be_refused(
    name: &'static str,
    target: &'static str,
    text: fn(usize) -> String,
) -> Family {
    Family { name, target, is_taken: false, text }
}

/// All families.
pub const FAMILIES: &[Family] = &[
    taken("chains, random return", "walk", |levels| chains(levels, &format!("{HALF} -j RETURN"))),
    taken("chains, random mark", "walk", |levels| {
        chains(levels, &format!("{HALF} -j MARK --set-xmark 0x1/0x0"))
    }),
    taken("chains, random drop", "walk", |levels| chains(levels, &format!("{HALF} -j DROP"))),
    taken("chains, every third", "walk", |levels| {
        chains(levels, "-m statistic --mode nth --every 3 --packet 0 -j RETURN")
    }),
    taken("chains, unknown match", "walk", |levels| {
        chains(levels, "-p tcp -m osf --genre Linux --ttl 1 -j RETURN")
    }),
    taken("chains, unknown target", "walk", |levels| chains(levels, "-j NFQUEUE --queue-num 1")),
    taken("chains, marks that are noted", "walk", |levels| {
        chains(levels, "-j MARK --set-xmark 0x1/0x0")
    }),
    taken("gotos that part and meet", "walk", gotos),
    taken("marks that all differ", "walk", |levels| {
        each(levels, |bit| {
            let bit = 1_u32 << (bit % 32);
            format!("-A FORWARD {HALF} -j MARK --set-xmark {bit:#x}/{bit:#x}\n")
        })
    }),
    taken("questions that all differ", "walk", |levels| {
        each(levels, |number| {
            format!(
                "-A FORWARD -p tcp -m osf --genre S{number} --ttl 1 -j MARK --set-xmark {number:#x}/0xff\n"
            )
        })
    }),
    taken("ranges of addresses on both sides", "walk", |levels| {
        let mut text = "*nat\n:PREROUTING ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\n".to_owned();
        for _ in 0..levels {
            text.push_str("-A PREROUTING -j DNAT --to-destination 10.9.0.0-10.9.255.255\n");
            text.push_str("-A POSTROUTING -j SNAT --to-source 10.8.0.0-10.8.255.255\n");
        }
        text + "COMMIT\n"
    }),
    taken("nftables jumps, random return", "capture", |levels| {
        nft(levels, "jump", "", "numgen random mod 2 0 return")
    }),
    taken("nftables jumps, random mark", "capture", |levels| {
        nft(levels, "jump", "", "numgen random mod 4 < 2 meta mark set 1")
    }),
    taken("nftables jumps, hash", "capture", |levels| {
        nft(levels, "jump", "", "jhash ip saddr mod 7 vmap { 0 : drop, 1 : accept }")
    }),
    taken("nftables verdict maps", "capture", |levels| {
        nft(levels, "meta l4proto vmap { tcp : jump", " }", "numgen inc mod 3 0 drop")
    }),
    taken("nftables random verdict maps", "capture", |levels| {
        nft(levels, "numgen random mod 3 vmap { 0 : continue, 1 : return, 2 : jump", " }", "drop")
    }),
    taken("nftables gotos of a verdict map", "capture", |levels| {
        nft(levels, "numgen random mod 2 vmap { 0 : continue, 1 : goto", " }", "ip ttl 7 drop")
    }),
    taken("nftables sets that rules fill", "capture", |levels| {
        nft(levels, "jump", "", "numgen random mod 2 0 update @s { ip saddr }")
    }),
    taken("users of policy rules", "capture", policy_users),
    taken("gotos of policy rules", "capture", policy_gotos),
    taken("routes of one rank", "capture", equal_routes),
    taken("real servers of virtual servers", "capture", real_servers),
    taken("sets of sets", "capture", sets_of_sets),
    may_be_refused("snippets that import the next twice", "corefile", |levels| {
        let mut text = "(s0) {\n    errors\n}\n".to_owned();
        for level in 1..=levels {
            text.push_str(&format!(
                "(s{level}) {{\n    import s{0}\n    import s{0}\n}}\n",
                level - 1
            ));
        }
        text + &format!(".:53 {{\n    import s{levels}\n    whoami\n}}\n")
    }),
    taken("rewrites that continue", "corefile", |levels| {
        server(
            (0..levels).map(|_| "    rewrite continue name regex (.*)a(.*) {1}aa{2}\n".to_owned()),
        )
    }),
    taken("rewrites that double a name", "corefile", |levels| {
        server((0..levels).map(|_| "    rewrite continue name regex (.*) {1}.{1}\n".to_owned()))
    }),
    taken("templates that lead to the next", "corefile", |levels| {
        server((0..levels).map(|level| {
            format!(
                "    template IN A t{level}.example.com {{\n        answer \"t{level}.example.com. 60 IN CNAME t{}.example.com.\"\n        fallthrough\n    }}\n",
                level + 1
            )
        }))
    }),
    may_be_refused("aliases of aliases", "manifests", |levels| {
        let list = |level: usize| format!("a{level}: &a{level} [*a{0}, *a{0}]\n", level - 1);
        "a0: &a0 [x, x]\n".to_owned() + &(1..=levels).map(list).collect::<String>()
    }),
    may_be_refused("merge keys of aliases", "manifests", |levels| {
        let list = |level: usize| {
            format!("a{level}: &a{level} {{<<: [*a{0}, *a{0}], k{level}: *a{0}}}\n", level - 1)
        };
        "a0: &a0 {x: x}\n".to_owned() + &(1..=levels).map(list).collect::<String>()
    }),
    may_be_refused("aliases in Facts", "manifests", |levels| {
        let list =
            |level: usize| format!("    a{level}: &a{level} {{b: *a{0}, c: *a{0}}}\n", level - 1);
        let text =
            "apiVersion: uturn.dev/v1alpha1\nkind: Facts\nspec:\n  nodes:\n    a0: &a0 {b: x}\n";
        text.to_owned() + &(1..=levels).map(list).collect::<String>()
    }),
    may_be_refused("lists in lists", "manifests", |levels| "[".repeat(1000 * levels)),
    may_be_refused("maps in maps", "manifests", |levels| "{a: ".repeat(1000 * levels)),
    may_be_refused("blocks in blocks", "manifests", |levels| {
        (0..10 * levels).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect()
    }),
    may_be_refused("keys that are lists", "manifests", |levels| "? [".repeat(1000 * levels)),
    may_be_refused("a key without an end", "manifests", |levels| {
        "\"".to_owned() + &"k".repeat(20_000 * levels)
    }),
    may_be_refused("anchors that nothing names", "manifests", |levels| {
        (0..500 * levels).map(|number| format!("- &a{number}\n")).collect::<String>() + "- *a0\n: x"
    }),
];

const HALF: &str = "-m statistic --mode random --probability 0.50000000000";

/// Returns chains that each lead to the next one twice, the last with one rule.
fn chains(levels: usize, last: &str) -> String {
    let mut text =
        "*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n".to_owned();
    (0..=levels).for_each(|level| text.push_str(&format!(":C{level} - [0:0]\n")));
    for base in ["INPUT", "FORWARD", "OUTPUT"] {
        text.push_str(&format!("-A {base} -j C0\n"));
    }
    for level in 0..levels {
        text.push_str(&format!("-A C{level} -j C{}\n", level + 1).repeat(2));
    }
    text + &format!("-A C{levels} {last}\nCOMMIT\n")
}

/// Returns chains that part at random and meet again.
fn gotos(levels: usize) -> String {
    let mut text = "*filter\n:FORWARD ACCEPT [0:0]\n".to_owned();
    for level in 0..=levels {
        text.push_str(&format!(":C{level} - [0:0]\n:A{level} - [0:0]\n:B{level} - [0:0]\n"));
    }
    text.push_str("-A FORWARD -j C0\n");
    for level in 0..levels {
        let next = level + 1;
        text.push_str(&format!("-A C{level} {HALF} -g B{level}\n-A C{level} -g A{level}\n"));
        text.push_str(&format!("-A A{level} -g C{next}\n-A B{level} -g C{next}\n"));
    }
    text + "COMMIT\n"
}

/// Returns a chain with a rule for each level.
fn each(levels: usize, rule: impl Fn(usize) -> String) -> String {
    let rules: String = (0..levels).map(rule).collect();
    format!("*filter\n:FORWARD ACCEPT [0:0]\n{rules}COMMIT\n")
}

/// Returns the same chains in nftables, with these words before and after the next chain's name.
fn nft(levels: usize, before: &str, after: &str, last: &str) -> String {
    let mut text =
        "=== nft.txt\ntable ip t {\n\tset s {\n\t\ttype ipv4_addr\n\t\tflags dynamic\n\t}\n"
            .to_owned();
    for level in (0..=levels).rev() {
        let rule = if level == levels {
            format!("\t\t{last}\n")
        } else {
            format!("\t\t{before} c{}{after}\n", level + 1).repeat(2)
        };
        text.push_str(&format!("\tchain c{level} {{\n{rule}\t}}\n"));
    }
    for hook in ["prerouting", "output"] {
        text.push_str(&format!(
            "\tchain {hook} {{\n\t\ttype filter hook {hook} priority filter; policy accept;\n\t\tjump c0\n\t}}\n"
        ));
    }
    text + "}\n"
}

/// Returns the files of a capture with the addresses and routes of the small node.
fn links() -> String {
    links_with(DEFAULT_ROUTE)
}

/// Returns the same files with another default route.
fn links_with(default_route: &str) -> String {
    format!("=== addr\n{ADDRESSES}=== route\n{default_route}{OTHER_ROUTES}")
}

/// Returns policy rules that apply to different users, each with a table of its own.
fn policy_users(levels: usize) -> String {
    let rule = |level: usize| {
        format!("{}:\tfrom all uidrange {level}-{level} lookup {}\n", 100 + level, 1000 + level)
    };
    format!(
        "{}=== rule\n0:\tfrom all lookup local\n{}32766:\tfrom all lookup main\n",
        links(),
        (0..levels).map(rule).collect::<String>()
    )
}

/// Returns policy rules that, each for another user, lead to a later rule or go on.
fn policy_gotos(levels: usize) -> String {
    let rule = |level: usize| {
        let at = 100 + 2 * level;
        format!(
            "{at}:\tfrom all uidrange {level}-{level} goto {}\n{}:\tfrom all lookup {}\n",
            at + 2,
            at + 1,
            1000 + level
        )
    };
    let rules: String = (0..levels).map(rule).collect();
    format!(
        "{}=== rule\n0:\tfrom all lookup local\n{rules}{}:\tfrom all lookup main\n",
        links(),
        100 + 2 * levels
    )
}

fn equal_routes(levels: usize) -> String {
    let hops: String = (0..8 * levels)
        .map(|hop| format!("\tnexthop via 10.0.0.{} dev eth0 weight 1\n", 1 + hop % 250))
        .collect();
    links_with(&format!("default\n{hops}"))
}

fn real_servers(levels: usize) -> String {
    let reals: String = (0..20 * levels)
        .map(|real| {
            format!("-a -t 10.0.0.100:80 -r 10.{}.{}.9:8080 -m -w 1\n", real / 250, real % 250)
        })
        .collect();
    format!("{}=== ipvs.save\n-A -t 10.0.0.100:80 -s rr\n{reals}", links())
}

fn sets_of_sets(levels: usize) -> String {
    let mut sets = String::new();
    for level in 0..levels {
        sets.push_str(&format!(
            "create s{level} hash:ip family inet hashsize 1024 maxelem 65536\n"
        ));
    }
    sets.push_str("create all list:set size 1000\n");
    (0..levels).for_each(|level| sets.push_str(&format!("add all s{level}\n")));
    let rules: String = (0..levels)
        .map(|_| "-A FORWARD -m set --match-set all src -j RETURN\n".to_owned())
        .collect();
    format!(
        "{}=== ipset.save\n{sets}=== iptables.save\n*filter\n:FORWARD ACCEPT [0:0]\n{rules}COMMIT\n",
        links()
    )
}

/// Returns a server with these blocks.
fn server(blocks: impl Iterator<Item = String>) -> String {
    format!(".:53 {{\n{}    whoami\n}}\n", blocks.collect::<String>())
}
