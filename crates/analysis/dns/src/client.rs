//! DNS resolution by a client: the contents of a pod's `resolv.conf`, and the queries that glibc
//! and musl derive from a name.

use std::net::IpAddr;

use uturn_model::pod::{DnsPolicy, PodSpec};
use uturn_model::{Text, image};

use crate::message::{Answer, Data, Question, Rcode, Record, RecordType, Reply, Unknown};
use crate::name;

/// The maximum number of name servers that Kubernetes writes and libraries use.
const MAX_SERVERS: usize = 3;

/// The maximum number of search domains that Kubernetes writes.
const MAX_SEARCHES: usize = 32;

/// The contents of a `resolv.conf`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvConf {
    /// The name servers, in order.
    pub servers: Vec<IpAddr>,
    /// Whether the node's own servers come first, which are unknown.
    pub of_node: bool,
    /// The search domains in order, without trailing dots.
    pub search: Vec<String>,
    /// The number of dots from which a name is first tried without a search domain.
    pub ndots: u8,
}

impl ResolvConf {
    /// Returns the `resolv.conf` of a node with these search domains.
    pub fn of_node(searches: &[Text]) -> Self {
        let search = searches.iter().map(|domain| domain.trim_end_matches('.').to_owned());
        Self { servers: Vec::new(), of_node: true, search: search.collect(), ndots: 1 }
    }

    /// Returns the `resolv.conf` that the kubelet writes for a pod on a node with these search
    /// domains.
    pub fn of_pod(
        spec: &PodSpec,
        namespace: &str,
        domain: &str,
        cluster: &[IpAddr],
        searches: &[Text],
    ) -> Self {
        let of_node = || Self::of_node(searches);
        let mut conf = match spec.dns_policy {
            DnsPolicy::None => Self { of_node: false, ..Self::of_node(&[]) },
            DnsPolicy::ClusterFirst if spec.host_network => of_node(),
            DnsPolicy::Default => of_node(),
            DnsPolicy::ClusterFirst | DnsPolicy::ClusterFirstWithHostNet => Self {
                servers: cluster.to_vec(),
                of_node: false,
                search: [
                    format!("{namespace}.svc.{domain}"),
                    format!("svc.{domain}"),
                    domain.to_owned(),
                ]
                .into_iter()
                .chain(of_node().search)
                .collect(),
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
        keep_first(&mut conf.servers, MAX_SERVERS);
        keep_first(&mut conf.search, MAX_SEARCHES);
        conf
    }
}

/// Removes duplicates, then everything beyond a maximum length.
fn keep_first<T: PartialEq>(list: &mut Vec<T>, most: usize) {
    let mut kept: Vec<T> = Vec::new();
    for item in list.drain(..) {
        if !kept.contains(&item) && kept.len() < most {
            kept.push(item);
        }
    }
    *list = kept;
}

/// The C library of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Library {
    /// The GNU C library, used by most images.
    Glibc,
    /// The musl library, used by Alpine images.
    Musl,
}

/// Repositories whose images are built on Alpine whatever their tag is.
const ALPINE: [&str; 2] = ["curlimages/curl", "nicolaka/netshoot"];

impl Library {
    /// Returns the image that shows that the programs of a pod use musl, if each of its images does.
    pub fn musl_image(spec: &PodSpec) -> Option<&str> {
        musl_image(spec.containers.iter().map(|container| &*container.image))
    }
}

fn musl_image<'i>(mut images: impl Iterator<Item = &'i str>) -> Option<&'i str> {
    let first = images.next().filter(|image| is_musl(image))?;
    images.all(is_musl).then_some(first)
}

/// Returns whether the name of an image says that it is built on Alpine, or on musl.
fn is_musl(image: &str) -> bool {
    let tells = |part: &str| part == "musl" || part.starts_with("alpine");
    let mut folders = image::repository(image).rsplit('/');
    let name = folders.next().unwrap_or_default();
    let folder = folders.next().unwrap_or_default();
    name == "alpine"
        || folder == "alpine"
        || ALPINE.contains(&&*format!("{folder}/{name}"))
        || image::tag(image).is_some_and(|tag| tag.split('-').any(tells))
}

/// The result of resolving a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LookupResult {
    /// Addresses in the order of the answers; empty if there were only other records.
    Addresses(Vec<IpAddr>),
    /// NXDOMAIN.
    NoName,
    /// No server gave a usable answer. Has the response code, if there was one.
    Fails(Option<Rcode>),
    /// The result depends on something unknown.
    Unknown(Unknown),
}

