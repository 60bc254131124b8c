//! Compares the captured rules, sets and virtual servers with what kube-proxy would program.

mod certainty;
mod compare;

use uturn_model::{CaptureFile, Cluster, Evidence, Family, ProxyMode, ProxySettings, Version};

use self::certainty::{best_version, doubtful, unknown_version, without_doubtful};
use self::compare::{Compared, compare};
use super::difference::{Answer, Difference, Question};
use super::judge::{Claims, judge};
use super::leftovers::Traces;
use super::{Subject, age, iptables, ipvs};
use crate::Code;

const PRESENT: &str = "kube-proxy's rules are those of the cluster's objects";
const ENDPOINTS: &str = "they lead to the cluster's endpoints";
const CURRENT: &str = "none of them is of a Service that is gone";
const BOUND: &str = "kube-ipvs0 has the addresses of Services";
const SWITCHED: &str = "sysctls are as kube-proxy sets them";

pub(super) fn questions(subject: &Subject<'_>) -> Vec<Question> {
    let all = |why: &str| -> Vec<Question> {
        [PRESENT, ENDPOINTS, CURRENT].map(|what| Question::unknown(what, why)).into()
    };
    let proxy = &subject.cluster.proxy;
    let mut families = families(subject);
    if proxy.replaced_by().is_some() {
        return Vec::new();
    }
    if families.is_empty() {
        return all("the capture has no rules");
    }
    if subject.is_restless() {
        return all("the rules kept changing during the capture");
    }
    if subject.node.supposed {
        return all("no Node object is given");
    }
    if let Some(why) = partial(subject.cluster) {
        return all(&why);
    }
    let traces = Traces::of(subject);
    let Some(mode) = traces.compared(subject) else {
        return if traces.modes.is_empty() {
            match unread(subject) {
                Some(why) => all(&why),
                None => vec![none_at_all(subject)],
            }
        } else {
            all("they are of another mode than the one that is configured")
        };
    };
    if mode != ProxyMode::Nftables {
        families.retain(|family| subject.capture.files.contains_key(&tables_of(*family)));
    }
    if families.is_empty() {
        return all(&format!("the capture has no {}", CaptureFile::Iptables.file_name()));
    }
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

/// Returns the answers of a comparison, as far as kube-proxy's settings are known.
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
    // kube-proxy may have another version than the objects state, for example during an upgrade.
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

/// Returns why the objects do not show what kube-proxy sees. `None` if they do.
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

/// Returns why existing rules may not have been read: `nft` shows the rules of iptables too.
fn unread(subject: &Subject<'_>) -> Option<String> {
    let file = CaptureFile::Iptables;
    let captured = subject.capture.files.get(&file);
    let is_empty = captured.is_none_or(|captured| captured.text.trim().is_empty());
    let tables = subject.state.nft.tables.iter();
    let mut chains = tables.flat_map(|table| &table.chains);
    let mut are_there = || chains.any(|chain| iptables::is_of_kube_proxy(&chain.name));
    match captured {
        None => Some(format!("the capture has no {}", file.file_name())),
        Some(_) if is_empty && are_there() => {
            Some(format!("{} is empty, and nft shows rules of iptables", file.file_name()))
        }
        Some(_) => None,
    }
}

/// Returns the answer if there are no rules of kube-proxy at all.
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

/// Returns the families whose rules were captured and are expected.
fn families(subject: &Subject<'_>) -> Vec<Family> {
    // If IPv6 is not used, there may be no ip6tables.
    let is_served = |family: &Family| subject.serves(*family);
    let captured = |family: &Family| subject.capture.has_rules(*family);
    Family::BOTH.into_iter().filter(is_served).filter(captured).collect()
}

/// Returns the file with the rules of iptables.
fn tables_of(family: Family) -> CaptureFile {
    match family {
        Family::V4 => CaptureFile::Iptables,
        Family::V6 => CaptureFile::Ip6tables,
    }
}

fn lacks_for_ipvs(subject: &Subject<'_>) -> Option<&'static str> {
    let needed =
        [CaptureFile::Iptables, CaptureFile::Ipset, CaptureFile::Ipvs, CaptureFile::Addresses];
    let lacks = needed.into_iter().find(|file| !subject.capture.files.contains_key(file));
    // kube-proxy serves NodePorts at each of these addresses.
    let has_own = ipvs::own_addresses(&subject.state.interfaces).next().is_some();
    let own = (!has_own).then_some("addresses but those of kube-ipvs0");
    lacks.map(CaptureFile::file_name).or(own)
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

/// Compares the sysctls that kube-proxy sets. Forwarding is a separate question.
fn sysctls(subject: &Subject<'_>, compared: &Compared) -> Question {
    const FORWARDING: &str = "net.ipv4.ip_forward";
    let mut differences = Vec::new();
    let mut known = Vec::new();
    // kube-proxy sets this sysctl on some kernels only.
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
    if known.is_empty() && !compared.sysctls.is_empty() {
        Question::unknown(SWITCHED, "the capture has none of them")
    } else {
        Question::of(SWITCHED, known.join(", "), differences)
    }
}
