//! `/certificates`: certificates with their keys, for configurations that come over HTTP.
//!
//! Each is one file, `NAME.pem`, in a folder that only this process's user can read. Keys are
//! written, but never shown.

use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use serde::Serialize;
use uturn_lb::config::CertificateFiles;

use super::change::{BodyFault, read};
use super::pages::{TEXT, not_allowed, page};
use super::{Control, Known};
use crate::tls;

/// The most bytes of a certificate with its key.
const LARGEST: usize = 1 << 20;

/// The most characters of a name.
const LONGEST_NAME: usize = 64;

/// The path that lists the certificates. The paths of certificates are below it.
const PATH: &str = "/certificates";

/// The list of certificates.
#[derive(Debug, Serialize)]
struct Page {
    folder: PathBuf,
    names: Vec<String>,
}

/// Returns whether a path is that of the list or of a certificate.
pub(super) fn is_path(path: &str) -> bool {
    path.strip_prefix(PATH).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Answers a request of a client that knows the token.
pub(super) async fn answer(
    request: Request<Incoming>,
    control: &Control,
    known: &Known,
) -> Response<String> {
    let Some(folder) = &control.certificates else {
        let text = "This load balancer takes no certificates: start it with --certificates DIR.\n";
        return page(StatusCode::FORBIDDEN, TEXT, text.into());
    };
    let (head, body) = request.into_parts();
    let name = head.uri.path().strip_prefix(PATH).unwrap_or_default().strip_prefix('/');
    let answer = match (name, &head.method) {
        (None, &Method::GET | &Method::HEAD) => list(folder),
        (None, _) => return not_allowed("GET, HEAD"),
        (Some(name), _) if !is_name(name) => {
            let text = format!(
                "The name of a certificate has 1 to {LONGEST_NAME} letters, digits and hyphens.\n"
            );
            return page(StatusCode::BAD_REQUEST, TEXT, text);
        }
        (Some(name), &Method::PUT) => match read(&head.headers, body, LARGEST).await {
            Ok(bytes) => keep(folder, name, &bytes),
            Err(BodyFault::TooLarge) => {
                let text = "A certificate with its key has at most 1 MiB.\n";
                return page(StatusCode::PAYLOAD_TOO_LARGE, TEXT, text.into());
            }
            Err(BodyFault::Cut) => {
                return page(StatusCode::BAD_REQUEST, TEXT, "The body ended early.\n".into());
            }
        },
        (Some(name), &Method::DELETE) => remove(folder, name, known),
        (Some(_), _) => return not_allowed("DELETE, PUT"),
    };
    answer.unwrap_or_else(|error| {
        let text = format!("{}: {error}\n", folder.display());
        page(StatusCode::INTERNAL_SERVER_ERROR, TEXT, text)
    })
}

fn is_name(name: &str) -> bool {
    let is_character = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(is_character)
}

fn file(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.pem"))
}

fn list(folder: &Path) -> io::Result<Response<String>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        entries => entries?.collect::<io::Result<Vec<_>>>()?,
    };
    let name = |entry: &fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        name.strip_suffix(".pem").filter(|name| is_name(name)).map(str::to_owned)
    };
    let mut names: Vec<String> = entries.iter().filter_map(name).collect();
    names.sort();
    let page_of = Page { folder: folder.to_owned(), names };
    let mut text = serde_json::to_string_pretty(&page_of)?;
    text.push('\n');
    Ok(page(StatusCode::OK, "application/json", text))
}

/// Stores a certificate. An existing one of this name is replaced atomically, or stays.
fn keep(folder: &Path, name: &str, pem: &[u8]) -> io::Result<Response<String>> {
    if !folder.exists() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    let path = file(folder, name);
    // Certificates cannot have this name.
    let unchecked = folder.join(format!(".{name}.new"));
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let mut written = options.open(&unchecked)?;
    written.set_permissions(Permissions::from_mode(0o600))?;
    written.write_all(pem)?;
    written.sync_all()?;
    let files = CertificateFiles { certificate: unchecked.clone(), key: unchecked.clone() };
    // The error may quote the file, which may contain the key.
    if tls::server(&[files], None, false).is_err() && !is_authority(&unchecked, &path) {
        fs::remove_file(&unchecked)?;
        let text = "These are neither a certificate (with those that lead to its authority) and \
                    its private key, nor certificates of authorities alone, in PEM.\n";
        return Ok(page(StatusCode::BAD_REQUEST, TEXT, text.into()));
    }
    fs::rename(&unchecked, &path)?;
    Ok(page(StatusCode::OK, TEXT, format!("{}\n", path.display())))
}

/// Returns whether a file has certificates of authorities. They do not replace a server's
/// certificate.
fn is_authority(unchecked: &Path, path: &Path) -> bool {
    tls::authorities(unchecked).is_ok() && (!path.exists() || tls::authorities(path).is_ok())
}

/// Removes a certificate, unless the served configuration names it.
fn remove(folder: &Path, name: &str, known: &Known) -> io::Result<Response<String>> {
    let path = file(folder, name);
    let served = known.served.load();
    let is_served = served.as_ref().is_some_and(|served| {
        let listeners = served.config.load_balancers.iter().flat_map(|served| &served.listeners);
        listeners.flat_map(|listener| listener.tls_files()).any(|file| *file == path)
    });
    if is_served {
        let text = "The configuration that is served names this certificate.\n";
        return Ok(page(StatusCode::CONFLICT, TEXT, text.into()));
    }
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(page(StatusCode::OK, TEXT, "removed\n".into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_to_files_of_the_folder_alone() {
        assert!(is_name("a1B2-3") && is_name(&"a".repeat(64)));
        for name in ["", ".", "..", "../a", "a/b", "a.pem", "\u{e4}", "a b", &"a".repeat(65)] {
            assert!(!is_name(name), "{name:?}");
        }
        assert!(is_path("/certificates") && is_path("/certificates/a"));
        assert!(!is_path("/certificatesa") && !is_path("/config"));
    }
}
