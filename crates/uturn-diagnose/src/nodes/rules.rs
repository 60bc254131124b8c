//! kube-proxy's rules, sets and servers held against what it would program.

use std::collections::BTreeSet;
use std::net::IpAddr;

use thiserror::Error;
use uturn_kubeproxy::{Options, Program, UnboundVip, Unsupported};
use uturn_model::proxy::NodePortAddresses;
use uturn_model::{
    Cluster, Evidence, Family, Name, ProxyMode, ProxySettings, RulesPart, SourceName, Version,
};
use uturn_netfilter::{ParseError, ipset, iptables as tables, ipvs as servers, nft};

use super::blocks::{Blocks, Change, Role, changes};
use super::difference::{Answer, Difference, Question};
use super::judge::{Claims, SHOWN, judge, shown};
use super::leftovers::Traces;
use super::{Subject, age, iptables, ipvs, nftables, order};
use crate::Code;

const PRESENT: &str = "kube-proxy's rules are those of the cluster's objects";
const ENDPOINTS: &str = "they lead to the cluster's endpoints";
const CURRENT: &str = "none of them is of a Service that is gone";
const BOUND: &str = "kube-ipvs0 has the addresses of Services";
const SWITCHED: &str = "sysctls are as kube-proxy sets them";

/// The versions whose rules `uturn_kubeproxy` writes.
const MINORS: std::ops::RangeInclusive<u16> = 22..=36;

/// What differs in both families.
#[derive(Default)]
struct Compared {
    changes: Vec<(Family, Change)>,
    bound: Vec<Difference>,
    sysctls: BTreeSet<(String, String)>,
    lines: usize,
}

pub(super) fn questions(subject: &Subject<'_>) -> Vec<Question> {
    let all = |why: &str| -> Vec<Question> {
        [PRESENT, ENDPOINTS, CURRENT].map(|what| Question::unknown(what, why)).into()
    };
    let proxy = &subject.cluster.proxy;
    let families = families(subject);
    if proxy.replaced_by().is_some() {
        return Vec::new();
    }
    if families.is_empty() {
        return all("the capture has no rules");
    }
    if subject.is_restless() {
        return all("the rules changed all the time while they were captured");
    }
    if subject.node.supposed {
        return all("no Node object is given");
    }
    if let Some(why) = partial(subject.cluster) {
        return all(&why);
    }
    let traces = Traces::of(subject);
    let Some(mode) = traces.compared(subject) else {
        return match traces.modes.is_empty() {
            true => vec![none_at_all(subject)],
            false => all("they are of another mode than the one that is configured"),
        };
    };
    if mode == ProxyMode::Ipvs
        && let Some(lacks) = lacks_for_ipvs(subject)
    {
        return all(&format!("the capture has no {lacks}"));
    }
    let mut settings = proxy.clone();
    settings.mode.value = mode;
    let stated = match compare(subject, &settings, &families) {
        Ok(compared) => compared,
        Err(why) => return all(&why.to_string()),
    };
    let mut questions = of_compared(subject, &settings, &families, stated);
    let switched = questions.iter().position(|question| question.what == SWITCHED);
    let of_objects = switched.unwrap_or(questions.len());
    age::soften(subject, &mut questions[..of_objects]);
    questions
}

