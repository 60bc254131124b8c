//! The plugin `hosts`: names from entries in the Corefile, or from a hosts file.

use std::net::IpAddr;

use uturn_model::route::StepKind;
use uturn_model::{Family, Step};

use super::{Exchange, Setup};
use crate::dispenser::Dispenser;
use crate::fault::Fault;
use crate::message::{Answer, Question, Rcode, RecordType, Reply};
use crate::name;

#[derive(Debug)]
pub(crate) struct Hosts {
    zones: Vec<String>,
    fallthrough: Vec<String>,
    /// The names and addresses; entries of the file come before inline ones.
    entries: Vec<(String, IpAddr, Source)>,
    /// The path of a file that was not given.
    unread: Option<String>,
}

/// The source of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    File,
    Line(u32),
}

impl Hosts {
    pub(crate) fn read(words: &mut Dispenser<'_>, setup: &Setup<'_>) -> Result<Self, Fault> {
        let mut read: Option<Self> = None;
        while words.advance() {
            if read.is_some() {
                return words.fault("hosts can be used once in a server block");
            }
            read = Some(Self::stanza(words, setup)?);
        }
        read.map_or_else(|| words.fault("expected hosts"), Ok)
    }

    fn stanza(words: &mut Dispenser<'_>, setup: &Setup<'_>) -> Result<Self, Fault> {
        let arguments = words.arguments();
        let (path, zones) = match arguments.split_first() {
            Some((path, zones)) => (Some(path.as_str()), zones),
            None => (None, &[][..]),
        };
        let mut read = Self {
            zones: name::zones(zones, setup.zones),
            fallthrough: Vec::new(),
            entries: Vec::new(),
            unread: None,
        };
        match path {
            // That file exists only in CoreDNS's container.
            None | Some("/etc/hosts") => {
                read.add("127.0.0.1 localhost", Source::File);
                read.add("::1 localhost ip6-localhost ip6-loopback", Source::File);
            }
            Some("/dev/null") => {}
            Some(path) => match words.files().text(path) {
                Some(text) => text.lines().for_each(|line| read.add(line, Source::File)),
                None => read.unread = Some(path.to_owned()),
            },
        }
        while words.next_in_block() {
            let (word, line) = (words.value(), words.token().line);
            let arguments = words.arguments();
            match (word, arguments.as_slice()) {
                ("fallthrough", _) => read.fallthrough = setup.fallthrough(&arguments),
                ("no_reverse", _) => {}
                ("ttl", [ttl, ..]) if ttl.parse().is_ok_and(|ttl: u16| ttl > 0) => {}
                ("reload", [_]) => {}
                ("ttl" | "reload", _) => {
                    let found = arguments.join(" ");
                    return words.fault(format!("expected {word} with one time, found {found:?}"));
                }
                _ if read.fallthrough.is_empty() => {
                    let text = format!("{word} {}", arguments.join(" "));
                    // A quoted token may contain several lines.
                    text.lines().for_each(|text| read.add(text, Source::Line(line)));
                }
                _ => {
                    let message = format!("hosts does not know {word} (after fallthrough)");
                    return words.fault(message);
                }
            }
        }
        Ok(read)
    }

    /// Adds the entries of a line of a hosts file.
    fn add(&mut self, line: &str, source: Source) {
        let line = line.split('#').next().unwrap_or("");
        let mut words = line.split_whitespace();
        let Some(Ok(ip)) = words.next().map(|word| word.split('%').next().unwrap_or("").parse())
        else {
            return;
        };
        let ip: IpAddr = IpAddr::to_canonical(&ip);
        for word in words {
            let host = name::normal(word);
            if name::zone_of(&self.zones, &host).is_some() {
                self.entries.push((host, ip, source));
            }
        }
    }

    pub(crate) fn serve(&self, exchange: &mut Exchange<'_>, question: Question) -> Answer {
        if name::zone_of(&self.zones, &question.name).is_none() {
            return exchange.next(question);
        }
        if question.kind == RecordType::Other("PTR".into()) {
            return exchange.unmodelled("PTR records of the hosts plugin");
        }
        let known: Vec<_> = self.entries.iter().filter(|entry| entry.0 == question.name).collect();
        let falls_through = name::zone_of(&self.fallthrough, &question.name).is_some();
        if let Some(path) = &self.unread
            && known.is_empty()
            && !falls_through
        {
            return exchange.unknown(
                format!("what {path} of CoreDNS says of {}", question.name),
                format!("give the ConfigMap that {path} comes from"),
            );
        }
        if known.is_empty() {
            if falls_through {
                // CoreDNS also starts without the file, which then has no entries.
                if let Some(path) = &self.unread {
                    exchange.note(format!("{path} is not given: no line of it is known"));
                }
                return exchange.next(question);
            }
            exchange.note(format!("{} is in no line, and nothing falls through", question.name));
            return Answer::Reply(Reply::code(Rcode::ServFail));
        }
        let fits = |ip: IpAddr| question.kind.family() == Some(Family::of(ip));
        if let Some((_, ip, source)) = known.iter().find(|entry| fits(entry.1)) {
            let line = match source {
                Source::File => None,
                Source::Line(line) => Some(*line),
            };
            let why = format!("{} → {ip}: a line of the hosts plugin", question.name);
            let step = Step::new(StepKind::Resolve, why, exchange.by_line(line));
            exchange.steps.push(step);
        } else {
            exchange.note(format!("{} has no {} here", question.name, question.kind));
        }
        Answer::Reply(Reply::addresses(&question, known.iter().map(|entry| entry.1)))
    }
}
