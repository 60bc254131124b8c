//! Load balancers that pick a target by a hash of the client's address. How a cloud computes it is not
//! known: nobody can tell which client meets which target.

use super::shop::shop_with;

const FACTS: &str = "apiVersion: uturn.dev/v1alpha1
kind: Facts
spec: {loadBalancers: [{vip: 10.0.0.100, listeners: [{port: 80, protocol: HTTP, scheduler: IP_HASH}]}]}
";

#[test]
fn any_client_may_meet_its_own_node() {
    let folder = shop_with("picks-by-hash", 0, |_| "front");
    let in_turns = folder.run(&["scan", "-f", "."]);
    folder.file("facts.yaml", FACTS);
    let by_hash = folder.run(&["scan", "-f", "."]);
    assert!(by_hash.starts_with("exit 1\n"), "{by_hash}");
    let lines = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| line.contains("UT1"));
        lines.map(str::to_owned).collect()
    };
    assert_eq!(lines(&by_hash), lines(&in_turns));
    let call = ["--from", "pod/shop/web-0", "--to", "http://shop.example.com/"];
    let trace = folder.run(&[&["trace", "-f", "."], &call[..]].concat());
    assert!(trace.contains("1 in 3 answered after 4 s"), "{trace}");
    let supposed = "supposed: which target a client gets from tke-clb-l7: any, and each time the \
                    same (a hash of its address decides, and how that is computed is not known; uturn \
                    probe calls it from a pod)";
    assert!(trace.contains(supposed), "{trace}");
    // That one call in three fails means: for one client in three every call.
    assert!(by_hash.contains(supposed), "{by_hash}");
}