impl LookupResult {
    /// Returns whether the result contains an address.
    pub fn is_address(&self) -> bool {
        matches!(self, Self::Addresses(ips) if !ips.is_empty())
    }
}

/// Resolves a name as a C library does. `ask` sends one query.
pub fn resolve(
    library: Library,
    conf: &ResolvConf,
    host: &str,
    ask: &mut dyn FnMut(Question) -> Answer,
) -> LookupResult {
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
    let mut last = LookupResult::NoName;
    let mut tries = tries.into_iter();
    let mut first = true;
    while let Some(candidate) = tries.next() {
        let is_first = std::mem::take(&mut first);
        if !name::is_domain_name(&candidate) {
            continue;
        }
        let four = ask(Question::new(&candidate, RecordType::A));
        let six = ask(Question::new(&candidate, RecordType::Aaaa));
        let (resolution, goes_on) = match library {
            Library::Glibc => glibc(&candidate, four, six),
            Library::Musl => musl(four, six),
        };
        match goes_on {
            Next::Stop => return resolution,
            Next::Search => {}
            // The unmodified name comes last, unless it was first. In any case, the search
            // continues.
            Next::Last if many && is_first => {}
            Next::Last if many => return resolution,
            Next::Last => tries = tries.next_back().into_iter().collect::<Vec<_>>().into_iter(),
        }
        // A failed server is reported rather than a later NXDOMAIN.
        if !matches!(last, LookupResult::Fails(_)) {
            last = resolution;
        }
    }
    last
}

/// The step with which a library continues after a candidate.
enum Next {
    Stop,
    Search,
    /// Only the unmodified name.
    Last,
}

fn glibc(candidate: &str, four: Answer, six: Answer) -> (LookupResult, Next) {
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
        return (LookupResult::Addresses(ips), Next::Stop);
    }
    let code = match (four, six) {
        (Answer::Unknown(unknown), _) | (_, Answer::Unknown(unknown)) => {
            return (LookupResult::Unknown(unknown), Next::Stop);
        }
        (Answer::Silence, _) | (_, Answer::Silence) => {
            return (LookupResult::Fails(None), Next::Last);
        }
        (Answer::Reply(four), Answer::Reply(six)) => match four.rcode {
            Rcode::NoError => six.rcode,
            code => code,
        },
    };
    match code {
        Rcode::NoError | Rcode::NxDomain => (LookupResult::NoName, Next::Search),
        Rcode::ServFail => (LookupResult::Fails(Some(code)), Next::Search),
        _ => (LookupResult::Fails(Some(code)), Next::Last),
    }
}

/// Returns the addresses of a name, following its CNAMEs.
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

