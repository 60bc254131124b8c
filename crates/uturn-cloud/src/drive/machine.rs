//! One machine: has it serve what it has to, and asks it how targets are.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::Arc;

use tokio::time::{Instant, sleep, sleep_until};

use super::admin::{Admin, Away, Kept, Outcome, Running};
use super::document::{self, Balancer, Balancers};
use super::status::MachineStatus;
use super::{DataPlane, Notice, Pace, Shared};
use crate::cloud::Work;
use crate::plane::CertificateFile;

/// How often in a row another program may change what the machine serves.
const SURPRISES: usize = 5;

/// One machine.
#[derive(Debug)]
pub(super) struct Machine {
    number: usize,
    name: String,
    admin: Admin,
    pace: Pace,
    shared: Arc<Shared>,
    /// What it served when it was asked last; `None` if that is not known.
    running: Option<Running>,
    /// The load balancers that it serves; `None` before it took any.
    served: Option<Balancers>,
    /// The latest change that it serves.
    change: Option<u64>,
    /// The load balancers that it refused, as they were then.
    refused: BTreeMap<String, Refused>,
    /// When they are tried again.
    retry_at: Option<Instant>,
    /// Why it cannot be driven; the empty text before it was tried.
    away: Option<String>,
}

/// A load balancer that a machine refused.
#[derive(Clone, Debug)]
struct Refused {
    balancer: Arc<Balancer>,
    message: String,
}

/// Why a machine does not serve what it has to.
#[derive(Debug)]
enum Problem {
    Away(Away),
    /// Another program has changed what it serves.
    Outdated,
}

