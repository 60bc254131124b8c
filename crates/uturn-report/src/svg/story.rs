//! What a picture tells: ways that end alike put together, and each as events in order.

use uturn_model::route::{Hop, Leg, Way};
use uturn_model::{Outcome, Place, Route, Step, StepKind, Text, Verdict};

use super::tries;
use crate::words;

/// Ways that end alike, shown by the likeliest.
pub(super) struct Tale<'a> {
    /// Its share, how it ends, and when.
    pub(super) heading: String,
    /// How bad it is.
    pub(super) mood: Mood,
    /// Why, in the words of mechanisms.
    pub(super) because: String,
    /// How many ways it stands for, where more than one.
    pub(super) folded: Option<String>,
    /// Names that became addresses.
    pub(super) names: Vec<&'a Step>,
    /// The places in the order of the way.
    pub(super) places: Vec<&'a Place>,
    /// What happens.
    pub(super) events: Vec<Event<'a>>,
    /// How it ends, for the sign at the end.
    pub(super) end: Outcome,
}

/// How bad something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mood {
    /// It fails.
    Bad,
    /// It takes long, or cannot be judged.
    Slow,
    /// Nothing is wrong.
    Fine,
}

impl Mood {
    fn of(outcome: Outcome) -> Self {
        match outcome {
            _ if outcome.is_fine() => Self::Fine,
            Outcome::Answered { .. } | Outcome::Unknown => Self::Slow,
            _ => Self::Bad,
        }
    }
}

/// One thing that is drawn; places by their number.
pub(super) enum Event<'a> {
    /// A packet goes from place to place.
    Go {
        from: usize,
        to: usize,
        way: Way,
        leg: Option<Leg>,
        /// It should not go here: it turned.
        turned: bool,
    },
    /// Something happens at a place.
    Note { at: usize, note: Note<'a> },
}

/// What happens at a place.
pub(super) struct Note<'a> {
    pub(super) kind: NoteKind,
    /// What it says first.
    pub(super) head: String,
    /// What changed.
    pub(super) lines: Vec<String>,
    /// What it rests on.
    pub(super) by: Option<&'a Step>,
}

/// How a note looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoteKind {
    Plain,
    Change,
    Slow,
    Bad,
    Fine,
}

/// All that there is to tell, the worst first.
pub(super) fn tales(verdicts: &[Verdict]) -> Vec<Tale<'_>> {
    let mut groups: Vec<(&[Text], &Route, f64, usize)> = Vec::new();
    for verdict in verdicts {
        let total: f64 = verdict.routes.iter().map(|route| route.share.get()).sum();
        for route in &verdict.routes {
            let alike = groups.iter_mut().find(|(conditions, known, ..)| {
                *conditions == verdict.conditions.as_slice()
                    && known.outcome == route.outcome
                    && known.mechanisms == route.mechanisms
            });
            match alike {
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
    groups.sort_by_key(|(_, route, ..)| Mood::of(route.outcome));
    groups
        .into_iter()
        .map(|(conditions, route, share, count)| {
            let because: Vec<&str> = route.mechanisms.iter().map(|one| one.as_str()).collect();
            let condition = match conditions {
                [] => String::new(),
                some => format!(" · if {}", some.join(" and ")),
            };
            let (names, places, events) = told(route);
            Tale {
                heading: format!(
                    "{} {}{condition}",
                    words::share(uturn_model::Share::new(share)),
                    route.outcome
                ),
                mood: Mood::of(route.outcome),
                because: because.join(", "),
                folded: (count > 1)
                    .then(|| format!("the likeliest of {count} ways that end alike")),
                names,
                places,
                events,
                end: route.outcome,
            }
        })
        .collect()
}

type Told<'a> = (Vec<&'a Step>, Vec<&'a Place>, Vec<Event<'a>>);

fn told(route: &Route) -> Told<'_> {
    let mut names = Vec::new();
    let mut places: Vec<&Place> = Vec::new();
    let mut events = Vec::new();
    let mut last: Option<usize> = None;
    let mut last_way = Way::Out;
    let mut leg = None;
    let (mut lost, mut turned) = (false, false);
    // Where nothing but names is asked for, the name server is the place.
    let is_names = route.hops.iter().all(|hop| hop.place == Place::Dns);
    let folded = tries::folded(&route.hops);
    for (number, hop) in route.hops.iter().enumerate() {
        if folded.values().any(|(run, _)| run.contains(&number)) {
            continue;
        }
        if hop.place == Place::Dns && !is_names {
            names.extend(&hop.steps);
            continue;
        }
        let at = places.iter().position(|one| **one == hop.place).unwrap_or_else(|| {
            places.push(&hop.place);
            places.len() - 1
        });
        if let Some(from) = last.filter(|from| *from != at && !lost) {
            // What a target answered goes back, also where another is tried then.
            let way = last_way.max(hop.way);
            events.push(Event::Go { from, to: at, way, leg, turned });
        }
        if let Some((_, count)) = folded.get(&number) {
            let head = format!("the same with {count} more targets, one after the other");
            let note = Note { kind: NoteKind::Slow, head, lines: Vec::new(), by: None };
            events.push(Event::Note { at, note });
        }
        events.extend(notes(hop).into_iter().map(|note| Event::Note { at, note }));
        let kinds = || hop.steps.iter().map(|step| step.kind);
        let ends = [StepKind::Drop, StepKind::Reject];
        lost = kinds().next_back().is_some_and(|kind| ends.contains(&kind));
        // A refusal is a packet of its own, and goes back.
        lost &= kinds().next_back() != Some(StepKind::Reject);
        turned = kinds().any(|kind| kind == StepKind::Turn);
        // Nor has it the addresses of the packet that was refused.
        leg = match kinds().next_back() {
            Some(StepKind::Reject) => None,
            _ => hop.steps.iter().rev().find_map(|step| step.after).or(leg),
        };
        (last, last_way) = (Some(at), hop.way);
    }
    tidy(&mut events);
    let places = in_a_row(&places, &mut events);
    (names, places, events)
}

