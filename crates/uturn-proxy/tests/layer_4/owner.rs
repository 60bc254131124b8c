//! Who has the table.

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

#[test]
fn a_table_that_something_else_deleted_is_made_anew() {
    let Some(network) = network(2) else { return };
    let mut balancer = Balancer::start(&network, &tcp(&[(1, 10)]));
    network.balancer.sh("nft delete table inet uturn_lb");
    balancer.reload(&tcp(&[(2, 10)]));
    assert_eq!(network.client.targets(1, TCP), "t2");
}
