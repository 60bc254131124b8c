//! Reads why a machine refused a load balancer, from the message of its data plane.

use std::net::{IpAddr, SocketAddr};

use uturn_cloud_api::unserved::Unserved;

/// Returns the reason that a data plane's message on a refused load balancer gives.
pub(super) fn reason(message: &str) -> Unserved {
    let has = |part: &str| message.contains(part);
    match () {
        () if has("cannot send the health checks") => Unserved::NoProbeSource,
        () if has("cannot set up layer 4") || has("cannot start layer 4") => Unserved::NoLayer4,
        () if has("cannot listen on") && has("not available") => Unserved::NoAddress,
        () if has("cannot listen on") && has("assign requested address") => Unserved::NoAddress,
        () if has("cannot listen on") && has("in use") => Unserved::PortInUse,
        () if has("takes no certificates") => Unserved::NoCertificates,
        () => Unserved::Refused,
    }
}

/// Returns the failure text of the task of a refused load balancer with these addresses. Names the
/// address that could not be listened on only if it is the load balancer's own.
pub(super) fn text(message: &str, own: &[IpAddr]) -> String {
    let why = reason(message);
    let listened = message.split("cannot listen on ").nth(1);
    let listened = listened.and_then(|rest| rest.split_whitespace().next());
    let listened =
        listened.and_then(|address| address.trim_end_matches(':').parse::<SocketAddr>().ok());
    match listened.filter(|address| own.contains(&address.ip())) {
        Some(address) => format!("it cannot listen on {address}: {}", why.words()),
        None => why.words().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tenants_learn_why_and_nothing_of_the_data_plane() {
        let own = ["127.10.0.1".parse().unwrap()];
        for (message, expected) in [
            (
                "cannot listen on 127.10.0.1:80 of lb-1: Address already in use (os error 98)",
                "it cannot listen on 127.10.0.1:80: another program has one of its ports on the \
                 data plane",
            ),
            (
                "cannot listen on 10.9.9.9:80, the admin address: Address already in use (os error 98)",
                "another program has one of its ports on the data plane",
            ),
            (
                "cannot listen on 127.10.0.1:80: Cannot assign requested address (os error 99)",
                "it cannot listen on 127.10.0.1:80: the data plane does not have its address",
            ),
            (
                "cannot send the health checks of 127.10.0.1:80 from 100.64.0.1: Cannot assign \
                 requested address (os error 99)",
                "the data plane does not have the address that its health checks come from",
            ),
            (
                "cannot set up layer 4: Operation not permitted (os error 1)",
                "the data plane cannot serve TCP and UDP",
            ),
            (
                "/var/lib/keys/secret.pem: no such file, says http://10.0.0.1:9900",
                "the data plane refuses it; its operator can see why",
            ),
            ("", "the data plane refuses it; its operator can see why"),
        ] {
            assert_eq!(text(message, &own), expected, "{message}");
        }
    }
}
