//! Redacts the output of `iptables-save`.

use super::chains::{self, Chains};
use super::picks::Picks;
use super::{lines, printed};
use crate::links::link;
use crate::names::Names;
use crate::text::{NAMES, REMARKS as FREE_TEXT, redact};

/// The remarks that kube-proxy and kubelet write on every node.
const REMARKS: [&str; 39] = [
    "kubernetes service portals",
    "kubernetes externally-visible service portals",
    "kubernetes load balancer firewall",
    "kubernetes health check service ports",
    "kubernetes forwarding rules",
    "kubernetes forwarding conntrack rule",
    "kubernetes forwarding conntrack pod source rule",
    "kubernetes forwarding conntrack pod destination rule",
    "kubernetes postrouting rules",
    "kubernetes service nodeports; NOTE: this must be the last rule in this chain",
    "kubernetes service traffic requiring SNAT",
    "kubernetes firewall for dropping marked packets",
    "kubernetes ipvs access filter",
    "kubernetes health check rules",
    "kube-proxy firewall rules",
    "block incoming localnet connections",
    "kubernetes service load balancer ip",
    "kubernetes service cluster ip",
    "kubernetes service external ip",
    "Kubernetes endpoints dst ip:port, source ip for solving hairpin purpose",
    "Kubernetes health check node port",
    "Kubernetes nodeport SCTP port for masquerade purpose with type \\'hash ip:port\\'",
    "Kubernetes nodeport SCTP port with externalTrafficPolicy=local with type \\'hash ip:port\\'",
    "Kubernetes nodeport TCP port for masquerade purpose",
    "Kubernetes nodeport TCP port with externalTrafficPolicy=local",
    "Kubernetes nodeport UDP port for masquerade purpose",
    "Kubernetes nodeport UDP port with externalTrafficPolicy=local",
    "Kubernetes service cluster ip + port for masquerade purpose",
    "Kubernetes service external ip + port for masquerade and filter purpose",
    "Kubernetes service external ip + port with externalTrafficPolicy=local",
    "Kubernetes service lb portal",
    "Kubernetes service load balancer ip + port + source IP for packet filter purpose",
    "Kubernetes service load balancer ip + port + source cidr for packet filter purpose",
    "Kubernetes service load balancer ip + port for load balancer with sourceRange",
    "Kubernetes service load balancer ip + port with externalTrafficPolicy=local",
    "Redirect pods trying to reach external loadbalancer VIP to clusterIP",
    "masquerade",
    "flanneld masq",
    "flanneld forward",
];

/// kube-proxy's remarks on rules of a Service: the text before its name, and the text after it.
const OF_SERVICES: [(&str, &str); 13] = [
    ("", " cluster IP"),
    ("", " external IP"),
    ("", " loadbalancer IP"),
    ("", " health check node port"),
    ("", " has no endpoints"),
    ("", " has no local endpoints"),
    ("masquerade traffic for ", " external destinations"),
    ("masquerade LOCAL traffic for ", " external destinations"),
    ("route LOCAL traffic for ", " external destinations"),
    ("pod traffic for ", " external destinations"),
    ("other traffic to ", " will be dropped by KUBE-PROXY-FIREWALL"),
    ("masquerade LOCAL traffic for ", " LB IP"),
    ("route LOCAL traffic for ", " LB IP to service chain"),
];

/// The accounting objects of kube-proxy.
const COUNTERS: [&str; 2] = ["ct_state_invalid_dropped_pkts", "localhost_nps_accepted_pkts"];

/// Redacts rules: every chain, address, interface and remark. The order of rules is kept, except
/// that kube-proxy sorts the endpoints of a Service by the text of their addresses.
pub(crate) fn redact_rules(text: &str, names: &mut Names, chains: &Chains) -> String {
    let sorted = Picks::of(text, chains).sorted(names);
    lines(sorted.as_deref().unwrap_or(text), |line| self::line(line, names, chains))
}

fn line(line: &str, names: &mut Names, chains: &Chains) -> String {
    if let Some(remark) = line.strip_prefix('#') {
        return self::remark(remark, names);
    }
    if let Some(rest) = line.strip_prefix(':') {
        let (chain, policy) = rest.split_once(' ').unwrap_or((rest, ""));
        let policy = redact(policy, names, printed());
        return format!(":{} {policy}", chains.chain(chain, names));
    }
    let mut new = String::with_capacity(line.len());
    let mut option = "";
    for (token, space) in tokens(line) {
        new.push_str(&value(option, token, names, chains));
        new.push_str(space);
        if token.starts_with('-') && !TAKES_TEXT.contains(&option) {
            option = token;
        } else if token != "!" {
            option = "";
        }
    }
    new
}

/// The options that any text may follow, even one that looks like an option.
const TAKES_TEXT: [&str; 13] = [
    "--comment",
    "--log-prefix",
    "--nflog-prefix",
    "--string",
    "--hex-string",
    "--name",
    "--hashlimit-name",
    "--path",
    "--cgroup",
    "--label",
    "--hint",
    "--nfacct-name",
    "--helper",
];