/// That the client calls and gets its answer is seen without a note; that somebody listens
/// and answers is one.
fn tidy(events: &mut Vec<Event<'_>>) {
    let is_bare = |event: Option<&Event<'_>>| matches!(event, Some(Event::Note { note, .. }) if note.kind == NoteKind::Plain && note.by.is_none());
    if is_bare(events.last()) {
        events.pop();
    }
    if is_bare(events.first()) {
        events.remove(0);
    }
    events.dedup_by(|later, sooner| match (sooner, later) {
        (Event::Note { at, note }, Event::Note { at: there, note: more })
            if at == there
                && [&note, &more].iter().all(|one| {
                    one.kind == NoteKind::Plain && one.by.is_none() && one.lines.is_empty()
                }) =>
        {
            note.head = format!("{}, {}", note.head, more.head);
            true
        }
        _ => false,
    });
}

/// The client first, and the pods that are called last.
fn in_a_row<'a>(places: &[&'a Place], events: &mut [Event<'a>]) -> Vec<&'a Place> {
    let mut order: Vec<usize> = (0..places.len()).collect();
    order.sort_by_key(|at| *at > 0 && matches!(places[*at], Place::Pod(_)));
    let now = |at: usize| order.iter().position(|one| *one == at).unwrap_or(at);
    for event in events {
        match event {
            Event::Go { from, to, .. } => (*from, *to) = (now(*from), now(*to)),
            Event::Note { at, .. } => *at = now(*at),
        }
    }
    order.iter().map(|at| places[*at]).collect()
}

/// What is worth a note at a stay.
fn notes(hop: &Hop) -> Vec<Note<'_>> {
    let at_node = matches!(hop.place, Place::Node(_));
    let mut notes: Vec<Note<'_>> = Vec::new();
    let mut undone: Option<(Leg, Leg)> = None;
    for step in &hop.steps {
        if step.kind == StepKind::Untranslate {
            // Both sides of a connection are put back together: one note.
            let (Some(before), Some(after)) = (step.before, step.after) else { continue };
            let from = undone.map_or(before, |(first, _)| first);
            if undone.is_some() {
                notes.pop();
            }
            undone = Some((from, after));
            notes.push(Note {
                kind: NoteKind::Plain,
                head: "translated back".to_owned(),
                lines: changes(from, after),
                by: None,
            });
            continue;
        }
        // What lies between two halves of one undoing is passed on, and no note.
        let note = match step.kind {
            StepKind::Translate => {
                let lines = match (step.before, step.after) {
                    (Some(before), Some(after)) => changes(before, after),
                    _ => Vec::new(),
                };
                Note {
                    kind: NoteKind::Change,
                    head: "translated".to_owned(),
                    lines,
                    by: Some(step),
                }
            }
            StepKind::Balance if !at_node => plain(step, NoteKind::Plain, true),
            StepKind::Timeout => plain(step, NoteKind::Slow, true),
            StepKind::Turn => {
                let mut note = plain(step, NoteKind::Bad, true);
                note.head = format!("↩ {}", note.head);
                note
            }
            StepKind::Drop | StepKind::Reject => {
                let mut note = plain(step, NoteKind::Bad, true);
                note.head = format!("✕ {}", note.head);
                note
            }
            StepKind::Unknown => plain(step, NoteKind::Slow, true),
            StepKind::Resolve => plain(step, NoteKind::Plain, true),
            StepKind::Answer => plain(step, NoteKind::Plain, false),
            StepKind::Send | StepKind::Deliver => plain(step, NoteKind::Plain, false),
            StepKind::Route | StepKind::Filter | StepKind::Mark | StepKind::Balance => continue,
            StepKind::Untranslate => continue,
        };
        undone = None;
        notes.push(note);
    }
    notes
}

fn plain(step: &Step, kind: NoteKind, with_rule: bool) -> Note<'_> {
    let by = with_rule.then_some(step);
    Note { kind, head: step.why.to_string(), lines: Vec::new(), by }
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

impl Tale<'_> {
    /// The events as a sentence.
    pub(super) fn in_words(&self) -> String {
        let mut parts: Vec<String> = self.names.iter().map(|step| step.why.to_string()).collect();
        for event in &self.events {
            match event {
                Event::Go { to, turned, .. } => {
                    let verb = if *turned { "turns to" } else { "to" };
                    parts.push(format!("{verb} {}", self.places[*to]));
                }
                Event::Note { at, note } if note.kind != NoteKind::Plain => {
                    parts.push(format!("at {}: {}", self.places[*at], note.head));
                    parts.extend(note.lines.iter().map(|line| line.trim().to_owned()));
                }
                Event::Note { .. } => {}
            }
        }
        parts.join(", ")
    }
}
