//! Who has the table.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixDatagram, UnixListener};
use std::path::PathBuf;

use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};

use super::*;

/// A table as a process leaves it that was killed.
const LEFTOVER: &str = "nft 'table inet uturn_lb { chain left { \
                        type nat hook prerouting priority -150; drop; }; }'";

#[test]
fn what_a_killed_process_left_is_deleted() {
    let Some(network) = network(1) else { return };
    network.balancer.sh(LEFTOVER);
    let balancer = Balancer::start(&network, &Config::plain(Vec::new()));
    await_that(|| balancer.tables().is_empty());
}

#[test]
fn the_table_of_another_process_is_left_alone() {
    let Some(network) = network(1) else { return };
    let _first = Balancer::start(&network, &tcp(&[(1, 10)]));
    let why = Balancer::try_start(&network.balancer, &tcp(&[(1, 10)])).err().unwrap();
    let expected = "cannot set up layer 4: another load balancer has TCP and UDP listeners in this \
                    network namespace";
    assert_eq!(why.to_string(), expected);
    assert_eq!(network.client.targets(1, TCP), "t1");
    // One without such listeners starts, and deletes nothing.
    let mut other = Balancer::start(&network, &Config::plain(Vec::new()));
    other.server.take().unwrap().stop(Duration::ZERO);
    assert_eq!(network.client.targets(1, TCP), "t1");
}

/// Any local user can take the names by which a load balancer says that it has the table.
#[test]
fn other_users_who_take_its_names_do_not_keep_it_from_starting() {
    let Some(network) = network(1) else { return };
    let taken = network.balancer.run(|| {
        let taking = thread::spawn(|| {
            // Of this thread alone, as the credentials of its sockets are.
            rustix::thread::set_thread_uid(rustix::process::Uid::from_raw(65534)).unwrap();
            let name = |number| match number {
                0 => "uturn-lb/layer-4".to_owned(),
                number => format!("uturn-lb/layer-4/{number}"),
            };
            let address = |number| UnixAddress::from_abstract_name(name(number)).unwrap();
            // One with a socket of another kind, too.
            let other = UnixDatagram::bind_addr(&address(7)).unwrap();
            let all: Vec<_> =
                (0..7).map(|number| UnixListener::bind_addr(&address(number)).unwrap()).collect();
            (all, other)
        });
        taking.join().unwrap()
    });
    let mut balancer = Balancer::start(&network, &tcp(&[(1, 10)]));
    assert_eq!(network.client.targets(1, TCP), "t1");
    balancer.server.take().unwrap().stop(Duration::ZERO);
    drop(taken);
    // What it does not count is what it had to pass over: with the names free, it has one.
    let _first = Balancer::start(&network, &tcp(&[(1, 10)]));
    assert!(Balancer::try_start(&network.balancer, &tcp(&[(1, 10)])).is_err());
}

/// A process has copies of the sockets of the one that starts it until it runs its program.
#[test]
fn copies_of_its_socket_in_a_process_being_started_do_not_hold_the_table() {
    let Some(network) = network(1) else { return };
    let mut first = Balancer::start(&network, &tcp(&[(1, 10)]));
    let copies = network.balancer.run(|| sockets_bound_to("@uturn-lb/layer-4"));
    assert_eq!(copies.len(), 1);
    first.server.take().unwrap().stop(Duration::ZERO);
    let _second = Balancer::start(&network, &tcp(&[(1, 10)]));
    assert_eq!(network.client.targets(1, TCP), "t1");
    assert!(Balancer::try_start(&network.balancer, &tcp(&[(1, 10)])).is_err());
}

/// Copies of this process's sockets that are bound to an abstract name in this thread's namespace.
fn sockets_bound_to(name: &str) -> Vec<OwnedFd> {
    let table = fs::read_to_string("/proc/thread-self/net/unix").unwrap();
    let links: Vec<PathBuf> = table
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|words| words.get(7) == Some(&name))
        .map(|words| format!("socket:[{}]", words[6]).into())
        .collect();
    let this = pidfd_open(getpid(), PidfdFlags::empty()).unwrap();
    let open = fs::read_dir("/proc/self/fd").unwrap().flatten();
    // All are found before the first is copied: a copy would be found too.
    let numbers: Vec<i32> = open
        .filter(|entry| fs::read_link(entry.path()).is_ok_and(|link| links.contains(&link)))
        .map(|entry| entry.file_name().to_str().unwrap().parse().unwrap())
        .collect();
    numbers
        .into_iter()
        .map(|number| pidfd_getfd(&this, number, PidfdGetfdFlags::empty()).unwrap())
        .collect()
}

#[test]
fn a_table_that_something_else_deleted_is_made_anew() {
    let Some(network) = network(2) else { return };
    let mut balancer = Balancer::start(&network, &tcp(&[(1, 10)]));
    network.balancer.sh("nft delete table inet uturn_lb");
    balancer.reload(&tcp(&[(2, 10)]));
    assert_eq!(network.client.targets(1, TCP), "t2");
}
