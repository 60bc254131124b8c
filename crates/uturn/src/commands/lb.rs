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
    use std::sync::atomic::AtomicBool;

    use uturn_lb::l7::{self, Event};

    let balancers = read(&args.file)?;
    if let Some(namespace) = &args.netns {
        l7::enter(namespace).map_err(|why| Failure::not_here(why.to_string()))?;
    }
    let stop = Arc::new(AtomicBool::new(false));
    if args.until_stdin_closes {
        l7::stop_with_stdin(Arc::clone(&stop));
    }
    let printer = *printer;
    let report: Arc<dyn Fn(&Event) + Send + Sync> =
        Arc::new(move |event| printer.result(&format!("{}\n", event.to_json())));
    l7::run(&balancers, &report, &stop).map_err(|why| Failure::not_here(why.to_string()))?;
    Ok(Status::Clean)
}

#[cfg(not(target_os = "linux"))]
fn serve(_: &LbRun, _: &Printer) -> Result<Status, Failure> {
    Err(Failure::not_here("the load balancer needs Linux: it keeps the client's address"))
}