fn musl(four: Answer, six: Answer) -> (LookupResult, Next) {
    let mut replies: Vec<Reply> = Vec::new();
    for answer in [four, six] {
        match answer {
            Answer::Unknown(unknown) => return (LookupResult::Unknown(unknown), Next::Stop),
            Answer::Silence => return (LookupResult::Fails(None), Next::Stop),
            Answer::Reply(reply) => replies.push(reply),
        }
    }
    let code = |wanted: Rcode| replies.iter().any(|reply| reply.rcode == wanted);
    if code(Rcode::ServFail) {
        return (LookupResult::Fails(Some(Rcode::ServFail)), Next::Stop);
    }
    if code(Rcode::NxDomain) {
        return (LookupResult::NoName, Next::Search);
    }
    if let Some(reply) = replies.iter().find(|reply| reply.rcode != Rcode::NoError) {
        return (LookupResult::Fails(Some(reply.rcode)), Next::Stop);
    }
    let records = replies.iter().rev().flat_map(|reply| &reply.records);
    let ips = records.filter_map(|record| match record.data {
        Data::Address(ip) => Some(ip),
        _ => None,
    });
    (LookupResult::Addresses(ips.collect()), Next::Stop)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Resolves a name in a pod of namespace shop, with a server that answers by the first label.
    /// The queries and results of glibc 2.36 were observed with a real glibc.
    fn resolution(library: Library, host: &str) -> (LookupResult, Vec<String>) {
        let conf = ResolvConf {
            servers: Vec::new(),
            of_node: false,
            search: vec!["s1.d".into(), "s2.d".into()],
            ndots: 5,
        };
        let mut asked = Vec::new();
        let resolution = resolve(library, &conf, host, &mut |question| {
            let four = question.kind == RecordType::A;
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
            let records = |records: Vec<Record>| {
                if four { Reply::records(records) } else { Reply::code(Rcode::NoError) }
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
        (resolution, asked)
    }

    #[test]
    fn glibc_asks_as_it_was_seen_to() {
        let ip = || LookupResult::Addresses(vec!["1.1.1.1".parse().unwrap()]);
        let nothing = || LookupResult::Addresses(Vec::new());
        let all =
            |name: &str| vec![format!("{name}.s1.d."), format!("{name}.s2.d."), format!("{name}.")];
        let some = |name: &str| vec![format!("{name}.s1.d."), format!("{name}.")];
        let single = |name: &str| vec![format!("{name}.s1.d.")];
        let glibc = |host| resolution(Library::Glibc, host);
        assert_eq!(glibc("match.x"), (ip(), single("match.x")));
        assert_eq!(glibc("other.x"), (nothing(), single("other.x")));
        assert_eq!(glibc("cname.x"), (ip(), single("cname.x")));
        assert_eq!(glibc("broken.x"), (nothing(), single("broken.x")));
        assert_eq!(glibc("half.x"), (ip(), single("half.x")));
        assert_eq!(glibc("nodata.x"), (LookupResult::NoName, all("nodata.x")));
        assert_eq!(glibc("late.x"), (ip(), all("late.x")));
        assert_eq!(glibc("refusedlate.x"), (ip(), some("refusedlate.x")));
        assert_eq!(
            glibc("servfail.x"),
            (LookupResult::Fails(Some(Rcode::ServFail)), all("servfail.x"))
        );
        assert_eq!(
            glibc("refused.x"),
            (LookupResult::Fails(Some(Rcode::Refused)), some("refused.x"))
        );
        assert_eq!(glibc("match."), (ip(), vec!["match.".to_owned()]));
        let dots = "nx.a.b.c.d.e.f";
        let first = vec![format!("{dots}."), format!("{dots}.s1.d."), format!("{dots}.s2.d.")];
        assert_eq!(glibc(dots), (LookupResult::NoName, first));
    }

    #[test]
    fn musl_stops_where_glibc_goes_on() {
        let musl = |host| resolution(Library::Musl, host);
        assert_eq!(musl("nodata.x").1, ["nodata.x.s1.d."]);
        assert_eq!(musl("late.x").0, LookupResult::Fails(Some(Rcode::ServFail)));
        assert_eq!(musl("nx.a.b.c.d.e.f").1, ["nx.a.b.c.d.e.f."]);
        // musl ignores the owner names of records, and a single REFUSED of two is enough.
        assert!(musl("other.x").0.is_address());
        assert_eq!(musl("half.x").0, LookupResult::NoName);
    }

    #[test]
    fn images_tell_their_library() {
        for (image, expected) in [
            ("alpine", true),
            ("docker.io/library/alpine:3.20", true),
            ("registry.example:5000/base/alpine@sha256:00", true),
            ("nginx:1.27-alpine", true),
            ("python:3.12-alpine3.20", true),
            ("busybox:1.36-musl", true),
            ("curlimages/curl:8.9.1", true),
            ("alpine/k8s:1.30.0", true),
            ("nginx:1.27", false),
            ("busybox", false),
            ("registry.example:5000/alpineweb", false),
        ] {
            assert_eq!(is_musl(image), expected, "{image}");
        }
        let of = |images: &[&'static str]| musl_image(images.iter().copied());
        assert_eq!(of(&["alpine", "nginx:alpine"]), Some("alpine"));
        assert_eq!(of(&["alpine", "nginx"]), None);
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn a_pod_asks_where_its_policy_says() {
        let cluster: Vec<IpAddr> = vec!["172.16.0.10".parse().unwrap()];
        let mut spec = PodSpec::default();
        let of = |spec: &PodSpec, searches: &[Text]| {
            ResolvConf::of_pod(spec, "shop", "cluster.local", &cluster, searches)
        };
        let conf = |spec: &PodSpec| of(spec, &[]);
        let behind = of(&spec, &["corp.example.".into()]).search;
        assert_eq!((behind.len(), behind[3].as_str()), (4, "corp.example"));
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
