//! Draws commands that read a cluster, with the names and addresses of the cluster.

use uturn_dice::Dice;

use super::cluster::Values;
use super::input::Input;

/// A known cluster: the input that names it, and its values.
#[derive(Clone, Debug)]
pub(super) struct Known {
    /// The options that name the cluster, and its files.
    pub(super) input: Input,
    /// The values that arguments can name.
    pub(super) values: Values,
}

/// The frequency of each command.
const COMMANDS: [(&str, usize); 7] = [
    ("scan", 6),
    ("trace", 5),
    ("check", 5),
    ("cure", 2),
    ("whatif", 2),
    ("rules", 2),
    ("collect", 1),
];

/// The options of each command. Of words with `|` between them, one is drawn. `{namespace}` is a
/// namespace of the cluster.
const OPTIONS: [(&str, &[&str]); 7] = [
    (
        "scan",
        &[
            "-o text|wide|json|yaml",
            "-o sarif|junit|html",
            "--all",
            "--exhaustive",
            "--explain-classes",
            "--complete",
            "-n {namespace}",
            "-A",
            "--fail-on info|warning|error|never",
            "--write-baseline known",
            "--unpack-limit 1MiB|1GiB",
            "-v|-q",
            "--color always|never",
        ],
    ),
    (
        "trace",
        &[
            "-o text|wide|json|yaml|svg",
            "--all",
            "--proto tcp|udp|sctp",
            "-n {namespace}",
            "--complete",
            "--color always|never",
        ],
    ),
    ("check", &["-o text|wide|json|yaml", "-n {namespace}", "--complete", "--color always|never"]),
    ("cure", &["-o text|wide|json|yaml", "-n {namespace}", "--proto tcp|udp", "--complete"]),
    (
        "rules",
        &[
            "--mode iptables|ipvs|nftables",
            "--kube-proxy-version v1.22.5|v1.28.0|v1.34.4",
            "--format iptables|ip6tables|ipset|ipvs|nft",
            "-q",
        ],
    ),
    (
        "whatif",
        &[
            "-o text|wide|json|yaml|markdown|sarif",
            "-n {namespace}",
            "--complete",
            "--fail-on worse|any|never",
            "--kube-proxy-mode iptables|ipvs|nftables",
            "--kube-proxy-version v1.22|v1.36",
            "--data-plane cilium|kube-proxy|kube-router",
            "--cluster-cidr none|10.1.0.0/16",
        ],
    ),
    ("collect", &["--redact-map map", "-q"]),
];

/// Draws a command over a cluster.
pub(super) fn command(known: &Known, dice: &mut Dice) -> Input {
    let values = &known.values;
    let name = command_name(dice);
    let mut words = vec![name.to_owned()];
    match name {
        "trace" => words.extend(flow(values, dice)),
        "check" => words.extend(checked(values, dice)),
        "cure" => words.extend(flow(values, dice)),
        "whatif" => words.extend(change(values, dice)),
        "rules" => words.extend(["--node".to_owned(), one_of(&values.nodes, dice)]),
        "collect" => words.extend(["--redact", "-o", "shown"].map(str::to_owned)),
        _ => {}
    }
    words.extend(options(name, values, dice));
    words.extend_from_slice(&known.input.arguments);
    Input { arguments: words, files: known.input.files.clone() }
}

fn command_name(dice: &mut Dice) -> &'static str {
    let mut at = dice.below(COMMANDS.iter().map(|(_, weight)| weight).sum());
    let is_it = |(_, weight): &&(&str, usize)| match at.checked_sub(*weight) {
        Some(rest) => {
            at = rest;
            false
        }
        None => true,
    };
    COMMANDS.iter().find(is_it).map_or("scan", |(name, _)| *name)
}

fn one_of(values: &[String], dice: &mut Dice) -> String {
    if values.is_empty() { "default".to_owned() } else { dice.pick(values).clone() }
}

fn flow(values: &Values, dice: &mut Dice) -> [String; 4] {
    let (from, to) = (one_of(&values.clients, dice), one_of(&values.targets, dice));
    ["--from".to_owned(), from, "--to".to_owned(), to]
}

fn change(values: &Values, dice: &mut Dice) -> [String; 2] {
    let service = one_of(&values.services, dice);
    let (flag, value) = match dice.below(5) {
        0 => ("--set", format!("svc/{service}:spec.externalTrafficPolicy=Local")),
        1 => ("--set", format!("svc/{service}:spec.ports[0].targetPort=9")),
        2 => ("--annotate", format!("svc/{service}:example.com/note=1")),
        3 => ("--delete", format!("svc/{service}")),
        _ => ("--delete", format!("node/{}", one_of(&values.nodes, dice))),
    };
    [flag.to_owned(), value]
}

fn checked(values: &Values, dice: &mut Dice) -> Vec<String> {
    let (topic, objects) = match dice.below(7) {
        0..3 => ("service", &values.services),
        3..5 if !values.ingresses.is_empty() => ("ingress", &values.ingresses),
        5 => ("dns", &values.services),
        _ => (dice.choose(&["nodes", "cross-node"]), &values.nodes),
    };
    let is_of_one = matches!(topic, "service" | "ingress") && dice.once_in(2);
    let object = is_of_one.then(|| one_of(objects, dice));
    [topic.to_owned()].into_iter().chain(object).collect()
}

/// Draws up to three options, each once.
fn options(name: &str, values: &Values, dice: &mut Dice) -> Vec<String> {
    let of_command = OPTIONS.iter().find(|(own, _)| *own == name);
    let mut known = of_command.map(|(_, all)| all.to_vec()).unwrap_or_default();
    dice.shuffle(&mut known);
    let count = dice.below(4);
    let mut words = Vec::new();
    for option in known.into_iter().take(count) {
        for word in option.split(' ') {
            let alternatives: Vec<&str> = word.split('|').collect();
            words.push(match dice.choose(&alternatives) {
                "{namespace}" => one_of(&values.namespaces, dice),
                word => word.to_owned(),
            });
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_has_options() {
        for (name, _) in COMMANDS {
            assert!(OPTIONS.iter().any(|(own, all)| *own == name && !all.is_empty()), "{name}");
        }
    }

    #[test]
    fn what_is_named_is_in_the_cluster() {
        let input = Input {
            arguments: ["-f", "a.yaml"].map(str::to_owned).into(),
            files: vec![("a.yaml".into(), b"kind: Nothing".into())],
        };
        let values = Values {
            clients: vec!["node/n1".into()],
            targets: vec!["svc/a/b".into()],
            ..Values::default()
        };
        let (known, mut dice) = (Known { input, values }, Dice::new(7));
        for _ in 0..200 {
            let drawn = command(&known, &mut dice);
            let behind = |word| drawn.arguments.windows(2).find(|own| own[0] == word);
            assert!(behind("--from").is_none_or(|own| own[1] == "node/n1"), "{drawn:?}");
            assert!(behind("--to").is_none_or(|own| own[1] == "svc/a/b"), "{drawn:?}");
            assert!(drawn.arguments.ends_with(&known.input.arguments));
            assert_eq!(drawn.files, known.input.files);
        }
    }
}
