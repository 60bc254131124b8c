//! Reads the metrics of the load balancer's admin address.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::thread;
use std::time::Duration;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::failure::Failure;

/// The longest time to connect, and to wait for the next bytes of an answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// The samples by name; a name includes the labels.
#[derive(Clone, Debug, Default)]
pub(super) struct Metrics(BTreeMap<String, u64>);

impl Metrics {
    pub(super) fn read(text: &str) -> Self {
        let sample = |line: &str| {
            let (name, value) = line.rsplit_once(' ')?;
            Some((name.to_owned(), value.parse().ok()?))
        };
        Self(text.lines().filter(|line| !line.starts_with('#')).filter_map(sample).collect())
    }

    /// Returns the sum of all samples of a family.
    pub(super) fn sum(&self, family: &str) -> u64 {
        self.of(family).map(|(_, value)| value).sum()
    }

    /// Returns the sums of a family by the values of a label.
    pub(super) fn by(&self, family: &str, label: &str) -> BTreeMap<String, u64> {
        let mut sums = BTreeMap::new();
        for (labels, value) in self.of(family) {
            let Some((_, rest)) = labels.split_once(&format!("{label}=\"")) else { continue };
            let text = rest.split('"').next().unwrap_or_default();
            *sums.entry(text.to_owned()).or_default() += value;
        }
        sums
    }

    /// Returns the labels and values of a family's samples.
    fn of(&self, family: &str) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().filter_map(move |(name, value)| {
            let labels = name.strip_prefix(family)?;
            (labels.is_empty() || labels.starts_with('{')).then_some((labels, *value))
        })
    }
}

/// Requests a page of an admin address, from within a network namespace.
///
/// # Errors
/// When no complete answer comes.
pub(super) fn get(
    namespace: &str,
    admin: SocketAddr,
    path: &str,
) -> Result<(u16, String), Failure> {
    let doing = format!("read {path} of the admin address");
    let asked = thread::scope(|scope| {
        // The request has a thread of its own, as this one must not change its namespace.
        let asking = scope.spawn(|| {
            let space = File::open(namespace)?;
            move_into_link_name_space(space.as_fd(), Some(LinkNameSpaceType::Network))?;
            let mut stream = TcpStream::connect_timeout(&admin, PATIENCE)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            let request =
                format!("GET {path} HTTP/1.1\r\nHost: {admin}\r\nConnection: close\r\n\r\n");
            stream.write_all(request.as_bytes())?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok(answer)
        });
        asking.join().unwrap_or_else(|_| Err(std::io::Error::other("the thread has ended")))
    });
    let answer = asked.map_err(Failure::of(&doing))?;
    let status = answer.get(9..12).and_then(|status| status.parse().ok());
    match (status, answer.split_once("\r\n\r\n")) {
        (Some(status), Some((_, body))) => Ok((status, body.to_owned())),
        _ => Err(Failure(format!("cannot {doing}: {answer}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_summed_by_family_and_label() {
        let text = "# TYPE a_total counter\n\
                    a_total{x=\"1\",y=\"p\"} 3\n\
                    a_total{x=\"2\",y=\"p\"} 4\n\
                    a_total_more{x=\"1\"} 100\n\
                    b 7\n\
                    c 0.5\n";
        let metrics = Metrics::read(text);
        assert_eq!(metrics.sum("a_total"), 7);
        assert_eq!(metrics.sum("b"), 7);
        let by = metrics.by("a_total", "x");
        assert_eq!(by, [("1".to_owned(), 3), ("2".to_owned(), 4)].into());
    }
}
