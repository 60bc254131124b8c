//! Completion of names: clients, targets, objects, codes.

mod source;
mod values;

pub(crate) use uturn_cli::completion::proxy_mode;

pub(crate) use self::values::{
    checked, client, code, context, namespace, node, preset, subject, target, topic,
};
