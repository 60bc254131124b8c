//! The actions on load balancers, listeners and rules, driven as clients drive them: by signed
//! requests.

mod codes;
mod harness;
mod listeners;
mod load_balancers;
mod nothing_changes;
mod rules;
mod tasks;