/// The answers that a comparison gives, as far as it is known how kube-proxy is set.
fn of_compared(
    subject: &Subject<'_>,
    settings: &ProxySettings,
    families: &[Family],
    stated: Compared,
) -> Vec<Question> {
    let proxy = &subject.cluster.proxy;
    let (mode, version) = (settings.mode.value, settings.version.value);
    if stated.changes.is_empty() {
        return answers(subject, &stated, (mode, version));
    }
    // kube-proxy may be of another version than the objects say, in an upgrade for example.
    let (best, compared) = best_version(subject, settings, families, stated);
    if compared.changes.is_empty() {
        let why = format!(
            "they are as kube-proxy {best} writes them, not {version} ({})",
            proxy.version.basis
        );
        let mut questions = vec![Question::unknown(PRESENT, why)];
        questions.extend(answers(subject, &compared, (mode, best)).into_iter().skip(1));
        return questions;
    }
    if let Some(why) = unknown_version(proxy, version) {
        return vec![doubtful(&compared.changes, &why)];
    }
    let (compared, doubts) = without_doubtful(subject, compared);
    let mut questions = answers(subject, &compared, (mode, best));
    let is_fine = |question: &Question| matches!(question.answer, Answer::Agrees(_));
    if !doubts.is_empty() && questions.first().is_some_and(is_fine) {
        let why = "how kube-proxy recognises pods, or the range of cluster IPs, is supposed";
        questions[0] = doubtful(&doubts, why);
    }
    questions
}

/// Why the objects do not say what kube-proxy sees.
fn partial(cluster: &Cluster) -> Option<String> {
    if !cluster.extent.services || !cluster.extent.endpoints {
        return Some(
            "the input is not known to be the whole cluster (--complete says that it is)".into(),
        );
    }
    let derived = cluster.endpoints.iter().find(|(_, all)| all.iter().any(|slice| slice.derived));
    let (service, _) = derived?;
    Some(format!("the EndpointSlices of {service} are not given"))
}

/// No rules of a kube-proxy at all.
fn none_at_all(subject: &Subject<'_>) -> Question {
    let proxy = &subject.cluster.proxy;
    let node = subject.node;
    if proxy.mode.is_supposed() && proxy.version.is_supposed() {
        return Question::unknown(
            PRESENT,
            "there are none, and no object says that kube-proxy runs",
        );
    }
    let what = format!("expected: rules of {} mode; found: none", proxy.mode.value);
    let by = Evidence::object(node.object(), node.origin.clone());
    Question::of(PRESENT, "", vec![Difference::new(Code::RulesMissing, what, by)])
}

/// The families whose rules were captured and are expected.
fn families(subject: &Subject<'_>) -> Vec<Family> {
    let is_served = |family: &Family| match family {
        Family::V4 => true,
        // Where IPv6 is not used, there may be no ip6tables.
        Family::V6 => subject.node.address(*family).is_some(),
    };
    let captured = |family: &Family| subject.capture.has_rules(*family);
    Family::BOTH.into_iter().filter(is_served).filter(captured).collect()
}

