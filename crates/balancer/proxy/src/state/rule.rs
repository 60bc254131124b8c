//! A rule with its turn and the health of its targets.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use uturn_lb::config::{RuleSettings, Stickiness};
use uturn_lb::health::PassiveHealth;
use uturn_lb::schedule::Schedule;
use uturn_model::lb::{self, Profile, Scheduler};

use super::stickiness::{Remembered, cookie_value};
use crate::lock::locked;
use crate::metrics::TargetMetrics;

/// The value of `rest_ends` when no target rests.
const NEVER: u64 = u64::MAX;

/// A rule that is served.
#[derive(Debug)]
pub(crate) struct Rule {
    pub(crate) config: lb::Rule,
    pub(crate) settings: RuleSettings,
    pub(crate) targets: Vec<Arc<Target>>,
    profile: Profile,
    /// The number of connections or requests that were given a target by turn.
    turn: AtomicU64,
    schedule: ArcSwap<Schedule>,
    /// The time when the next rest of a target ends, in milliseconds since `began`.
    rest_ends: AtomicU64,
    began: Instant,
    /// Held while the schedule is made anew, so that the latest state wins.
    making: Mutex<()>,
    /// The target that each client had, if clients stay by their address.
    remembered: Arc<Remembered>,
    /// The value of each target's cookie, if clients stay by a cookie.
    cookies: Vec<String>,
}

/// A target and its state.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) address: SocketAddr,
    /// Whether the target is alive according to its health checks.
    is_alive: AtomicBool,
    /// The health of the target according to requests.
    passive_health: Mutex<PassiveHealth>,
    /// Whether requests have failed since the last success.
    has_failed: AtomicBool,
    /// The number of requests and connections under way.
    open: AtomicU64,
    pub(crate) metrics: TargetMetrics,
}

/// The target that was picked for a connection or request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Picked {
    pub(crate) target: usize,
    pub(crate) turn: u64,
}

impl Rule {
    /// Returns a rule. Targets keep the state of targets with the same address in `known`.
    pub(crate) fn new(
        config: lb::Rule,
        settings: RuleSettings,
        profile: &Profile,
        known: Option<&Self>,
    ) -> Self {
        let target = |address: SocketAddr| {
            let known = known.into_iter().flat_map(|rule| &rule.targets);
            let mut same = known.filter(|target| target.address == address);
            same.next().cloned().unwrap_or_else(|| Arc::new(Target::new(address)))
        };
        let targets: Vec<Arc<Target>> =
            config.targets.iter().map(|config| target(config.address)).collect();
        if profile.health_check.is_none() {
            // No probe would ever make a dead target alive again.
            targets.iter().for_each(|target| target.is_alive.store(true, Ordering::Relaxed));
        }
        let nothing = Schedule::new(profile, &[], &[]);
        let cookies = match settings.stickiness {
            Some(Stickiness::Cookie { .. }) => {
                targets.iter().map(|target| cookie_value(target.address)).collect()
            }
            _ => Vec::new(),
        };
        let turn = known.map_or(0, |rule| rule.turn.load(Ordering::Relaxed));
        let rule = Self {
            targets,
            profile: profile.clone(),
            turn: AtomicU64::new(turn),
            schedule: ArcSwap::from_pointee(nothing),
            rest_ends: AtomicU64::new(NEVER),
            began: Instant::now(),
            making: Mutex::new(()),
            remembered: known.map_or_else(Arc::default, |rule| Arc::clone(&rule.remembered)),
            cookies,
            config,
            settings,
        };
        rule.make_schedule();
        rule
    }

    /// Picks the target that the client stays with, or else the one whose turn it is. `cookie` is
    /// the value of the rule's cookie. Returns `None` if no target may be picked for this client.
    pub(crate) fn pick(&self, client: IpAddr, cookie: Option<&str>) -> Option<Picked> {
        self.end_rests();
        let schedule = self.schedule.load();
        let picked = match self.kept_target(client, cookie) {
            Some(target) if schedule.candidates(client).contains(&target) => {
                Picked { target, turn: self.turn.load(Ordering::Relaxed) }
            }
            _ => self.pick_by_turn(&schedule, client)?,
        };
        self.targets[picked.target].metrics.pick();
        Some(picked)
    }

    fn pick_by_turn(&self, schedule: &Schedule, client: IpAddr) -> Option<Picked> {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let target = match self.profile.scheduler {
            Scheduler::LeastConnections => {
                schedule.least(turn, client, |i| self.targets[i].open.load(Ordering::Relaxed))
            }
            Scheduler::WeightedRoundRobin | Scheduler::SourceHash => schedule.pick(turn, client),
        }?;
        Some(Picked { target, turn })
    }

    /// Returns the target that a client stays with, whether it may be picked or not.
    fn kept_target(&self, client: IpAddr, cookie: Option<&str>) -> Option<usize> {
        match self.settings.stickiness.as_ref()? {
            Stickiness::Source(_) => {
                let address = self.remembered.get(client, Instant::now())?;
                self.targets.iter().position(|target| target.address == address)
            }
            Stickiness::Cookie { .. } => {
                let value = cookie?;
                self.cookies.iter().position(|known| known == value)
            }
        }
    }

