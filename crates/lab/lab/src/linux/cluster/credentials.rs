//! The keys, certificates, tokens and kubeconfigs of a cluster. They are in the run's folder, which
//! only root may read.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use serde_json::{Value, json};

/// The port of the API server in its namespace.
pub(super) const PORT: u16 = 6443;

/// The certificate of the authority that signed the API server's certificate.
pub(super) const AUTHORITY: &str = "ca.crt";

/// The certificate that the nodes show to the API server.
pub(super) const KUBELET_CERTIFICATE: &str = "kubelet.crt";
/// The key of that certificate.
pub(super) const KUBELET_KEY: &str = "kubelet.key";

/// The certificate that the API server shows to the nodes.
pub(super) const CALLER_CERTIFICATE: &str = "kubelet-client.crt";
/// The key of that certificate.
pub(super) const CALLER_KEY: &str = "kubelet-client.key";

/// The users that call the API server, each with the group that gives it rights.
const USERS: [(&str, &str); 7] = [
    (ADMIN, "system:masters"),
    (KUBELET, "system:masters"),
    (CONTROLLERS, ""),
    (SCHEDULER, ""),
    (KUBE_PROXY, ""),
    (CORE_DNS, ""),
    (OPERATOR, ""),
];

pub(super) const ADMIN: &str = "uturn-lab-admin";
pub(super) const KUBELET: &str = "uturn-lab-kubelet-stand-in";
pub(super) const CONTROLLERS: &str = "system:kube-controller-manager";
pub(super) const SCHEDULER: &str = "system:kube-scheduler";
pub(super) const KUBE_PROXY: &str = "system:kube-proxy";
pub(super) const CORE_DNS: &str = "system:coredns";
/// The account that `uturn operator manifests` gives rights.
pub(super) const OPERATOR: &str = "system:serviceaccount:kube-system:uturn-operator";

/// The credentials of a cluster, as files that programs are started with.
#[derive(Debug)]
pub(super) struct Credentials {
    folder: PathBuf,
    tokens: Vec<(&'static str, String)>,
}

impl Credentials {
    /// Creates all credentials in a folder. `addresses` are those of the API server.
    pub(super) fn create(
        folder: PathBuf,
        addresses: &[Ipv4Addr],
        nodes: &[IpAddr],
    ) -> io::Result<Self> {
        fs::create_dir_all(&folder)?;
        write_certificates(&folder, addresses, nodes)?;
        let tokens: Vec<(&str, String)> =
            USERS.iter().map(|(user, _)| Ok((*user, token()?))).collect::<io::Result<_>>()?;
        let lines = tokens
            .iter()
            .zip(USERS)
            .map(|((user, token), (_, group))| format!("{token},{user},{user},{group}\n"));
        write(&folder.join("tokens.csv"), &lines.collect::<String>())?;
        Ok(Self { folder, tokens })
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Returns the kubeconfig of a user for the API server at this address.
    pub(super) fn kubeconfig(&self, user: &str, host: Ipv4Addr, port: u16) -> Value {
        let token = self.tokens.iter().find(|(own, _)| *own == user).map(|(_, token)| token);
        let server = format!("https://{host}:{port}");
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "uturn-lab",
            "clusters": [{"name": "uturn-lab", "cluster": {
                "server": server, "certificate-authority": self.file(AUTHORITY)}}],
            "users": [{"name": user, "user": {"token": token}}],
            "contexts": [{"name": "uturn-lab", "context": {"cluster": "uturn-lab", "user": user}}],
        })
    }

    /// Writes the kubeconfig of a user. Returns its path.
    pub(super) fn write_kubeconfig(
        &self,
        path: PathBuf,
        user: &str,
        host: Ipv4Addr,
        port: u16,
    ) -> io::Result<PathBuf> {
        write(&path, &self.kubeconfig(user, host, port).to_string())?;
        Ok(path)
    }
}

/// Writes the authority, the certificates that it signed, and the key that signs tokens of service
/// accounts.
fn write_certificates(folder: &Path, addresses: &[Ipv4Addr], nodes: &[IpAddr]) -> io::Result<()> {
    let own = KeyPair::generate().map_err(io::Error::other)?;
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    params.distinguished_name.push(DnType::CommonName, "uturn-lab");
    let authority = params.self_signed(&own).map_err(io::Error::other)?.pem();
    write(&folder.join(AUTHORITY), &authority)?;
    let issuer = Issuer::new(params, own);
    let names = ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"];
    let names = names.iter().map(ToString::to_string);
    let names: Vec<String> = names.chain(addresses.iter().map(ToString::to_string)).collect();
    let nodes: Vec<String> = nodes.iter().map(ToString::to_string).collect();
    for (name, names, [certificate, key]) in [
        ("kube-apiserver", names, ["server.crt", "server.key"]),
        (KUBELET, nodes, [KUBELET_CERTIFICATE, KUBELET_KEY]),
        ("kube-apiserver-kubelet-client", Vec::new(), [CALLER_CERTIFICATE, CALLER_KEY]),
    ] {
        let own = KeyPair::generate().map_err(io::Error::other)?;
        let mut params = CertificateParams::new(names).map_err(io::Error::other)?;
        params.distinguished_name.push(DnType::CommonName, name);
        let signed = params.signed_by(&own, &issuer).map_err(io::Error::other)?;
        write(&folder.join(certificate), &signed.pem())?;
        write(&folder.join(key), &own.serialize_pem())?;
    }
    let accounts = KeyPair::generate().map_err(io::Error::other)?;
    write(&folder.join("accounts.key"), &accounts.serialize_pem())?;
    write(&folder.join("accounts.pub"), &accounts.public_key_pem())
}

/// Returns a random token of 128 bits.
pub(super) fn token() -> io::Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Writes a file that only its owner may read.
pub(super) fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut file =
        File::options().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}
