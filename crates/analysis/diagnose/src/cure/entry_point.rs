//! Cures of Ingresses that a controller serves at some of its ports only: the port that clients call
//! among those for which an Ingress asks.

use uturn_document::edit::{Change, Tree};
use uturn_model::{Ingress, Mechanism};

use super::{Case, Proposal, controller, way};

/// The annotation that names the ports of Traefik at which an Ingress is served.
const ENTRY_POINTS: &str = "traefik.ingress.kubernetes.io/router.entrypoints";

/// The annotation with which Traefik serves an Ingress by TLS.
const TLS: &str = "traefik.ingress.kubernetes.io/router.tls";

pub(super) fn propose(case: &Case<'_>) -> Vec<Proposal> {
    if !case.has(Mechanism::NoRuleForPath) {
        return Vec::new();
    }
    let (Some(controller), Some(host)) = (controller::behind(case), case.aim.host.as_deref())
    else {
        return Vec::new();
    };
    let Some(listener) = controller::called_listener(case, controller) else { return Vec::new() };
    let Some(entry) = &listener.entry_point else { return Vec::new() };
    let is_for = |ingress: &&Ingress| {
        let mut hosts = ingress.rules.iter().map(|rule| rule.host.as_deref());
        ingress.controller.as_ref() == Some(&controller.workload)
            && ingress.route.is_none()
            && hosts.any(|own| own.is_some_and(|own| own.eq_ignore_ascii_case(host)))
    };
    let ingresses = case.cluster().ingresses.values().filter(is_for);
    // A scan asks by https, too, what nobody may want to have there.
    let is_asked = case.is_tls() && case.found.is_none();
    ingresses
        .flat_map(|ingress| of_ingress(ingress, &entry.name, case.is_tls(), is_asked))
        .collect()
}

fn of_ingress(ingress: &Ingress, entry: &str, is_tls: bool, is_asked: bool) -> Vec<Proposal> {
    let (object, short) = (ingress.object(), ingress.object().short());
    let mut annotations = ingress.annotations.iter();
    let stated = annotations.find(|(key, _)| key.eq_ignore_ascii_case(ENTRY_POINTS));
    let mut all = Vec::new();
    if let Some((key, value)) = stated {
        let path = way!["metadata", "annotations", key];
        if !value.split(',').any(|own| own.trim() == entry) {
            let title = format!("{key}: {value},{entry} for {short}, instead of {value} only");
            let value = Change::Set(Tree::text(format!("{value},{entry}")));
            all.push(
                Proposal::new("entry-points", 10, title)
                    .edit(object.clone(), path.clone(), value)
                    .trial(),
            );
        }
        let title = format!("no {key} for {short}, which keeps it to {value}");
        all.push(
            Proposal::new("entry-points", 12, title)
                .edit(object.clone(), path, Change::Remove)
                .costs("it is served at every entry point that is a default one")
                .trial(),
        );
    }
    let names = |value: &&str| value.split(',').any(|own| own.trim() == entry);
    let is_named = stated.map(|(_, value)| value).filter(names).is_some();
    if is_tls && (is_asked || is_named) && !ingress.annotations.is(TLS, "true") {
        let title = format!("{TLS}: \"true\" for {short}");
        let path = way!["metadata", "annotations", TLS];
        all.push(
            Proposal::new("entry-tls", 14, title)
                .edit(object, path, Change::Set(Tree::text("true")))
                .costs("clients see Traefik's own certificate, unless one is given for the host")
                .costs("it is no longer served without TLS")
                .trial(),
        );
    }
    all
}
