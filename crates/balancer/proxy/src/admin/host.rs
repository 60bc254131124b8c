//! Checks the host name that a request to the admin address uses.
//!
//! A page of another site can make a browser call an internal address under a name of that site, if
//! the site's owner points the name there (DNS rebinding). The browser then takes the answers for
//! the site's own. Such a name has a dot and is in `Host`. IP addresses, and names that only the
//! local network knows, belong to no site.

use std::fs;
use std::net::{IpAddr, Ipv6Addr};

use http::header::HOST;
use http::uri::Authority;
use http::{Request, Response, StatusCode, Version};

use super::pages::{TEXT, page};

/// The file with the machine's name.
const NAME: &str = "/proc/sys/kernel/hostname";

/// The names with a dot by which the admin address may be called.
#[derive(Debug, Default)]
pub(super) struct Names(Vec<String>);

impl Names {
    /// Returns the name of the machine, and those of the configuration.
    pub(super) fn new(stated: impl IntoIterator<Item = String>) -> Self {
        let own = fs::read_to_string(NAME).ok();
        let all = own.into_iter().chain(stated);
        Self(all.map(|name| plain(name.trim())).filter(|name| !name.is_empty()).collect())
    }

    /// Checks whether a request calls the admin address by one of its names.
    ///
    /// # Errors
    /// The answer to a request that does not.
    pub(super) fn check<B>(&self, request: &Request<B>) -> Result<(), Box<Response<String>>> {
        let refuse = |status, text: &str| Err(Box::new(page(status, TEXT, format!("{text}\n"))));
        let mut hosts = request.headers().get_all(HOST).iter();
        let (host, second) = (hosts.next(), hosts.next());
        if second.is_some() || (host.is_none() && request.version() != Version::HTTP_10) {
            return refuse(StatusCode::BAD_REQUEST, "This needs one Host.");
        }
        let stated = host.map(|host| Authority::try_from(host.as_bytes()));
        let is_known = |authority: &Authority| self.has(authority.host());
        let is_known = request.uri().authority().is_none_or(is_known)
            && stated.is_none_or(|authority| authority.is_ok_and(|it| is_known(&it)));
        if is_known {
            Ok(())
        } else {
            refuse(
                StatusCode::MISDIRECTED_REQUEST,
                "The admin address is not called so: call it by its IP address or the name of its \
                 machine, or add this name to spec.admin.hosts of the DataPlane document: \
                 admin: {address: ADDRESS:PORT, hosts: [NAME]}",
            )
        }
    }

    fn has(&self, host: &str) -> bool {
        let name = plain(host);
        let inner = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let is_address = match inner {
            Some(inner) => inner.parse::<Ipv6Addr>().is_ok(),
            None => name.parse::<IpAddr>().is_ok(),
        };
        let is_local = !name.is_empty() && !name.contains('.');
        is_address || is_local || name.ends_with(".localhost") || self.0.contains(&name)
    }
}

/// Returns a name in the form in which names are compared.
fn plain(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_another_site_is_none_of_its_own() {
        let names = Names(vec!["lb.example.com".into()]);
        let status = |version: Version, target: &str, hosts: &[&str]| {
            let mut request = Request::builder().version(version).uri(target);
            for host in hosts {
                request = request.header(HOST, *host);
            }
            let checked = names.check(&request.body(()).unwrap());
            checked.err().map(|refusal| refusal.status().as_u16())
        };
        for host in [
            "127.0.0.1:9900",
            "10.0.0.1",
            "[::1]:9900",
            "[fd00::1]",
            "localhost:9900",
            "LOCALHOST",
            "a.localhost",
            "lb-1",
            "lb.example.com",
            "LB.Example.Com.:9900",
        ] {
            assert_eq!(status(Version::HTTP_11, "/", &[host]), None, "{host}");
            assert_eq!(status(Version::HTTP_10, "/", &[host]), None, "{host}");
        }
        for host in [
            "evil.example",
            "evil.example:9900",
            "127.0.0.1.evil.example",
            "lb.example.com.evil.example",
            "xlb.example.com",
            "localhost.evil.example",
            "evil.example.",
            "127.1",
            "0x7f.1",
        ] {
            assert_eq!(status(Version::HTTP_11, "/", &[host]), Some(421), "{host}");
            assert_eq!(status(Version::HTTP_10, "/", &[host]), Some(421), "{host}");
        }
        assert_eq!(status(Version::HTTP_10, "/", &[]), None);
        assert_eq!(status(Version::HTTP_11, "/", &[]), Some(400));
        assert_eq!(status(Version::HTTP_11, "/", &["a", "a"]), Some(400));
        assert_eq!(status(Version::HTTP_11, "/", &[""]), Some(421));
        assert_eq!(status(Version::HTTP_11, "http://evil.example/", &["127.0.0.1"]), Some(421));
        assert_eq!(status(Version::HTTP_11, "http://127.0.0.1/", &["evil.example"]), Some(421));
    }
}
