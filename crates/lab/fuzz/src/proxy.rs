//! The data that clients send to the load balancer: PROXY headers and requests.

#[cfg(target_os = "linux")]
mod request;

#[cfg(target_os = "linux")]
pub use request::proxy_request;

use uturn_lb::config::ProxyVersion;
use uturn_lb::proxy_header::{read, write};

/// Reads a PROXY header. An accepted header needs all of its bytes, and its addresses are read back
/// when they are written in either version.
pub fn proxy_header(data: &[u8]) -> bool {
    let Ok(Some(header)) = read(data) else { return false };
    assert!(header.length <= data.len());
    assert_eq!(read(&data[..header.length]), Ok(Some(header)), "what follows changes nothing");
    for length in 0..header.length {
        assert_eq!(read(&data[..length]), Ok(None), "cut off after {length} bytes");
    }
    if let Some((client, server)) = header.addresses {
        for version in [ProxyVersion::V1, ProxyVersion::V2] {
            let written = write(version, client, server);
            let again = read(&written).ok().flatten().expect("what is written is a header");
            assert_eq!((again.addresses, again.length), (header.addresses, written.len()));
        }
    }
    true
}

/// Accepts anything: the data plane is for Linux.
#[cfg(not(target_os = "linux"))]
pub fn proxy_request(_data: &[u8]) -> bool {
    true
}