    /// Lets a client stay with the target that served it, if clients stay by their address.
    pub(crate) fn remember(&self, client: IpAddr, target: usize) {
        if let Some(Stickiness::Source(time)) = self.settings.stickiness {
            self.remembered.set(client, self.targets[target].address, time, Instant::now());
        }
    }

    /// Returns the `Set-Cookie` value that lets a client stay with a target, if clients stay by a
    /// cookie and the client did not send that value.
    pub(crate) fn cookie_for(&self, target: SocketAddr, sent: Option<&str>) -> Option<String> {
        let Some(Stickiness::Cookie { name, max_age }) = &self.settings.stickiness else {
            return None;
        };
        let value = cookie_value(target);
        let age = max_age.map_or_else(String::new, |age| format!("; Max-Age={}", age.as_secs()));
        (sent != Some(&value)).then(|| format!("{name}={value}; Path=/; HttpOnly{age}"))
    }

    /// Returns the name of the cookie by which clients stay with their targets.
    pub(crate) fn cookie_name(&self) -> Option<&str> {
        match &self.settings.stickiness {
            Some(Stickiness::Cookie { name, .. }) => Some(name),
            _ => None,
        }
    }

    /// Returns the target to try after all of `tried` have failed.
    pub(crate) fn next(&self, client: IpAddr, tried: &[usize]) -> Option<usize> {
        let next = self.schedule.load().next(client, tried)?;
        self.targets[next].metrics.retry();
        Some(next)
    }

    /// Counts a connection to a target as open until the guard is dropped.
    pub(crate) fn open(self: &Arc<Self>, target: usize) -> OpenGuard {
        self.targets[target].open.fetch_add(1, Ordering::Relaxed);
        OpenGuard { rule: Arc::clone(self), target }
    }

    /// Records a decision of health checks about the target at a place, if the target there still
    /// has this address.
    pub(crate) fn set_alive(&self, target: usize, address: SocketAddr, is_alive: bool) {
        let Some(target) = self.targets.get(target).filter(|now| now.address == address) else {
            return;
        };
        if target.is_alive.swap(is_alive, Ordering::Relaxed) != is_alive {
            self.make_schedule();
        }
    }

    /// Records how a request to a target ended. Returns whether the target rests from now on.
    pub(crate) fn record(&self, target: usize, is_good: bool) -> bool {
        let state = &self.targets[target];
        if !is_good {
            state.metrics.fail();
        }
        let Some(check) = &self.profile.passive_check else { return false };
        if is_good && !state.has_failed.load(Ordering::Relaxed) {
            return false;
        }
        state.has_failed.store(!is_good, Ordering::Relaxed);
        let rests = locked(&state.passive_health).record(is_good, check, Instant::now());
        if rests {
            state.metrics.rest();
            self.make_schedule();
        }
        rests
    }

    /// Takes targets whose rest is over back into the schedule.
    fn end_rests(&self) {
        let ends = self.rest_ends.load(Ordering::Relaxed);
        if ends != NEVER && millis(self.began.elapsed()) >= ends {
            self.make_schedule();
        }
    }

    fn make_schedule(&self) {
        let _making = locked(&self.making);
        let now = Instant::now();
        let mut ends = NEVER;
        let mut may_be_picked = Vec::with_capacity(self.targets.len());
        for target in &self.targets {
            let rest = locked(&target.passive_health).rest_ends(now);
            if let Some(until) = rest {
                // Rounded up, so that the rest is over when the schedule is made.
                ends = ends.min(millis(until.duration_since(self.began)) + 1);
            }
            may_be_picked.push(rest.is_none() && target.is_alive.load(Ordering::Relaxed));
        }
        let schedule = Schedule::new(&self.profile, &self.config.targets, &may_be_picked);
        self.schedule.store(Arc::new(schedule));
        self.rest_ends.store(ends, Ordering::Relaxed);
    }
}

impl Target {
    fn new(address: SocketAddr) -> Self {
        Self {
            address,
            is_alive: AtomicBool::new(true),
            passive_health: Mutex::default(),
            has_failed: AtomicBool::new(false),
            open: AtomicU64::new(0),
            metrics: TargetMetrics::default(),
        }
    }

    /// Returns whether health checks permit the target to be picked.
    pub(crate) fn is_alive(&self) -> bool {
        self.is_alive.load(Ordering::Relaxed)
    }

    /// Returns when the target's rest ends, or `None` if the target does not rest.
    pub(crate) fn rest_ends(&self, now: Instant) -> Option<Instant> {
        locked(&self.passive_health).rest_ends(now)
    }

    /// Returns the number of requests and connections under way.
    pub(crate) fn open(&self) -> u64 {
        self.open.load(Ordering::Relaxed)
    }
}

/// A connection or request that a target has under way.
#[derive(Debug)]
pub(crate) struct OpenGuard {
    rule: Arc<Rule>,
    target: usize,
}

impl Drop for OpenGuard {
    fn drop(&mut self) {
        self.rule.targets[self.target].open.fetch_sub(1, Ordering::Relaxed);
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(NEVER - 1)
}
