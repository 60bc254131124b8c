//! How a client asks: what stands in a pod's `resolv.conf`, and which questions come of a
//! name there, in glibc and in musl, which differ.

use std::net::IpAddr;

use uturn_model::pod::{DnsPolicy, PodSpec};

use crate::message::{Answer, Data, Kind, Question, Rcode, Record, Reply, Unknown};
use crate::name;

/// The most name servers that Kubernetes writes and libraries read.
const MOST_SERVERS: usize = 3;

/// The most search domains that Kubernetes writes.
const MOST_SEARCHES: usize = 32;

/// What a `resolv.conf` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvConf {
    /// Name servers, the first asked first.
    pub servers: Vec<IpAddr>,
    /// Whether the node's own servers come before those: what they are is not known.
    pub of_node: bool,
    /// Search domains in order, without dots at the end.
    pub search: Vec<String>,
    /// From how many dots on a name is first tried as it is.
    pub ndots: u8,
}

impl ResolvConf {
    /// That of a node, of which nothing is known: no search domains.
    pub fn of_node() -> Self {
        Self { servers: Vec::new(), of_node: true, search: Vec::new(), ndots: 1 }
    }

    /// That of a pod, as the kubelet writes it.
    pub fn of_pod(spec: &PodSpec, namespace: &str, domain: &str, cluster: &[IpAddr]) -> Self {
        let mut conf = match spec.dns_policy {
            DnsPolicy::None => Self { of_node: false, ..Self::of_node() },
            DnsPolicy::ClusterFirst if spec.host_network => Self::of_node(),
            DnsPolicy::Default => Self::of_node(),
            DnsPolicy::ClusterFirst | DnsPolicy::ClusterFirstWithHostNet => Self {
                servers: cluster.to_vec(),
                of_node: false,
                search: vec![
                    format!("{namespace}.svc.{domain}"),
                    format!("svc.{domain}"),
                    domain.to_owned(),
                ],
                ndots: 5,
            },
        };
        conf.servers.extend(&spec.dns_nameservers);
        for search in &spec.dns_searches {
            let search = match &**search {
                "." => ".",
                other => other.trim_end_matches('.'),
            };
            conf.search.push(search.to_owned());
        }
        conf.ndots = spec.dns_ndots.unwrap_or(conf.ndots).min(15);
        keep_first(&mut conf.servers, MOST_SERVERS);
        keep_first(&mut conf.search, MOST_SEARCHES);
        conf
    }
}

/// Keeps the first of equal ones, and no more than so many.
fn keep_first<T: PartialEq>(list: &mut Vec<T>, most: usize) {
    let mut kept: Vec<T> = Vec::new();
    for one in list.drain(..) {
        if !kept.contains(&one) && kept.len() < most {
            kept.push(one);
        }
    }
    *list = kept;
}

/// A library that asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Library {
    /// Of most images.
    Glibc,
    /// Of Alpine's.
    Musl,
}

/// What a client has in the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// Addresses in the order of the answers; none where only other records came.
    Addresses(Vec<IpAddr>),
    /// There is no such name.
    NoName,
    /// Nobody could say; the code of who said so, if anybody did.
    Fails(Option<Rcode>),
    /// It depends on something.
    Unknown(Unknown),
}

impl Heard {
    /// Whether it has an address.
    pub fn is_address(&self) -> bool {
        matches!(self, Self::Addresses(ips) if !ips.is_empty())
    }
}

/// Resolves a name as a library does. `ask` asks one question.
pub fn resolve(
    library: Library,
    conf: &ResolvConf,
    host: &str,
    ask: &mut dyn FnMut(Question) -> Answer,
) -> Heard {
    let absolute = host.ends_with('.');
    let host = host.strip_suffix('.').unwrap_or(host);
    let dots = host.matches('.').count();
    let many = dots >= usize::from(conf.ndots);
    let searched = conf.search.iter().filter(|_| !absolute).map(|domain| match domain.as_str() {
        "." => format!("{host}."),
        domain => format!("{host}.{domain}."),
    });
    let plain = format!("{host}.");
    let mut tries: Vec<String> = match library {
        Library::Glibc if many => std::iter::once(plain).chain(searched).collect(),
        Library::Musl if many => vec![plain],
        _ => searched.chain([plain]).collect(),
    };
    tries.dedup();
    let mut last = Heard::NoName;
    let mut tries = tries.into_iter();
    let mut first = true;
    while let Some(candidate) = tries.next() {
        let is_first = std::mem::take(&mut first);
        if !name::is_domain_name(&candidate) {
            continue;
        }
        let four = ask(Question::new(&candidate, Kind::A));
        let six = ask(Question::new(&candidate, Kind::Aaaa));
        let (heard, goes_on) = match library {
            Library::Glibc => glibc(&candidate, four, six),
            Library::Musl => musl(four, six),
        };
        match goes_on {
            Next::Stop => return heard,
            Next::Search => {}
            // The name as it is has still its turn, unless it had it. Whatever came of that,
            // the search goes on.
            Next::Last if many && is_first => {}
            Next::Last if many => return heard,
            Next::Last => tries = tries.next_back().into_iter().collect::<Vec<_>>().into_iter(),
        }
        // A server that failed is said rather than the names after it that are not there.
        if !matches!(last, Heard::Fails(_)) {
            last = heard;
        }
    }
    last
}

