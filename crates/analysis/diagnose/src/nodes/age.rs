//! Whether objects and a capture are of the same time.

use super::Subject;
use super::difference::{Answer, Question};

/// Objects that were read so long before or after a capture may be others by then.
const MAX_MINUTES: i64 = 5;

/// Takes differences for unknown if the objects were read long before the capture, or long after it:
/// what changed between is no fault. `questions` are those whose answers follow from objects that
/// come and go.
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
            "the capture was taken {} minutes {which} the objects were read, and what changed \
             between is no fault",
            minutes.abs()
        )
    })
}
