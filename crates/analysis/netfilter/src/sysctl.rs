//! Kernel parameters, as `sysctl -a` prints them.

use std::collections::BTreeMap;

use uturn_model::{Family, SourceName, Text};

use crate::ParseError;

/// Kernel parameters by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sysctls(BTreeMap<Text, Text>);

/// Parses lines of `key = value`.
///
/// # Errors
///
/// Returns every line that has no `=` or no key.
pub fn parse(source: impl Into<SourceName>, text: &str) -> Result<Sysctls, Vec<ParseError>> {
    let file = source.into();
    let (mut sysctls, mut errors) = (Sysctls::default(), Vec::new());
    for (line, number) in text.lines().zip(1u32..) {
        // Lines in which `sysctl` reports a parameter that it could not read.
        let from_sysctl = line.starts_with("sysctl: ");
        if line.trim().is_empty() || line.starts_with(['#', ';']) || from_sysctl {
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
    /// Sets a parameter. The name may be written with dots or slashes.
    pub fn set(&mut self, key: &str, value: &str) {
        // With slashes, a dot is part of the interface's name: net/ipv4/conf/eth0.1/rp_filter.
        let key = if key.contains('/') { key.replace(['.', '/'], ".") } else { key.to_owned() };
        self.0.insert(key.into(), value.into());
    }

    /// The value of a parameter, if known.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(|value| &**value)
    }

    /// Whether packets of a family are forwarded. Kernel default: no.
    pub fn ip_forward(&self, family: Family) -> bool {
        match family {
            Family::V4 => {
                self.is_on("net.ipv4.ip_forward") || self.is_on("net.ipv4.conf.all.forwarding")
            }
            Family::V6 => self.is_on("net.ipv6.conf.all.forwarding"),
        }
    }

    /// Whether the forwarding parameter of a family is known.
    pub fn states_forwarding(&self, family: Family) -> bool {
        let switches: &[&str] = match family {
            Family::V4 => &["net.ipv4.ip_forward", "net.ipv4.conf.all.forwarding"],
            Family::V6 => &["net.ipv6.conf.all.forwarding"],
        };
        switches.iter().any(|switch| self.get(switch).is_some())
    }

    /// Whether any reverse path filter parameter is known.
    pub fn states_rp_filter(&self) -> bool {
        self.0.keys().any(|key| key.starts_with("net.ipv4.conf.") && key.ends_with(".rp_filter"))
    }

    /// Whether IPv4 packets that arrive on `dev` are forwarded: the interface's own parameter, or
    /// the common one if it is not set.
    pub fn forwards_from(&self, dev: &str) -> bool {
        match self.number(&format!("net.ipv4.conf.{dev}.forwarding")) {
            Some(number) => number != 0,
            None => self.ip_forward(Family::V4),
        }
    }

    /// The reverse path filter of `dev`: the larger of the interface's own and the common
    /// setting.
    pub fn rp_filter(&self, dev: &str) -> u8 {
        let of = |dev: &str| self.number(&format!("net.ipv4.conf.{dev}.rp_filter")).unwrap_or(0);
        of("all").max(of(dev)).clamp(0, 2) as u8
    }

    /// Whether `dev` accepts packets whose source is one of the node's own addresses.
    pub fn accept_local(&self, dev: &str) -> bool {
        self.on_all_or(dev, "accept_local")
    }

    /// Whether packets to 127.0.0.0/8 are routed through `dev`.
    pub fn route_localnet(&self, dev: &str) -> bool {
        self.on_all_or(dev, "route_localnet")
    }

    /// Whether the reverse path lookup considers the packet's mark.
    pub fn src_valid_mark(&self, dev: &str) -> bool {
        self.on_all_or(dev, "src_valid_mark")
    }

    /// Whether conntrack accepts TCP segments outside the window.
    pub fn tcp_be_liberal(&self) -> bool {
        self.is_on("net.netfilter.nf_conntrack_tcp_be_liberal")
    }

    /// Whether conntrack picks up a TCP connection from the middle. Kernel default: yes.
    pub fn tcp_loose(&self) -> bool {
        self.number("net.netfilter.nf_conntrack_tcp_loose").is_none_or(|number| number != 0)
    }

    /// Whether connections that IPVS schedules have a conntrack entry, so that rules can
    /// translate their source. Kernel default: no.
    pub fn ipvs_conntrack(&self) -> bool {
        self.is_on("net.ipv4.vs.conntrack")
    }

    /// Whether IPVS schedules a TCP connection that it first sees in the middle.
    pub fn ipvs_sloppy_tcp(&self) -> bool {
        self.is_on("net.ipv4.vs.sloppy_tcp")
    }

    /// Whether replies of real servers are rerouted by their new source. Kernel default: yes.
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