fn lacks_for_ipvs(subject: &Subject<'_>) -> Option<&'static str> {
    use uturn_model::CaptureFile;
    let needed =
        [CaptureFile::Iptables, CaptureFile::Ipset, CaptureFile::Ipvs, CaptureFile::Addresses];
    let lacks = needed.into_iter().find(|file| !subject.capture.files.contains_key(file));
    // kube-proxy serves NodePorts at each of them.
    let has_own = ipvs::own_addresses(&subject.state.interfaces).next().is_some();
    let own = (!has_own).then_some("addresses but those of kube-ipvs0");
    lacks.map(CaptureFile::file_name).or(own)
}

/// Leaves out what follows from settings that are supposed. Returns it too.
fn without_doubtful(
    subject: &Subject<'_>,
    mut compared: Compared,
) -> (Compared, Vec<(Family, Change)>) {
    let cluster = subject.cluster;
    let is_guessed = cluster.proxy.detector.is_supposed();
    let (mut sure, mut doubts) = (Vec::new(), Vec::new());
    for (family, change) in std::mem::take(&mut compared.changes) {
        let is_of_range = change.block == nftables::RANGE_CHECK
            && cluster.network.service_cidrs.is_supposed()
            && !change.is_gone;
        if is_of_range {
            doubts.push((family, change));
            continue;
        }
        if !is_guessed || change.is_gone {
            sure.push((family, change));
            continue;
        }
        let (mut certain, mut doubtful) = (change.clone(), change);
        for lines in [&mut certain.missing, &mut certain.extra] {
            lines.retain(|line| line.role != Role::Other);
        }
        for lines in [&mut doubtful.missing, &mut doubtful.extra] {
            lines.retain(|line| line.role == Role::Other);
        }
        certain.reordered = None;
        for (change, place) in [(certain, &mut sure), (doubtful, &mut doubts)] {
            if !change.missing.is_empty() || !change.extra.is_empty() || change.reordered.is_some()
            {
                place.push((family, change));
            }
        }
    }
    compared.changes = sure;
    (compared, doubts)
}

/// What keeps a difference from being certain.
fn unknown_version(proxy: &ProxySettings, version: Version) -> Option<String> {
    if proxy.version.is_supposed() {
        return Some(format!("kube-proxy's version is {}", proxy.version.basis));
    }
    let is_known = version.major == 1 && MINORS.contains(&version.minor);
    if !is_known {
        return Some(format!("the rules of kube-proxy {version} are not known"));
    }
    None
}

/// The version with the fewest differences: the stated one, unless another has none.
fn best_version(
    subject: &Subject<'_>,
    settings: &ProxySettings,
    families: &[Family],
    stated: Compared,
) -> (Version, Compared) {
    let version = settings.version.value;
    let mut settings = settings.clone();
    for minor in MINORS.rev() {
        settings.version.value = Version::new(1, minor, 0);
        if let Ok(compared) = compare(subject, &settings, families)
            && compared.changes.is_empty()
        {
            return (settings.version.value, compared);
        }
    }
    (version, stated)
}

/// Why rules cannot be compared.
#[derive(Debug, Error)]
enum Incomparable {
    /// What kube-proxy would write is not known.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    /// What it would write cannot be read, which is a fault of uturn.
    #[error("uturn cannot read what it writes for kube-proxy: {0}")]
    Unread(String),
}

impl From<Vec<ParseError>> for Incomparable {
    fn from(errors: Vec<ParseError>) -> Self {
        Self::Unread(errors.first().map(ToString::to_string).unwrap_or_default())
    }
}

/// Compares both families; of what is not documented, what fits better is taken.
fn compare(
    subject: &Subject<'_>,
    settings: &ProxySettings,
    families: &[Family],
) -> Result<Compared, Incomparable> {
    let cluster = informed(subject, settings);
    let mut best: Option<Compared> = None;
    for unbound_vip in [UnboundVip::Served, UnboundVip::Absent] {
        let mut compared = Compared::default();
        for family in families {
            let rules = match family {
                Family::V4 => &subject.state.iptables,
                Family::V6 => &subject.state.ip6tables,
            };
            let options = Options { unbound_vip, accounting: iptables::has_accounting(rules) };
            let name = &subject.node.name;
            let program =
                uturn_kubeproxy::compile_with(&cluster, name, settings, *family, options)?;
            compare_family(subject, settings.mode.value, &program, *family, &mut compared)?;
        }
        order::sort(&mut compared.changes);
        let is_better = best.as_ref().is_none_or(|best| {
            compared.changes.len() + compared.bound.len() < best.changes.len() + best.bound.len()
        });
        if is_better {
            best = Some(compared);
        }
        if settings.mode.value != ProxyMode::Ipvs {
            break;
        }
    }
    Ok(best.unwrap_or_default())
}

/// The cluster with what kube-proxy reads from its node's kernel.
fn informed(subject: &Subject<'_>, settings: &ProxySettings) -> Cluster {
    let mut cluster = subject.cluster.programmed_on(subject.node).into_owned();
    let release = subject.manifest.as_ref().and_then(|manifest| manifest.kernel.as_deref());
    let reads_addresses = settings.mode.value == ProxyMode::Ipvs
        || matches!(settings.node_port_addresses, NodePortAddresses::Ranges(_));
    if let Some(node) = cluster.nodes.get_mut(&subject.node.name) {
        if let Some(release) = release {
            node.kernel = Some(release.into());
        }
        let own: Vec<IpAddr> = ipvs::own_addresses(&subject.state.interfaces).collect();
        if reads_addresses && !own.is_empty() {
            // The order of those that the object states too is the object's.
            node.internal_ips.retain(|ip| own.contains(ip));
            let known = node.internal_ips.clone();
            node.internal_ips.extend(own.into_iter().filter(|ip| !known.contains(ip)));
        }
    }
    cluster
}

fn compare_family(
    subject: &Subject<'_>,
    mode: ProxyMode,
    program: &Program,
    family: Family,
    compared: &mut Compared,
) -> Result<(), Incomparable> {
    let state = &subject.state;
    let expected = expected(&subject.node.name, program, family)?;
    let mut found = match (mode, family) {
        (ProxyMode::Nftables, _) => {
            nftables::table(&state.nft, family).map(nftables::blocks).unwrap_or_default()
        }
        (_, Family::V4) => iptables::blocks(&state.iptables),
        (_, Family::V6) => iptables::blocks(&state.ip6tables),
    };
    if mode == ProxyMode::Ipvs {
        found.extend(ipvs::blocks(&state.sets, &state.ipvs, family));
        compared.bound.extend(bound(subject, program, family));
    }
    compared.lines += expected.values().map(|block| block.lines.len()).sum::<usize>();
    compared.changes.extend(changes(&expected, &found).into_iter().map(|change| (family, change)));
    compared
        .changes
        .extend(stale_servers(subject, &expected, &found).map(|change| (family, change)));
    compared.sysctls.extend(program.sysctls.iter().cloned());
    Ok(())
}

/// What kube-proxy would program, read by the parsers that read the capture.
fn expected(node: &Name, program: &Program, family: Family) -> Result<Blocks, Vec<ParseError>> {
    let source = |part| SourceName::Generated(node.clone(), part);
    let mut blocks =
        iptables::blocks(&tables::parse(source(RulesPart::Iptables), &program.iptables, family)?);
    let rules = nft::parse(source(RulesPart::Nftables), &program.nft)?;
    if let Some(table) = nftables::table(&rules, family) {
        blocks.extend(nftables::blocks(table));
    }
    let sets = ipset::parse(source(RulesPart::Ipset), &program.ipset)?;
    let servers = servers::parse(source(RulesPart::Ipvs), &program.ipvs)?;
    blocks.extend(ipvs::blocks(&sets, &servers, family));
    Ok(blocks)
}

/// Virtual servers that no Service has, if they are kube-proxy's: it binds their addresses.
/// Others may be another program's.
fn stale_servers<'a>(
    subject: &'a Subject<'_>,
    expected: &'a Blocks,
    found: &'a Blocks,
) -> impl Iterator<Item = Change> + 'a {
    let of_families = Family::BOTH.map(|family| ipvs::bound(&subject.state, family));
    let bound: Vec<IpAddr> = of_families.into_iter().flatten().flatten().collect();
    let beyond = found.iter().filter(|(name, _)| !expected.contains_key(*name));
    beyond.filter(|(name, _)| name.starts_with(ipvs::SERVER)).filter_map(move |(name, block)| {
        let line = block.lines.first()?;
        let Role::Dispatch(Some(address), _) = line.role else { return None };
        let extra = vec![line.clone()];
        bound.contains(&address).then(|| Change {
            block: name.clone(),
            missing: Vec::new(),
            extra,
            is_gone: false,
            reordered: None,
        })
    })
}

