//! `/metrics`: the counters, in the text format of Prometheus.
//!
//! The format is written here rather than by a library: the counters are laid out by worker in any
//! case (`crate::metrics`), and the rest is a page of code.

mod family;
mod text;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, UNIX_EPOCH};

use family::Family;
use text::Text;

use super::Known;
use super::overview::{Overview, ShownListener, ShownTarget};
use crate::metrics::{
    AnsweredBy, CLASSES, Cut, OWN_STATUSES, PROBE_RESULTS, Refusal, Sum, TargetMetrics,
};
use crate::state::Target;

pub(super) use text::CONTENT_TYPE;

/// A listener that this process serves, and its counts.
struct Counted<'a> {
    labels: [(&'static str, &'a str); 2],
    is_accepting: bool,
    sum: Sum,
}

/// A target and its labels.
struct Labelled<'a> {
    labels: [(&'static str, &'a str); 4],
    target: &'a ShownTarget,
}

/// Returns the page.
pub(super) fn page(known: &Known) -> String {
    let overview = known.overview.load();
    let names: Vec<[String; 2]> =
        overview.listeners.iter().map(|listener| names(listener)).collect();
    let mut text = Text::default();
    process(&mut text, known);
    listeners(&mut text, &counted(&overview, &names));
    targets(&mut text, &labelled(&overview, &names));
    text.into_string()
}

/// Returns the values of a listener's labels.
fn names(listener: &ShownListener) -> [String; 2] {
    [listener.address.to_string(), listener.protocol.to_string()]
}

fn counted<'a>(overview: &'a Overview, names: &'a [[String; 2]]) -> Vec<Counted<'a>> {
    let served = overview.listeners.iter().zip(names);
    let served = served.filter_map(|(listener, [address, protocol])| {
        let sum = listener.slot.as_ref()?.metrics.sum();
        let labels = [("listener", &**address), ("protocol", &**protocol)];
        Some(Counted { labels, is_accepting: listener.is_accepting(), sum })
    });
    served.collect()
}

fn labelled<'a>(overview: &'a Overview, names: &'a [[String; 2]]) -> Vec<Labelled<'a>> {
    let all = overview.listeners.iter().zip(names).flat_map(|(listener, [address, protocol])| {
        listener.targets.iter().map(move |target| {
            let labels = [
                ("listener", &**address),
                ("protocol", &**protocol),
                ("rule", &*target.rule),
                ("target", &*target.name),
            ];
            Labelled { labels, target }
        })
    });
    all.collect()
}

fn process(text: &mut Text, known: &Known) {
    let process = &known.process;
    let mut single = |family: &Family, labels: &[(&str, &str)], value: u64| {
        text.family(family);
        text.sample(family.name, labels, value);
    };
    let started = known.started.duration_since(UNIX_EPOCH).unwrap_or_default();
    single(&family::BUILD, &[("version", env!("CARGO_PKG_VERSION"))], 1);
    single(&family::STARTED, &[], started.as_secs());
    single(&family::DRAINING, &[], process.is_draining.load(Ordering::Relaxed).into());
    let has_failed = process.has_failed_reload.load(Ordering::Relaxed);
    single(&family::RELOAD_OK, &[], (!has_failed).into());
    single(&family::LOG_LINES, &[], process.access_log.written());
    single(&family::LOG_DROPPED, &[], process.access_log.dropped());
    text.family(&family::RELOADS);
    for (result, count) in ["ok", "failed"].into_iter().zip(&process.reloads) {
        text.sample(family::RELOADS.name, &[("result", result)], count.load(Ordering::Relaxed));
    }
    text.family(&family::LOCAL_ERRORS);
    for (operation, cause, count) in process.local_errors.counts() {
        let labels = [("operation", operation.label()), ("cause", cause.label())];
        text.sample(family::LOCAL_ERRORS.name, &labels, count);
    }
    text.family(&family::CONFIG);
    if let Some(served) = known.served.load().as_ref() {
        text.sample(family::CONFIG.name, &[("version", &*served.version.to_string())], 1);
    }
    text.family(&family::CONFIG_TIME);
    if let Some(served) = known.served.load().as_ref() {
        let since = served.since.duration_since(UNIX_EPOCH).unwrap_or_default();
        text.sample(family::CONFIG_TIME.name, &[], since.as_secs());
    }
}

