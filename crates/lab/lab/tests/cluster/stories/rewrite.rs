//! The host of an Ingress becomes the name of the Service inside the cluster, by CoreDNS.

use serde_json::{Value, json};

use crate::stage::{NODE_PORT, Story, ingress, servers};

const HOST: &str = "roc.example.com";
const URL: &str = "http://roc.example.com/";

/// How many calls a pod makes: a multiple of the number of targets.
const CALLS: usize = 12;
/// How many targets there are: a port of each node.
const TARGETS: usize = 3;
/// How often a name is asked for to see every DNS server of two: but for one time in 2^29.
const QUESTIONS: usize = 30;

pub(crate) fn story(story: &Story<'_>) {
    story.apply_all(&[&servers(3), NODE_PORT, &ingress(Some(HOST), &[])]);
    let address = story.ingress_address("web");
    let pods = story.pods_of("web");
    story.stage.state(&json!({"dns": {"outside": {HOST: address}}}));
    wait_for_name(story, &pods[0], &address);
    story.stage.wait_for_health(&address, TARGETS, 0);
    for pod in &pods {
        story.settle();
        let before = requests(story);
        let calls = story.calls(pod, URL, CALLS);
        calls.assert_waited(CALLS / TARGETS);
        // They are counted after they are answered.
        story.stage.until("the load balancer counts the calls", || {
            match requests(story) - before {
                CALLS => Ok(()),
                count => Err(format!("{count} of {CALLS}")),
            }
        });
        assert_trace(story, pod, calls.share_failing());
    }

    let ip = story.kubectl(&["get", "service", "web", "-o", "jsonpath={.spec.clusterIP}"]);
    let words = ["get", "configmap", "coredns", "-n", "kube-system", "-o"];
    let path = "jsonpath={.data.Corefile}";
    let corefile = story.stage.kubectl(&[&words[..], &[path]].concat(), "");
    let rewrite = format!("rewrite name {HOST} web.{}.svc.cluster.local", story.namespace);
    set_corefile(story, &corefile.replacen('{', &format!("{{\n    {rewrite}"), 1));
    wait_for_name(story, &pods[0], &ip);
    let before = requests(story);
    for pod in &pods {
        story.settle();
        let calls = story.calls(pod, URL, CALLS);
        calls.assert_waited(0);
        assert!(calls.0.iter().all(|call| call.forwarded_for.is_none()), "{calls:#?}");
        assert_trace(story, pod, calls.share_failing());
    }
    assert_eq!(requests(story), before, "no call reaches the load balancer");

    set_corefile(story, &corefile);
    wait_for_name(story, &pods[0], &address);
    story.settle();
    story.calls(&pods[0], URL, CALLS).assert_waited(CALLS / TARGETS);
    story.stage.state(&json!({"dns": null}));
}

/// What a user edits.
fn set_corefile(story: &Story<'_>, corefile: &str) {
    let patch = json!({"data": {"Corefile": corefile}}).to_string();
    let words = ["patch", "configmap", "coredns", "-n", "kube-system", "--patch", &patch];
    story.stage.kubectl(&words, "");
}

/// Waits until every DNS server answers with an address: its cache may have another.
fn wait_for_name(story: &Story<'_>, pod: &str, ip: &str) {
    let script = format!(
        "for i in $(seq {QUESTIONS}); do getent ahostsv4 {HOST} | head -n 1 | cut -d ' ' -f 1; done"
    );
    story.stage.until(&format!("{HOST} is {ip}"), || {
        let found = story.stage.exec(&story.title(pod), &["sh", "-c", &script]);
        let all: Vec<&str> = found.lines().collect();
        if all.len() == QUESTIONS && all.iter().all(|found| *found == ip) {
            Ok(())
        } else {
            Err(found)
        }
    });
}

/// How many requests the load balancers have answered.
fn requests(story: &Story<'_>) -> usize {
    let page = story.stage.page("http://127.0.0.1:9900/metrics");
    let lines = page.lines().filter(|line| line.starts_with("uturn_lb_requests_total{"));
    lines.map(|line| line.rsplit_once(' ').unwrap().1.parse::<usize>().unwrap()).sum()
}

/// `uturn trace` has the same share of calls that wait.
fn assert_trace(story: &Story<'_>, pod: &str, measured: f64) {
    let outcomes = story.stage.predict().outcomes(story, pod, URL);
    println!("{outcomes:?}");
    let waits = |outcome: &&Value| outcome["outcome"] != "answered" || outcome["after_ms"] != 0;
    let predicted: f64 =
        outcomes.iter().filter(waits).map(|outcome| outcome["share"].as_f64().unwrap()).sum();
    assert!((predicted - measured).abs() < 1e-6, "{predicted} and not {measured}");
}