/// Addresses that kube-proxy would bind and that are not bound, and the other way round.
fn bound(subject: &Subject<'_>, program: &Program, family: Family) -> Vec<Difference> {
    let by = || Evidence::object(subject.node.object(), subject.node.origin.clone());
    let Some(found) = ipvs::bound(&subject.state, family) else {
        if program.bound.is_empty() {
            return Vec::new();
        }
        let what = format!("expected: {} addresses; found: no device", program.bound.len());
        return vec![Difference::new(Code::BoundAddresses, what, by())];
    };
    let missing = program.bound.iter().filter(|ip| !found.contains(ip));
    let missing = missing.map(|ip| format!("expected: {ip}; found: it is not bound"));
    // One with a virtual server is reported as a Service that is gone.
    let is_served = |ip: &IpAddr| {
        let servers = subject.state.ipvs.0.iter().filter_map(ipvs::address);
        servers.map(|(address, _)| address).any(|address| address == *ip)
    };
    let extra = found.iter().filter(|ip| !program.bound.contains(ip) && !is_served(ip));
    let extra = extra.map(|ip| format!("found: {ip}; expected: no Service has it"));
    missing.chain(extra).map(|what| Difference::new(Code::BoundAddresses, what, by())).collect()
}

/// Differences that need not be any: how kube-proxy is set is not known.
fn doubtful(changes: &[(Family, Change)], why: &str) -> Question {
    let mut lines = vec![why.to_owned()];
    lines.extend(changes.iter().take(SHOWN).map(|(_, change)| {
        let [missing, extra] =
            [&change.missing, &change.extra].map(|lines| lines.iter().collect::<Vec<_>>());
        shown(&change.block, &missing, &extra)
    }));
    Question { what: PRESENT.to_owned(), answer: Answer::Unknown(lines) }
}

