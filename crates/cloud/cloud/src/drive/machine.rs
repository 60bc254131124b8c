//! Drives one machine: makes it serve the current plan, and asks it for the health of targets.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use http::Method;
use tokio::time::{Instant, sleep, sleep_until};

use super::admin::{Admin, Kept, Outcome, Running, Unreachable};
use super::document::{self, Balancer, Balancers};
use super::status::{MachineStatus, Sent};
use super::{DataPlane, Notice, Pace, Shared, refusal};
use crate::cloud::Work;
use crate::plane::{CertificateFile, Part};

/// How many times in a row another program may change the machine's configuration during one drive.
const SURPRISES: usize = 5;

/// A machine with what is known of its state.
#[derive(Debug)]
pub(super) struct Machine {
    number: usize,
    name: String,
    admin: Admin,
    pace: Pace,
    shared: Arc<Shared>,
    /// The configuration that the machine ran when it was last asked; `None` if that is not known.
    running: Option<Running>,
    /// The load balancers that the machine serves; `None` if they are not known.
    served: Option<Balancers>,
    /// The certificates that the machine keeps; `None` if they are not known.
    shipped: Option<Shipped>,
    /// The amount of configuration that was sent to the machine.
    sent: Sent,
    /// The latest change that the machine serves.
    change: Option<u64>,
    /// The load balancers that the machine refused, wholly or in part, as they were then.
    refused: BTreeMap<String, Refused>,
    /// The time at which refused load balancers are tried again.
    retry_at: Option<Instant>,
    /// The reason why the machine cannot be driven; the empty text before the first try.
    unreachable: Option<String>,
    /// The time since which the machine cannot be reached.
    away_since: Option<Instant>,
}

/// A load balancer that a machine refused, as a whole or in part.
#[derive(Clone, Debug)]
struct Refused {
    /// The load balancer with all its listeners, as it was to be served.
    balancer: Arc<Balancer>,
    /// The machine's messages on the load balancer as a whole (`None`) or on some of its listeners.
    messages: Messages,
}

/// A machine's messages on a load balancer (`None`) and its listeners.
type Messages = BTreeMap<Option<String>, String>;

impl Refused {
    /// Returns all messages in one line.
    fn text(&self) -> String {
        let text = |(listener, message): (&Option<String>, &String)| match listener {
            Some(id) => format!("{id}: {message}"),
            None => message.clone(),
        };
        self.messages.iter().map(text).collect::<Vec<_>>().join("; ")
    }
}

/// Returns a value for each refused part of all load balancers, which `make` computes from the
/// part's load balancer and the machine's message.
fn of_parts<T>(
    refused: &BTreeMap<String, Refused>,
    make: impl Fn(&Balancer, &str) -> T,
) -> BTreeMap<Part, T> {
    let mut parts = BTreeMap::new();
    for (id, Refused { balancer, messages }) in refused {
        for (listener, message) in messages {
            parts.insert((id.clone(), listener.clone()), make(balancer, message));
        }
    }
    parts
}

/// The certificates that a machine keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Shipped {
    /// The folder where the machine keeps them; `None` if it takes no certificates.
    folder: Option<PathBuf>,
    names: BTreeSet<String>,
}

/// A reason why a machine does not serve what it has to.
#[derive(Debug)]
enum Problem {
    Unreachable(Unreachable),
    /// Another program has changed the machine's configuration.
    Outdated,
}

impl From<Unreachable> for Problem {
    fn from(why: Unreachable) -> Self {
        Self::Unreachable(why)
    }
}

impl Machine {
    pub(super) fn new(
        number: usize,
        plane: DataPlane,
        pace: Pace,
        shared: Arc<Shared>,
    ) -> io::Result<Self> {
        Ok(Self {
            number,
            name: plane.address.to_string(),
            admin: Admin::new(plane)?,
            pace,
            shared,
            running: None,
            served: None,
            shipped: None,
            sent: Sent::default(),
            change: None,
            refused: BTreeMap::new(),
            retry_at: None,
            unreachable: Some(String::new()),
            away_since: None,
        })
    }

    /// Drives the machine until the cloud is gone.
    pub(super) async fn run(mut self) {
        let mut changes = self.shared.changes();
        let (mut next_poll, mut pause) = (Instant::now(), self.pace.first_retry);
        loop {
            changes.borrow_and_update();
            match self.step(&mut next_poll).await {
                Ok(()) => {
                    pause = self.pace.first_retry;
                    self.away_since = None;
                    if self.unreachable.take().is_some() {
                        self.shared.notice(&Notice::Back { machine: self.name.clone() });
                    }
                    tokio::select! {
                        changed = changes.changed() => if changed.is_err() { return },
                        () = sleep_until(next_poll) => {}
                    }
                }
                Err(Unreachable(why)) => {
                    self.lose(why).await;
                    sleep(pause).await;
                    pause = (pause * 2).min(self.pace.longest_retry);
                    next_poll = Instant::now();
                }
            }
        }
    }

