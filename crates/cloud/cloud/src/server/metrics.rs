//! The status of the data planes in the format of Prometheus.

use std::fmt::Write as _;

use crate::drive::{DriveStatus, MachineStatus};

/// Returns the metrics of a cloud.
pub(super) fn text(status: &DriveStatus) -> String {
    let mut text = String::new();
    let planes = |value: fn(&MachineStatus) -> usize| {
        let planes = status.data_planes.iter();
        planes.map(move |plane| (format!("{{data_plane=\"{}\"}}", plane.address), value(plane)))
    };
    family(
        &mut text,
        ("data_plane_reached", "gauge", "1 if the data plane answered the latest request."),
        planes(|plane| plane.is_reached.into()),
    );
    family(
        &mut text,
        ("refused_load_balancers", "gauge", "Load balancers that the data plane refused."),
        planes(|plane| plane.refused.len()),
    );
    let unserved = status.unserved.iter();
    family(
        &mut text,
        ("unserved", "gauge", "Load balancers and listeners that are not served."),
        unserved.map(|(why, count)| (format!("{{reason=\"{}\"}}", why.name()), *count)),
    );
    let failed = usize::try_from(status.failed_tasks).unwrap_or(usize::MAX);
    family(
        &mut text,
        (
            "failed_tasks_total",
            "counter",
            "Tasks that failed because the data planes do not serve what they asked for.",
        ),
        [(String::new(), failed)].into_iter(),
    );
    text
}

fn family(
    text: &mut String,
    (name, kind, help): (&str, &str, &str),
    samples: impl Iterator<Item = (String, usize)>,
) {
    let _ = write!(text, "# HELP uturn_cloud_{name} {help}\n# TYPE uturn_cloud_{name} {kind}\n");
    for (labels, value) in samples {
        let _ = writeln!(text, "uturn_cloud_{name}{labels} {value}");
    }
}
