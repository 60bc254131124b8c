//! The same with the operator and the cloud in processes of their own, and the API server here:
//! what each of them costs. They speak over loopback, and time is real; so that the figures are
//! those of work, requests are not spaced.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{env, fs, io, thread};

use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::timeout;
use uturn_cloud::cloud::{Cloud, Settings as CloudSettings};
use uturn_cloud::credentials::Credentials;
use uturn_cloud::ids::IdSource;
use uturn_cloud::inventory::Inventory;
use uturn_cloud::server::{Server as CloudServer, Stop};
use uturn_cloud::store::Store;
use uturn_cloud_api::SecretKey;
use uturn_cloud_api::client::{ClientSettings, Retries};
use uturn_kube::start::{Start, run};
use uturn_kube::sync::Settings;
use uturn_testing::variables;

use crate::server::Server;
use crate::server::listen::kubeconfig;
use crate::stage::{REGION, Stage};
use crate::world::World;

/// How long a part may take.
const LIMIT: Duration = Duration::from_secs(900);
/// How long nothing has to happen at rest.
const REST: Duration = Duration::from_secs(60);
/// How many parts of a second the system counts the time of processes in.
const TICKS: f64 = 100.0;

/// A process that ends with this one, and the lines that it says.
struct Part {
    child: Child,
    said: UnboundedReceiver<String>,
}

/// What a process has used.
pub(super) struct Used {
    /// Its time on processors, in seconds.
    pub(super) seconds: f64,
    /// The most memory that it had, in MiB.
    memory: usize,
}

/// Calls and writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum {
    calls: usize,
    writes: usize,
}

impl Part {
    fn start(role: &str, folder: &Path) -> Self {
        let test = ["--ignored", "--exact", "--nocapture", "scale::apart::part"];
        let mut child = Command::new(env::current_exe().unwrap())
            .args(test)
            .env(variables::SCALE_ROLE, role)
            .env(variables::SCALE_FOLDER, folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, said) = unbounded_channel();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Self { child, said }
    }

    /// The rest of the next line with this word in it.
    async fn hear(&mut self, word: &str) -> String {
        loop {
            let line = self.said.recv().await.expect("the process ended");
            if let Some((_, rest)) = line.split_once(word) {
                return rest.to_owned();
            }
        }
    }

    /// Follows rounds until there were so many calls and writes, or more.
    async fn follow(&mut self, expected: Sum) -> Sum {
        let mut sum = Sum::default();
        let rounds = async {
            while sum.calls < expected.calls || sum.writes < expected.writes {
                let round = self.hear("round ").await;
                let mut numbers = round.split(' ').map(|number| number.parse::<usize>().unwrap());
                sum.calls += numbers.next().unwrap();
                sum.writes += numbers.next().unwrap();
            }
        };
        timeout(LIMIT, rounds).await.expect("it ends in time");
        sum
    }

