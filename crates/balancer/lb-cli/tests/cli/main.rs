//! Whole commands of `uturn lb`: exit status, stdout and stderr, as a user gets them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

#[path = "../../../../uturn/tests/cli/conforms.rs"]
#[expect(dead_code, reason = "other tests use the rest")]
mod conforms;
mod lb;
mod lb_capabilities;
mod lb_certificates;
mod lb_changes;
mod lb_descriptors;
mod lb_probes;
mod lb_run;
mod site;
