//! Describes the changes of a text as a unified diff.

use std::fmt::Write as _;

use uturn_snapshot::manifests::Excerpt;

/// The number of unchanged lines that are shown around a change.
pub(super) const AROUND: usize = 3;

/// Returns a unified diff; empty if nothing changed. A text that did not exist before is a new
/// file.
pub fn unified(name: &str, before: Option<&str>, after: &str) -> String {
    let mut hunks = String::new();
    add_hunks(&mut hunks, (0, 0), before, after);
    with_names(name, before.is_none(), &hunks)
}

/// Returns the unified diff of a text of which only the changed parts are given.
pub(super) fn of_excerpt(excerpt: &Excerpt) -> String {
    let mut hunks = String::new();
    let (mut is_new, mut more, mut fewer) = (false, 0, 0);
    for part in &excerpt.parts {
        is_new |= part.before.is_none();
        let above = (part.lines_before, part.lines_before + more - fewer);
        add_hunks(&mut hunks, above, part.before.as_deref(), &part.after);
        more += part.after.lines().count();
        fewer += part.before.as_deref().unwrap_or_default().lines().count();
    }
    with_names(&excerpt.name, is_new, &hunks)
}

fn with_names(name: &str, is_new: bool, hunks: &str) -> String {
    match (hunks, is_new) {
        ("", _) => String::new(),
        (_, false) => format!("--- {name}\n+++ {name}\n{hunks}"),
        (_, true) => format!("--- /dev/null\n+++ {name}\n{hunks}"),
    }
}

