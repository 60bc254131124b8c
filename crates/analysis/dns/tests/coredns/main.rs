//! Compares this crate with a real CoreDNS.
//!
//! Random Corefiles in front of a random cluster; a minimal API server serves that cluster's
//! objects. CoreDNS and [`Corefile`] must agree on whether a Corefile is valid, and on code and
//! records of every answer. Skipped if no `coredns` is found: by `UTURN_COREDNS`, else in `PATH`.
//! `UTURN_COREDNS_SEEDS` sets a number of fresh seeds beside the fixed ones, `UTURN_COREDNS_SEED`
//! names one.

#![expect(clippy::unwrap_used, reason = "a test")]

mod api;
mod corefiles;
mod server;
mod world;

use std::time::{SystemTime, UNIX_EPOCH};

use uturn_dice::Dice;
use uturn_dns::{Answer, Corefile, QueryContext, Question, Reply, Upstream, UpstreamServers};
use uturn_model::{Cluster, Origin, Step, Version, dns};
use uturn_testing::variables;

use server::{CoreDns, Started};

const QUESTIONS: usize = 150;
const FIXED_SEEDS: std::ops::Range<u64> = 0..16;

#[derive(Debug, Default)]
struct Counts {
    corefiles: usize,
    refused: usize,
    questions: usize,
    unknown: usize,
}

#[test]
fn coredns_answers_as_predicted() {
    let Some(program) = variables::program(variables::COREDNS, "coredns") else {
        return uturn_testing::skip(
            uturn_testing::Requirement::CoreDns,
            "answers of a real CoreDNS",
            "no coredns found",
        );
    };
    let mut counts = Counts::default();
    let mut seeds: Vec<u64> = FIXED_SEEDS.collect();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
    seeds.extend(
        (0..variables::number(variables::COREDNS_SEEDS).unwrap_or(0))
            .map(|at| now.wrapping_add(at)),
    );
    let named = variables::number(variables::COREDNS_SEED);
    if let Some(seed) = named {
        seeds = vec![seed];
    }
    let mut wrong = Vec::new();
    for seed in seeds {
        println!("{}={seed}", variables::COREDNS_SEED);
        if let Err(differences) = judge(&program, seed, &mut counts) {
            wrong.push(format!("{}={seed}\n{differences}", variables::COREDNS_SEED));
        }
    }
    println!("{counts:?}");
    assert!(wrong.is_empty(), "{}\n{} seeds differ", wrong.join("\n\n"), wrong.len());
    // A comparison without answers finds no difference.
    assert!(named.is_some() || counts.questions > counts.unknown * 4, "{counts:?}");
}

/// Compares one cluster with one Corefile.
fn judge(program: &std::path::Path, seed: u64, counts: &mut Counts) -> Result<(), String> {
    let mut dice = Dice::new(seed);
    let objects = world::objects(&mut dice);
    let api = api::serve(&objects);
    let (port, behind) = (server::free_port(), server::free_port());
    let text = corefiles::corefile(&mut dice, api.port(), port, behind);
    let predicted = Corefile::read(
        "coredns",
        &dns::Corefile {
            text: text.clone().into(),
            origin: Origin::line_of("Corefile", 1),
            beside: Vec::new(),
            release: Some(Version::new(1, 12, 0)),
        },
    );
    counts.corefiles += 1;
    let mut coredns = match (CoreDns::start(program, &text, port), &predicted) {
        (Started::Runs(coredns), Ok(_)) => coredns,
        (Started::Refuses(_), Err(_)) => {
            counts.refused += 1;
            return Ok(());
        }
        // A CoreDNS with more plugins, or on a machine with more interfaces, would accept it: the
        // answers are unknown.
        (Started::Refuses(why), Ok(_))
            if why.contains("Unknown directive") || why.contains("or interface name: ") =>
        {
            counts.refused += 1;
            return Ok(());
        }
        (Started::Runs(_), Err(faults)) => {
            let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
            return Err(format!("CoreDNS takes what we refuse: {}\n{text}", faults.join("\n")));
        }
        (Started::Refuses(why), Ok(_)) => {
            return Err(format!("we take what CoreDNS refuses: {why}\n{text}"));
        }
    };
    let corefile = predicted.map_err(|_| String::new())?;
    let cluster = world::cluster(&objects);
    let mut differences = Vec::new();
    let mut silent = false;
    for _ in 0..QUESTIONS {
        let question = corefiles::question(&mut dice);
        counts.questions += 1;
        let predicted = ask(&corefile, &cluster, port, behind, question.clone());
        if predicted == Answer::Silence && std::mem::replace(&mut silent, true) {
            // Once is enough: silence means waiting for the timeout.
            continue;
        }
        if matches!(predicted, Answer::Unknown(_)) {
            // Among them are queries that crash CoreDNS.
            counts.unknown += 1;
            continue;
        }
        let seen = coredns.ask(&question, predicted != Answer::Silence);
        match (predicted, &seen) {
            (Answer::Reply(reply), Ok(seen)) if same(&reply, seen) => {}
            (Answer::Silence, Err(_)) => {}
            (other, _) => {
                let Question { name, kind } = question;
                differences.push(format!("{name} {kind}: CoreDNS {seen:?}, predicted {other:?}"));
                if seen.is_err() {
                    break;
                }
            }
        }
    }
    if differences.is_empty() { Ok(()) } else { Err(format!("{text}\n{}", differences.join("\n"))) }
}

fn ask(
    corefile: &Corefile,
    cluster: &Cluster,
    port: u16,
    behind: u16,
    question: Question,
) -> Answer {
    let upstream_servers = Behind { corefile, cluster, behind };
    let client = Some([127, 0, 0, 1].into());
    corefile
        .ask(
            &QueryContext { cluster, client, upstream_servers: &upstream_servers },
            client,
            port,
            question,
        )
        .0
}

/// The server that CoreDNS forwards to: another block of the same Corefile.
struct Behind<'c> {
    corefile: &'c Corefile,
    cluster: &'c Cluster,
    behind: u16,
}

impl UpstreamServers for Behind<'_> {
    fn ask(&self, to: &[Upstream], question: &Question, _: &mut Vec<Step>) -> Answer {
        let port = match to.first() {
            Some(Upstream::Address(address)) => address.port(),
            other => panic!("forwarded to {other:?}"),
        };
        assert_eq!(port, self.behind);
        ask(self.corefile, self.cluster, port, self.behind, question.clone())
    }
}

fn same(predicted: &Reply, seen: &Reply) -> bool {
    let sorted = |reply: &Reply| {
        let mut records = reply.records.clone();
        records.sort();
        records
    };
    predicted.rcode == seen.rcode && sorted(predicted) == sorted(seen)
}
