//! `uturn cloud`: the API of the cloud.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io, thread};

use uturn_cloud::cloud::{Cloud, Settings};
use uturn_cloud::credentials::Credentials;
use uturn_cloud::ids::IdSource;
use uturn_cloud::inventory::Inventory;
use uturn_cloud::server::{Server, Stop};
use uturn_cloud::store::Store;

use crate::cli::{Cloud as Command, CloudServe};
use crate::printer::Printer;
use crate::status::{Failure, Status};

pub(super) fn run(command: &Command, printer: &Printer) -> Result<Status, Failure> {
    match command {
        Command::Serve(args) => serve(args, printer),
    }
}

fn serve(args: &CloudServe, printer: &Printer) -> Result<Status, Failure> {
    let credentials = read(&args.credentials, Credentials::parse)?;
    let inventory = match &args.inventory {
        Some(file) => read(file, Inventory::parse)?,
        None => Inventory::Open,
    };
    let (store, accounts) =
        Store::open(&args.state).map_err(|error| Failure::not_here(error.to_string()))?;
    let settings = Settings {
        task_time: Some(Duration::from_millis(args.task_time)),
        rate_limit: args.rate_limit,
        ..Settings::default()
    };
    let ids = IdSource::random();
    let cloud = Cloud::new(credentials, inventory, settings, Box::new(store), ids, accounts);

    let here = |error: io::Error| Failure::not_here(format!("{}: {error}", args.listen));
    let server = Server::bind(args.listen, Arc::new(cloud)).map_err(here)?;
    let address = server.address().map_err(here)?;
    printer.result(&format!("serving the CLB API on http://{address}\n"));
    let stop = Stop::new();
    if args.until_stdin_closes {
        let stop = stop.clone();
        thread::spawn(move || {
            // However standard input ends, the process that started this one is gone.
            let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
            stop.stop();
        });
    }
    server.run_until_signalled(&stop).map_err(here)?;
    Ok(Status::Clean)
}

/// Reads a file; an error names it.
fn read<T, E: std::fmt::Display>(
    file: &Path,
    parse: impl FnOnce(&str) -> Result<T, E>,
) -> Result<T, Failure> {
    let text = fs::read_to_string(file)
        .map_err(|error| Failure::usage(format!("{}: {error}", file.display())))?;
    parse(&text).map_err(|error| Failure::usage(format!("{}: {error}", file.display())))
}
