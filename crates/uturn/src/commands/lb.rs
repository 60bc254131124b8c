//! `uturn lb`: the load balancer itself.

use std::path::{Path, PathBuf};

use uturn_model::LoadBalancer;

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
    let balancers = read(&args.file)?;
    for balancer in &balancers {
        printer.result(&format!(
            "load balancer {}: {} ({}), {}\n",
            balancer.name,
            balancer.vip,
            balancer.scope,
            uturn_report::words::count(balancer.listeners.len(), "listener")
        ));
    }
    Ok(Status::Clean)
}

fn read(file: &Path) -> Result<Vec<LoadBalancer>, Failure> {
    let faulty = |faults: Vec<uturn_snapshot::Fault>| {
        Failure::input(faults.iter().map(ToString::to_string).collect())
    };
    let (sources, faults) = uturn_snapshot::gather(&[PathBuf::from(file)]);
    if !faults.is_empty() {
        return Err(faulty(faults));
    }
    let mut balancers = Vec::new();
    for source in sources {
        balancers.extend(uturn_snapshot::read_load_balancers(source).map_err(faulty)?);
    }
    Ok(balancers)
}

#[cfg(target_os = "linux")]
fn serve(args: &LbRun, printer: &Printer) -> Result<Status, Failure> {
    use std::sync::Arc;

    use uturn_lb::config::Config;
    use uturn_proxy::{Detail, Observer, Request, Server, requests};

    let here = |why: uturn_proxy::StartError| Failure::not_here(why.to_string());
    let mut config = Config::plain(read(&args.file)?);
    if let Some(namespace) = &args.netns {
        uturn_proxy::enter(namespace).map_err(here)?;
    }
    let requests = requests(args.until_stdin_closes).map_err(here)?;
    let events = *printer;
    let observer: Observer =
        Arc::new(move |event| events.result(&format!("{}\n", event.to_json())));
    let detail = if args.events { Detail::Connections } else { Detail::Changes };
    let mut server = Server::start(&config, observer, detail).map_err(here)?;
    for request in requests {
        match request {
            Request::Reload => match read(&args.file).map(Config::plain) {
                Ok(changed) => match server.reload(&changed) {
                    Ok(()) => config = changed,
                    Err(why) => printer.error(&format!("not reloaded: {why}")),
                },
                // It says what is wrong, and what is served stays as it is.
                Err(failure) => drop(failure.report(printer)),
            },
            Request::Drain => {
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
