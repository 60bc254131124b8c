//! Who has the table.

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixDatagram, UnixListener};

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

#[test]
fn a_table_that_something_else_deleted_is_made_anew() {
    let Some(network) = network(2) else { return };
    let mut balancer = Balancer::start(&network, &tcp(&[(1, 10)]));
    network.balancer.sh("nft delete table inet uturn_lb");
    balancer.reload(&tcp(&[(2, 10)]));
    assert_eq!(network.client.targets(1, TCP), "t2");
}
