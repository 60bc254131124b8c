//! Cures in CoreDNS's configuration, for names that do not resolve: a zone, a plugin or an option
//! that is missing.

mod lines;

use uturn_document::edit::{At, Change};
use uturn_model::dns::COREFILE_FOLDER;
use uturn_model::{Mechanism, NamespacedName, ObjectKind, ObjectRef};

use super::name::{corefile_object, takes_effect};
use super::{Case, Proposal, way};
use lines::{Directive, ServerBlock};

/// The maximum number of edits that are tried.
const MAX: usize = 12;

pub(super) fn propose(case: &Case<'_>) -> Vec<Proposal> {
    if !case.has(Mechanism::NameUnresolved) || case.walked().is_none() {
        return Vec::new();
    }
    let Some(host) = case.aim.host.as_deref() else { return Vec::new() };
    let mut all = Vec::new();
    for file in files(case) {
        for block in lines::blocks(&file.text) {
            all.extend(domain(case, &file, &block, host));
            for directive in &block.directives {
                all.extend(fallthrough(&file, directive));
                all.extend(answer(&file, directive));
            }
            all.extend(without_kubernetes(case, &file, &block));
        }
    }
    all.truncate(MAX);
    all.into_iter().map(|made| takes_effect(case, made).trial()).collect()
}

/// A file of CoreDNS's configuration in its ConfigMap.
struct File {
    object: ObjectRef,
    key: String,
    text: String,
}

impl File {
    fn edit(&self, made: Proposal, change: Change) -> Proposal {
        made.edit(self.object.clone(), self.place(), change)
    }

    fn place(&self) -> Vec<At> {
        way!["data", &*self.key]
    }

    /// Returns the place of a line as it is printed.
    fn line(&self, at: usize) -> String {
        format!("line {} of {} in {}", at + 1, self.key, self.object)
    }
}

/// Returns the files with server blocks: the Corefile and those beside it.
fn files(case: &Case<'_>) -> Vec<File> {
    let dns = &case.cluster().dns;
    let Some(corefile) = &dns.corefile else { return Vec::new() };
    let object = corefile_object(dns);
    let main = File {
        object: object.clone(),
        key: dns.config_key().to_owned(),
        text: corefile.text.to_string(),
    };
    let custom = NamespacedName::new(dns.config_map().namespace.as_str(), "coredns-custom").ok();
    let beside = corefile.beside.iter().filter_map(|file| {
        let path = file.path.strip_prefix(COREFILE_FOLDER)?.strip_prefix('/')?;
        let (object, key) = match path.strip_prefix("custom/") {
            Some(key) => (ObjectRef::namespaced(ObjectKind::ConfigMap, custom.as_ref()?), key),
            None => (object.clone(), path),
        };
        Some(File { object, key: key.to_owned(), text: file.text.to_string() })
    });
    [main].into_iter().chain(beside).filter(|file| case.manifests.has(&file.object)).collect()
}

/// Proposes to serve the domain of the called name, if the name is that of a Service otherwise.
fn domain(case: &Case<'_>, file: &File, block: &ServerBlock, host: &str) -> Option<Proposal> {
    let (service, domain) = host.trim_end_matches('.').split_once(".svc.")?;
    let own = case.cluster().dns.domain();
    let mut labels = service.rsplit('.');
    let (namespace, name) = (labels.next()?, labels.next()?);
    let known = NamespacedName::new(namespace, name).ok()?;
    // A name below the cluster's own domain is meant for CoreDNS, whatever it names.
    if domain != own && !case.cluster().services.contains_key(&known) {
        return None;
    }
    let kubernetes = block.directives.iter().find(|own| own.name() == "kubernetes")?;
    let zones = kubernetes.arguments();
    if zones.iter().any(|zone| zone.trim_end_matches('.') == domain) {
        return None;
    }
    // The first zone is the cluster's own.
    let first = zones.first().filter(|zone| !zone.ends_with(".arpa"));
    let new = match first {
        Some(first) => kubernetes.text.replacen(first.as_str(), &format!("{first} {domain}"), 1),
        None => kubernetes.text.replacen("kubernetes", &format!("kubernetes {domain}"), 1),
    };
    let made = Proposal::new("dns-domain", 20, format!("let CoreDNS serve {domain}"));
    Some(file.edit(made, Change::Replace(kubernetes.line, new)))
}

