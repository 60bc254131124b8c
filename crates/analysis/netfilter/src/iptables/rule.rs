//! Parses one rule.

mod target;

use uturn_model::{Family, Text};

use self::target::{takes_options, target_name};
use super::chain_names::ChainNames;
use super::match_options::{Args, Refusal, accept, open};
use super::target_options::accept_target;
use super::token::{self, Token};
use super::value::addresses;
use super::*;

/// Column and message.
pub(super) type Fault = (u32, String);

/// State reused from rule to rule to save allocations.
#[derive(Default)]
pub(super) struct Scratch {
    open: Vec<(usize, u32)>,
    /// The latest comment: rules of one Service share it.
    comment: Option<Text>,
}

/// Parses the words after `-A CHAIN` into an empty rule. `chains` has the table's chains by name.
/// If the rule jumps to a chain, its name is usually returned for a later, batched lookup.
pub(super) fn rule<'a>(
    words: &[Token<'a>],
    family: Family,
    chains: &ChainNames,
    rule: &mut Rule,
    scratch: &mut Scratch,
) -> Result<Option<&'a str>, Fault> {
    // A match with an unmodelled option is kept entirely as written. Since that shows only at the
    // option, the rule is parsed again.
    let mut as_written: Vec<String> = Vec::new();
    loop {
        let args = Args { words, at: 0, family, comment: scratch.comment.take() };
        let mut reader = Reader {
            args,
            rule,
            open: std::mem::take(&mut scratch.open),
            jump: None,
            count: 0,
            as_written: &as_written,
            chains,
        };
        let read = reader.read();
        let Reader { args, mut open, jump, .. } = reader;
        open.clear();
        *scratch = Scratch { open, comment: args.comment };
        match read {
            Ok(()) => return Ok(jump),
            Err(Stop::Fault(column, message)) => return Err((column, message)),
            Err(Stop::KeepAsWritten(name)) => as_written.push(name),
        }
        *rule = Rule::new(rule.origin.clone());
    }
}

enum Stop {
    Fault(u32, String),
    KeepAsWritten(String),
}

struct Reader<'t, 'a> {
    args: Args<'t, 'a>,
    rule: &'t mut Rule,
    /// For each match, the number of options given and the column of its start.
    open: Vec<(usize, u32)>,
    /// The chain that is the target, if it is not in the rule yet.
    jump: Option<&'a str>,
    /// The number of options given to the target.
    count: usize,
    as_written: &'t [String],
    chains: &'t ChainNames,
}