fn answers(
    subject: &Subject<'_>,
    compared: &Compared,
    (mode, version): (ProxyMode, Version),
) -> Vec<Question> {
    let claims = Claims::of(subject.cluster);
    let of = |code: Code| -> Vec<Difference> {
        let judged = compared.changes.iter().flat_map(|(_, change)| judge(change, &claims));
        judged.filter(|difference| difference.code == code).collect()
    };
    let agrees = format!("{} lines compared, kube-proxy {version}", compared.lines);
    let mut questions = vec![
        Question::of(PRESENT, agrees, of(Code::RulesMissing)),
        Question::of(ENDPOINTS, "as its slices have them", of(Code::EndpointsDiffer)),
        Question::of(CURRENT, "as its Services are", of(Code::StaleService)),
    ];
    if mode == ProxyMode::Ipvs {
        questions.push(Question::of(BOUND, "as its Services are", compared.bound.clone()));
    }
    questions.push(sysctls(subject, compared));
    questions
}

/// Sysctls that kube-proxy sets and that have another value. Forwarding is a question of its own.
fn sysctls(subject: &Subject<'_>, compared: &Compared) -> Question {
    const FORWARDING: &str = "net.ipv4.ip_forward";
    let mut differences = Vec::new();
    let mut known = Vec::new();
    // kube-proxy sets this one only on some kernels.
    let is_kernel_known = subject.node.kernel.is_some()
        || subject.manifest.as_ref().is_some_and(|manifest| manifest.kernel.is_some());
    for (name, value) in compared.sysctls.iter().filter(|(name, _)| name != FORWARDING) {
        let Some(found) = subject.state.sysctls.get(name) else { continue };
        if name.ends_with("conn_reuse_mode") && !is_kernel_known {
            continue;
        }
        known.push(name.as_str());
        if found != value {
            let what = format!("{name}: expected: {value}; found: {found}");
            let by = Evidence::Sysctl { name: name.as_str().into(), value: found.into() };
            differences.push(Difference::new(Code::KernelSetting, what, by));
        }
    }
    match known.is_empty() && !compared.sysctls.is_empty() {
        true => Question::unknown(SWITCHED, "the capture has none of them"),
        false => Question::of(SWITCHED, known.join(", "), differences),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_that_cannot_be_read_are_not_taken_for_none() {
        let node = Name::new("n1").unwrap();
        let written = Program { iptables: "*nat\n-A\n".to_owned(), ..Program::default() };
        let why = expected(&node, &written, Family::V4).map(|_| ()).unwrap_err();
        let why = Incomparable::from(why).to_string();
        assert!(why.starts_with("uturn cannot read what it writes for kube-proxy: "), "{why}");
        assert!(expected(&node, &Program::default(), Family::V4).unwrap().is_empty());
    }
}
