//! Determines which differences are certain: kube-proxy's settings and version may be assumed.

use uturn_model::{Family, ProxySettings, Version};

use super::PRESENT;
use super::compare::{Compared, compare};
use crate::nodes::blocks::{Change, Role};
use crate::nodes::difference::{Answer, Question};
use crate::nodes::judge::{SHOWN, shown};
use crate::nodes::{Subject, nftables};

/// The minor versions whose rules `uturn_kubeproxy` writes.
const MINORS: std::ops::RangeInclusive<u16> = 22..=36;

/// Returns the version with the fewest differences: the stated one, unless another has none.
pub(super) fn best_version(
    subject: &Subject<'_>,
    settings: &ProxySettings,
    families: &[Family],
    stated: Compared,
) -> (Version, Compared) {
    let version = settings.version.value;
    let mut settings = settings.clone();
    for minor in MINORS.rev() {
        settings.version.value = Version::new(1, minor, 0);
        if let Ok(compared) = compare(subject, &settings, families)
            && compared.changes.is_empty()
        {
            return (settings.version.value, compared);
        }
    }
    (version, stated)
}

/// Returns what makes differences uncertain. `None` if nothing does.
pub(super) fn unknown_version(proxy: &ProxySettings, version: Version) -> Option<String> {
    if proxy.version.is_supposed() {
        return Some(format!("kube-proxy's version is {}", proxy.version.basis));
    }
    let is_known = version.major == 1 && MINORS.contains(&version.minor);
    if !is_known {
        return Some(format!("the rules of kube-proxy {version} are not known"));
    }
    None
}

/// Separates differences that are certain from those that follow from assumed settings.
pub(super) fn without_doubtful(
    subject: &Subject<'_>,
    mut compared: Compared,
) -> (Compared, Vec<(Family, Change)>) {
    let cluster = subject.cluster;
    let is_guessed = cluster.proxy.detector.is_supposed();
    let (mut sure, mut doubts) = (Vec::new(), Vec::new());
    for (family, change) in std::mem::take(&mut compared.changes) {
        let is_of_range = change.block == nftables::RANGE_CHECK
            && cluster.network.service_cidrs.is_supposed()
            && !change.is_gone;
        if is_of_range {
            doubts.push((family, change));
            continue;
        }
        if !is_guessed || change.is_gone {
            sure.push((family, change));
            continue;
        }
        let (mut certain, mut doubtful) = (change.clone(), change);
        for lines in [&mut certain.missing, &mut certain.extra] {
            lines.retain(|line| line.role != Role::Other);
        }
        for lines in [&mut doubtful.missing, &mut doubtful.extra] {
            lines.retain(|line| line.role == Role::Other);
        }
        certain.reordered = None;
        for (change, place) in [(certain, &mut sure), (doubtful, &mut doubts)] {
            if !change.missing.is_empty() || !change.extra.is_empty() || change.reordered.is_some()
            {
                place.push((family, change));
            }
        }
    }
    compared.changes = sure;
    (compared, doubts)
}

/// Returns an unknown answer that lists uncertain differences.
pub(super) fn doubtful(changes: &[(Family, Change)], why: &str) -> Question {
    let mut lines = vec![why.to_owned()];
    lines.extend(changes.iter().take(SHOWN).map(|(_, change)| {
        let [missing, extra] =
            [&change.missing, &change.extra].map(|lines| lines.iter().collect::<Vec<_>>());
        shown(&change.block, &missing, &extra)
    }));
    Question { what: PRESENT.to_owned(), answer: Answer::Unknown(lines) }
}