impl<'a> Reader<'_, 'a> {
    fn read(&mut self) -> Result<(), Stop> {
        let mut target_at = None;
        while let Some(word) = self.args.next() {
            let (not, word) = match word.bare() {
                "!" => match self.args.next() {
                    Some(next) => (true, next),
                    None => return Err(fault(word, "found `!`, expected an option after it")),
                },
                _ => (false, word),
            };
            let not = not != self.negated_after(word);
            let (family, rule) = (self.args.family, &mut *self.rule);
            let once = |taken: bool| {
                if taken {
                    Err(fault(word, "found an option twice, expected it once"))
                } else {
                    Ok(())
                }
            };
            match word.bare() {
                "-s" | "--source" | "--src" => {
                    once(rule.src.is_some())?;
                    self.rule.src = self.addresses(not, family)?;
                }
                "-d" | "--destination" | "--dst" => {
                    once(rule.dst.is_some())?;
                    self.rule.dst = self.addresses(not, family)?;
                }
                "-i" | "--in-interface" => {
                    once(rule.in_interface.is_some())?;
                    self.rule.in_interface = Some(Box::new(Not { not, value: self.interface()? }));
                }
                "-o" | "--out-interface" => {
                    once(rule.out_interface.is_some())?;
                    self.rule.out_interface = Some(Box::new(Not { not, value: self.interface()? }));
                }
                "-p" | "--protocol" | "--proto" => {
                    once(rule.protocol.is_some())?;
                    let read = |word: &str, _| match word {
                        "all" | "0" => Some(None),
                        _ => IpProtocol::from_word(word).map(Some),
                    };
                    let value = self.args.read("a protocol", read).map_err(stop)?;
                    self.rule.protocol = value.map(|value| Not { not, value });
                }
                "-f" | "--fragment" if family == Family::V4 => rule.fragment = Some(!not),
                "-c" | "--set-counters" if !not => {
                    once(rule.counters.is_some())?;
                    self.rule.counters = Some(Box::new(self.counters()?));
                }
                "-m" | "--match" if !not => self.open_match()?,
                "-j" | "--jump" | "-g" | "--goto" if !not => {
                    once(rule.target.is_some() || self.jump.is_some())?;
                    target_at = Some(word.column);
                    self.target(matches!(word.bare(), "-g" | "--goto"))?;
                }
                option if option.starts_with('-') => self.option(option, not, word)?,
                _ => {
                    let message = format!("found {:?}, expected an option", word.text);
                    return Err(Stop::Fault(word.column, message));
                }
            }
        }
        self.check(target_at)
    }

    /// `-s ! 10.0.0.0/8`, the deprecated form. A `!` before another option belongs to that
    /// option.
    fn negated_after(&mut self, option: &Token<'_>) -> bool {
        let rest = &self.args.words[self.args.at..];
        let [mark, value, ..] = rest else { return false };
        let takes = option.bare().starts_with('-') && mark.bare() == "!";
        let negates =
            takes && !value.bare().starts_with('-') && !matches!(option.bare(), "-m" | "-j" | "-g");
        self.args.at += usize::from(negates);
        negates
    }

    /// `-c PACKETS BYTES`
    fn counters(&mut self) -> Result<Counters, Stop> {
        let mut number = || self.args.read("a number", |word, _| word.parse().ok()).map_err(stop);
        Ok(Counters { packets: number()?, bytes: number()? })
    }

    fn addresses(&mut self, not: bool, family: Family) -> Result<Option<Not<Addresses>>, Stop> {
        let expected = match family {
            Family::V4 => "an IPv4 address or network",
            Family::V6 => "an IPv6 address or network",
        };
        let value = self.args.read(expected, addresses).map_err(stop)?;
        let all = matches!(value, Addresses::Net(net) if net.prefix_len() == 0);
        Ok((not || !all).then_some(Not { not, value }))
    }

    fn interface(&mut self) -> Result<Text, Stop> {
        let read = |word: &str, _| (!word.is_empty() && word.len() < 16).then(|| word.into());
        self.args.read("the name of an interface", read).map_err(stop)
    }

    fn open_match(&mut self) -> Result<(), Stop> {
        let word = self.args.value().map_err(stop)?;
        let modelled = !self.as_written.iter().any(|name| *name == *word.text);
        let item = match open(&word.text) {
            Some(item) if modelled => item,
            _ if !token::is_plain(&word.text) => return Err(fault(word, "expected a match")),
            _ => Match::Other(Box::new(self.extension(&word.text))),
        };
        self.rule.matches.push(item);
        self.open.push((0, word.column));
        Ok(())
    }

    /// An unmodelled match or target: all words up to the next option of the rule itself.
    fn extension(&mut self, name: &str) -> Extension {
        let mut words = Vec::new();
        while let Some(word) = self.args.words.get(self.args.at) {
            let next = self.args.words.get(self.args.at + 1);
            let negates_border = word.bare() == "!" && next.is_none_or(Token::is_border);
            if word.is_border() || negates_border {
                break;
            }
            words.push(Text::from(&*word.text));
            self.args.at += 1;
        }
        Extension { name: name.into(), words }
    }

    /// Assigns an option to the target or to the latest match that accepts it.
    fn option(&mut self, option: &str, not: bool, word: &Token<'a>) -> Result<(), Stop> {
        if let Some(target) = &mut self.rule.target {
            match accept_target(target, option, not, &mut self.args) {
                Ok(()) => {
                    self.count += 1;
                    return Ok(());
                }
                Err(Refusal::Unmodelled) => {
                    return Err(Stop::KeepAsWritten(target_name(target).to_owned()));
                }
                Err(Refusal::Fault(column, message)) => return Err(Stop::Fault(column, message)),
                Err(Refusal::NotMine) => {}
            }
        }
        for at in (0..self.rule.matches.len()).rev() {
            match accept(&mut self.rule.matches[at], option, not, &mut self.args) {
                Ok(()) => {
                    self.open[at].0 += 1;
                    return Ok(());
                }
                Err(Refusal::Unmodelled) => return Err(self.keep_as_written(at)),
                Err(Refusal::Fault(column, message)) => return Err(Stop::Fault(column, message)),
                Err(Refusal::NotMine) => {}
            }
        }
        if self.open_protocol(option) {
            return self.option(option, not, word);
        }
        match (&self.rule.target, self.rule.matches.len()) {
            (Some(target), _) if takes_options(target) => {
                Err(Stop::KeepAsWritten(target_name(target).to_owned()))
            }
            (None, 1..)
                if self.jump.is_none()
                    && !matches!(self.rule.matches.last(), Some(Match::Other(_))) =>
            {
                Err(self.keep_as_written(self.rule.matches.len() - 1))
            }
            _ => Err(Stop::Fault(
                word.column,
                format!("found {option}, expected an option of iptables"),
            )),
        }
    }

    /// `-p tcp --dport 80` loads the match `tcp` implicitly.
    fn open_protocol(&mut self, option: &str) -> bool {
        let (name, options) = match self.rule.protocol {
            Some(Not { not: false, value: IpProtocol::TCP }) => {
                ("tcp", [PORTS.as_slice(), &["--tcp-flags", "--syn"]].concat())
            }
            Some(Not { not: false, value: IpProtocol::UDP }) => ("udp", PORTS.to_vec()),
            Some(Not { not: false, value: IpProtocol::SCTP }) => ("sctp", PORTS.to_vec()),
            Some(Not { not: false, value: IpProtocol::ICMP }) => ("icmp", vec!["--icmp-type"]),
            Some(Not { not: false, value: IpProtocol::ICMPV6 }) => ("icmp6", vec!["--icmpv6-type"]),
            _ => return false,
        };
        if !options.contains(&option) {
            return false;
        }
        self.rule.matches.extend(open(name));
        self.open.push((0, 0));
        true
    }

    fn keep_as_written(&self, at: usize) -> Stop {
        let column = self.open[at].1;
        let name = self.args.words.iter().find(|word| word.column == column);
        match name {
            Some(name) => Stop::KeepAsWritten(name.text.clone().into_owned()),
            // The match was loaded implicitly by its protocol: there are no words to keep.
            None => Stop::Fault(
                self.args.words[self.args.at.saturating_sub(1)].column,
                "found an option or value that cannot stand here".into(),
            ),
        }
    }
}

const PORTS: [&str; 4] = ["--sport", "--source-port", "--dport", "--destination-port"];

fn stop(refusal: Refusal) -> Stop {
    match refusal {
        Refusal::Fault(column, message) => Stop::Fault(column, message),
        Refusal::NotMine | Refusal::Unmodelled => {
            Stop::Fault(1, "found an option that cannot stand here".into())
        }
    }
}

fn fault(word: &Token<'_>, message: &str) -> Stop {
    Stop::Fault(word.column, format!("{:?}: {message}", word.text))
}
