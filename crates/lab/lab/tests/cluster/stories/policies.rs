//! NetworkPolicies as a real kube-router enforces them on every node: random policies, and calls
//! from every pod to every other one, each beside what uturn says of it.

mod kube_router;
mod random;

use std::collections::BTreeMap;
use std::net::IpAddr;

use uturn_dice::Dice;
use uturn_model::{Cluster, Flow, Outcome, Protocol, Verdict};
use uturn_path::Engine;
use uturn_snapshot::Source;

use crate::stage::Story;
use kube_router::KubeRouters;

/// The sets of policies.
const ROUNDS: usize = 16;

/// The ports of each pod, by name.
const PORTS: [(&str, u16); 2] = [("http", 8080), ("admin", 9090)];

/// How long a call may take: what kube-router does not let pass is refused at once.
const LIMIT: &str = "3";

/// The pods: namespace, name, labels, node. The namespace is the story's own with this at its end.
const PODS: [(&str, &str, &str, u8); 6] = [
    ("", "web", "app: web, tier: front", 1),
    ("", "job", "app: job", 2),
    ("-blue", "web", "app: web", 1),
    ("-blue", "api", "app: api, tier: back", 2),
    ("-green", "job", "app: job, tier: front", 3),
    ("-green", "proxy", "app: proxy", 1),
];

/// The namespaces, by their ends, with labels.
const NAMESPACES: [(&str, &str); 3] = [("", "team=red"), ("-blue", "team=blue"), ("-green", "")];

/// Calls every listed URL at once, and prints for each how curl ended.
const SCRIPT: &str = r#"
limit=$1
shift
for url in "$@"; do
  { printf '%s %s\n' "$url" "$(curl -s -o /dev/null --max-time "$limit" -w '%{exitcode}' "$url")"; } &
done
wait
"#;

pub(crate) fn story(story: &Story<'_>) {
    let namespace = |end: &str| format!("{}{end}", story.namespace);
    for (end, label) in NAMESPACES {
        if !end.is_empty() {
            story.stage.kubectl(&["create", "namespace", &namespace(end)], "");
        }
        if !label.is_empty() {
            story.stage.kubectl(&["label", "namespace", &namespace(end), label], "");
        }
    }
    let pods: String = PODS.iter().map(|pod| manifest(&namespace(pod.0), pod)).collect();
    story.stage.kubectl(&["apply", "-f", "-"], &pods);
    let nodes = story.stage.kubectl(&["get", "nodes", "-o", "name"], "");
    let nodes: Vec<String> = nodes.lines().map(str::to_owned).collect();
    let mut routers = KubeRouters::start(story, &nodes);
    for (end, ..) in NAMESPACES {
        let namespace = namespace(end);
        let words = ["wait", "pods", "--all", "--for=condition=Ready", "--timeout=900s"];
        story.stage.kubectl(&[&["--namespace", &namespace][..], &words].concat(), "");
    }

    let mut dice = Dice::new(705);
    let mut seen = BTreeMap::<String, usize>::new();
    let mut differing = String::new();
    for round in 0..ROUNDS {
        let policies = random::policies(&mut dice, &story.namespace);
        story.stage.kubectl(&["apply", "-f", "-"], &policies);
        routers.settle(story);
        let found = compare(story, &nodes, &mut seen);
        if !found.is_empty() {
            differing += &format!("round {round}: {policies}\n{found}");
        }
        for (end, _) in NAMESPACES {
            let words = ["delete", "networkpolicies", "--all", "--wait"];
            story.stage.kubectl(&[&["--namespace", &namespace(end)][..], &words].concat(), "");
        }
    }
    println!("policies: {seen:?}");
    assert!(differing.is_empty(), "{differing}");
    // Each kind of end was met many times, or the policies are too alike.
    for end in ["answered", "refused"] {
        assert!(seen.get(end).is_some_and(|count| *count > 100), "{seen:?}");
    }
    drop(routers);
    for (end, _) in NAMESPACES.into_iter().filter(|(end, _)| !end.is_empty()) {
        story.stage.kubectl(&["delete", "namespace", &namespace(end), "--wait"], "");
    }
}

