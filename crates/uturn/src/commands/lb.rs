//! `uturn lb`: the load balancer itself.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use uturn_lb::config::Config;
use uturn_report::lb;
use uturn_snapshot::LbFile;

use crate::cli::{Lb, LbCheck, LbRun};
use crate::printer::Printer;
use crate::status::{Failure, Status};

pub(super) fn run(args: &Lb, printer: &Printer) -> Result<Status, Failure> {
    match args {
        Lb::Run(args) => serve(args, printer),
        Lb::Check(args) => check(args, printer),
    }
}

fn check(args: &LbCheck, printer: &Printer) -> Result<Status, Failure> {
    let config = read(&args.file)?;
    if config.load_balancers.is_empty() {
        let message = format!("{}: no LoadBalancer document", args.file.display());
        return Err(Failure::usage(message));
    }
    let missing = unreadable_certificates(&config);
    if !missing.is_empty() {
        return Err(Failure::input(missing));
    }
    super::print(printer, args.output, |style| lb::text(&config, style), || LbFile::from(&config));
    Ok(Status::Clean)
}

/// Messages for certificates and keys that cannot be opened.
fn unreadable_certificates(config: &Config) -> Vec<String> {
    let mut messages = Vec::new();
    for served in &config.load_balancers {
        let balancer = &served.load_balancer;
        for (listener, settings) in balancer.listeners.iter().zip(&served.listeners) {
            let files = settings.certificates.iter();
            for file in files.flat_map(|files| [&files.certificate, &files.key]) {
                if let Err(error) = File::open(file) {
                    let why = match error.kind() {
                        io::ErrorKind::NotFound => "no such file".to_owned(),
                        _ => error.to_string(),
                    };
                    messages.push(format!(
                        "{} {}:{}: cannot open {}: {why}",
                        balancer.name,
                        listener.protocol,
                        listener.port,
                        file.display()
                    ));
                }
            }
        }
    }
    messages
}

/// Reads what is to be served.
fn read(file: &Path) -> Result<Config, Failure> {
    let faulty = |faults: Vec<uturn_snapshot::Fault>| {
        Failure::input(faults.iter().map(ToString::to_string).collect())
    };
    let (sources, faults) = uturn_snapshot::gather(&[PathBuf::from(file)]);
    if !faults.is_empty() {
        return Err(faulty(faults));
    }
    uturn_snapshot::read_lb_config(sources).map_err(faulty)
}

#[cfg(target_os = "linux")]
fn serve(args: &LbRun, printer: &Printer) -> Result<Status, Failure> {
    use std::sync::Arc;

    use uturn_proxy::{Detail, Observer, Request, Server, requests};

    let here = |why: uturn_proxy::StartError| Failure::not_here(why.to_string());
    let mut config = read(&args.file)?;
    if let Some(namespace) = &args.netns {
        uturn_proxy::enter(namespace).map_err(here)?;
    }
    let requests = requests(args.until_stdin_closes).map_err(here)?;
    let events = *printer;
    let observer: Observer =
        Arc::new(move |event| events.result(&format!("{}\n", event.to_json())));
    let detail = if args.events { Detail::Connections } else { Detail::Changes };
    let start = if args.no_layer_4 { Server::start_without_layer_4 } else { Server::start };
    let mut server = start(&config, observer, detail).map_err(here)?;
    while let Ok(request) = requests.recv() {
        match request {
            Request::Reload => match read(&args.file) {
                Ok(changed) => match server.reload(&changed) {
                    Ok(()) => config = changed,
                    Err(why) => printer.error(&format!("not reloaded: {why}")),
                },
                // It says what is wrong, and what is served stays as it is.
                Err(failure) => drop(failure.report(printer)),
            },
            Request::Drain => {
                let stopper = server.stopper();
                std::thread::spawn(move || {
                    if requests.iter().any(|request| request == Request::Stop) {
                        stopper.stop();
                    }
                });
                server.stop(config.process.drain);
                return Ok(Status::Clean);
            }
            Request::Stop => break,
        }
    }
    server.stop(std::time::Duration::ZERO);
    Ok(Status::Clean)
}

#[cfg(not(target_os = "linux"))]
fn serve(_: &LbRun, _: &Printer) -> Result<Status, Failure> {
    Err(Failure::not_here("the load balancer needs Linux: it keeps the client's address"))
}
