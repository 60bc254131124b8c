//! The content of a picture: routes that end alike are one sequence of events.

use uturn_model::route::{Direction, Hop, Leg};
use uturn_model::{Outcome, Place, Route, Share, Step, StepKind, Text, Verdict};

use super::retries;
use crate::words;

/// Routes that end alike, represented by the likeliest.
pub(super) struct Sequence<'a> {
    /// The share, the outcome and its time.
    pub(super) heading: String,
    /// The severity of the outcome.
    pub(super) rating: Rating,
    /// The mechanisms.
    pub(super) because: String,
    /// The number of routes that it represents, if more than one.
    pub(super) merged: Option<String>,
    /// The steps that resolve names.
    pub(super) names: Vec<&'a Step>,
    /// The places in the order of the route.
    pub(super) places: Vec<&'a Place>,
    /// The events.
    pub(super) events: Vec<Event<'a>>,
    /// The outcome, for the last note.
    pub(super) end: Outcome,
}

/// The severity of an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rating {
    /// It fails.
    Bad,
    /// It takes long, or cannot be judged.
    Slow,
    /// Nothing is wrong.
    Fine,
}

impl Rating {
    fn of(outcome: Outcome) -> Self {
        match outcome {
            _ if outcome.is_fine() => Self::Fine,
            Outcome::Answered { .. } | Outcome::Unknown => Self::Slow,
            _ => Self::Bad,
        }
    }
}

/// An event that is drawn; places by their index.
pub(super) enum Event<'a> {
    /// A packet goes from place to place.
    Packet {
        from: usize,
        to: usize,
        direction: Direction,
        leg: Option<Leg>,
        /// Whether the packet makes a U-turn.
        is_turned: bool,
    },
    /// A note at a place.
    Note { at: usize, note: Note<'a> },
}

/// A note on the events at a place.
pub(super) struct Note<'a> {
    pub(super) style: NoteStyle,
    /// The first line.
    pub(super) head: String,
    /// The changes.
    pub(super) lines: Vec<String>,
    /// The step that decided it.
    pub(super) by: Option<&'a Step>,
}

/// The style of a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoteStyle {
    Plain,
    Change,
    Slow,
    Bad,
    Fine,
}

/// Returns the sequences of all verdicts, the worst first.
pub(super) fn sequences(verdicts: &[Verdict]) -> Vec<Sequence<'_>> {
    let mut groups: Vec<(&[Text], &Route, f64, usize)> = Vec::new();
    for verdict in verdicts {
        let total: f64 = verdict.routes.iter().map(|route| route.share.get()).sum();
        for route in &verdict.routes {
            let same = groups.iter_mut().find(|(conditions, known, ..)| {
                *conditions == verdict.conditions.as_slice()
                    && known.outcome == route.outcome
                    && known.mechanisms == route.mechanisms
            });
            match same {
                Some((_, known, share, count)) => {
                    if route.share.is_more_than(known.share) {
                        *known = route;
                    }
                    *share += route.share.get() / total;
                    *count += 1;
                }
                None => groups.push((&verdict.conditions, route, route.share.get() / total, 1)),
            }
        }
    }
    groups.sort_by_key(|(_, route, ..)| Rating::of(route.outcome));
    groups
        .into_iter()
        .map(|(conditions, route, share, count)| {
            let because: Vec<&str> =
                route.mechanisms.iter().map(|mechanism| mechanism.as_str()).collect();
            let condition = match conditions {
                [] => String::new(),
                some => format!(" · if {}", some.join(" and ")),
            };
            let (names, places, events) = events(route);
            Sequence {
                heading: format!(
                    "{} {}{condition}",
                    words::share(Share::new(share)),
                    route.outcome
                ),
                rating: Rating::of(route.outcome),
                because: because.join(", "),
                merged: (count > 1)
                    .then(|| format!("the likeliest of {count} ways that end alike")),
                names,
                places,
                events,
                end: route.outcome,
            }
        })
        .collect()
}

/// The steps that resolve names, the places and the events.
type Events<'a> = (Vec<&'a Step>, Vec<&'a Place>, Vec<Event<'a>>);

fn events(route: &Route) -> Events<'_> {
    let mut names = Vec::new();
    let mut places: Vec<&Place> = Vec::new();
    let mut events = Vec::new();
    let mut last: Option<usize> = None;
    let mut last_direction = Direction::Out;
    let mut leg = None;
    let (mut is_lost, mut is_turned) = (false, false);
    // If only names are resolved, the name server is a place.
    let is_names = route.hops.iter().all(|hop| hop.place == Place::Dns);
    let repeated = retries::repeated(&route.hops);
    for (number, hop) in route.hops.iter().enumerate() {
        if repeated.values().any(|(run, _)| run.contains(&number)) {
            continue;
        }
        if hop.place == Place::Dns && !is_names {
            names.extend(&hop.steps);
            continue;
        }
        let at = places.iter().position(|place| **place == hop.place).unwrap_or_else(|| {
            places.push(&hop.place);
            places.len() - 1
        });
        if let Some(from) = last.filter(|from| *from != at && !is_lost) {
            // A target's answer goes back, even if another target is tried next.
            let direction = last_direction.max(hop.direction);
            events.push(Event::Packet { from, to: at, direction, leg, is_turned });
        }
        if let Some((_, count)) = repeated.get(&number) {
            let head = format!("the same with {count} more targets, one after the other");
            let note = Note { style: NoteStyle::Slow, head, lines: Vec::new(), by: None };
            events.push(Event::Note { at, note });
        }
        events.extend(notes(hop).into_iter().map(|note| Event::Note { at, note }));
        let kinds = || hop.steps.iter().map(|step| step.kind);
        let ends = [StepKind::Drop, StepKind::Reject];
        is_lost = kinds().next_back().is_some_and(|kind| ends.contains(&kind));
        // A refusal is a packet that goes back.
        is_lost &= kinds().next_back() != Some(StepKind::Reject);
        is_turned = kinds().any(|kind| kind == StepKind::Turn);
        // A refusal lacks the addresses of the refused packet.
        leg = match kinds().next_back() {
            Some(StepKind::Reject) => None,
            _ => hop.steps.iter().rev().find_map(|step| step.after).or(leg),
        };
        (last, last_direction) = (Some(at), hop.direction);
    }
    merge_plain_notes(&mut events);
    let places = in_columns(&places, &mut events);
    (names, places, events)
}

