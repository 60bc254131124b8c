//! The PROXY header, versions 1 and 2, with which a proxy states the client of a connection.
//!
//! Follows the specification that HAProxy publishes ("The PROXY protocol, versions 1 & 2").

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use thiserror::Error;

use crate::config::ProxyVersion;

/// The bytes with which every header of version 2 begins.
const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";

/// The length of the longest header of version 1, with its line end.
const LONGEST_V1: usize = 107;

/// The command byte of version 2 for a forwarded connection.
const V2_PROXY: u8 = 0x21;
/// The command byte of version 2 for a connection of the proxy's own, such as a health check.
const V2_LOCAL: u8 = 0x20;
/// The family byte of TCP over IPv4.
const TCP4: u8 = 0x11;
/// The family byte of TCP over IPv6.
const TCP6: u8 = 0x21;

/// A header that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProxyHeader {
    /// The client's address and the address to which it connected. `None` for a connection of the
    /// proxy's own, and for a transport other than TCP.
    pub addresses: Option<(SocketAddr, SocketAddr)>,
    /// The length of the header in bytes.
    pub length: usize,
}

/// The error that bytes are not a PROXY header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("no PROXY header, or a broken one")]
pub struct Malformed;

/// Reads the header that a connection begins with. Returns `None` while more bytes are needed.
///
/// # Errors
/// Returns an error if the bytes cannot become a header.
pub fn read(bytes: &[u8]) -> Result<Option<ProxyHeader>, Malformed> {
    let common = bytes.len().min(SIGNATURE.len());
    if bytes[..common] == SIGNATURE[..common] && common > 0 {
        return read_v2(bytes);
    }
    read_v1(bytes)
}

fn read_v1(bytes: &[u8]) -> Result<Option<ProxyHeader>, Malformed> {
    const BEGIN: &[u8] = b"PROXY ";
    let common = bytes.len().min(BEGIN.len());
    if bytes[..common] != BEGIN[..common] {
        return Err(Malformed);
    }
    let searched = &bytes[..bytes.len().min(LONGEST_V1)];
    let Some(end) = searched.windows(2).position(|pair| pair == b"\r\n") else {
        return if bytes.len() < LONGEST_V1 { Ok(None) } else { Err(Malformed) };
    };
    let line = std::str::from_utf8(&bytes[BEGIN.len()..end]).map_err(|_| Malformed)?;
    let words: Vec<&str> = line.split(' ').collect();
    let addresses = match words[..] {
        ["UNKNOWN", ..] => None,
        ["TCP4", client, server, client_port, server_port] => {
            let [client, server] = [client, server]
                .map(|text| text.parse().map(|ip: Ipv4Addr| IpAddr::V4(ip)).map_err(|_| Malformed));
            Some((socket(client?, client_port)?, socket(server?, server_port)?))
        }
        ["TCP6", client, server, client_port, server_port] => {
            let [client, server] = [client, server]
                .map(|text| text.parse().map(|ip: Ipv6Addr| IpAddr::V6(ip)).map_err(|_| Malformed));
            Some((socket(client?, client_port)?, socket(server?, server_port)?))
        }
        _ => return Err(Malformed),
    };
    Ok(Some(ProxyHeader { addresses, length: end + 2 }))
}

/// Makes a socket address. A port with a sign or leading zeros is refused.
fn socket(ip: IpAddr, port: &str) -> Result<SocketAddr, Malformed> {
    let number: u16 = port.parse().map_err(|_| Malformed)?;
    if number.to_string() != port {
        return Err(Malformed);
    }
    Ok(SocketAddr::new(ip, number))
}

fn read_v2(bytes: &[u8]) -> Result<Option<ProxyHeader>, Malformed> {
    let Some(&[command, family, high, low]) = bytes.get(12..16) else { return Ok(None) };
    let length = usize::from(u16::from_be_bytes([high, low]));
    if !matches!(command, V2_PROXY | V2_LOCAL) {
        return Err(Malformed);
    }
    let Some(block) = bytes.get(16..16 + length) else { return Ok(None) };
    let addresses = match (command, family) {
        (V2_PROXY, TCP4) => Some(addresses::<4>(block)?),
        (V2_PROXY, TCP6) => Some(addresses::<16>(block)?),
        _ => None,
    };
    Ok(Some(ProxyHeader { addresses, length: 16 + length }))
}

/// Reads two addresses of `N` bytes, then their ports. Further bytes are ignored.
fn addresses<const N: usize>(block: &[u8]) -> Result<(SocketAddr, SocketAddr), Malformed>
where
    IpAddr: From<[u8; N]>,
{
    let address = |at: usize| -> Option<IpAddr> {
        let bytes: [u8; N] = block.get(at..at + N)?.try_into().ok()?;
        Some(bytes.into())
    };
    let port = |at: usize| Some(u16::from_be_bytes(block.get(at..at + 2)?.try_into().ok()?));
    let read = || {
        let client = SocketAddr::new(address(0)?, port(2 * N)?);
        let server = SocketAddr::new(address(N)?, port(2 * N + 2)?);
        Some((client, server))
    };
    read().ok_or(Malformed)
}

/// Returns the header of a version for a client's connection.
pub fn write(version: ProxyVersion, client: SocketAddr, server: SocketAddr) -> Vec<u8> {
    match version {
        ProxyVersion::V1 => v1(client, server),
        ProxyVersion::V2 => v2(client, server),
    }
}

