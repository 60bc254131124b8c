//! `uturn lb`: the load balancer itself.

#[cfg(target_os = "linux")]
mod serve;

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use uturn_cli::{Failure, Printer, Status, faulty, secret_file};
use uturn_lb::config::Config;
use uturn_report::lb;
use uturn_snapshot::LbFile;

#[cfg(not(target_os = "linux"))]
use crate::cli::LbRun;
use crate::cli::{Lb, LbCheck};

#[cfg(target_os = "linux")]
use self::serve::serve as run_here;

pub(super) fn run(args: &Lb, printer: &Printer) -> Result<Status, Failure> {
    match args {
        Lb::Run(args) => run_here(args, printer),
        Lb::Check(args) => check(args, printer),
    }
}

fn check(args: &LbCheck, printer: &Printer) -> Result<Status, Failure> {
    let config = read(&args.file)?;
    check_whole(&config, &args.file)?;
    warn(&config, printer);
    uturn_cli::print(
        printer,
        args.output,
        |style| lb::text(&config, style),
        || LbFile::from(&config),
    );
    Ok(Status::Clean)
}

/// Warns on standard error about secrets that others may read.
fn warn(config: &Config, printer: &Printer) {
    exposed_files(config).iter().for_each(|warning| printer.note(&format!("warning: {warning}")));
}

/// Checks what a document alone does not show: that something is served, or can be configured over
/// the admin address, and that the named files exist.
fn check_whole(config: &Config, file: &Path) -> Result<(), Failure> {
    let process = &config.process;
    let is_filled_later = process.admin.is_some() && process.admin_token.is_some();
    if config.load_balancers.is_empty() && !is_filled_later {
        return Err(Failure::usage(format!("{}: no LoadBalancer document", file.display())));
    }
    let mut faults = unreadable_files(config);
    faults.extend(files_of_others(config));
    if faults.is_empty() { Ok(()) } else { Err(Failure::input(faults)) }
}

/// Returns messages for certificates, keys and tokens that cannot be opened.
fn unreadable_files(config: &Config) -> Vec<String> {
    let mut messages = Vec::new();
    let cannot_open = |file: &Path| {
        let error = File::open(file).err()?;
        let why = match error.kind() {
            io::ErrorKind::NotFound => "no such file".to_owned(),
            _ => error.to_string(),
        };
        Some(format!("cannot open {}: {why}", file.display()))
    };
    let token = config.process.admin_token.as_deref();
    messages.extend(token.and_then(cannot_open).map(|why| format!("spec.admin.tokenFile: {why}")));
    for served in &config.load_balancers {
        let balancer = &served.load_balancer;
        for (listener, settings) in balancer.listeners.iter().zip(&served.listeners) {
            for file in settings.tls_files() {
                if let Some(why) = cannot_open(file) {
                    let (name, protocol, port) = (&balancer.name, listener.protocol, listener.port);
                    messages.push(format!("{name} {protocol}:{port}: {why}"));
                }
            }
        }
    }
    messages
}

/// Returns messages for tokens that others may change: whoever does so is the administrator.
fn files_of_others(config: &Config) -> Vec<String> {
    let faults = config.process.admin_token.iter().filter_map(|file| secret_file::fault(file));
    faults.map(|fault| format!("spec.admin.tokenFile: {fault}")).collect()
}

/// Returns warnings about tokens and private keys that others may read.
fn exposed_files(config: &Config) -> Vec<String> {
    let listeners = config.load_balancers.iter().flat_map(|served| &served.listeners);
    let keys = listeners.flat_map(|listener| &listener.certificates).map(|files| &files.key);
    let secrets: BTreeSet<&PathBuf> = keys.chain(&config.process.admin_token).collect();
    secrets.into_iter().filter_map(|file| secret_file::warning(file)).collect()
}

/// Reads the configuration.
fn read(file: &Path) -> Result<Config, Failure> {
    let (sources, faults) = uturn_document::gather(&[PathBuf::from(file)]);
    if !faults.is_empty() {
        return Err(faulty(&faults));
    }
    uturn_snapshot::read_lb_config(sources).map_err(|faults| faulty(&faults))
}

#[cfg(not(target_os = "linux"))]
fn run_here(_: &LbRun, _: &Printer) -> Result<Status, Failure> {
    Err(Failure::unavailable("the load balancer needs Linux: it keeps the client's address"))
}
