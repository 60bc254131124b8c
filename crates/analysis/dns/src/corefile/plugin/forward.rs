//! The plugin `forward`: forwards queries to other servers.

use std::net::{IpAddr, SocketAddr};

use super::{Exchange, Setup};
use crate::dispenser::Dispenser;
use crate::fault::Fault;
use crate::message::{Answer, Question, Rcode};
use crate::name;
use crate::upstream::Upstream;

/// The maximum number of servers in one `forward`.
const MAX: usize = 15;

#[derive(Debug)]
pub(crate) struct Forward {
    from: String,
    except: Vec<String>,
    to: Vec<Upstream>,
    /// The response codes on which the next `forward` is tried.
    next: Vec<Rcode>,
    line: u32,
}

/// Parses all `forward` directives of a block, in order.
pub(crate) fn read(words: &mut Dispenser<'_>, setup: &Setup<'_>) -> Result<Vec<Forward>, Fault> {
    let mut read = Vec::new();
    while words.advance() {
        read.push(stanza(words, |word, arguments| is_option(word, arguments, setup))?);
    }
    Ok(read)
}

/// Parses all `proxy` directives of a block, the predecessor of `forward`. The one with the longest
/// zone forwards.
pub(crate) fn read_old(words: &mut Dispenser<'_>) -> Result<Vec<Forward>, Fault> {
    let mut read = Vec::new();
    while words.advance() {
        read.push(stanza(words, is_option_of_proxy)?);
    }
    read.sort_by_key(|forward| std::cmp::Reverse(forward.from.len()));
    Ok(read)
}

fn is_option(word: &str, arguments: &[String], setup: &Setup<'_>) -> bool {
    match (word, arguments) {
        ("force_tcp" | "prefer_udp" | "failfast_all_unhealthy_upstreams", [])
        | ("max_fails" | "expire" | "policy" | "max_concurrent" | "tls_servername", [_])
        | ("health_check", [_, ..]) => true,
        ("tls", arguments) => arguments.len() <= 3,
        ("max_connect_attempts" | "max_age" | "max_idle_conns" | "read_timeout", [_])
        | ("doh_method" | "source_address", [_])
        | ("next_on_nodata", [])
        | ("failover" | "resolver", [_, ..]) => setup.may_exceed(12),
        _ => false,
    }
}

fn is_option_of_proxy(word: &str, arguments: &[String]) -> bool {
    matches!(
        (word, arguments),
        ("policy" | "fail_timeout" | "max_fails" | "health_check" | "protocol", [_, ..])
            | ("spray", _)
    )
}

fn stanza(
    words: &mut Dispenser<'_>,
    is_option: impl Fn(&str, &[String]) -> bool,
) -> Result<Forward, Fault> {
    let (line, plugin) = (words.token().line, words.value());
    if !words.next_argument() {
        return words.fault(format!("expected a zone after {plugin}"));
    }
    let Some(from) = name::zone_word(words.value()) else {
        return words.fault(format!("expected a zone, found {:?}", words.value()));
    };
    let targets = words.arguments();
    let mut read = Forward { from, except: Vec::new(), to: Vec::new(), next: Vec::new(), line };
    // CoreDNS treats a folder as a file without servers.
    let targets = targets.iter().filter(|word| *word != ".");
    for word in targets {
        match upstream(word) {
            Some(upstream) => read.to.push(upstream),
            None => return words.fault(format!("expected an address or a file, found {word:?}")),
        }
    }
    if read.to.is_empty() || read.to.len() > MAX {
        return words.fault(format!("expected 1 to {MAX} servers, found {}", read.to.len()));
    }
    while words.next_in_block() {
        let word = words.value();
        let arguments = words.arguments();
        match (word, arguments.as_slice()) {
            ("except", [_, ..]) => {
                read.except.extend(arguments.iter().filter_map(|word| name::zone_word(word)));
            }
            ("next", [_, ..]) => {
                for word in &arguments {
                    match Rcode::from_word(&word.to_uppercase()) {
                        Some(code) => read.next.push(code),
                        None => return words.fault(format!("{word} is not a response code")),
                    }
                }
            }
            (word, arguments) if is_option(word, arguments) => {}
            _ => {
                let found = arguments.join(" ");
                return words.fault(format!("{plugin} does not know {word} {found}"));
            }
        }
    }
    Ok(read)
}

fn upstream(word: &str) -> Option<Upstream> {
    if word.starts_with("__PILLAR__") {
        return Some(Upstream::Pillar(word.to_owned()));
    }
    let (scheme, rest) = name::scheme(word);
    let port = match scheme {
        "dns" => 53,
        "tls" => 853,
        _ => return None,
    };
    let bare = |text: &str| text.split('%').next().unwrap_or("").to_owned();
    if let Ok(ip) = bare(rest).parse::<IpAddr>() {
        return Some(Upstream::Address(SocketAddr::new(ip, port)));
    }
    if let Some((host, port)) = rest.rsplit_once(':')
        && let Ok(ip) = bare(host.trim_start_matches('[').trim_end_matches(']')).parse::<IpAddr>()
    {
        return Some(Upstream::Address(SocketAddr::new(ip, port.parse().ok()?)));
    }
    rest.contains('/').then(|| Upstream::File(rest.to_owned()))
}

/// Forwards the query by the first directive that applies.
pub(crate) fn serve(all: &[Forward], exchange: &mut Exchange<'_>, question: Question) -> Answer {
    for (at, forward) in all.iter().enumerate() {
        let excepted = name::zone_of(&forward.except, &question.name).is_some()
            && question.name != forward.from;
        if !name::is_within(&forward.from, &question.name) || excepted {
            continue;
        }
        let to: Vec<String> = forward.to.iter().map(ToString::to_string).collect();
        let (to, line) = (to.join(", "), Some(forward.line));
        exchange.note_at(format!("{} {} is handed to {to}", question.name, question.kind), line);
        let answer =
            exchange.world.upstream_servers.ask(&forward.to, &question, &mut exchange.steps);
        if let Answer::Reply(reply) = &answer
            && forward.next.contains(&reply.rcode)
            && at + 1 < all.len()
        {
            continue;
        }
        return answer;
    }
    exchange.next(question)
}