/// Adds the changes of a part of a text, above which there are these numbers of lines before and
/// after the change.
fn add_hunks(text: &mut String, above: (usize, usize), before: Option<&str>, after: &str) {
    let old: Vec<&str> = before.unwrap_or_default().lines().collect();
    let new: Vec<&str> = after.lines().collect();
    let steps = steps(&old, &new);
    let changed = |at: usize| !matches!(steps[at], Step::Same(..));
    let near = |at: usize| {
        let (from, to) = (at.saturating_sub(AROUND), (at + AROUND + 1).min(steps.len()));
        (from..to).any(changed)
    };
    let mut at = 0;
    while at < steps.len() {
        if !near(at) {
            at += 1;
            continue;
        }
        let end = (at..steps.len()).find(|next| !near(*next)).unwrap_or(steps.len());
        hunk(text, above, &steps[at..end], (&old, &new));
        at = end;
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Same(usize, usize),
    Gone(usize, usize),
    New(usize, usize),
}

fn hunk(text: &mut String, above: (usize, usize), steps: &[Step], (old, new): (&[&str], &[&str])) {
    let (from, to) = match steps.first() {
        Some(Step::Same(a, b) | Step::Gone(a, b) | Step::New(a, b)) => (above.0 + a, above.1 + b),
        None => return,
    };
    let olds = steps.iter().filter(|step| !matches!(step, Step::New(..))).count();
    let news = steps.iter().filter(|step| !matches!(step, Step::Gone(..))).count();
    let place = |first: usize, many: usize| match many {
        0 => format!("{first},0"),
        1 => format!("{}", first + 1),
        _ => format!("{},{many}", first + 1),
    };
    let _ = writeln!(text, "@@ -{} +{} @@", place(from, olds), place(to, news));
    for step in steps {
        let _ = match step {
            Step::Same(a, _) => writeln!(text, " {}", old[*a]),
            Step::Gone(a, _) => writeln!(text, "-{}", old[*a]),
            Step::New(_, b) => writeln!(text, "+{}", new[*b]),
        };
    }
}

/// Returns the shortest edit from one text to the other. The common beginning and end are left out
/// first, so the search is fast if little changed, however long the texts are.
fn steps(old: &[&str], new: &[&str]) -> Vec<Step> {
    let first = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (rest, rest_new) = (&old[first..], &new[first..]);
    let last = rest.iter().rev().zip(rest_new.iter().rev()).take_while(|(a, b)| a == b).count();
    let (n, m) = (rest.len() - last, rest_new.len() - last);
    let mut steps: Vec<Step> = (0..first).map(|at| Step::Same(at, at)).collect();
    steps.extend(middle(&rest[..n], &rest_new[..m]).into_iter().map(|step| match step {
        Step::Same(a, b) => Step::Same(first + a, first + b),
        Step::Gone(a, b) => Step::Gone(first + a, first + b),
        Step::New(a, b) => Step::New(first + a, first + b),
    }));
    steps.extend((0..last).map(|at| Step::Same(first + n + at, first + m + at)));
    steps
}

/// The furthest line of the old text on each diagonal with a number of changes (Myers).
struct Reach {
    ends: Vec<usize>,
}

impl Reach {
    /// Returns whether the furthest path onto this diagonal adds a new line.
    fn is_new(&self, at: usize, depth: usize, most: usize) -> bool {
        at == most - depth || at != most + depth && self.ends[at - 1] < self.ends[at + 1]
    }
}

fn middle(old: &[&str], new: &[&str]) -> Vec<Step> {
    let (n, m) = (old.len(), new.len());
    // The entry of diagonal d = x - y is at `most + d`.
    let most = n + m + 1;
    let mut reach = Reach { ends: vec![0; 2 * most + 1] };
    let mut trail: Vec<Vec<usize>> = Vec::new();
    let mut depth = 0;
    'search: loop {
        trail.push(reach.ends.clone());
        for at in (0..=depth).map(|step| most - depth + 2 * step) {
            let mut x = match (depth, reach.is_new(at, depth, most)) {
                (0, _) => 0,
                (_, true) => reach.ends[at + 1],
                (_, false) => reach.ends[at - 1] + 1,
            };
            // Positions beyond the texts are skipped.
            let Some(mut y) = (x + most).checked_sub(at) else { continue };
            while x < n && y < m && old[x] == new[y] {
                (x, y) = (x + 1, y + 1);
            }
            reach.ends[at] = x;
            if x >= n && y >= m {
                break 'search;
            }
        }
        depth += 1;
    }
    let (mut x, mut y) = (n, m);
    let mut steps = Vec::new();
    for depth in (1..=depth).rev() {
        let before = Reach { ends: trail.swap_remove(depth) };
        let at = most + x - y;
        let is_new = before.is_new(at, depth, most);
        let from = if is_new { before.ends[at + 1] } else { before.ends[at - 1] };
        let from_y = from + most - if is_new { at + 1 } else { at - 1 };
        let (to, to_y) = if is_new { (from, from_y + 1) } else { (from + 1, from_y) };
        while x > to && y > to_y {
            (x, y) = (x - 1, y - 1);
            steps.push(Step::Same(x, y));
        }
        (x, y) = (from, from_y);
        steps.push(if is_new { Step::New(x, y) } else { Step::Gone(x, y) });
    }
    while x > 0 && y > 0 {
        (x, y) = (x - 1, y - 1);
        steps.push(Step::Same(x, y));
    }
    steps.reverse();
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_what_changed_and_a_little_around() {
        let before = "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\n";
        let after = "a\nb\nc\nd\nE\ne2\nf\ng\nh\ni\nj\n";
        assert_eq!(
            unified("x", Some(before), after),
            "--- x\n+++ x\n@@ -2,10 +2,10 @@\n b\n c\n d\n-e\n+E\n+e2\n f\n g\n h\n i\n j\n-k\n"
        );
        assert_eq!(unified("x", Some("a\n"), "a\n"), "");
        assert_eq!(unified("x", None, "a\nb\n"), "--- /dev/null\n+++ x\n@@ -0,0 +1,2 @@\n+a\n+b\n");
    }

    #[test]
    fn a_diff_applied_gives_the_new_text() {
        let mut seed = 7u64;
        let mut dice = |limit: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % limit
        };
        for _ in 0..500 {
            let old: Vec<String> = (0..dice(12)).map(|_| dice(3).to_string()).collect();
            let new: Vec<String> = (0..dice(12)).map(|_| dice(3).to_string()).collect();
            let (old, new): (Vec<&str>, Vec<&str>) = (
                old.iter().map(String::as_str).collect(),
                new.iter().map(String::as_str).collect(),
            );
            let steps = steps(&old, &new);
            let kept = |step: &Step| match step {
                Step::Same(_, b) | Step::New(_, b) => Some(new[*b]),
                Step::Gone(..) => None,
            };
            let had = |step: &Step| match step {
                Step::Same(a, _) | Step::Gone(a, _) => Some(old[*a]),
                Step::New(..) => None,
            };
            assert_eq!(steps.iter().filter_map(kept).collect::<Vec<_>>(), new);
            assert_eq!(steps.iter().filter_map(had).collect::<Vec<_>>(), old);
            for step in &steps {
                if let Step::Same(a, b) = step {
                    assert_eq!(old[*a], new[*b]);
                }
            }
        }
    }
}
