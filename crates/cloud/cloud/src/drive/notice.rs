//! Notices for the operator of the cloud while machines are driven.

use std::fmt;

use crate::plane::LeftOut;

/// An event that the operator of the cloud should know of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A load balancer or listener is not served, or not as it was asked for.
    LeftOut(LeftOut),
    /// A machine refused a load balancer.
    Refused {
        /// The machine's address.
        machine: String,
        /// The id of the load balancer.
        load_balancer: String,
        /// The machine's answer.
        message: String,
    },
    /// A machine cannot be driven; it is tried again.
    Unreachable {
        /// The machine's address.
        machine: String,
        /// The reason.
        why: String,
    },
    /// A machine serves what it has to, for the first time or again.
    Back {
        /// The machine's address.
        machine: String,
    },
    /// The ends of tasks could not be stored; this is tried again.
    NotStored(String),
}

impl fmt::Display for Notice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LeftOut(LeftOut { load_balancer, listener: Some(listener), reason }) => {
                write!(formatter, "{load_balancer} {listener}: {reason}")
            }
            Self::LeftOut(LeftOut { load_balancer, listener: None, reason }) => {
                write!(formatter, "{load_balancer}: {reason}")
            }
            Self::Refused { machine, load_balancer, message } => {
                write!(formatter, "{machine} refuses {load_balancer}: {message}")
            }
            Self::Unreachable { machine, why } => {
                write!(formatter, "{machine} is not driven: {why}")
            }
            Self::Back { machine } => write!(formatter, "{machine} is driven"),
            Self::NotStored(why) => write!(formatter, "finished tasks could not be stored: {why}"),
        }
    }
}