    /// Forgets the machine's state after a failure, and reports that it cannot be driven.
    async fn lose(&mut self, why: String) {
        (self.running, self.served, self.change, self.shipped) = (None, None, None, None);
        if self.unreachable.as_ref() != Some(&why) {
            let machine = self.name.clone();
            self.shared.notice(&Notice::Unreachable { machine, why: why.clone() });
            self.unreachable = Some(why);
        }
        let status = MachineStatus {
            address: self.name.clone(),
            why: self.unreachable.clone(),
            sent: self.sent,
            ..MachineStatus::default()
        };
        self.shared.show(self.number, status);
        if self.away_since.get_or_insert_with(Instant::now).elapsed() >= self.pace.lost {
            self.shared.health.lost(self.number);
        }
        self.shared.is_away(self.number).await;
    }

    async fn step(&mut self, next_poll: &mut Instant) -> Result<(), Unreachable> {
        let now = Instant::now();
        let is_due = now >= *next_poll;
        if is_due {
            *next_poll = now + self.pace.poll;
            self.look().await?;
        }
        let work = self.shared.work().await;
        let is_retry = self.retry_at.is_some_and(|time| now >= time);
        if self.change != Some(work.change) || is_retry {
            if is_retry {
                self.refused.clear();
            }
            self.drive(&work).await?;
        }
        if is_due {
            // Stores outcomes of earlier changes that could not be stored then.
            self.shared.finish().await;
            let rows = self.admin.targets().await?;
            let served = self.served.iter().map(|served| document::health(served, &rows)).next();
            self.shared.health.update(self.number, served.unwrap_or_default());
        }
        Ok(())
    }

    /// Asks the machine whether its configuration has changed, and forgets what it served if so.
    async fn look(&mut self) -> Result<(), Unreachable> {
        let version = self.running.as_ref().map(|running| running.version.as_str());
        if let Some(running) = self.admin.running(version).await? {
            (self.served, self.change, self.shipped) = (None, None, None);
            self.running = Some(running);
        }
        Ok(())
    }

    /// Makes the machine serve this work. If another program changes the configuration meanwhile,
    /// tries again up to [`SURPRISES`] times.
    async fn drive(&mut self, work: &Work) -> Result<(), Unreachable> {
        for _ in 0..SURPRISES {
            match self.try_to_drive(work).await {
                Ok(()) => return Ok(()),
                Err(Problem::Unreachable(why)) => return Err(why),
                Err(Problem::Outdated) => self.look().await?,
            }
        }
        Err(Unreachable("another program changes what it serves".to_owned()))
    }

    async fn try_to_drive(&mut self, work: &Work) -> Result<(), Problem> {
        let names: BTreeSet<String> =
            work.plan.certificates.iter().map(|file| file.name.clone()).collect();
        // The certificates count as unknown if anything below fails.
        let shipped = self.shipped.take().filter(|shipped| shipped.names == names);
        let kept = match shipped {
            Some(_) => None,
            None => Some(self.admin.certificates().await?),
        };
        let folder = match (shipped, &kept) {
            (Some(shipped), _) => shipped.folder,
            (None, kept) => kept.iter().flatten().map(|kept| kept.folder.clone()).next(),
        };
        let path = folder.as_deref().unwrap_or(Path::new(""));
        let wanted = document::balancers(&work.plan, path, self.served.as_ref());
        let kept = kept.flatten();
        if let Some(kept) = &kept {
            self.ship(work, kept).await?;
        }
        let refused = self.serve_all_but_refused(&wanted, folder.is_some()).await?;
        if let Some(kept) = &kept {
            self.remove_unused(work, kept).await?;
        }
        self.shipped = refused.is_empty().then_some(Shipped { folder, names });
        self.report(work, refused).await;
        Ok(())
    }

    /// Sends the machine the certificates that it lacks.
    async fn ship(&self, work: &Work, kept: &Kept) -> Result<(), Unreachable> {
        let missing = work.plan.certificates.iter().filter(|file| !kept.names.contains(&file.name));
        for file in missing {
            // A refused certificate is missing on the machine, so that it also refuses the load
            // balancer.
            self.admin.keep(&file.name, file.pem.clone()).await?;
        }
        Ok(())
    }

    /// Makes the machine remove the certificates that the plan no longer names. Removes only files
    /// whose names have the form that a cloud gives them.
    async fn remove_unused(&self, work: &Work, kept: &Kept) -> Result<(), Unreachable> {
        let used: BTreeSet<&str> =
            work.plan.certificates.iter().map(|file| file.name.as_str()).collect();
        let unused = kept.names.iter().filter(|name| !used.contains(name.as_str()));
        for name in unused.filter(|name| CertificateFile::is_name(name)) {
            self.admin.remove(name).await?;
        }
        Ok(())
    }