/// Proposes that a plugin leaves names that it does not know to the plugins behind it.
fn fallthrough(file: &File, directive: &Directive) -> Option<Proposal> {
    let name = directive.name();
    if !matches!(name, "hosts" | "template") || directive.has("fallthrough") {
        return None;
    }
    let change = match directive.close {
        Some(close) => Change::Line(close, format!("{}fallthrough", directive.inside())),
        None => {
            let (text, indent) = (directive.text.trim_end(), directive.indent());
            let inside = directive.inside();
            Change::Replace(directive.line, format!("{text} {{\n{inside}fallthrough\n{indent}}}"))
        }
    };
    let title = format!("fallthrough for {name}, {}", file.line(directive.line));
    let made = Proposal::new("dns-fallthrough", 18, title)
        .costs(format!("names that {name} does not know are asked of the plugins behind it"));
    Some(file.edit(made, change))
}

/// Proposes that answers have the name that was asked, after a rewrite of the question.
fn answer(file: &File, directive: &Directive) -> Option<Proposal> {
    let (_, change) = with_answer(directive)?;
    let title = format!("answer auto for the rewrite, {}", file.line(directive.line));
    let made = Proposal::new("dns-answer", 18, title).costs(ANSWERED);
    Some(file.edit(made, change))
}

const ANSWERED: &str =
    "answers have the name that was asked: clients that drop records of others take them";

/// Returns the change with which a rewrite of names changes answers back, and its line. Returns
/// `None` for a directive that needs none.
fn with_answer(directive: &Directive) -> Option<(usize, Change)> {
    let words = directive.all_words();
    let mut rest = words.iter().skip(1).map(String::as_str).peekable();
    rest.next_if(|word| matches!(*word, "stop" | "continue"));
    let is_name = rest.next() == Some("name");
    let is_part =
        rest.next().is_some_and(|how| matches!(how, "regex" | "prefix" | "suffix" | "substring"));
    let is_told = words.iter().any(|word| word == "answer");
    if directive.name() != "rewrite" || !is_name || !is_part || is_told {
        return None;
    }
    Some(match directive.close {
        Some(close) => (close, Change::Line(close, format!("{}answer auto", directive.inside()))),
        None => {
            let new = format!("{} answer auto", directive.text.trim_end());
            (directive.line, Change::Replace(directive.line, new))
        }
    })
}

/// Proposes that a server block without the plugin `kubernetes` knows the cluster's names: by the
/// plugin, or by the cluster's own DNS.
fn without_kubernetes(case: &Case<'_>, file: &File, block: &ServerBlock) -> Vec<Proposal> {
    if block.directives.iter().any(|own| own.name() == "kubernetes") || block.is_snippet() {
        return Vec::new();
    }
    let forward = block.directives.iter().find(|own| matches!(own.name(), "forward" | "proxy"));
    let indent = forward.or(block.directives.last()).map_or("    ".to_owned(), Directive::indent);
    let zones = block.zones();
    let at = forward.map_or(block.close, |own| own.line);
    let line = format!("{indent}kubernetes {}", case.cluster().dns.domain());
    let title = format!("the plugin kubernetes in the block {zones} of {}", file.key);
    let made = Proposal::new("dns-kubernetes", 19, title)
        .costs(format!("names of the cluster's domain that are asked in {zones} are answered"));
    let mut all = with_answers(file, block, &made, (at, Change::Line(at, line)));
    let dns = &case.cluster().dns;
    let service = dns.service.as_ref().and_then(|name| case.cluster().services.get(name));
    let ip = service.and_then(|service| service.cluster_ips.first());
    // The root block would ask itself.
    if let (Some(forward), Some(ip)) = (forward.filter(|_| !block.is_root()), ip)
        && let Some(to) = forward.arguments().get(1)
    {
        let title =
            format!("forward to the cluster's own DNS in the block {zones} of {}", file.key);
        let made = Proposal::new("dns-forward", 20, title)
            .costs(format!("all that is asked in {zones} is asked of {ip} again"));
        let new = forward.text.replacen(to.as_str(), &ip.to_string(), 1);
        let change = (forward.line, Change::Replace(forward.line, new));
        all.extend(with_answers(file, block, &made, change));
    }
    all
}

/// Returns a proposal with a change of a block, and one in which its rewrites change answers back
/// too.
fn with_answers(
    file: &File,
    block: &ServerBlock,
    made: &Proposal,
    change: (usize, Change),
) -> Vec<Proposal> {
    let mut changes: Vec<(usize, Change)> =
        block.directives.iter().filter_map(with_answer).collect();
    let mut all = vec![file.edit(made.clone(), change.1.clone())];
    if !changes.is_empty() {
        changes.push(change);
        // A line that is inserted moves those after it.
        changes.sort_by_key(|(line, _)| std::cmp::Reverse(*line));
        let title = format!("{}, and answer auto for its rewrites", made.title);
        let both = Proposal { title, rank: made.rank + 1, ..made.clone() }.costs(ANSWERED);
        all.push(changes.into_iter().fold(both, |made, (_, change)| file.edit(made, change)));
    }
    all
}