/// Returns the header of version 1 for a client's connection.
fn v1(client: SocketAddr, server: SocketAddr) -> Vec<u8> {
    let (client, server) = same_family(client, server);
    let family = if client.is_ipv4() { "TCP4" } else { "TCP6" };
    let (ip, port) = (client.ip(), client.port());
    format!("PROXY {family} {ip} {} {port} {}\r\n", server.ip(), server.port()).into_bytes()
}

/// Returns the header of version 2 for a client's connection.
fn v2(client: SocketAddr, server: SocketAddr) -> Vec<u8> {
    let (client, server) = same_family(client, server);
    let (family, mut block) = match (client.ip(), server.ip()) {
        (IpAddr::V4(client), IpAddr::V4(server)) => {
            (TCP4, [client.octets(), server.octets()].concat())
        }
        (client, server) => {
            let [client, server] = [client, server].map(|ip| v6(ip).octets());
            (TCP6, [client, server].concat())
        }
    };
    block.extend(client.port().to_be_bytes());
    block.extend(server.port().to_be_bytes());
    let mut header = SIGNATURE.to_vec();
    header.extend([V2_PROXY, family]);
    header.extend((block.len() as u16).to_be_bytes());
    header.extend(block);
    header
}

/// Converts both addresses to IPv6 if they differ in family.
fn same_family(client: SocketAddr, server: SocketAddr) -> (SocketAddr, SocketAddr) {
    if client.is_ipv4() == server.is_ipv4() {
        return (client, server);
    }
    let mapped = |address: SocketAddr| SocketAddr::new(v6(address.ip()).into(), address.port());
    (mapped(client), mapped(server))
}

fn v6(ip: IpAddr) -> Ipv6Addr {
    match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn headers_of_version_1() {
        let read = |text: &str| read(text.as_bytes());
        let header = read("PROXY TCP4 10.1.1.10 10.0.0.100 40000 80\r\nGET /").unwrap().unwrap();
        let (client, server) = header.addresses.unwrap();
        assert_eq!(
            (client.to_string(), server.to_string(), header.length),
            ("10.1.1.10:40000".into(), "10.0.0.100:80".into(), 42)
        );
        let unknown = read("PROXY UNKNOWN whatever\r\n").unwrap().unwrap();
        assert_eq!(unknown, ProxyHeader { addresses: None, length: 24 });
        for text in ["", "P", "PROXY TCP4 10.1.1.10", "PROXY TCP4 1.1.1.1 2.2.2.2 1 2\r"] {
            assert_eq!(read(text), Ok(None), "{text}");
        }
        for text in [
            "GET / HTTP/1.1\r\n",
            "PROXY TCP4 10.1.1.10 10.0.0.100 040 80\r\n",
            "PROXY TCP4 10.1.1.10 10.0.0.100 40\r\n",
            "PROXY TCP4 fd00::1 10.0.0.100 40 80\r\n",
            "PROXY TCP4  10.1.1.10 10.0.0.100 40 80\r\n",
            "PROXY TCP9 10.1.1.10 10.0.0.100 40 80\r\n",
            // Forms of addresses and ports that some programs read differently.
            "PROXY TCP4 010.001.001.010 10.0.0.100 40 80\r\n",
            "PROXY TCP4 0x0a.1.1.10 10.0.0.100 40 80\r\n",
            "PROXY TCP4 10.65802 10.0.0.100 40 80\r\n",
            "PROXY TCP4 ::ffff:10.1.1.10 10.0.0.100 40 80\r\n",
            "PROXY TCP6 10.1.1.10 10.0.0.100 40 80\r\n",
            "PROXY TCP6 fe80::1%eth0 ::1 40 80\r\n",
            "PROXY TCP4 10.1.1.10 10.0.0.100 +40 80\r\n",
            "PROXY TCP4 10.1.1.10 10.0.0.100 65536 80\r\n",
        ] {
            assert_eq!(read(text), Err(Malformed), "{text}");
        }
        assert_eq!(read(&format!("PROXY {}", "x".repeat(200))), Err(Malformed));
    }

    #[test]
    fn a_probe_of_the_proxys_own_has_no_addresses() {
        let mut local = SIGNATURE.to_vec();
        local.extend([V2_LOCAL, 0, 0, 3, 1, 2, 3]);
        assert_eq!(read(&local), Ok(Some(ProxyHeader { addresses: None, length: 19 })));
        local[12] = 0x31;
        assert_eq!(read(&local), Err(Malformed), "an unknown version");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_from_every_cut(
            client: SocketAddr, server: SocketAddr, is_v2: bool, rest: Vec<u8>,
        ) {
            // Neither version carries an IPv6 scope.
            let plain = |address: SocketAddr| SocketAddr::new(address.ip(), address.port());
            let (client, server) = (plain(client), plain(server));
            let mut bytes = if is_v2 { v2(client, server) } else { v1(client, server) };
            let length = bytes.len();
            for cut in 0..length {
                prop_assert_eq!(read(&bytes[..cut]), Ok(None));
            }
            bytes.extend(rest);
            let addresses = Some(same_family(client, server));
            prop_assert_eq!(read(&bytes), Ok(Some(ProxyHeader { addresses, length })));
        }

        #[test]
        fn no_bytes_make_it_panic(bytes: Vec<u8>, signed: bool) {
            let begin = if signed { &SIGNATURE[..] } else { b"PROXY " };
            let _ = read(&[begin, &bytes].concat());
        }
    }
}