    /// Makes the machine serve these load balancers. If it refuses some, it serves all others, and
    /// of a refused one the listeners that it accepts; refused listeners stay as they were served
    /// before. Refused ones are found by bisection. Returns what the machine refused.
    async fn serve_all_but_refused(
        &mut self,
        wanted: &Balancers,
        takes_certificates: bool,
    ) -> Result<BTreeMap<String, Refused>, Problem> {
        let mut refused = BTreeMap::new();
        let mut accepted = self.served.clone().unwrap_or_default();
        accepted.retain(|id, _| wanted.contains_key(id));
        let mut changed = Vec::new();
        for (id, balancer) in wanted {
            let known = self.refused.get(id);
            match known {
                // A machine that was restarted does not yet serve any part of the load balancer.
                Some(known)
                    if document::is_same(&known.balancer, balancer)
                        && (accepted.contains_key(id) || known.messages.contains_key(&None)) =>
                {
                    refused.insert(id.clone(), known.clone());
                }
                _ if accepted.get(id).is_some_and(|known| Arc::ptr_eq(known, balancer)) => {}
                _ => {
                    let messages = foreseen(balancer, known, takes_certificates);
                    if !messages.is_empty() {
                        let balancer = Arc::clone(balancer);
                        refused.insert(id.clone(), Refused { balancer, messages });
                    }
                    changed.push(id.clone());
                }
            }
        }
        let mut groups = vec![changed];
        while let Some(mut group) = groups.pop() {
            if group.is_empty() {
                continue;
            }
            let mut tried = accepted.clone();
            for id in &group {
                let known = refused.get(id).map(|refused| &refused.messages);
                match beside(&wanted[id], known, accepted.get(id)) {
                    Some(part) => drop(tried.insert(id.clone(), part)),
                    None => drop(tried.remove(id)),
                }
            }
            match self.put(&tried).await? {
                None => accepted = tried,
                Some(message) if group.len() == 1 => {
                    let id = group.remove(0);
                    let before = refused.remove(&id).map(|refused| refused.messages);
                    let (balancer, before) = (&wanted[&id], before.unwrap_or_default());
                    let messages =
                        self.serve_listeners(&id, balancer, &mut accepted, before, message).await?;
                    // The machine may accept one by one what it refused together before.
                    if !messages.is_empty() {
                        refused.insert(id, Refused { balancer: Arc::clone(balancer), messages });
                    }
                }
                Some(_) => {
                    let second = group.split_off(group.len() / 2);
                    groups.extend([second, group]);
                }
            }
        }
        match self.put(&accepted).await? {
            None => Ok(refused),
            Some(message) => Err(Problem::Unreachable(Unreachable(message))),
        }
    }

    /// Makes the machine serve those listeners of a load balancer that it accepts, after it refused
    /// all of them together with `message`. `messages` are those of listeners that are not tried.
    /// Returns them with the messages of the listeners that are refused now.
    async fn serve_listeners(
        &mut self,
        id: &str,
        wanted: &Arc<Balancer>,
        accepted: &mut Balancers,
        mut messages: Messages,
        message: String,
    ) -> Result<Messages, Problem> {
        let before = accepted.get(id).cloned();
        let is_new = |listener: &String| {
            !messages.contains_key(&Some(listener.clone()))
                && before.as_ref().is_none_or(|before| !wanted.has_same(listener, before))
        };
        let new: Vec<String> =
            wanted.listeners().into_iter().filter(|listener| is_new(listener)).cloned().collect();
        let mut good = BTreeSet::new();
        let mut groups = vec![(new, Some(message))];
        while let Some((mut group, known)) = groups.pop() {
            if group.is_empty() {
                continue;
            }
            let mut more = good.clone();
            more.extend(group.iter().cloned());
            let refusal = match known {
                Some(message) => Some(message),
                None => self.try_with(id, wanted, &more, before.as_deref(), accepted).await?,
            };
            match refusal {
                None => good = more,
                Some(message) if group.len() == 1 => {
                    messages.insert(Some(group.remove(0)), message);
                }
                Some(_) => {
                    let second = group.split_off(group.len() / 2);
                    groups.extend([(second, None), (group, None)]);
                }
            }
        }
        if good.is_empty() {
            // The change may still remove listeners, or change the load balancer as a whole.
            let refusal = self.try_with(id, wanted, &good, before.as_deref(), accepted).await?;
            messages.extend(refusal.map(|message| (None, message)));
        }
        Ok(messages)
    }