/// What a library does after a candidate.
enum Next {
    Stop,
    Search,
    /// Only the name as it is.
    Last,
}

fn glibc(candidate: &str, four: Answer, six: Answer) -> (Heard, Next) {
    let good = |answer: &Answer| match answer {
        Answer::Reply(reply) => reply.rcode == Rcode::NoError && !reply.records.is_empty(),
        _ => false,
    };
    if good(&four) || good(&six) {
        let mut ips = Vec::new();
        for answer in [six, four] {
            match answer {
                Answer::Reply(reply) => ips.extend(addresses(candidate, &reply.records)),
                Answer::Silence | Answer::Unknown(_) => {}
            }
        }
        return (Heard::Addresses(ips), Next::Stop);
    }
    let code = match (four, six) {
        (Answer::Unknown(unknown), _) | (_, Answer::Unknown(unknown)) => {
            return (Heard::Unknown(unknown), Next::Stop);
        }
        (Answer::Silence, _) | (_, Answer::Silence) => return (Heard::Fails(None), Next::Last),
        (Answer::Reply(four), Answer::Reply(six)) => match four.rcode {
            Rcode::NoError => six.rcode,
            code => code,
        },
    };
    match code {
        Rcode::NoError | Rcode::NxDomain => (Heard::NoName, Next::Search),
        Rcode::ServFail => (Heard::Fails(Some(code)), Next::Search),
        _ => (Heard::Fails(Some(code)), Next::Last),
    }
}

/// The addresses that belong to the name, by way of its CNAMEs.
fn addresses(candidate: &str, records: &[Record]) -> Vec<IpAddr> {
    let mut wanted = candidate.to_lowercase();
    let mut ips = Vec::new();
    for record in records {
        if !record.name.eq_ignore_ascii_case(&wanted) {
            continue;
        }
        match &record.data {
            Data::Cname(target) => wanted = target.to_lowercase(),
            Data::Address(ip) => ips.push(*ip),
            Data::Other => {}
        }
    }
    ips
}

