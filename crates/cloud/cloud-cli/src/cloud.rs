//! `uturn cloud`: serves the API of the cloud.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use std::{io, thread};

use uturn_cli::{Failure, Printer, Status, secret_file};
use uturn_cloud::cloud::{Cloud, FirstError, Settings, StorageError};
use uturn_cloud::credentials::Credentials;
use uturn_cloud::drive::{
    DataPlane, Driver, InvalidPlane, Notice, Observer, Pace, PlaneAddress, PlaneHealth, PlaneToken,
};
use uturn_cloud::ids::IdSource;
use uturn_cloud::inventory::Inventory;
use uturn_cloud::refused_targets::RefusedTargets;
use uturn_cloud::server::{AdminPages, Limits, Server, Stop, Tls};
use uturn_cloud::store::Store;
use uturn_document::whole_file;
use uturn_lb::special_address::led_to;

use crate::cli::{Cloud as Command, CloudServe};

pub(super) fn run(command: &Command, printer: &Printer) -> Result<Status, Failure> {
    match command {
        Command::Serve(args) => serve(args, printer),
    }
}

fn serve(args: &CloudServe, printer: &Printer) -> Result<Status, Failure> {
    if !args.listen.ip().is_loopback() && args.certificate.is_none() && !args.listen_plain_http {
        return Err(Failure::usage(format!(
            "--listen {}: without TLS, requests could be read on the way and their signatures \
             reused: give --certificate and --key, or allow it with --listen-plain-http",
            args.listen
        )));
    }
    let tls = match (&args.certificate, &args.key) {
        (Some(certificate), Some(key)) => {
            let tls = Tls::from_files(certificate, key);
            Some(tls.map_err(|error| Failure::usage(error.to_string()))?)
        }
        _ => None,
    };
    let credentials = read(&args.credentials, Credentials::parse)?;
    let inventory = match &args.inventory {
        Some(file) => read(file, Inventory::parse)?,
        None => Inventory::Open,
    };
    let planes = args.data_plane.iter().map(|text| data_plane(text, args.plain_http));
    let planes = planes.collect::<Result<Vec<_>, _>>()?;
    let tokens = args.data_plane.iter().filter_map(|text| Some(text.split_once('=')?.1));
    let tokens = tokens.map(Path::new);
    let secrets = tokens.chain([args.credentials.as_path()]).chain(args.key.as_deref());
    secret_file::check(secrets, printer)?;
    let own = [Some(args.listen), args.admin].into_iter().flatten().map(|address| address.ip());
    let driven = planes.iter().filter_map(|plane| plane.address.ip());
    let refused_targets = RefusedTargets {
        local: !args.allow_local_targets,
        addresses: own.chain(driven).map(led_to).collect(),
    };
    let stored = |error: StorageError| Failure::unavailable(error.to_string());
    let (store, accounts) = Store::open(&args.state).map_err(stored)?;
    let settings = Settings {
        task_time: planes.is_empty().then(|| Duration::from_millis(args.task_time)),
        snat_range: args.snat_range,
        path_normalization: args.path_normalization.into(),
        rate_limit: args.rate_limit,
        refused_targets,
        refuses_replays: true,
        demands_signed_action: args.require_signed_action,
        ..Settings::default()
    };
    let ids = IdSource::random();
    let health = Arc::new(PlaneHealth::default());
    let cloud = Cloud::new(credentials, inventory, settings, Box::new(store), ids, accounts);
    let cloud = if planes.is_empty() {
        cloud
    } else {
        cloud.with_health(Arc::<PlaneHealth>::clone(&health))
    };
    cloud.create_first().map_err(|error| match error {
        FirstError::Account(_) => Failure::usage(error.to_string()),
        FirstError::Storage(error) => stored(error),
    })?;
    let cloud = Arc::new(cloud);

    let server =
        Server::bind(args.listen, Arc::clone(&cloud)).map_err(cannot_listen(args.listen))?;
    let server = server.with_limits(Limits {
        connections_per_address: args.connections_per_address.get(),
        ..Limits::default()
    });
    let scheme = if tls.is_some() { "https" } else { "http" };
    let server = match tls {
        Some(tls) => server.with_tls(tls),
        None => server,
    };
    let driver = if planes.is_empty() {
        cloud.finish_serving().map_err(stored)?;
        None
    } else {
        Some(drive(&cloud, planes, health, printer)?)
    };
    let stop = Stop::new();
    let admin = args.admin.map(|address| {
        let driven = driver.as_ref().map(Driver::view);
        serve_admin(address, AdminPages { cloud, driven }, &stop, printer)
    });
    let admin = admin.transpose()?;
    let address = server.address().map_err(cannot_listen(args.listen))?;
    printer.result(&format!("serving the CLB API on {scheme}://{address}\n"));
    if args.until_stdin_closes {
        let stop = stop.clone();
        thread::spawn(move || {
            // However standard input ends, the process that started this one is gone.
            let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
            stop.stop();
        });
    }
    let served = server.run_until_signalled(&stop).map_err(cannot_listen(args.listen));
    stop.stop();
    if let Some(admin) = admin {
        // A panic of the thread has been printed.
        let _ = admin.join();
    }
    served.map(|()| Status::Clean)
}