impl From<Away> for Problem {
    fn from(away: Away) -> Self {
        Self::Away(away)
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
            change: None,
            refused: BTreeMap::new(),
            retry_at: None,
            away: Some(String::new()),
        })
    }

    /// Drives it for ever.
    pub(super) async fn run(mut self) {
        let mut changes = self.shared.changes();
        let (mut next_poll, mut pause) = (Instant::now(), self.pace.first_retry);
        loop {
            changes.borrow_and_update();
            match self.step(&mut next_poll).await {
                Ok(()) => {
                    pause = self.pace.first_retry;
                    if self.away.take().is_some() {
                        self.shared.notice(&Notice::Back { machine: self.name.clone() });
                    }
                    tokio::select! {
                        changed = changes.changed() => if changed.is_err() { return },
                        () = sleep_until(next_poll) => {}
                    }
                }
                Err(Away(why)) => {
                    self.lose(why).await;
                    sleep(pause).await;
                    pause = (pause * 2).min(self.pace.longest_retry);
                    next_poll = Instant::now();
                }
            }
        }
    }

    /// It cannot be reached, so that nothing is known of it.
    async fn lose(&mut self, why: String) {
        (self.running, self.served, self.change) = (None, None, None);
        if self.away.as_ref() != Some(&why) {
            let machine = self.name.clone();
            self.shared.notice(&Notice::Away { machine, why: why.clone() });
            self.away = Some(why);
        }
        let status = MachineStatus {
            address: self.name.clone(),
            why: self.away.clone(),
            ..MachineStatus::default()
        };
        self.shared.show(self.number, status);
        self.shared.is_away(self.number).await;
    }

    async fn step(&mut self, next_poll: &mut Instant) -> Result<(), Away> {
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
            // Where the outcome of an earlier change could not be stored.
            self.shared.finish().await;
            let rows = self.admin.targets().await?;
            let served = self.served.iter().map(|served| document::health(served, &rows)).next();
            self.shared.health.update(self.number, served.unwrap_or_default());
        }
        Ok(())
    }

    /// Sees whether it serves what it was told to.
    async fn look(&mut self) -> Result<(), Away> {
        let version = self.running.as_ref().map(|running| running.version.as_str());
        if let Some(running) = self.admin.running(version).await? {
            (self.served, self.change) = (None, None);
            self.running = Some(running);
        }
        Ok(())
    }

    /// Has it serve this.
    async fn drive(&mut self, work: &Work) -> Result<(), Away> {
        for _ in 0..SURPRISES {
            match self.try_to_drive(work).await {
                Ok(()) => return Ok(()),
                Err(Problem::Away(away)) => return Err(away),
                Err(Problem::Outdated) => self.look().await?,
            }
        }
        Err(Away("another program changes what it serves".to_owned()))
    }

    async fn try_to_drive(&mut self, work: &Work) -> Result<(), Problem> {
        let kept = self.admin.certificates().await?;
        let mut refused = BTreeMap::new();
        let folder = kept.as_ref().map_or(Path::new(""), |kept| &kept.folder);
        let mut wanted = document::balancers(&work.plan, folder, self.served.as_ref());
        match &kept {
            Some(kept) => self.ship(work, kept).await?,
            None => {
                // It would show a certificate of its own instead.
                for (id, balancer) in
                    wanted.extract_if(.., |_, balancer| document::has_certificates(balancer))
                {
                    let message = "it takes no certificates: start it with --certificates DIR";
                    refused.insert(id, Refused { balancer, message: message.to_owned() });
                }
            }
        }
        self.serve_all_but_refused(&wanted, &mut refused).await?;
        if let Some(kept) = &kept {
            self.remove_unused(work, kept).await?;
        }
        self.report(work, refused).await;
        Ok(())
    }

    /// Has it keep the certificates that it lacks.
    async fn ship(&self, work: &Work, kept: &Kept) -> Result<(), Away> {
        let missing = work.plan.certificates.iter().filter(|file| !kept.names.contains(&file.name));
        for file in missing {
            // What it refuses it does not have, so that it refuses the load balancer too.
            self.admin.keep(&file.name, file.pem.clone()).await?;
        }
        Ok(())
    }

    /// Has it remove the certificates that nothing names any more. Those that a cloud has not
    /// named stay.
    async fn remove_unused(&self, work: &Work, kept: &Kept) -> Result<(), Away> {
        let used: BTreeSet<&str> =
            work.plan.certificates.iter().map(|file| file.name.as_str()).collect();
        let unused = kept.names.iter().filter(|name| !used.contains(name.as_str()));
        for name in unused.filter(|name| CertificateFile::is_name(name)) {
            self.admin.remove(name).await?;
        }
        Ok(())
    }

    /// Has it serve these load balancers. Where it refuses some, it serves all others, and of
    /// those that it refuses what it served before: they are found by halves.
    async fn serve_all_but_refused(
        &mut self,
        wanted: &Balancers,
        refused: &mut BTreeMap<String, Refused>,
    ) -> Result<(), Problem> {
        let mut accepted = self.served.clone().unwrap_or_default();
        accepted.retain(|id, _| wanted.contains_key(id));
        let mut changed = Vec::new();
        for (id, balancer) in wanted {
            match self.refused.get(id) {
                Some(known) if known.balancer == *balancer => {
                    refused.insert(id.clone(), known.clone());
                }
                _ if accepted.get(id) == Some(balancer) => {}
                _ => changed.push(id.clone()),
            }
        }
        let mut groups = vec![changed];
        while let Some(mut group) = groups.pop() {
            if group.is_empty() {
                continue;
            }
            let mut tried = accepted.clone();
            tried.extend(group.iter().map(|id| (id.clone(), Arc::clone(&wanted[id]))));
            match self.put(&tried).await? {
                None => accepted = tried,
                Some(message) if group.len() == 1 => {
                    let balancer = Arc::clone(&wanted[&group[0]]);
                    refused.insert(group.remove(0), Refused { balancer, message });
                }
                Some(_) => {
                    let second = group.split_off(group.len() / 2);
                    groups.extend([second, group]);
                }
            }
        }
        if self.served.as_ref() != Some(&accepted)
            && let Some(message) = self.put(&accepted).await?
        {
            return Err(Problem::Away(Away(message)));
        }
        Ok(())
    }

    /// Has it serve exactly this. Returns why it refused.
    async fn put(&mut self, balancers: &Balancers) -> Result<Option<String>, Problem> {
        let Some(running) = &mut self.running else { return Err(Problem::Outdated) };
        let body = document::body(&running.process, balancers);
        match self.admin.serve(body, &running.version).await? {
            Outcome::Done(version) => {
                running.version = version;
                self.served = Some(balancers.clone());
                Ok(None)
            }
            Outcome::Refused(message) => Ok(Some(message)),
            Outcome::Outdated => Err(Problem::Outdated),
        }
    }

    /// What it has taken.
    fn status(&self, work: &Work, refused: &BTreeMap<String, Refused>) -> MachineStatus {
        let messages = refused.iter().map(|(id, refused)| (id.clone(), refused.message.clone()));
        MachineStatus {
            address: self.name.clone(),
            is_reached: true,
            why: None,
            change: Some(work.change),
            version: self.running.as_ref().map(|running| running.version.clone()),
            load_balancers: self.served.as_ref().map_or(0, BTreeMap::len),
            refused: messages.collect(),
        }
    }

    /// It serves this, but for what it refused.
    async fn report(&mut self, work: &Work, refused: BTreeMap<String, Refused>) {
        self.change = Some(work.change);
        self.retry_at = (!refused.is_empty()).then(|| Instant::now() + self.pace.refused);
        for (id, Refused { message, .. }) in &refused {
            if self.refused.get(id).is_none_or(|before| before.message != *message) {
                self.shared.notice(&Notice::Refused {
                    machine: self.name.clone(),
                    load_balancer: id.clone(),
                    message: message.clone(),
                });
            }
        }
        self.shared.show(self.number, self.status(work, &refused));
        let messages = refused.iter().map(|(id, refused)| {
            (id.clone(), format!("{} refuses it: {}", self.name, refused.message))
        });
        let messages = messages.collect();
        self.refused = refused;
        self.shared.serves(self.number, work, messages).await;
    }
}
