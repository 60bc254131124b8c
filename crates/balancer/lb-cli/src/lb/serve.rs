//! `uturn lb run`: serves, and handles requests until one asks to stop.

mod body;

use std::path::{self, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use uturn_cli::{Failure, Printer, Status};
use uturn_lb::config::{AccessLog, Config};
use uturn_lb::event::Event;
use uturn_proxy::{
    Changed, Control, Detail, Form, Observer, Options, Refusal, Replacement, Request, Requests,
    Scope, Seen, Server, ServiceManager, StartError, Step, Watch,
};
use uturn_report::{json, yaml};
use uturn_snapshot::LbFile;

use super::{check_whole, files_of_others, read, warn};
use crate::cli::LbRun;

/// The time to wait for a request when nothing else is due.
const LONG: Duration = Duration::from_secs(3600);

/// The time that a process which failed to take over gets to remove its rules from the kernel.
const LEAVING: Duration = Duration::from_secs(5);

/// The interval at which this process tries to have the kernel's rules again.
const AGAIN: Duration = Duration::from_millis(20);

/// A running load balancer.
struct Running<'a> {
    file: &'a Path,
    printer: &'a Printer,
    server: Server,
    config: Config,
    observer: Observer,
    manager: ServiceManager,
    watch: Option<Watch>,
    /// The state of the file when it was last read.
    seen: Seen,
    /// The state of the files that the configuration names when they were last read.
    named: Seen,
    /// Whether the file has a configuration that could not be served.
    is_behind: bool,
    /// Whether another process is taking over. Meanwhile nothing changes here.
    is_handing_over: bool,
    /// Whether files have changed during the handover.
    is_outdated: bool,
}

pub(super) fn serve(args: &LbRun, printer: &Printer) -> Result<Status, Failure> {
    // Taken before there is another thread, so that all threads have them.
    uturn_proxy::take_capabilities();
    uturn_proxy::raise_file_limit();
    let here = |why: StartError| Failure::unavailable(why.to_string());
    if args.watch && is_stdin(&args.file) {
        return Err(Failure::usage("--watch: standard input cannot be watched"));
    }
    let seen = see(args.watch, || vec![args.file.clone()]);
    let config = read(&args.file)?;
    let named = see(args.watch, || named_files(&config));
    let open = files_of_others(&config);
    if !open.is_empty() {
        return Err(Failure::input(open));
    }
    warn(&config, printer);
    if let Some(namespace) = &args.netns {
        uturn_proxy::enter(namespace).map_err(here)?;
    }
    let certificates = args.certificates.as_deref().map(absolute);
    let manager = ServiceManager::from_environment()
        .map_err(|error| Failure::unavailable(format!("cannot use NOTIFY_SOCKET: {error}")))?;
    let requests = uturn_proxy::requests(args.until_stdin_closes).map_err(here)?;
    let watch = args.watch.then(|| Watch::start(requests.sender())).transpose().map_err(here)?;
    let events = *printer;
    let observer: Observer =
        Arc::new(move |event| events.result(&format!("{}\n", event.to_json())));
    let options = Options {
        detail: if args.events { Detail::Connections } else { Detail::Changes },
        layer_4: !args.no_layer_4,
        control: Some(Control { requests: requests.sender(), describe, certificates }),
    };
    let server = match args.takeover {
        None => Server::start_with(&config, Arc::clone(&observer), options),
        Some(process) => Server::take_over(process, &config, Arc::clone(&observer), options),
    };
    let server = server.map_err(here)?;
    // A process that offers no takeover serves all the same.
    let offer =
        uturn_proxy::offer(requests.sender()).map_err(|why| printer.error(&why.to_string()));
    let file = &args.file;
    let running = Running {
        file,
        printer,
        server,
        config,
        observer,
        manager,
        watch,
        seen,
        named,
        is_behind: false,
        is_handing_over: false,
        is_outdated: false,
    };
    if args.takeover.is_some() {
        running.report("takeover");
    }
    running.watch_files();
    running.manager.ready(&running.status());
    running.run(&requests);
    drop(offer);
    Ok(Status::Clean)
}

