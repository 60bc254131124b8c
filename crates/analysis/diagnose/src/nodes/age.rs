//! Compares the age of the objects with that of a capture.

use super::Subject;
use super::difference::{Answer, Question};

/// The maximum time in minutes between reading the objects and the capture. Objects may have
/// changed if it was longer.
const MAX_MINUTES: i64 = 5;

/// Makes differences unknown if the objects were read long before or after the capture: changes in
/// between are not faults. `questions` are those whose answers depend on objects that come and go.
pub(super) fn soften(subject: &Subject<'_>, questions: &mut [Question]) {
    let Some(why) = apart(subject) else { return };
    for question in questions {
        if let Answer::Differs(differences) = &mut question.answer {
            let mut lines = vec![why.clone()];
            lines.extend(differences.drain(..).map(|difference| difference.what));
            question.answer = Answer::Unknown(lines);
        }
    }
}

fn apart(subject: &Subject<'_>) -> Option<String> {
    let read = subject.cluster.read_at.as_ref()?;
    let before = subject.manifest.as_ref()?.before(&read.begun, &read.ended)?;
    let minutes = before.as_mins();
    let which = if minutes > 0 { "before" } else { "after" };
    (minutes.abs() >= MAX_MINUTES).then(|| {
        format!(
            "the capture was taken {} minutes {which} the objects were read, and a change in \
             between is not a fault",
            minutes.abs()
        )
    })
}