/// Redacts the word of a rule that follows an option.
fn value(option: &str, token: &str, names: &mut Names, chains: &Chains) -> String {
    let may_be_option =
        token.starts_with("--") && token.len() > 2 || (token.len() == 2 && token.starts_with('-'));
    if may_be_option && !TAKES_TEXT.contains(&option) {
        let is_option = token.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        if is_option {
            return token.to_owned();
        }
    }
    match option {
        "-A" | "-N" | "-I" | "-P" | "-j" | "-g" | "--jump" | "--goto" | "--append" => {
            chains.chain(token, names)
        }
        "--comment" => comment(token, names, chains),
        "--name" if token.starts_with("KUBE-") => chains.chain(token, names),
        "--match-set" | "--add-set" | "--del-set" | "--map-set" => chains::set(token, names),
        "-i" | "-o" | "--in-interface" | "--out-interface" | "--physdev-in" | "--physdev-out" => {
            link(token, names)
        }
        "--nfacct-name" if COUNTERS.contains(&token) => token.to_owned(),
        "--name" | "--hashlimit-name" | "--path" | "--cgroup" | "--label" | "--hint"
        | "--helper" => redact(token, names, NAMES),
        "--log-prefix" | "--nflog-prefix" | "--string" | "--hex-string" => {
            redact(token, names, FREE_TEXT)
        }
        _ if token.starts_with('"') => redact(token, names, NAMES),
        _ => redact(token, names, printed()),
    }
}

/// Returns the remark of the tool that wrote a dump, without the time.
fn remark(remark: &str, names: &mut Names) -> String {
    let remark = remark.trim_start();
    let tool = remark.split(" on ").next().unwrap_or_default();
    if tool.starts_with("Generated by ip") || tool.starts_with("Warning: ip") {
        format!("# {}", redact(tool, names, printed()))
    } else {
        "#".to_owned()
    }
}

/// Redacts a remark on a rule.
fn comment(token: &str, names: &mut Names, chains: &Chains) -> String {
    let quoted = token.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let text = quoted.unwrap_or(token);
    if REMARKS.contains(&text) {
        return token.to_owned();
    }
    let new = of_service(text, names, chains);
    let new = new.unwrap_or_else(|| redact(text, names, FREE_TEXT));
    match quoted {
        Some(_) => format!("\"{}\"", new.trim_end()),
        None => new,
    }
}

/// Redacts a remark of kube-proxy that names a Service's port.
fn of_service(text: &str, names: &mut Names, chains: &Chains) -> Option<String> {
    let named = OF_SERVICES.iter().find_map(|(before, after)| {
        let name = text.strip_prefix(before)?.strip_suffix(after)?;
        (!name.contains(' ')).then_some((before, name, after))
    });
    if let Some((before, name, after)) = named {
        return Some(format!("{before}{}{after}", redact(name, names, NAMES)));
    }
    if let Some((number, name)) =
        text.strip_prefix("Balancing rule ").and_then(|rest| rest.split_once(" for "))
        && number.parse::<u32>().is_ok()
        && !name.contains(' ')
    {
        return Some(format!("Balancing rule {number} for {}", redact(name, names, NAMES)));
    }
    if let Some((name, endpoint)) = text.split_once(" -> ").filter(|pair| is_pair(*pair)) {
        return Some(format!(
            "{} -> {}",
            redact(name, names, NAMES),
            redact(endpoint, names, NAMES)
        ));
    }
    let (name, chain) =
        text.split_once(" traffic not accepted by ").filter(|pair| is_pair(*pair))?;
    Some(format!(
        "{} traffic not accepted by {}",
        redact(name, names, NAMES),
        chains.chain(chain, names)
    ))
}

fn is_pair((first, second): (&str, &str)) -> bool {
    !first.contains(' ') && !second.contains(' ')
}

/// Returns the words of a line as `iptables-restore` splits them, each with the following blanks. A
/// closing quote ends a word, even if no blank follows.
pub(super) fn tokens(line: &str) -> impl Iterator<Item = (&str, &str)> {
    const BLANKS: [char; 3] = [' ', '\t', '\r'];
    let mut rest = line;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut is_quoted = false;
        let mut letters = rest.char_indices();
        let mut end = rest.len();
        while let Some((at, letter)) = letters.next() {
            match letter {
                '"' if is_quoted => {
                    end = at + 1;
                    break;
                }
                '"' => is_quoted = true,
                '\\' if is_quoted => drop(letters.next()),
                _ if !is_quoted && BLANKS.contains(&letter) => {
                    end = at;
                    break;
                }
                _ => {}
            }
        }
        let (token, after) = rest.split_at(end);
        let space = after.len() - after.trim_start_matches(BLANKS).len();
        let (space, after) = after.split_at(space);
        rest = after;
        Some((token, space))
    })
}