    /// Makes the machine serve a load balancer with `some` of its listeners as they are now, and
    /// the others as they were before. Returns why the machine refused.
    async fn try_with(
        &mut self,
        id: &str,
        wanted: &Balancer,
        some: &BTreeSet<String>,
        before: Option<&Balancer>,
        accepted: &mut Balancers,
    ) -> Result<Option<String>, Problem> {
        let mut tried = accepted.clone();
        match wanted.with(some, before) {
            Some(part) => drop(tried.insert(id.to_owned(), Arc::new(part))),
            None => drop(tried.remove(id)),
        }
        let refusal = self.put(&tried).await?;
        if refusal.is_none() {
            *accepted = tried;
        }
        Ok(refusal)
    }

    /// Makes the machine serve exactly these load balancers. Sends only the difference if the
    /// machine's state is known. Returns why the machine refused.
    async fn put(&mut self, balancers: &Balancers) -> Result<Option<String>, Problem> {
        let Some(running) = &mut self.running else { return Err(Problem::Outdated) };
        let change = self.served.as_ref().map(|served| document::change(served, balancers));
        let (method, body) = match change {
            Some(change) if change.is_empty() => return Ok(None),
            Some(change) => (Method::PATCH, document::part(change)),
            None => (Method::PUT, document::whole(&running.process, balancers)),
        };
        self.sent.count(&method, body.len());
        match self.admin.serve(method, body, &running.version).await? {
            Outcome::Done(version) => {
                running.version = version;
                self.served = Some(balancers.clone());
                Ok(None)
            }
            Outcome::Refused(message) => Ok(Some(message)),
            Outcome::Outdated => Err(Problem::Outdated),
        }
    }

    /// Returns the status of a machine that serves this work, apart from what it refused.
    fn status(&self, work: &Work, refused: &BTreeMap<String, Refused>) -> MachineStatus {
        let messages = refused.iter().map(|(id, refused)| (id.clone(), refused.text()));
        MachineStatus {
            address: self.name.clone(),
            is_reached: true,
            why: None,
            change: Some(work.change),
            version: self.running.as_ref().map(|running| running.version.clone()),
            sent: self.sent,
            load_balancers: self.served.as_ref().map_or(0, BTreeMap::len),
            refused: messages.collect(),
        }
    }

    /// Reports that the machine serves this work, apart from what it refused.
    async fn report(&mut self, work: &Work, refused: BTreeMap<String, Refused>) {
        self.change = Some(work.change);
        self.retry_at = (!refused.is_empty()).then(|| Instant::now() + self.pace.refused);
        for (id, found) in &refused {
            if self.refused.get(id).is_none_or(|before| before.messages != found.messages) {
                self.shared.notice(&Notice::Refused {
                    machine: self.name.clone(),
                    load_balancer: id.clone(),
                    message: found.text(),
                });
            }
        }
        self.shared.show(self.number, self.status(work, &refused));
        let unserved = of_parts(&refused, |_, message| refusal::reason(message));
        self.shared.health.serves(self.number, unserved);
        // Tenants see only general wording, without details of the machine.
        let messages =
            of_parts(&refused, |balancer, message| refusal::text(message, &balancer.addresses()));
        self.refused = refused;
        self.shared.serves(self.number, work, messages).await;
    }
}

/// Returns the messages on listeners that need not be tried: those that were refused and are
/// unchanged, and, on a machine that takes no certificates, those with certificates of their own,
/// for which it would present its own.
fn foreseen(wanted: &Balancer, known: Option<&Refused>, takes_certificates: bool) -> Messages {
    let mut messages = Messages::new();
    for (listener, message) in known.into_iter().flat_map(|known| &known.messages) {
        let is_same = |id: &String| known.is_some_and(|known| wanted.has_same(id, &known.balancer));
        if listener.as_ref().is_some_and(is_same) {
            messages.insert(listener.clone(), message.clone());
        }
    }
    if !takes_certificates {
        let message = "it takes no certificates: start it with --certificates DIR";
        let listeners = wanted.listeners_with_certificates().into_iter();
        messages.extend(listeners.map(|id| (Some(id), message.to_owned())));
    }
    messages
}

/// Returns a load balancer with its listeners as they are now, except refused listeners, which are
/// as they were before. `None` if no listener is left.
fn beside(
    wanted: &Arc<Balancer>,
    refused: Option<&Messages>,
    before: Option<&Arc<Balancer>>,
) -> Option<Arc<Balancer>> {
    let Some(refused) = refused else { return Some(Arc::clone(wanted)) };
    let all = wanted.listeners().into_iter().cloned();
    let some = all.filter(|id| !refused.contains_key(&Some(id.clone()))).collect();
    wanted.with(&some, before.map(AsRef::as_ref)).map(Arc::new)
}
