//! The kernel's switches, as `sysctl -a` prints them.

use std::collections::BTreeMap;

use uturn_model::{Family, SourceName, Text};

use crate::ParseError;

/// Switches by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sysctls(BTreeMap<Text, Text>);

/// Reads lines of `key = value`.
pub fn parse(source: impl Into<SourceName>, text: &str) -> Result<Sysctls, Vec<ParseError>> {
    let file = source.into();
    let (mut sysctls, mut errors) = (Sysctls::default(), Vec::new());
    for (line, number) in text.lines().zip(1u32..) {
        // What `sysctl` itself could not read, it reports under its own name.
        let said_by_sysctl = line.starts_with("sysctl: ");
        if line.trim().is_empty() || line.starts_with(['#', ';']) || said_by_sysctl {
            continue;
        }
        match line.split_once('=') {
            Some((key, value)) if !key.trim().is_empty() => sysctls.set(key.trim(), value.trim()),
            _ => errors.push(ParseError::new(
                &file,
                number,
                1,
                format!("found {line:?}, expected `name = value`"),
            )),
        }
    }
    if errors.is_empty() { Ok(sysctls) } else { Err(errors) }
}

impl Sysctls {
    /// Sets a switch. Names may be written with dots or with slashes.
    pub fn set(&mut self, key: &str, value: &str) {
        // With slashes, a dot belongs to the interface's name: net/ipv4/conf/eth0.1/rp_filter.
        let key = if key.contains('/') { key.replace(['.', '/'], ".") } else { key.to_owned() };
        self.0.insert(key.into(), value.into());
    }

    /// What a switch says, if that is known.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(|value| &**value)
    }

    /// Whether packets of a family are forwarded. As the kernel starts: no.
    pub fn ip_forward(&self, family: Family) -> bool {
        match family {
            Family::V4 => {
                self.is_on("net.ipv4.ip_forward") || self.is_on("net.ipv4.conf.all.forwarding")
            }
            Family::V6 => self.is_on("net.ipv6.conf.all.forwarding"),
        }
    }

    /// Whether it is known if packets of a family are forwarded.
    pub fn says_forwarding(&self, family: Family) -> bool {
        let switches: &[&str] = match family {
            Family::V4 => &["net.ipv4.ip_forward", "net.ipv4.conf.all.forwarding"],
            Family::V6 => &["net.ipv6.conf.all.forwarding"],
        };
        switches.iter().any(|switch| self.get(switch).is_some())
    }

    /// Whether anything is known of how strictly sources are checked.
    pub fn says_rp_filter(&self) -> bool {
        self.0.keys().any(|key| key.starts_with("net.ipv4.conf.") && key.ends_with(".rp_filter"))
    }

    /// Whether IPv4 packets that came in through `dev` are forwarded: its own switch, which
    /// follows the common one until it is set.
    pub fn forwards_from(&self, dev: &str) -> bool {
        match self.number(&format!("net.ipv4.conf.{dev}.forwarding")) {
            Some(number) => number != 0,
            None => self.ip_forward(Family::V4),
        }
    }

    /// How strictly the source of IPv4 packets through `dev` is checked: the larger of its
    /// own and the common setting.
    pub fn rp_filter(&self, dev: &str) -> u8 {
        let of = |dev: &str| self.number(&format!("net.ipv4.conf.{dev}.rp_filter")).unwrap_or(0);
        of("all").max(of(dev)).clamp(0, 2) as u8
    }

    /// Whether packets from the node's own addresses are let in through `dev`.
    pub fn accept_local(&self, dev: &str) -> bool {
        self.on_all_or(dev, "accept_local")
    }

    /// Whether 127.0.0.0/8 is routed through `dev`.
    pub fn route_localnet(&self, dev: &str) -> bool {
        self.on_all_or(dev, "route_localnet")
    }

    /// Whether the mark counts when the way back to a source is looked up.
    pub fn src_valid_mark(&self, dev: &str) -> bool {
        self.on_all_or(dev, "src_valid_mark")
    }

    /// Whether connection tracking lets pass what it finds out of window.
    pub fn tcp_be_liberal(&self) -> bool {
        self.is_on("net.netfilter.nf_conntrack_tcp_be_liberal")
    }

    /// Whether connection tracking takes up a TCP connection in its middle. As the kernel
    /// starts: yes.
    pub fn tcp_loose(&self) -> bool {
        self.number("net.netfilter.nf_conntrack_tcp_loose").is_none_or(|number| number != 0)
    }

    /// Whether connection tracking follows what IPVS schedules, so that rules can translate
    /// its source. As the kernel starts: no.
    pub fn ipvs_conntrack(&self) -> bool {
        self.is_on("net.ipv4.vs.conntrack")
    }

    /// Whether IPVS schedules a TCP connection that it sees from its middle on.
    pub fn ipvs_sloppy_tcp(&self) -> bool {
        self.is_on("net.ipv4.vs.sloppy_tcp")
    }

    /// Whether answers of real servers are routed again by their new source. As the kernel
    /// starts: yes.
    pub fn ipvs_snat_reroute(&self) -> bool {
        self.number("net.ipv4.vs.snat_reroute").is_none_or(|number| number != 0)
    }

    fn on_all_or(&self, dev: &str, switch: &str) -> bool {
        self.is_on(&format!("net.ipv4.conf.all.{switch}"))
            || self.is_on(&format!("net.ipv4.conf.{dev}.{switch}"))
    }

    fn is_on(&self, key: &str) -> bool {
        self.number(key).is_some_and(|number| number != 0)
    }

    fn number(&self, key: &str) -> Option<i64> {
        self.get(key)?.parse().ok()
    }
}

impl<K: AsRef<str>, V: AsRef<str>> FromIterator<(K, V)> for Sysctls {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        let mut sysctls = Self::default();
        for (key, value) in pairs {
            sysctls.set(key.as_ref(), value.as_ref());
        }
        sysctls
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stricter_filter_counts() {
        let sysctls = parse(
            "sysctl",
            "net.ipv4.conf.all.rp_filter = 1\nnet.ipv4.conf.eth0.rp_filter = 2\n\
             net.ipv4.conf.eth1.rp_filter=0\nnet/ipv4/conf/eth0.1/accept_local = 1\n",
        )
        .unwrap();
        assert_eq!(sysctls.rp_filter("eth0"), 2);
        assert_eq!(sysctls.rp_filter("eth1"), 1);
        assert!(sysctls.accept_local("eth0.1"));
        assert!(!sysctls.ip_forward(Family::V4));
    }

    #[test]
    fn every_bad_line_is_named() {
        let errors = parse("sysctl", "a\nnet.ipv4.ip_forward = 1\n= 2\n").unwrap_err();
        let shown: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            [
                r#"sysctl:1:1: found "a", expected `name = value`"#,
                r#"sysctl:3:1: found "= 2", expected `name = value`"#,
            ]
        );
    }
}
