//! Clients that attack a load balancer: many kinds at once ([`Kind`]), each at a rate that costs
//! this machine little, from several addresses.
//!
//! The clients go on until standard input ends. Then a [`Report`] is printed as JSON.

mod dripping;
mod ending;
mod floods;
mod kind;
mod other;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::io::Read;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::thread;

use serde::{Deserialize, Serialize};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::watch;
use tokio::task::spawn_local;
use tokio::time::sleep;

use crate::arguments::AttackArguments;
use crate::cost::{Cost, cost_of};
use crate::failure::Failure;
use crate::socket::connect;
use kind::{KINDS, Kind};

/// The results of all hostile clients.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Report {
    /// The results by kind.
    pub(crate) kinds: BTreeMap<String, Tally>,
    /// The CPU time of the hostile clients.
    pub(crate) cost: Cost,
}

/// The results of the clients of one kind.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Tally {
    /// The number of attempts.
    pub(crate) attempts: u64,
    /// The endings of the attempts, each with its number of occurrences.
    pub(crate) met: BTreeMap<String, u64>,
}

impl Tally {
    /// Adds the counts of another tally.
    pub(crate) fn add(&mut self, other: &Self) {
        self.attempts += other.attempts;
        for (met, count) in &other.met {
            *self.met.entry(met.clone()).or_default() += count;
        }
    }
}

/// The state that all hostile clients share.
struct Attackers {
    vips: Vec<IpAddr>,
    /// The addresses of clients that hold connections, and of the others. They are separate because
    /// the limit of connections per client would otherwise keep the others from trying anything.
    holding: Addresses,
    passing: Addresses,
    refused: IpAddr,
    tallies: RefCell<BTreeMap<String, Tally>>,
}

/// Addresses that are used in turn.
struct Addresses {
    all: Vec<IpAddr>,
    turn: Cell<usize>,
}

impl Addresses {
    fn new(all: &[IpAddr]) -> Self {
        Self { all: all.to_vec(), turn: Cell::new(0) }
    }

    fn next(&self) -> IpAddr {
        let turn = self.turn.get();
        self.turn.set(turn + 1);
        self.all[turn % self.all.len()]
    }
}

/// Attacks until standard input ends.
///
/// # Errors
/// When the runtime cannot be started, its CPU time cannot be read, or the report cannot be
/// written.
pub(crate) fn run(arguments: &AttackArguments) -> Result<(), Failure> {
    let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default());
    let runtime = runtime.map_err(Failure::of("start the runtime"))?;
    let (stop, stopped) = watch::channel(false);
    thread::spawn(move || {
        let _ = std::io::stdin().lock().read_to_end(&mut Vec::new());
        let _ = stop.send(true);
    });
    let before = cost_of(std::process::id())?;
    let mut report = runtime.block_on(attack(arguments, &stopped));
    report.cost = cost_of(std::process::id())? - before;
    let json = serde_json::to_string(&report).map_err(|error| Failure(error.to_string()))?;
    println!("{json}");
    Ok(())
}

async fn attack(arguments: &AttackArguments, stopped: &watch::Receiver<bool>) -> Report {
    let attackers = Rc::new(Attackers {
        vips: arguments.vip.clone(),
        holding: Addresses::new(&arguments.holding),
        passing: Addresses::new(&arguments.passing),
        refused: arguments.refused,
        tallies: RefCell::default(),
    });
    let mut clients = Vec::new();
    for kind in KINDS {
        for number in 0..kind.clients {
            clients.push(spawn_local(persist(
                Rc::clone(&attackers),
                kind,
                number,
                stopped.clone(),
            )));
        }
    }
    for client in clients {
        let _ = client.await;
    }
    let kinds = attackers.tallies.borrow().clone();
    Report { kinds, cost: Cost::default() }
}

/// Runs a client that attempts its attack again and again.
async fn persist(
    attackers: Rc<Attackers>,
    kind: &'static Kind,
    number: usize,
    stopped: watch::Receiver<bool>,
) {
    // The clients of a kind do not all begin at once.
    let mut pause = kind.pause.mul_f64(number as f64 / kind.clients as f64);
    while until_stopped(&stopped, sleep(pause)).await.is_some() {
        let attempt = kind.attempt.make(&attackers, number);
        let met = match until_stopped(&stopped, attempt).await {
            Some(Ok(met)) => met,
            Some(Err(error)) => ending::of_error(&error),
            None => "nothing until the end".to_owned(),
        };
        attackers.note(kind.name, met);
        pause = kind.pause;
    }
}

/// Returns the output of a future, or `None` if the attack ends first.
async fn until_stopped<F: Future>(stopped: &watch::Receiver<bool>, future: F) -> Option<F::Output> {
    let mut stopped = stopped.clone();
    let mut end = pin!(stopped.wait_for(|is_over| *is_over));
    let mut future = pin!(future);
    poll_fn(|cx| match end.as_mut().poll(cx) {
        Poll::Ready(_) => Poll::Ready(None),
        Poll::Pending => future.as_mut().poll(cx).map(Some),
    })
    .await
}

impl Attackers {
    fn note(&self, kind: &str, met: String) {
        let mut tallies = self.tallies.borrow_mut();
        let tally = tallies.entry(kind.to_owned()).or_default();
        tally.attempts += 1;
        *tally.met.entry(met).or_default() += 1;
    }

    /// Opens a short connection, from the next address of those that hold none.
    async fn pass(&self, port: u16) -> std::io::Result<TcpStream> {
        self.connect(self.passing.next(), port, None).await
    }

    /// Opens a connection to be held, from the next address. A `window` limits the bytes that the
    /// kernel keeps unread.
    async fn hold(&self, port: u16, window: Option<usize>) -> std::io::Result<TcpStream> {
        self.connect(self.holding.next(), port, window).await
    }

    async fn connect(
        &self,
        from: IpAddr,
        port: u16,
        window: Option<usize>,
    ) -> std::io::Result<TcpStream> {
        connect(Some(from), SocketAddr::new(self.vip_for(from), port), window).await
    }

    /// Returns the load balancer's address of the same family.
    fn vip_for(&self, from: IpAddr) -> IpAddr {
        let same = self.vips.iter().find(|vip| vip.is_ipv4() == from.is_ipv4());
        *same.unwrap_or(&self.vips[0])
    }
}
