//! Cures of names that lead elsewhere than to the object with this name: a search domain has every
//! name, and is asked before the name as it is written.

use uturn_document::edit::{Change, Tree};
use uturn_model::ObjectKind;
use uturn_model::shell::Advice;

use super::called_name::{calling, calling_pod, renamed};
use super::template::Template;
use super::{Case, Proposal, way};

pub(super) fn propose(case: &Case<'_>) -> Vec<Proposal> {
    let Some(flow) = case.walked() else { return Vec::new() };
    let Some(host) = flow.to.host() else { return Vec::new() };
    let Ok(Some(misled)) = case.engine.misled(flow) else { return Vec::new() };
    // What a rule of the Corefile makes of the name, it makes of it with a dot too.
    if misled.below.is_none() {
        return Vec::new();
    }
    let dns = &case.cluster().dns;
    let name = misled.object.namespaced_name();
    let name = name.filter(|_| misled.object.kind == ObjectKind::Service);
    let own = name.map(|name| dns.name_of(&name));
    let written = host.trim_end_matches('.');
    let full = own.filter(|own| own.starts_with(written)).unwrap_or_else(|| written.to_owned());
    let full = format!("{full}.");
    let mut all = Vec::new();
    if let Some(pod) = calling_pod(case)
        && let Some(made) = renamed(case, pod, host, &full)
    {
        all.push(calling(made.costs(OF_DOT), flow, full.clone()));
    }
    all.extend(ndots(case));
    let made = Proposal::new("full-name", 14, format!("call {full}, with the dot at its end"))
        .types(Advice::sentence(&format!("in the caller's configuration: {host} becomes {full}")))
        .costs("only this caller changes; each other one has to change too")
        .costs(OF_DOT)
        .trial();
    all.push(calling(made, flow, full));
    all
}

/// What a name with a dot at its end costs.
const OF_DOT: &str = "some servers and certificates do not know a host with a dot at its end";

/// Proposes that names with a dot are asked as they are written first.
fn ndots(case: &Case<'_>) -> Option<Proposal> {
    let template = Template::of_client(case)?;
    let written = case.manifests.object(&template.object)?;
    let options = template.spec(&written)?.items_below(&["dnsConfig", "options"]);
    let is_it = |option: &Tree| option.get("name").and_then(Tree::as_str) == Some("ndots");
    let option = || Tree::map([("name", Tree::text("ndots")), ("value", Tree::text("1"))]);
    let list = way!["spec", "dnsConfig", "options"];
    let (path, change) = match options.iter().position(is_it) {
        Some(at) => {
            let path = way!["spec", "dnsConfig", "options", at, "value"];
            (path, Change::Set(Tree::text("1")))
        }
        None if options.is_empty() => (list, Change::Set(Tree::List(vec![option()]))),
        None => (list, Change::Append(option())),
    };
    let title = format!("dnsConfig with ndots: 1 for {}", template.object);
    let made = Proposal::new("ndots", 12, title)
        .costs(template.cost())
        .costs("other workloads keep the search domain first: each needs the same")
        .trial();
    template.edit(case, made, &path, &change)
}
