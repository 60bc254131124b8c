//! Finds the real programs that a cluster consists of.

use std::path::{Path, PathBuf};

use uturn_model::AddressBinding;

use super::vendor_build::VendorBuild;
use crate::LabError;
use crate::linux::kernel::system::find;

/// The version of kube-proxy that runs unless another is requested: that of the API server.
const KUBE_PROXY: &str = "v1.34.4";

/// The paths of the programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Parts {
    pub(super) etcd: PathBuf,
    pub(super) api_server: PathBuf,
    pub(super) controllers: PathBuf,
    pub(super) scheduler: PathBuf,
    pub(super) core_dns: PathBuf,
    pub(super) kube_proxy: PathBuf,
    /// The version of kube-proxy, if it is known.
    pub(super) kube_proxy_version: Option<String>,
    /// The cloud's build that kube-proxy stands in for.
    pub(super) vendor_build: Option<VendorBuild>,
}

impl Parts {
    /// Finds the programs in a folder of parts, or else in the search path.
    pub(super) fn find(folder: Option<&Path>, version: Option<&str>) -> Result<Self, LabError> {
        let in_folder = |name: &Path| {
            let path = folder?.join(name);
            path.is_file().then(|| path.canonicalize().unwrap_or(path))
        };
        choose(version, &in_folder, &find)
    }
}

impl Parts {
    /// Returns a note about the build that kube-proxy stands in for.
    pub(super) fn stand_in(&self) -> Option<String> {
        let (build, version) = self.vendor_build.zip(self.kube_proxy_version.as_ref())?;
        let in_ipvs = match build.binding {
            AddressBinding::All => "all addresses of load balancers",
            AddressBinding::None => "no addresses of load balancers",
            AddressBinding::OnRequest(_) => "the addresses of load balancers that ask for it",
        };
        Some(format!(
            "upstream's kube-proxy {KUBE_PROXY} stands in for {version}, which is not published: \
             in IPVS mode it binds {in_ipvs}, as that build does"
        ))
    }
}

/// Chooses each program: from the folder, or else from the search path.
fn choose(
    version: Option<&str>,
    in_folder: &dyn Fn(&Path) -> Option<PathBuf>,
    in_path: &dyn Fn(&str) -> Option<PathBuf>,
) -> Result<Parts, LabError> {
    let mut missing = Vec::new();
    let mut program = |name: &'static str| {
        let found = in_folder(&Path::new("bin").join(name)).or_else(|| in_path(name));
        found.unwrap_or_else(|| {
            missing.push(name.to_owned());
            PathBuf::new()
        })
    };
    let (etcd, api_server) = (program("etcd"), program("kube-apiserver"));
    let (controllers, scheduler) = (program("kube-controller-manager"), program("kube-scheduler"));
    let core_dns = program("coredns");
    let vendor_build = version.and_then(VendorBuild::of);
    let shown = version;
    // Clouds do not publish their builds.
    let version = version.filter(|_| vendor_build.is_none());
    let wanted = version.unwrap_or(KUBE_PROXY);
    let built = in_folder(&Path::new(wanted).join("kube-proxy"));
    let is_known = built.is_some() || shown.is_some();
    let kube_proxy_version = is_known.then(|| shown.unwrap_or(wanted).to_owned());
    // A requested version must be exactly that: the search path does not tell which version it has.
    let kube_proxy = built.or_else(|| in_path("kube-proxy").filter(|_| version.is_none()));
    let kube_proxy = kube_proxy.unwrap_or_else(|| {
        missing
            .push(version.map_or("kube-proxy".into(), |version| format!("kube-proxy {version}")));
        PathBuf::new()
    });
    if !missing.is_empty() {
        return Err(LabError::Cluster(format!(
            "{} not found: `cargo xtask box-parts` builds all parts with Go, then name their \
             folder with --parts; or put them into the search path",
            missing.join(", ")
        )));
    }
    Ok(Parts {
        etcd,
        api_server,
        controllers,
        scheduler,
        core_dns,
        kube_proxy,
        kube_proxy_version,
        vendor_build,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn everywhere(name: &str) -> Option<PathBuf> {
        Some(Path::new("/usr/bin").join(name))
    }

    #[test]
    fn the_folder_is_preferred_and_the_path_fills_in() {
        let folder = |name: &Path| {
            let has = ["bin/etcd", "v1.34.4/kube-proxy"].iter().any(|own| Path::new(own) == name);
            has.then(|| Path::new("/parts").join(name))
        };
        let parts = choose(None, &folder, &everywhere).unwrap();
        assert_eq!(parts.etcd, Path::new("/parts/bin/etcd"));
        assert_eq!(parts.api_server, Path::new("/usr/bin/kube-apiserver"));
        assert_eq!(parts.kube_proxy, Path::new("/parts/v1.34.4/kube-proxy"));
        assert_eq!(parts.kube_proxy_version.as_deref(), Some("v1.34.4"));
        assert_eq!(parts.vendor_build, None);
        let parts = choose(Some("v1.22.5-tke.13"), &folder, &everywhere).unwrap();
        assert_eq!(parts.kube_proxy, Path::new("/parts/v1.34.4/kube-proxy"));
        assert_eq!(parts.kube_proxy_version.as_deref(), Some("v1.22.5-tke.13"));
        assert_eq!(parts.vendor_build, VendorBuild::of("v1.22.5-tke.13"));
    }

    #[test]
    fn what_is_missing_is_named() {
        let nothing = |_: &Path| None;
        let error = choose(None, &nothing, &|name| everywhere(name).filter(|_| name != "etcd"));
        let error = error.unwrap_err().to_string();
        assert!(error.contains("etcd not found") && error.contains("box-parts"), "{error}");
        let error = choose(Some("v1.30.14"), &nothing, &everywhere).unwrap_err().to_string();
        assert!(error.contains("kube-proxy v1.30.14 not found"), "{error}");
    }
}