impl Running<'_> {
    /// Handles requests until one asks to stop, and stops.
    fn run(mut self, requests: &Requests) {
        // Signals twice as often as required, as systemd recommends.
        let pulse = self.manager.watchdog().map(|limit| limit / 2);
        loop {
            let request = requests.recv_timeout(pulse.unwrap_or(LONG));
            match request {
                Ok(Request::Drain) => {
                    let drain = self.config.process.drain;
                    self.manager.stopping(drain);
                    return self.end(requests, pulse, |server| server.stop(drain));
                }
                Ok(Request::HandOver) => {
                    let drain = self.config.process.drain;
                    self.manager.stopping(drain);
                    return self.end(requests, pulse, |server| server.hand_over(drain));
                }
                Ok(Request::Stop) => return self.server.stop(Duration::ZERO),
                Ok(Request::TakeOver(step)) => self.take_step(step),
                Ok(Request::Reload(None) | Request::Changed(_)) if self.is_handing_over => {
                    self.is_outdated = true;
                }
                // The request is dropped: a caller that waits for an answer is told that this
                // process stops.
                Ok(_) if self.is_handing_over => {}
                Ok(Request::Reload(None)) => self.print(|this| this.reload("signal")),
                Ok(Request::Reload(Some(answer))) => answer.give(self.reload("admin")),
                Ok(Request::Replace(replacement)) => self.replace(replacement),
                Ok(Request::Changed(Changed::Config)) => self.print(|this| this.reload("file")),
                Ok(Request::Changed(Changed::Named)) => self.read_named_files(),
                Err(_) => {}
            }
            if let Some(pulse) = pulse
                && self.server.is_responsive(pulse)
            {
                self.manager.alive();
            }
        }
    }

    /// Takes a step of the handover to another process. The process that waits for the answer may
    /// be gone.
    fn take_step(&mut self, step: Step) {
        match step {
            Step::Share(answer) => {
                self.is_handing_over = true;
                let _ = answer.send(self.server.sockets());
            }
            Step::Leave(answer) => {
                self.server.leave_layer_4();
                let _ = answer.send(());
            }
            Step::Fail(why) => {
                self.printer.error(&format!("the other process did not take over: {why}"));
                self.keep();
            }
        }
    }

    /// Continues to serve as before.
    fn keep(&mut self) {
        self.is_handing_over = false;
        let end = Instant::now() + LEAVING;
        while let Err(why) = self.server.keep(&self.config) {
            if Instant::now() >= end {
                self.printer.error(&format!("not reloaded: {why}"));
                break;
            }
            thread::sleep(AGAIN);
        }
        if std::mem::take(&mut self.is_outdated) {
            self.print(|this| this.reload("file"));
        }
    }

    /// Makes a change whose result only goes to the log.
    fn print(&mut self, change: impl FnOnce(&mut Self) -> Result<(), Refusal>) {
        match change(self) {
            Ok(()) | Err(Refusal::Outdated) => {}
            Err(Refusal::Faults(messages)) => drop(Failure::input(messages).report(self.printer)),
            Err(Refusal::NotServed(why)) => self.printer.error(&format!("not reloaded: {why}")),
        }
    }

    /// Reads the file again, and serves its configuration.
    fn reload(&mut self, cause: &str) -> Result<(), Refusal> {
        if is_stdin(self.file) {
            let message = "standard input cannot be read again".to_owned();
            return self.refuse(Refusal::Faults(vec![message]));
        }
        self.seen = see(self.watch.is_some(), || vec![self.file.to_owned()]);
        let outcome = match read(self.file) {
            Err(failure) => self.refuse(Refusal::Faults(failure.messages().to_vec())),
            Ok(config) => {
                // Taken before the files are read, so that no change is missed. Includes those of
                // the current configuration, which stays if this fails.
                let paths = || [named_files(&config), named_files(&self.config)].concat();
                self.named = see(self.watch.is_some(), paths);
                match check_whole(&config, self.file) {
                    Ok(()) => self.change(config, cause),
                    Err(failure) => self.refuse(Refusal::Faults(failure.messages().to_vec())),
                }
            }
        };
        self.is_behind = outcome.is_err();
        self.watch_files();
        outcome
    }

    /// Serves a configuration that was sent to the admin address.
    fn replace(&mut self, replacement: Replacement) {
        let Replacement { text, scope, replaces, answer } = replacement;
        let version = self.server.version().unwrap_or_default();
        if replaces.is_some_and(|versions| !versions.contains(&version)) {
            return answer.give(Err(Refusal::Outdated));
        }
        let read = match scope {
            Scope::Whole => body::whole(self.file, text, &self.config),
            Scope::Part => body::part(self.file, text, &self.config),
        };
        answer.give(match read {
            Ok(config) => {
                let before = self.named.clone();
                self.named = see(self.watch.is_some(), || named_files(&config));
                let outcome = match scope {
                    Scope::Whole => self.change(config, "admin"),
                    Scope::Part => self.change_part(config, "admin"),
                };
                match &outcome {
                    Ok(()) => self.is_behind = false,
                    Err(_) => self.named = before,
                }
                self.watch_files();
                outcome
            }
            Err(messages) => self.refuse(Refusal::Faults(messages)),
        });
    }

    /// Reads the certificates, keys and the token again.
    fn read_named_files(&mut self) {
        if self.is_behind {
            // The rejected configuration may have waited for just these files.
            self.print(|this| this.reload("file"));
            if !self.is_behind {
                return;
            }
        } else {
            self.named = see(self.watch.is_some(), || named_files(&self.config));
        }
        self.print(|this| this.change(this.config.clone(), "certificates"));
        self.watch_files();
    }

    /// Serves another configuration.
    fn change(&mut self, config: Config, cause: &str) -> Result<(), Refusal> {
        self.change_with(config, cause, Server::reload)
    }

    /// Serves another configuration that differs only in part.
    fn change_part(&mut self, config: Config, cause: &str) -> Result<(), Refusal> {
        self.change_with(config, cause, Server::reload_changed)
    }

    fn change_with(
        &mut self,
        config: Config,
        cause: &str,
        reload: impl FnOnce(&mut Server, &Config) -> Result<(), StartError>,
    ) -> Result<(), Refusal> {
        self.manager.reloading();
        let outcome = reload(&mut self.server, &config);
        if outcome.is_ok() {
            warn(&config, self.printer);
            self.config = config;
            self.report(cause);
        }
        self.manager.ready(&self.status());
        outcome.map_err(|why| Refusal::NotServed(why.to_string()))
    }

    /// Reports the version that is served from now on.
    fn report(&self, cause: &str) {
        let version = self.server.version().unwrap_or_default();
        let changed = self.server.changed_listeners();
        (self.observer)(&Event::Reloaded { cause: cause.into(), version, changed });
    }

    /// Keeps the current configuration, because the new one is wrong.
    fn refuse(&self, refusal: Refusal) -> Result<(), Refusal> {
        self.server.count_failed_reload();
        Err(refusal)
    }

    fn watch_files(&self) {
        if let Some(watch) = &self.watch {
            watch.watch(self.seen.clone(), self.named.clone());
        }
    }

    /// Stops. Meanwhile systemd hears that the process is alive, and another request to stop cuts
    /// the connections that are still open.
    fn end(self, requests: &Requests, pulse: Option<Duration>, stop: impl FnOnce(Server) + Send) {
        let Self { server, manager, .. } = self;
        let (stopper, sender) = (server.stopper(), requests.sender());
        let (has_ended, ended) = (&AtomicBool::new(false), sender);
        thread::scope(|scope| {
            scope.spawn(move || {
                stop(server);
                has_ended.store(true, Ordering::Release);
                // The request wakes the loop below, which waits for requests.
                let _ = ended.send(Request::Stop);
            });
            while !has_ended.load(Ordering::Acquire) {
                match requests.recv_timeout(pulse.unwrap_or(LONG)) {
                    Ok(Request::Stop | Request::Drain) => stopper.stop(),
                    Ok(_) => {}
                    Err(_) if pulse.is_some() => manager.alive(),
                    Err(_) => {}
                }
            }
        });
    }

    /// Returns a line for `systemctl status`.
    fn status(&self) -> String {
        format!("serving version {}", self.server.version().unwrap_or_default())
    }
}

