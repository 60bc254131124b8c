//! Connections while targets change.

use std::net::UdpSocket;
use std::sync::Condvar;

use super::network::Connection;
use super::*;

/// Numbers that look random, and are the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

/// TCP and UDP listeners of both families with these targets.
fn both(targets: &[(usize, u32)]) -> Config {
    let mut config = Config::plain(vec![
        listener(ListenerProtocol::Tcp, VIP, targets),
        listener(ListenerProtocol::Udp, VIP, targets),
        listener(ListenerProtocol::Tcp, VIP_6, targets),
    ]);
    config.process.drain = Duration::from_secs(600);
    config
}

#[test]
fn random_changes_break_no_connection() {
    let Some(network) = network(4) else { return };
    let client = &network.client;
    let mut random = Random(17);
    let mut balancer = Balancer::start(&network, &both(&[(1, 10), (2, 10)]));
    let mut connections: Vec<Connection> = Vec::new();
    let mut flows: Vec<(UdpSocket, String)> = Vec::new();
    for _ in 0..40 {
        // Any targets with any weights; sometimes one listener less, which replaces the table.
        let all = [1, 2, 3, 4].map(|number| (number, random.below(101) as u32));
        let mut targets: Vec<_> = all.into_iter().filter(|_| random.below(3) > 0).collect();
        targets.push((1 + random.below(4), 1));
        targets.sort_unstable();
        targets.dedup_by_key(|(number, _)| *number);
        let mut config = both(&targets);
        if random.below(4) == 0 {
            config.load_balancers.pop();
        }
        balancer.reload(&config);
        connections.extend([TCP, TCP_6].iter().filter_map(|address| client.connect(address)));
        let flow = client.datagram_socket("0.0.0.0");
        let target = client.ask(&flow, TCP);
        assert_ne!(target, "none", "{targets:?}");
        flows.push((flow, target));
        assert!(connections.iter_mut().all(Connection::is_open), "{targets:?}");
        for (flow, target) in &flows {
            assert_eq!(client.ask(flow, TCP), *target, "{targets:?}");
        }
    }
    assert!(connections.len() >= 40);
}

/// What a client does again and again.
#[derive(Clone, Copy)]
enum Step {
    Connect,
    Talk,
    Ask,
}

/// How often each client does its step between two reloads. It does the first of them before the
/// reload and most of them meanwhile.
const STEPS: usize = 30;

/// Clients that connect again and again, or use a connection that they keep.
struct Load<'n> {
    network: &'n Network,
    state: Mutex<LoadState>,
    changed: Condvar,
}

#[derive(Default)]
struct LoadState {
    is_over: bool,
    /// How often each client may have done its step.
    allowed: usize,
    /// How often each [`Step`] was done.
    done: [usize; 3],
    errors: Vec<&'static str>,
}

impl<'n> Load<'n> {
    fn new(network: &'n Network) -> Self {
        Self { network, state: Mutex::default(), changed: Condvar::new() }
    }

    /// Does something until it is over or goes wrong.
    fn repeat(&self, step: Step, what: &'static str, mut succeeds: impl FnMut() -> bool) {
        for number in 0.. {
            let state = self.state.lock().unwrap();
            let is_ahead = |state: &mut LoadState| !state.is_over && number >= state.allowed;
            if self.changed.wait_while(state, is_ahead).unwrap().is_over {
                return;
            }
            let has_succeeded = succeeds();
            let mut state = self.state.lock().unwrap();
            if has_succeeded {
                state.done[step as usize] += 1;
            } else {
                state.errors.push(what);
            }
            drop(state);
            self.changed.notify_all();
            if !has_succeeded {
                return;
            }
        }
    }

    /// The first packet of a connection may be dropped at the moment of a change. It is sent again,
    /// which is no error.
    fn connect(&self, address: &str) {
        let address = address.parse().unwrap();
        self.network.client.run(|| {
            self.repeat(Step::Connect, "a new connection", || {
                let opened = Connection::open_retransmitting(address);
                opened.is_some_and(|mut connection| connection.is_open())
            });
        });
    }

    fn talk(&self, mut connection: Connection) {
        self.repeat(Step::Talk, "a connection that is kept", || connection.is_open());
    }

    fn ask(&self, flow: &UdpSocket) {
        let client = &self.network.client;
        self.repeat(Step::Ask, "a flow of datagrams", || client.ask(flow, TCP) != "none");
    }

    /// Waits until each kind of client has got further.
    fn await_progress(&self) {
        let mut state = self.state.lock().unwrap();
        let before = state.done;
        state.allowed += STEPS;
        self.changed.notify_all();
        let is_behind = |state: &mut LoadState| {
            let mut done = state.done.iter().zip(before);
            state.errors.is_empty() && done.any(|(now, before)| *now < before + 3)
        };
        let (_state, waited) = self.changed.wait_timeout_while(state, PATIENCE, is_behind).unwrap();
        assert!(!waited.timed_out(), "a client is stuck");
    }

    fn end(&self) {
        self.state.lock().unwrap().is_over = true;
        self.changed.notify_all();
    }
}

#[test]
fn a_hundred_reloads_under_load_cause_no_error() {
    let Some(network) = network(4) else { return };
    let client = &network.client;
    let mut random = Random(4);
    let mut balancer = Balancer::start(&network, &both(&[(1, 10), (2, 10), (3, 10), (4, 10)]));
    let kept: Vec<_> = [TCP, TCP, TCP_6].map(|address| client.connect(address).unwrap()).into();
    let flow = client.datagram_socket("0.0.0.0");
    assert_ne!(client.ask(&flow, TCP), "none");
    let load = Load::new(&network);
    thread::scope(|scope| {
        let load = &load;
        for address in [TCP, TCP_6] {
            scope.spawn(move || load.connect(address));
        }
        for connection in kept {
            scope.spawn(move || load.talk(connection));
        }
        let flow = &flow;
        scope.spawn(move || load.ask(flow));
        for number in 0..100 {
            load.await_progress();
            // Two stay, with other weights; two come and go.
            let mut targets = vec![(1, 1 + random.below(100) as u32), (2, 10)];
            targets.extend([3, 4].into_iter().filter(|_| random.below(2) == 0).map(|t| (t, 10)));
            let mut config = both(&targets);
            if number % 10 == 0 {
                // Replaces the whole table.
                let idle = Duration::from_secs(1000 + number);
                config.load_balancers[1].listeners[0].timeouts.idle = idle;
            }
            balancer.reload(&config);
        }
        load.await_progress();
        load.end();
    });
    assert_eq!(load.state.into_inner().unwrap().errors, [""; 0]);
}
