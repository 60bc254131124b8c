//! Plans as text: a line for each call.

use std::fmt::{self, Display};

use super::call::{Binding, Call};
use super::{BalancerPlan, Plan};

/// The most parts of a call that a line names.
const SHOWN: usize = 4;

impl Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for balancer in &self.balancers {
            balancer.fmt(f)?;
        }
        for event in &self.events {
            writeln!(f, "{event}")?;
        }
        Ok(())
    }
}

impl Display for BalancerPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let owner = self.owners.first().map(ToString::to_string);
        let owner = owner.unwrap_or_else(|| "an object that is gone".to_owned());
        let id = self.id.as_deref().unwrap_or("new");
        for call in &self.calls {
            writeln!(f, "{id} ({owner}): {call}")?;
        }
        Ok(())
    }
}

impl Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let action = self.action();
        match self {
            Self::CreateBalancer(request) => {
                let name = request.load_balancer_name.as_deref().unwrap_or_default();
                write!(f, "{action} {name} {}", request.load_balancer_type)?;
                request.subnet_id.as_ref().map_or(Ok(()), |subnet| write!(f, " {subnet}"))
            }
            Self::DeleteBalancer => f.write_str(action),
            Self::ModifyBalancer(settings) => {
                let passes = settings.passes_to_target.unwrap_or_default();
                write!(f, "{action} LoadBalancerPassToTarget {passes}")
            }
            Self::SetSecurityGroups(groups) => write!(f, "{action} {}", shown(groups)),
            Self::CreateSnatAddresses(addresses) => {
                let subnets: Vec<&str> =
                    addresses.iter().map(|address| address.subnet.as_str()).collect();
                write!(f, "{action} {}", shown(&subnets))
            }
            Self::CreateListener { key, protocol, .. } => {
                write!(f, "{action} {} {protocol}", key.port)
            }
            Self::ModifyListener { id, key, turns_sni_on, certificate, .. } => {
                write!(f, "{action} {key} {id}")?;
                if *turns_sni_on {
                    f.write_str(" SNI")?;
                }
                certificate.as_ref().map_or(Ok(()), |found| write!(f, " {}", found.server))
            }
            Self::DeleteListeners(listeners) => {
                let listeners: Vec<String> =
                    listeners.iter().map(|(key, id)| format!("{key} {id}")).collect();
                write!(f, "{action} {}", shown(&listeners))
            }
            Self::CreateRules { listener, rules } => {
                let rules: Vec<_> = rules.iter().map(|rule| &rule.key).collect();
                write!(f, "{action} {}: {}", listener.key, shown(&rules))
            }
            Self::ModifyRule { id, key, .. } => write!(f, "{action} {key} {id}"),
            Self::ModifyDomain { domain, .. } => write!(f, "{action} {domain}"),
            Self::DeleteRules { rules, .. } => {
                let rules: Vec<_> = rules.iter().map(|(key, _)| key).collect();
                write!(f, "{action} {}", shown(&rules))
            }
            Self::RemoveRedirects { rules, .. } => {
                let rules: Vec<_> = rules.iter().map(|(key, _, _)| key).collect();
                write!(f, "{action} {}", shown(&rules))
            }
            Self::Redirect { from, to, rules } => {
                let rules: Vec<_> = rules.iter().map(|rule| &rule.from.key).collect();
                write!(f, "{action} {} to {}: {}", from.key, to.key, shown(&rules))
            }
            Self::Register(bindings) | Self::Weigh(bindings) | Self::Deregister(bindings) => {
                let has_weight = !matches!(self, Self::Deregister(_));
                let bindings: Vec<String> =
                    bindings.iter().map(|binding| written(binding, has_weight)).collect();
                write!(f, "{action} {}", shown(&bindings))
            }
        }
    }
}

fn written(binding: &Binding, has_weight: bool) -> String {
    let rule = binding.rule.as_ref().map(|rule| format!(" {}", rule.key)).unwrap_or_default();
    let weight = if has_weight { format!(" ({})", binding.weight) } else { String::new() };
    format!("{}{rule} {}{weight}", binding.listener.key, binding.target)
}

fn shown<T: Display>(parts: &[T]) -> String {
    let named: Vec<String> = parts.iter().take(SHOWN).map(ToString::to_string).collect();
    let named = named.join(", ");
    match parts.len().saturating_sub(SHOWN) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}