/// Drops the notes that the client calls and that it has its answer, which the arrows show, and
/// joins plain notes at one place: that a server listens and that it answers.
fn merge_plain_notes(events: &mut Vec<Event<'_>>) {
    let is_bare = |event: Option<&Event<'_>>| matches!(event, Some(Event::Note { note, .. }) if note.style == NoteStyle::Plain && note.by.is_none());
    if is_bare(events.last()) {
        events.pop();
    }
    if is_bare(events.first()) {
        events.remove(0);
    }
    events.dedup_by(|later, sooner| match (sooner, later) {
        (Event::Note { at, note }, Event::Note { at: there, note: more })
            if at == there
                && [&note, &more].iter().all(|note| {
                    note.style == NoteStyle::Plain && note.by.is_none() && note.lines.is_empty()
                }) =>
        {
            note.head = format!("{}, {}", note.head, more.head);
            true
        }
        _ => false,
    });
}

/// Arranges the places in columns: the client first, called pods last.
fn in_columns<'a>(places: &[&'a Place], events: &mut [Event<'a>]) -> Vec<&'a Place> {
    let mut order: Vec<usize> = (0..places.len()).collect();
    order.sort_by_key(|at| *at > 0 && matches!(places[*at], Place::Pod(_)));
    let now = |at: usize| order.iter().position(|place| *place == at).unwrap_or(at);
    for event in events {
        match event {
            Event::Packet { from, to, .. } => (*from, *to) = (now(*from), now(*to)),
            Event::Note { at, .. } => *at = now(*at),
        }
    }
    order.iter().map(|at| places[*at]).collect()
}

/// Returns the notes of a hop.
fn notes(hop: &Hop) -> Vec<Note<'_>> {
    let at_node = matches!(hop.place, Place::Node(_));
    let mut notes: Vec<Note<'_>> = Vec::new();
    let mut undone: Option<(Leg, Leg)> = None;
    for step in &hop.steps {
        if step.kind == StepKind::Untranslate {
            // Both addresses are translated back: one note for the two.
            let (Some(before), Some(after)) = (step.before, step.after) else { continue };
            let from = undone.map_or(before, |(first, _)| first);
            if undone.is_some() {
                notes.pop();
            }
            undone = Some((from, after));
            notes.push(Note {
                style: NoteStyle::Plain,
                head: "translated back".to_owned(),
                lines: changes(from, after),
                by: None,
            });
            continue;
        }
        let note = match step.kind {
            StepKind::Translate => {
                let lines = match (step.before, step.after) {
                    (Some(before), Some(after)) => changes(before, after),
                    _ => Vec::new(),
                };
                Note {
                    style: NoteStyle::Change,
                    head: "translated".to_owned(),
                    lines,
                    by: Some(step),
                }
            }
            StepKind::Balance if !at_node => plain(step, NoteStyle::Plain, true),
            StepKind::Timeout => plain(step, NoteStyle::Slow, true),
            StepKind::Turn => {
                let mut note = plain(step, NoteStyle::Bad, true);
                note.head = format!("↩ {}", note.head);
                note
            }
            StepKind::Drop | StepKind::Reject => {
                let mut note = plain(step, NoteStyle::Bad, true);
                note.head = format!("✕ {}", note.head);
                note
            }
            StepKind::Unknown => plain(step, NoteStyle::Slow, true),
            StepKind::Resolve => plain(step, NoteStyle::Plain, true),
            StepKind::Answer => plain(step, NoteStyle::Plain, false),
            StepKind::Send | StepKind::Deliver => plain(step, NoteStyle::Plain, false),
            StepKind::Route | StepKind::Filter | StepKind::Mark | StepKind::Balance => continue,
            StepKind::Untranslate => continue,
        };
        undone = None;
        notes.push(note);
    }
    notes
}

fn plain(step: &Step, style: NoteStyle, with_rule: bool) -> Note<'_> {
    let by = with_rule.then_some(step);
    Note { style, head: step.why.to_string(), lines: Vec::new(), by }
}

fn changes(before: Leg, after: Leg) -> Vec<String> {
    let mut lines = Vec::new();
    for (word, old, new) in [("to", before.dst, after.dst), ("from", before.src, after.src)] {
        if old != new {
            lines.push(format!("{word} {old}"));
            lines.push(format!("{:>1$} {new}", "⇒", word.len()));
        }
    }
    lines
}

impl Sequence<'_> {
    /// Describes the events in a sentence.
    pub(super) fn in_words(&self) -> String {
        let mut parts: Vec<String> = self.names.iter().map(|step| step.why.to_string()).collect();
        for event in &self.events {
            match event {
                Event::Packet { to, is_turned, .. } => {
                    let verb = if *is_turned { "turns to" } else { "to" };
                    parts.push(format!("{verb} {}", self.places[*to]));
                }
                Event::Note { at, note } if note.style != NoteStyle::Plain => {
                    parts.push(format!("at {}: {}", self.places[*at], note.head));
                    parts.extend(note.lines.iter().map(|line| line.trim().to_owned()));
                }
                Event::Note { .. } => {}
            }
        }
        parts.join(", ")
    }
}
