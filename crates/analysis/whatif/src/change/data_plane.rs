//! Changes of how Services are served: kube-proxy's mode, release and cluster CIDR, or another
//! program in its place.

use ipnet::IpNet;
use uturn_model::{ProxyMode, ServiceProxy, Version, misspelt};

use super::{Change, What};

/// A change of how Services are served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DataPlane {
    /// kube-proxy runs in this mode.
    Mode(ProxyMode),
    /// kube-proxy is of this release.
    Release(Version),
    /// kube-proxy knows these ranges of pods; none if empty.
    ClusterCidr(Vec<IpNet>),
    /// This program serves Services.
    Program(ServiceProxy),
}

/// Parses `--kube-proxy-mode MODE`.
///
/// # Errors
/// Returns an error if kube-proxy has no such mode.
pub fn mode(text: &str) -> Result<Change, String> {
    let mode: ProxyMode = text.parse().map_err(|why| {
        let hint = misspelt::hint(text, ProxyMode::ALL.map(ProxyMode::as_str));
        format!("{text:?} is {why}{hint}")
    })?;
    Ok(Change::new("--kube-proxy-mode", text, What::DataPlane(DataPlane::Mode(mode))))
}

/// Parses `--kube-proxy-version VERSION`: `v1.36`, `1.36.2`.
///
/// # Errors
/// Returns an error if the text is no version.
pub fn release(text: &str) -> Result<Change, String> {
    let bare = text.strip_prefix('v').unwrap_or(text);
    let whole = match bare.matches('.').count() {
        1 => format!("v{bare}.0"),
        _ => format!("v{bare}"),
    };
    let version = whole.parse().map_err(|why| format!("{text:?}: {why}"))?;
    Ok(Change::new("--kube-proxy-version", text, What::DataPlane(DataPlane::Release(version))))
}

/// Parses `--cluster-cidr RANGES`: ranges with commas between, or `none`.
///
/// # Errors
/// Returns an error if one of the ranges is none.
pub fn cluster_cidr(text: &str) -> Result<Change, String> {
    let ranges = match text {
        "" | "none" => Vec::new(),
        some => {
            let range = |own: &str| {
                own.trim().parse::<IpNet>().map_err(|_| {
                    format!("{own:?} is not a range of addresses: expected one such as 10.1.0.0/16")
                })
            };
            some.split(',').map(range).collect::<Result<_, _>>()?
        }
    };
    Ok(Change::new("--cluster-cidr", text, What::DataPlane(DataPlane::ClusterCidr(ranges))))
}

/// Parses `--data-plane PROGRAM`: `kube-proxy`, `cilium`, …
///
/// # Errors
/// Returns an error if no such program is modelled.
pub fn program(text: &str) -> Result<Change, String> {
    let word = if text == "kube-proxy" { "none" } else { text };
    let words =
        || ServiceProxy::ALL.map(|(_, own, _)| if own == "none" { "kube-proxy" } else { own });
    let found = ServiceProxy::ALL.into_iter().find(|(_, own, _)| *own == word);
    let (program, ..) = found.filter(|_| text != "none").ok_or_else(|| {
        let hint = misspelt::hint(text, words());
        format!("{text:?} serves no Services: expected {}{hint}", words().join(", "))
    })?;
    Ok(Change::new("--data-plane", text, What::DataPlane(DataPlane::Program(program))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(change: Result<Change, String>) -> DataPlane {
        match change.unwrap().what {
            What::DataPlane(what) => what,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn each_flag_takes_the_words_of_the_field() {
        assert_eq!(of(mode("nftables")), DataPlane::Mode(ProxyMode::Nftables));
        assert!(mode("nftable").unwrap_err().ends_with("did you mean nftables?"));
        assert_eq!(of(release("v1.36")), DataPlane::Release(Version::new(1, 36, 0)));
        assert_eq!(of(release("1.31.4")), DataPlane::Release(Version::new(1, 31, 4)));
        assert!(release("new").is_err());
        assert_eq!(of(program("cilium")), DataPlane::Program(ServiceProxy::Cilium));
        assert_eq!(of(program("kube-proxy")), DataPlane::Program(ServiceProxy::KubeProxy));
        assert!(program("cillium").unwrap_err().ends_with("did you mean cilium?"));
        assert!(program("none").is_err());
        assert_eq!(of(cluster_cidr("none")), DataPlane::ClusterCidr(Vec::new()));
        assert!(
            matches!(of(cluster_cidr("10.1.0.0/16,fd00::/56")), DataPlane::ClusterCidr(all) if all.len() == 2)
        );
        assert!(cluster_cidr("10.1.0.0").unwrap_err().contains("10.1.0.0/16"));
    }
}
