//! `uturn operator`: the controllers of Services and Ingresses on Tencent Cloud.

mod dry;
mod live;

use std::env;
use std::num::NonZeroU32;
use std::path::Path;

use uturn_cli::{Failure, Printer, Status, secret_file};
use uturn_cloud_api::SecretKey;
use uturn_cloud_api::client::{ClientSettings, Endpoint, Retries};
use uturn_document::whole_file;
use uturn_kube::manifests::{CONFIG_DEFINITION, RIGHTS, rights_with_secrets_of};

use crate::cli::{Operator, OperatorRun};

/// The environment variables with the credential.
const ID_VARIABLE: &str = "TENCENTCLOUD_SECRET_ID";
const KEY_VARIABLE: &str = "TENCENTCLOUD_SECRET_KEY";

/// The number of requests a second that the cloud allows for each action.
const RATE: u32 = 20;

pub(super) fn run(command: &Operator, printer: &Printer) -> Result<Status, Failure> {
    match command {
        Operator::Run(args) if args.dry_run => dry::show(args, printer),
        Operator::Run(args) => live::run(args, printer),
        Operator::Manifests(args) => {
            let rights = match &args.secrets_of {
                Some(namespaces) => rights_with_secrets_of(&namespaces.iter().cloned().collect()),
                None => RIGHTS.to_owned(),
            };
            printer.result(&format!("{CONFIG_DEFINITION}---\n{rights}"));
            Ok(Status::Clean)
        }
    }
}

/// Returns the settings of the API client: its credential and the API's address.
fn settings(
    args: &OperatorRun,
    retries: Retries,
    printer: &Printer,
) -> Result<ClientSettings, Failure> {
    secret_file::check(args.credentials.as_deref().into_iter(), printer)?;
    let endpoint = match &args.endpoint {
        Some(text) => text
            .parse::<Endpoint>()
            .map_err(|error| Failure::usage(format!("--endpoint: {error}")))?,
        None => Endpoint::Public,
    };
    let (secret_id, secret_key) = match &args.credentials {
        Some(file) => credential_of(file)?,
        None => credential_of_environment()?,
    };
    Ok(ClientSettings {
        endpoint,
        secret_id,
        secret_key: SecretKey::from(secret_key),
        region: args.region.clone(),
        retries,
        rate: NonZeroU32::new(RATE),
    })
}

fn credential_of(file: &Path) -> Result<(String, String), Failure> {
    let shown = file.display();
    let text = whole_file::text_of(file, whole_file::SETTINGS)
        .map_err(|error| Failure::usage(format!("{shown}: {error}")))?;
    let lines = text.lines().map(str::trim);
    let mut lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    let words: Vec<&str> = lines.next().unwrap_or_default().split_whitespace().collect();
    match (&words[..], lines.next()) {
        ([id, key] | [id, key, _], None) => Ok(((*id).to_owned(), (*key).to_owned())),
        _ => Err(Failure::usage(format!("{shown}: expected a single line SECRET_ID SECRET_KEY"))),
    }
}

fn credential_of_environment() -> Result<(String, String), Failure> {
    let variable = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
    variable(ID_VARIABLE).zip(variable(KEY_VARIABLE)).ok_or_else(|| {
        Failure::unavailable(format!(
            "no credential: name a file with --credentials, or set {ID_VARIABLE} and {KEY_VARIABLE}"
        ))
    })
}
