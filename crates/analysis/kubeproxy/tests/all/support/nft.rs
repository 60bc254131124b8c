//! Rules as `nft` prints them, taken apart, and `nft` itself.

use std::collections::BTreeMap;
/// Every set, map and chain of some tables: `ip chain services` and its lines, as they are.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) blocks: BTreeMap<String, Vec<String>>,
    /// Their names in the order of the text.
    pub(crate) order: Vec<String>,
}

impl Listed {
    pub(crate) fn parse(text: &str) -> Self {
        let mut listed = Self::default();
        let (mut family, mut block) = (String::new(), None::<String>);
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("table ") {
                let (name, rest) = rest.split_once(' ').unwrap();
                assert_eq!(rest, "kube-proxy {", "{line}");
                family = name.to_owned();
            } else if line == "\t}" {
                block.take().expect("a block is open");
            } else if let Some(name) = &block {
                assert!(line.starts_with("\t\t"), "{line}");
                listed.blocks.get_mut(name).unwrap().push(line.trim().to_owned());
            } else if let Some(head) = line.strip_suffix(" {") {
                let name = format!("{family} {}", head.strip_prefix('\t').unwrap());
                assert!(listed.blocks.insert(name.clone(), vec![]).is_none(), "twice: {name}");
                listed.order.push(name.clone());
                block = Some(name);
            } else {
                let other = ["", "}", "\tcomment \"rules for kube-proxy\""];
                assert!(other.contains(&line), "{line}");
            }
        }
        assert_eq!(block, None, "cut off");
        listed
    }

    /// The names of what is there without any Service, in the order of the text.
    pub(crate) fn fixed(&self) -> Vec<&str> {
        self.order.iter().map(String::as_str).filter(|name| !name.contains('/')).collect()
    }

    pub(crate) fn chain(&self, family: &str, name: &str) -> &[String] {
        self.blocks.get(&format!("{family} chain {name}")).map_or(&[], Vec::as_slice)
    }

    /// The elements of a set or map, each as one line.
    pub(crate) fn elements(&self, name: &str) -> Vec<String> {
        let lines = self.blocks.get(name).unwrap_or_else(|| panic!("no {name}"));
        let text = lines.join(" ");
        let Some((_, inner)) = text.split_once("elements = { ") else { return Vec::new() };
        inner.trim_end_matches(" }").split(", ").map(str::to_owned).collect()
    }
}

/// Loads text into a network namespace of its own, and gives what the kernel holds then.
pub(crate) fn load(text: &str) -> Result<String, String> {
    uturn_testing::in_a_namespace(SCRIPT, text)
}

/// A rule may name the bridge, and then it must be there.
const SCRIPT: &str = "ip link add cbr0 type bridge; nft -f - && nft list ruleset";

/// Why `nft` cannot be used here, if it cannot.
pub(crate) fn trouble() -> Option<String> {
    let table = "table ip kube-proxy {\n\tchain trial {\n\t}\n}\n";
    match load(table) {
        Ok(listed) if listed == table => None,
        Ok(listed) => Some(format!("nft prints what it loaded as {listed}")),
        Err(reason) => Some(reason),
    }
}