fn musl(four: Answer, six: Answer) -> (Heard, Next) {
    let mut replies: Vec<Reply> = Vec::new();
    for answer in [four, six] {
        match answer {
            Answer::Unknown(unknown) => return (Heard::Unknown(unknown), Next::Stop),
            Answer::Silence => return (Heard::Fails(None), Next::Stop),
            Answer::Reply(reply) => replies.push(reply),
        }
    }
    let code = |wanted: Rcode| replies.iter().any(|reply| reply.rcode == wanted);
    if code(Rcode::ServFail) {
        return (Heard::Fails(Some(Rcode::ServFail)), Next::Stop);
    }
    if code(Rcode::NxDomain) {
        return (Heard::NoName, Next::Search);
    }
    if let Some(reply) = replies.iter().find(|reply| reply.rcode != Rcode::NoError) {
        return (Heard::Fails(Some(reply.rcode)), Next::Stop);
    }
    let records = replies.iter().rev().flat_map(|reply| &reply.records);
    let ips = records.filter_map(|record| match record.data {
        Data::Address(ip) => Some(ip),
        _ => None,
    });
    (Heard::Addresses(ips.collect()), Next::Stop)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pod of namespace shop, in front of a server that answers by the first label. What
    /// glibc 2.36 asked and got there was seen on a real one.
    fn heard(library: Library, host: &str) -> (Heard, Vec<String>) {
        let conf = ResolvConf {
            servers: Vec::new(),
            of_node: false,
            search: vec!["s1.d".into(), "s2.d".into()],
            ndots: 5,
        };
        let mut asked = Vec::new();
        let heard = resolve(library, &conf, host, &mut |question| {
            let four = question.kind == Kind::A;
            if four {
                asked.push(question.name.clone());
            }
            let short = question.name.matches('.').count() == 2;
            let first = question.name.split('.').next().unwrap();
            let ip = |owner: &str| Record {
                name: owner.to_owned(),
                data: Data::Address("1.1.1.1".parse().unwrap()),
            };
            let cname = || Record { name: question.name.clone(), data: Data::Cname("x.y.".into()) };
            let records = |records: Vec<Record>| match four {
                true => Reply::records(records),
                false => Reply::code(Rcode::NoError),
            };
            Answer::Reply(match first {
                "match" => records(vec![ip(&question.name)]),
                "other" => records(vec![ip("else.where.")]),
                "cname" => records(vec![cname(), ip("x.y.")]),
                "broken" => records(vec![cname(), ip("z.y.")]),
                "nodata" => Reply::code(Rcode::NoError),
                "servfail" => Reply::code(Rcode::ServFail),
                "refused" => Reply::code(Rcode::Refused),
                "half" if four => records(vec![ip(&question.name)]),
                "late" if short => records(vec![ip(&question.name)]),
                "late" => Reply::code(Rcode::ServFail),
                "refusedlate" if short => records(vec![ip(&question.name)]),
                "refusedlate" => Reply::code(Rcode::Refused),
                _ => Reply::nothing(Rcode::NxDomain),
            })
        });
        (heard, asked)
    }

    #[test]
    fn glibc_asks_as_it_was_seen_to() {
        let ip = || Heard::Addresses(vec!["1.1.1.1".parse().unwrap()]);
        let nothing = || Heard::Addresses(Vec::new());
        let all =
            |name: &str| vec![format!("{name}.s1.d."), format!("{name}.s2.d."), format!("{name}.")];
        let some = |name: &str| vec![format!("{name}.s1.d."), format!("{name}.")];
        let one = |name: &str| vec![format!("{name}.s1.d.")];
        let glibc = |host| heard(Library::Glibc, host);
        assert_eq!(glibc("match.x"), (ip(), one("match.x")));
        assert_eq!(glibc("other.x"), (nothing(), one("other.x")));
        assert_eq!(glibc("cname.x"), (ip(), one("cname.x")));
        assert_eq!(glibc("broken.x"), (nothing(), one("broken.x")));
        assert_eq!(glibc("half.x"), (ip(), one("half.x")));
        assert_eq!(glibc("nodata.x"), (Heard::NoName, all("nodata.x")));
        assert_eq!(glibc("late.x"), (ip(), all("late.x")));
        assert_eq!(glibc("refusedlate.x"), (ip(), some("refusedlate.x")));
        assert_eq!(glibc("servfail.x"), (Heard::Fails(Some(Rcode::ServFail)), all("servfail.x")));
        assert_eq!(glibc("refused.x"), (Heard::Fails(Some(Rcode::Refused)), some("refused.x")));
        assert_eq!(glibc("match."), (ip(), vec!["match.".to_owned()]));
        let dots = "nx.a.b.c.d.e.f";
        let first = vec![format!("{dots}."), format!("{dots}.s1.d."), format!("{dots}.s2.d.")];
        assert_eq!(glibc(dots), (Heard::NoName, first));
    }

    #[test]
    fn musl_stops_where_glibc_goes_on() {
        let musl = |host| heard(Library::Musl, host);
        assert_eq!(musl("nodata.x").1, ["nodata.x.s1.d."]);
        assert_eq!(musl("late.x").0, Heard::Fails(Some(Rcode::ServFail)));
        assert_eq!(musl("nx.a.b.c.d.e.f").1, ["nx.a.b.c.d.e.f."]);
        // It does not look whose records they are, and one refusal of two is enough.
        assert!(musl("other.x").0.is_address());
        assert_eq!(musl("half.x").0, Heard::NoName);
    }

    #[test]
    fn a_pod_asks_where_its_policy_says() {
        let cluster: Vec<IpAddr> = vec!["172.16.0.10".parse().unwrap()];
        let mut spec = PodSpec::default();
        let conf = |spec: &PodSpec| ResolvConf::of_pod(spec, "shop", "cluster.local", &cluster);
        let usual = ["shop.svc.cluster.local", "svc.cluster.local", "cluster.local"];
        assert_eq!((conf(&spec).search, conf(&spec).ndots), (usual.map(String::from).to_vec(), 5));
        spec.dns_searches = vec!["corp.example.".into(), "svc.cluster.local".into()];
        spec.dns_ndots = Some(2);
        assert_eq!((conf(&spec).search.len(), conf(&spec).ndots), (4, 2));
        spec.dns_policy = DnsPolicy::None;
        assert_eq!((conf(&spec).search.len(), conf(&spec).of_node), (2, false));
        spec.host_network = true;
        spec.dns_policy = DnsPolicy::ClusterFirst;
        assert_eq!((conf(&spec).servers, conf(&spec).of_node), (Vec::new(), true));
        spec.dns_policy = DnsPolicy::ClusterFirstWithHostNet;
        assert_eq!((conf(&spec).servers, conf(&spec).of_node), (cluster.clone(), false));
    }
}