    fn used(&self) -> Used {
        used(self.child.id())
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a process has used. On other systems than Linux it is not known.
pub(super) fn used(process: u32) -> Used {
    let read =
        |file: &str| fs::read_to_string(format!("/proc/{process}/{file}")).unwrap_or_default();
    let status = read("status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<usize>().ok());
    let stat = read("stat");
    // The name of the program, in brackets, may have spaces.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: f64 = fields.skip(11).take(2).filter_map(|field| field.parse::<f64>().ok()).sum();
    Used { seconds: ticks / TICKS, memory: kib.unwrap_or_default() / 1024 }
}

/// Serves the API server on loopback.
async fn serve(server: Server) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(server.listen(listener));
    address
}

fn say(words: &str) {
    let mut output = io::stdout();
    writeln!(output, "{words}").unwrap();
    output.flush().unwrap();
}

/// One of the processes, until standard input ends.
#[test]
#[ignore = "it is started by the test that needs it"]
fn part() {
    let (Ok(role), Ok(folder)) =
        (env::var(variables::SCALE_ROLE), env::var(variables::SCALE_FOLDER))
    else {
        return;
    };
    let folder = Path::new(&folder);
    thread::spawn(|| {
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        std::process::exit(0);
    });
    match &*role {
        "cloud" => cloud(folder),
        _ => operator(folder),
    }
}

fn cloud(folder: &Path) {
    let (store, accounts) = Store::open(&folder.join("state")).unwrap();
    let settings = CloudSettings {
        task_time: Some(Duration::ZERO),
        quotas: Stage::boundless(),
        ..CloudSettings::default()
    };
    let credentials = Credentials::parse("id key").unwrap();
    let (ids, store) = (IdSource::random(), Box::new(store));
    let cloud = Cloud::new(credentials, Inventory::Open, settings, store, ids, accounts);
    let server = CloudServer::bind("127.0.0.1:0".parse().unwrap(), Arc::new(cloud)).unwrap();
    say(&format!("address {}", server.address().unwrap()));
    server.run(&Stop::new()).unwrap();
}

fn operator(folder: &Path) {
    let cloud = fs::read_to_string(folder.join("cloud")).unwrap();
    let start = Start {
        kubeconfig: Some(folder.join("kubeconfig")),
        cloud: ClientSettings {
            endpoint: format!("http://{cloud}").parse().unwrap(),
            secret_id: "id".to_owned(),
            secret_key: SecretKey::from("key".to_owned()),
            region: REGION.to_owned(),
            retries: Retries::default(),
            rate: None,
        },
        settings: Settings {
            cluster: "cls-aaaaaaaa".to_owned(),
            network: "vpc-aaaaaaaa".to_owned(),
            ..Settings::default()
        },
        lease: None,
        listen: None,
    };
    let ended = run(start, |round| match round {
        Ok(round) => say(&format!("round {} {} {}", round.calls, round.writes, round.left)),
        Err(error) => say(&format!("failed: {error}")),
    });
    panic!("{ended:?}");
}

/// `cargo xtask bench operator` runs this and prints the file that it writes.
#[tokio::test]
#[ignore = "it takes minutes: cargo xtask bench operator runs it"]
async fn processes() {
    let (services, ingresses, nodes) = super::sizes();
    let all = services + ingresses;
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("operator-scale");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(folder.join("state")).unwrap();
    let world = World::with(Stage::new(), nodes);
    super::fill(&world, services, ingresses, nodes);
    let address = serve(world.server.clone()).await;
    fs::write(folder.join("kubeconfig"), kubeconfig(address)).unwrap();
    let mut cloud = Part::start("cloud", &folder);
    fs::write(folder.join("cloud"), cloud.hear("address ").await).unwrap();

    let mut text = format!("{services} Services, {ingresses} Ingresses, {nodes} nodes\n");
    let mut before = (0.0, 0.0);
    let mut add = |what: &str, since: Instant, sum: Sum, cloud: &Part, operator: &Part| {
        let (cloud, operator) = (cloud.used(), operator.used());
        let _ = writeln!(
            text,
            "{what}: {} changing calls and {} writes in {:.1} s; operator {:.1} s of a processor, \
             at most {} MiB; cloud {:.1} s, at most {} MiB",
            sum.calls,
            sum.writes,
            since.elapsed().as_secs_f64(),
            operator.seconds - before.1,
            operator.memory,
            cloud.seconds - before.0,
            cloud.memory,
        );
        before = (cloud.seconds, operator.seconds);
        fs::write(folder.with_extension("processes.txt"), &text).unwrap();
    };
    let mut since = Instant::now();
    let mut operator = Part::start("operator", &folder);
    let expected = Sum { calls: 3 * all + ingresses, writes: 3 * all };
    let made = operator.follow(expected).await;
    assert_eq!(made, expected);
    add("from nothing", since, made, &cloud, &operator);
    since = Instant::now();
    world.server.edit_global("nodes", "n1", |node| {
        node["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    });
    let lost = operator.follow(Sum { calls: all, writes: 0 }).await;
    assert_eq!(lost, Sum { calls: all, writes: 0 });
    add("a node lost", since, lost, &cloud, &operator);
    since = Instant::now();
    let written = world.server.writes();
    let changed = timeout(REST, operator.follow(Sum { calls: 1, writes: 1 })).await;
    assert!(changed.is_err(), "at rest: {changed:?}");
    assert_eq!(world.server.writes(), written);
    add("at rest", since, Sum::default(), &cloud, &operator);
    drop((operator, cloud));
    fs::remove_dir_all(&folder).unwrap();
}