fn listeners(text: &mut Text, all: &[Counted<'_>]) {
    let mut each = |family: &Family, value: fn(&Counted<'_>) -> u64| {
        text.family(family);
        for listener in all {
            text.sample(family.name, &listener.labels, value(listener));
        }
    };
    each(&family::ACCEPTING, |listener| listener.is_accepting.into());
    each(&family::ACCEPTED, |listener| listener.sum.accepted);
    // The accepted connections may be read before connections that have ended since.
    each(&family::OPEN, |listener| listener.sum.accepted.saturating_sub(listener.sum.closed));
    each(&family::FAILED, |listener| listener.sum.failed);
    each(&family::RECEIVED, |listener| listener.sum.received);
    each(&family::SENT, |listener| listener.sum.sent);

    text.family(&family::REFUSED);
    for Counted { labels: [listener, protocol], sum, .. } in all {
        for (refusal, count) in Refusal::ALL.into_iter().zip(sum.refused) {
            let labels = [*listener, *protocol, ("reason", refusal.label())];
            text.sample(family::REFUSED.name, &labels, count);
        }
    }
    text.family(&family::REQUESTS);
    for Counted { labels: [listener, protocol], sum, .. } in all {
        for (by, counts) in AnsweredBy::ALL.into_iter().zip(sum.requests) {
            for (class, count) in CLASSES.into_iter().zip(counts) {
                let by = ("answered_by", by.label());
                let labels = [*listener, *protocol, ("status", class), by];
                text.sample(family::REQUESTS.name, &labels, count);
            }
        }
    }
    text.family(&family::OWN_ANSWERS);
    for Counted { labels: [listener, protocol], sum, .. } in all {
        let statuses = OWN_STATUSES.iter().map(u16::to_string).chain(["other".into()]);
        for (status, count) in statuses.zip(sum.own) {
            let labels = [*listener, *protocol, ("status", &*status)];
            text.sample(family::OWN_ANSWERS.name, &labels, count);
        }
    }
    text.family(&family::CUT);
    for Counted { labels: [listener, protocol], sum, .. } in all {
        for (by, count) in Cut::ALL.into_iter().zip(sum.cut) {
            let labels = [*listener, *protocol, ("by", by.label())];
            text.sample(family::CUT.name, &labels, count);
        }
    }
    text.family(&family::FIRST_BYTE);
    for listener in all {
        text.histogram(family::FIRST_BYTE.name, &listener.labels, &listener.sum.first_byte);
    }
    text.family(&family::TOTAL);
    for listener in all {
        text.histogram(family::TOTAL.name, &listener.labels, &listener.sum.total);
    }
}

fn targets(text: &mut Text, all: &[Labelled<'_>]) {
    let now = Instant::now();
    let mut each = |family: &Family, value: &dyn Fn(&ShownTarget) -> Option<u64>| {
        text.family(family);
        for Labelled { labels, target } in all {
            if let Some(value) = value(target) {
                text.sample(family.name, labels, value);
            }
        }
    };
    each(&family::WEIGHT, &|target| Some(target.weight.into()));
    each(&family::HEALTHY, &|target| Some(target.is_alive().into()));
    let state = |target: &ShownTarget, value: fn(&Target, Instant) -> u64| {
        target.state.as_ref().map(|state| value(state, now))
    };
    each(&family::RESTING, &|target| {
        state(target, |target, now| target.rest_ends(now).is_some().into())
    });
    each(&family::TARGET_OPEN, &|target| state(target, |target, _| target.open()));
    let count = |target: &ShownTarget, count: fn(&TargetMetrics) -> &AtomicU64| {
        target.state.as_ref().map(|state| count(&state.metrics).load(Ordering::Relaxed))
    };
    each(&family::PICKS, &|target| count(target, |metrics| &metrics.picks));
    each(&family::RETRIES, &|target| count(target, |metrics| &metrics.retries));
    each(&family::FAILURES, &|target| count(target, |metrics| &metrics.failures));
    each(&family::RESTS, &|target| count(target, |metrics| &metrics.rests));

    text.family(&family::CONNECT_FAILURES);
    for Labelled { labels: [listener, protocol, rule, name], target } in all {
        let Some(state) = &target.state else { continue };
        let TargetMetrics { timeouts, refusals, .. } = &state.metrics;
        for (reason, count) in [("timeout", timeouts), ("refused", refusals)] {
            let labels = [*listener, *protocol, *rule, *name, ("reason", reason)];
            text.sample(family::CONNECT_FAILURES.name, &labels, count.load(Ordering::Relaxed));
        }
    }
    text.family(&family::PROBES);
    for Labelled { labels: [listener, protocol, rule, name], target } in all {
        for ((_, result), count) in PROBE_RESULTS.into_iter().zip(target.probes.counts()) {
            let labels = [*listener, *protocol, *rule, *name, ("result", result)];
            text.sample(family::PROBES.name, &labels, count);
        }
    }
}