/// Reads `URL=TOKENFILE`.
fn data_plane(text: &str, allows_plain: bool) -> Result<DataPlane, Failure> {
    let invalid = |why: String| Failure::usage(format!("--data-plane {text}: {why}"));
    let (address, file) = text.split_once('=').ok_or_else(|| {
        invalid("expected URL=TOKENFILE, such as http://127.0.0.1:9900=admin.token".to_owned())
    })?;
    let address = PlaneAddress::parse(address, allows_plain).map_err(|error| {
        let hint = match error {
            InvalidPlane::Plain(_) => ", or allow it with --plain-http",
            InvalidPlane::Form(_) | InvalidPlane::Token => "",
        };
        invalid(format!("{error}{hint}"))
    })?;
    let token = read(Path::new(file), PlaneToken::parse)?;
    Ok(DataPlane { address, token })
}

/// Starts to drive data planes. Prints their events on standard error.
fn drive(
    cloud: &Arc<Cloud>,
    planes: Vec<DataPlane>,
    health: Arc<PlaneHealth>,
    printer: &Printer,
) -> Result<Driver, Failure> {
    let printer = *printer;
    let observer: Observer = Arc::new(move |notice| match notice {
        Notice::Back { .. } | Notice::LeftOut(_) => printer.note(&notice.to_string()),
        Notice::Unreachable { .. } | Notice::Refused { .. } | Notice::NotStored(_) => {
            printer.error(&notice.to_string());
        }
    });
    Driver::start(Arc::clone(cloud), planes, health, Pace::default(), observer)
        .map_err(|error| Failure::unavailable(format!("cannot drive data planes: {error}")))
}

/// Serves the pages for the person who runs the cloud, until it is stopped.
fn serve_admin(
    address: SocketAddr,
    pages: AdminPages,
    stop: &Stop,
    printer: &Printer,
) -> Result<JoinHandle<()>, Failure> {
    let server = Server::bind_admin(address, pages).map_err(cannot_listen(address))?;
    let bound = server.address().map_err(cannot_listen(address))?;
    printer.result(&format!("serving its status on http://{bound}\n"));
    let (stop, printer) = (stop.clone(), *printer);
    Ok(thread::spawn(move || {
        if let Err(error) = server.run(&stop) {
            printer.error(&format!("{address}: {error}"));
        }
    }))
}

fn cannot_listen(address: SocketAddr) -> impl Fn(io::Error) -> Failure {
    move |error| Failure::unavailable(format!("{address}: {error}"))
}

/// Reads a file. An error names the file.
fn read<T, E: std::fmt::Display>(
    file: &Path,
    parse: impl FnOnce(&str) -> Result<T, E>,
) -> Result<T, Failure> {
    let text = whole_file::text_of(file, whole_file::SETTINGS)
        .map_err(|error| Failure::usage(format!("{}: {error}", file.display())))?;
    parse(&text).map_err(|error| Failure::usage(format!("{}: {error}", file.display())))
}