fn manifest(namespace: &str, (_, name, labels, node): &(&str, &str, &str, u8)) -> String {
    let ports = PORTS.map(|(name, port)| format!("{{name: {name}, containerPort: {port}}}"));
    format!(
        "---\n{{apiVersion: v1, kind: Pod, metadata: {{namespace: {namespace}, name: {name}, labels: {{{labels}}}}}, \
         spec: {{nodeName: n{node}, containers: [{{name: server, image: server, ports: [{}]}}]}}}}\n\
         ---\n{{apiVersion: v1, kind: Service, metadata: {{namespace: {namespace}, name: {name}}}, spec: \
         {{selector: {{{labels}}}, ports: [{{port: 80, targetPort: http}}]}}}}\n",
        ports.join(", ")
    )
}

/// Makes every call, and returns those that did not end as uturn says.
fn compare(story: &Story<'_>, nodes: &[String], seen: &mut BTreeMap<String, usize>) -> String {
    let prediction = story.stage.predict();
    let texts = ["objects.yaml", "facts.json"].map(|file| {
        let text = std::fs::read_to_string(prediction.folder().join(file)).unwrap();
        Source { name: file.into(), text: text.as_str().into() }
    });
    let cluster =
        uturn_snapshot::read(texts.to_vec()).unwrap_or_else(|why| panic!("{why:?}")).cluster;
    let engine = Engine::new(&cluster).unwrap_or_else(|why| panic!("{why:?}"));
    let all = NAMESPACES.map(|(end, _)| format!("{}{end}", story.namespace));
    let of_story = |namespace: &str| all.iter().any(|own| own == namespace);
    let pods = cluster.pods.values().filter(|pod| of_story(pod.name.namespace.as_str()));
    let urls: Vec<String> = pods
        .clone()
        .flat_map(|pod| PORTS.map(|(_, port)| format!("http://{}:{port}/", pod.ips[0])))
        .chain(
            cluster
                .services
                .values()
                .filter(|service| of_story(service.name.namespace.as_str()))
                .map(|service| format!("http://{}/", service.cluster_ips[0])),
        )
        .collect();
    let mut clients: Vec<(String, String)> =
        pods.map(|pod| (format!("pod/{}", pod.name), pod.name.to_string())).collect();
    clients.extend(nodes.iter().map(|node| (node.clone(), node.clone())));

    let mut differing = String::new();
    for (client, place) in clients {
        let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
        let words = [&["sh", "-c", SCRIPT, "calls", LIMIT][..], &urls].concat();
        let printed = story.stage.exec(&place, &words);
        assert_eq!(printed.lines().count(), urls.len(), "{printed}");
        for line in printed.lines() {
            let (url, code) = line.split_once(' ').unwrap();
            let measured = match code {
                "0" => "answered",
                "7" => "refused",
                "28" => "hangs",
                other => panic!("curl of {url} ended with {other}"),
            };
            let flow = Flow {
                from: client.parse().unwrap(),
                to: url.parse().unwrap(),
                protocol: Protocol::Tcp,
            };
            let [verdict] = &engine.cases(&flow).unwrap()[..] else { panic!("several cases") };
            let count = |seen: &mut BTreeMap<String, usize>, word: &str| {
                *seen.entry(word.to_owned()).or_default() += 1;
            };
            if is_left_open(verdict) {
                count(seen, &format!("left open, {measured}"));
            } else if predicted(verdict).contains(&measured) {
                count(seen, measured);
            } else {
                let to = called(&cluster, url);
                let said = predicted(verdict).join(" or ");
                differing += &format!("{client} to {to} ({url}): {measured}, not {said}\n");
            }
        }
    }
    differing
}

/// Returns the name of the pod or Service with the address of a URL.
fn called(cluster: &Cluster, url: &str) -> String {
    let has = |ips: &[IpAddr]| ips.iter().any(|ip| url.contains(&format!("/{ip}")));
    let pod = cluster.pods.values().find(|pod| !pod.spec.host_network && has(&pod.ips));
    let service = cluster.services.values().find(|service| has(&service.cluster_ips));
    let pod = pod.map(|pod| format!("pod/{}", pod.name));
    pod.or_else(|| service.map(|service| format!("svc/{}", service.name))).unwrap_or_default()
}

/// Returns whether the verdict rests on what the specification leaves to the plugin.
fn is_left_open(verdict: &Verdict) -> bool {
    verdict
        .supposed
        .iter()
        .any(|assumption| assumption.subject.to_string().contains("NetworkPolicy"))
}

fn predicted(verdict: &Verdict) -> Vec<&'static str> {
    let word = |outcome: &Outcome| match outcome {
        Outcome::Answered { .. } => "answered",
        Outcome::Refused => "refused",
        Outcome::Hangs => "hangs",
        _ => "otherwise",
    };
    verdict.outcomes.iter().map(|(outcome, _)| word(outcome)).collect()
}
