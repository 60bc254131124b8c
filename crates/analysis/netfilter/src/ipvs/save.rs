//! Parses the lines of `ipvsadm -Sn`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use uturn_model::{Family, Origin, Protocol, Text};

use super::parse::{Fault, List};
use super::{Forwarding, Persistence, RealServer, VirtualAddress, VirtualServer};

pub(super) fn read(text: &str, list: &mut List) {
    for (line, number) in text.lines().zip(1u32..) {
        if line.trim().is_empty() || line.trim_start().starts_with('#') {
            continue;
        }
        if let Err(fault) = read_line(line, number, list) {
            list.fault(number, fault);
        }
    }
}

/// The options of a line, before it is known what the line defines.
#[derive(Default)]
struct Options {
    address: Option<(Protocol, SocketAddr)>,
    mark: Option<u32>,
    v6: bool,
    scheduler: Option<Text>,
    seconds: Option<u32>,
    prefix: Option<u8>,
    one_packet: bool,
    real: Option<(IpAddr, Option<u16>)>,
    method: Option<Forwarding>,
    weight: Option<u32>,
    others: Vec<Text>,
}

fn read_line(line: &str, number: u32, list: &mut List) -> Result<(), Fault> {
    let column = |word: &str| (word.as_ptr() as usize - line.as_ptr() as usize) as u32 + 1;
    let mut words = line.split_ascii_whitespace().peekable();
    let command = words.next().unwrap_or(line);
    let add = match command {
        "-A" | "--add-service" => false,
        "-a" | "--add-server" => true,
        other => return Err((column(other), format!("found {other:?}, expected -A or -a"))),
    };
    let mut options = Options::default();
    while let Some(word) = words.next() {
        let mut value = |what: &'static str| {
            let lacks = || (column(word), format!("found nothing after {word}, expected {what}"));
            words.next().ok_or_else(lacks)
        };
        let wrong = |at: &str, what: &str| (column(at), format!("found {at:?}, expected {what}"));
        match word {
            "-t" | "--tcp-service" | "-u" | "--udp-service" | "--sctp-service" => {
                let at = value(ADDRESS)?;
                let (ip, port) = host(at).ok_or_else(|| wrong(at, ADDRESS))?;
                let protocol = match word {
                    "-t" | "--tcp-service" => Protocol::Tcp,
                    "-u" | "--udp-service" => Protocol::Udp,
                    _ => Protocol::Sctp,
                };
                options.address = Some((protocol, SocketAddr::new(ip, port.unwrap_or(0))));
            }
            "-f" | "--fwmark-service" => {
                let at = value("a mark")?;
                options.mark = Some(at.parse().map_err(|_| wrong(at, "a mark"))?);
            }
            "-6" | "--ipv6" => options.v6 = true,
            "-s" | "--scheduler" => options.scheduler = Some(value("a scheduler")?.into()),
            "-p" | "--persistent" => {
                // ipvsadm's default for a persistence without a number.
                options.seconds = Some(300);
                if let Some(seconds) = words.peek().and_then(|next| next.parse().ok()) {
                    options.seconds = Some(seconds);
                    words.next();
                }
            }
            "-M" | "--netmask" => {
                let at = value(MASK)?;
                options.prefix = Some(prefix(at).ok_or_else(|| wrong(at, MASK))?);
            }
            "-o" | "--ops" => options.one_packet = true,
            "-r" | "--real-server" => {
                let at = value(ADDRESS)?;
                options.real = Some(host(at).ok_or_else(|| wrong(at, ADDRESS))?);
            }
            "-g" | "--gatewaying" => options.method = Some(Forwarding::Direct),
            "-i" | "--ipip" => options.method = Some(Forwarding::Tunnel),
            "-m" | "--masquerading" => options.method = Some(Forwarding::Masquerade),
            "-w" | "--weight" => {
                let at = value("a weight")?;
                options.weight = Some(at.parse().map_err(|_| wrong(at, "a weight"))?);
            }
            "--pe" | "-b" | "--sched-flags" | "-x" | "--u-threshold" | "-y" | "--l-threshold"
            | "--tun-type" | "--tun-port" => {
                options.others.push(word.into());
                options.others.push(value("a value")?.into());
            }
            "--tun-nocsum" | "--tun-csum" | "--tun-remcsum" => options.others.push(word.into()),
            other => return Err(wrong(other, "an option of ipvsadm")),
        }
    }
    let at = options.at().map_err(|message| (column(command), message))?;
    let origin = Origin::line_of(list.file.clone(), number);
    let made = if add {
        options.real(at, origin).and_then(|real| list.add(Some(at), real))
    } else {
        options.server(at, origin).and_then(|server| list.open(server))
    };
    made.map_err(|message| (column(command), message))
}

const ADDRESS: &str = "an address with a port: `10.0.0.1:80` (capture with -n)";
const MASK: &str = "a mask or the length of a prefix";

impl Options {
    fn at(&self) -> Result<VirtualAddress, String> {
        match (self.address, self.mark) {
            (Some((protocol, address)), None) => Ok(VirtualAddress::Address { protocol, address }),
            (None, Some(mark)) => {
                let family = if self.v6 { Family::V6 } else { Family::V4 };
                Ok(VirtualAddress::Mark { mark, family })
            }
            _ => Err("expected one of -t, -u, --sctp-service and -f".into()),
        }
    }

    fn server(self, at: VirtualAddress, origin: Origin) -> Result<VirtualServer, String> {
        if self.real.is_some() || self.method.is_some() || self.weight.is_some() {
            return Err("found an option of a real server, expected it after -a".into());
        }
        if self.prefix.is_some() && self.seconds.is_none() {
            return Err("found -M, expected -p with it".into());
        }
        let prefix = self.prefix.unwrap_or(at.family().bits());
        if prefix > at.family().bits() {
            return Err(format!("found a mask of {prefix} bits, the address has fewer"));
        }
        Ok(VirtualServer {
            at,
            scheduler: self.scheduler.unwrap_or_else(|| "wlc".into()),
            persistence: self.seconds.map(|seconds| Persistence { seconds: Some(seconds), prefix }),
            one_packet: self.one_packet,
            options: self.others,
            servers: Vec::new(),
            origin,
        })
    }

    fn real(self, at: VirtualAddress, origin: Origin) -> Result<RealServer, String> {
        let (ip, port) = self.real.ok_or("found no real server, expected -r")?;
        let virtual_only =
            self.scheduler.is_some() || self.seconds.is_some() || self.prefix.is_some();
        if virtual_only || self.one_packet {
            return Err("found an option of a virtual server, expected it after -A".into());
        }
        let port = port.unwrap_or(at.port().unwrap_or(0));
        Ok(RealServer {
            address: SocketAddr::new(ip, port),
            method: self.method.unwrap_or(Forwarding::Direct),
            weight: self.weight.unwrap_or(1),
            options: self.others,
            origin,
        })
    }
}

/// `10.0.0.1:80`, `[fd00::1]:80`, either without a port.
pub(super) fn host(word: &str) -> Option<(IpAddr, Option<u16>)> {
    if let Ok(address) = word.parse::<SocketAddr>() {
        return Some((address.ip(), Some(address.port())));
    }
    let bare = word.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(word);
    bare.parse().ok().map(|ip| (ip, None))
}

pub(super) fn prefix(word: &str) -> Option<u8> {
    match word.parse::<Ipv4Addr>() {
        Ok(mask) => ipnet::ipv4_mask_to_prefix(mask).ok(),
        Err(_) => word.parse().ok().filter(|prefix| *prefix <= 128),
    }
}