/// Returns the current state of the files, if they are watched.
fn see(is_watching: bool, paths: impl FnOnce() -> Vec<PathBuf>) -> Seen {
    if is_watching { Seen::now(paths()) } else { Seen::default() }
}

/// Returns the files that a configuration names and that are read when it is loaded.
fn named_files(config: &Config) -> Vec<PathBuf> {
    let listeners = config.load_balancers.iter().flat_map(|served| &served.listeners);
    let files = listeners.flat_map(|listener| listener.tls_files().cloned());
    files.chain(config.process.admin_token.clone()).collect()
}

fn is_stdin(file: &Path) -> bool {
    file == Path::new("-")
}

/// Returns all files that a configuration names.
fn paths(config: &mut Config) -> impl Iterator<Item = &mut PathBuf> {
    let listeners = config.load_balancers.iter_mut().flat_map(|served| &mut served.listeners);
    let files = listeners.flat_map(uturn_lb::config::ListenerSettings::tls_files_mut);
    let log = match &mut config.process.access_log {
        AccessLog::File(file) => Some(file),
        AccessLog::Off | AccessLog::Stdout => None,
    };
    files.chain(&mut config.process.admin_token).chain(log)
}

/// Returns a path that is valid from every folder.
fn absolute(path: &Path) -> PathBuf {
    path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Writes a configuration with paths that are valid wherever the file is put.
fn describe(config: &Config, form: Form) -> String {
    let mut config = config.clone();
    for path in paths(&mut config) {
        *path = absolute(path);
    }
    let file = LbFile::from(&config);
    match form {
        Form::Json => json::document(&file),
        Form::Yaml => yaml::document(&file),
    }
}
