//! The evidence for a step of a route, as a value that can be matched on.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::{DerivedFrom, ObjectRef, Origin, ServiceProxy, Text};

/// The evidence for a step: a rule, an object, or the kernel's behaviour without configuration.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Evidence {
    /// A rule of iptables.
    Iptables {
        /// The chain that it is in.
        chain: Text,
        /// The rule, as `iptables-save` prints it.
        rule: Text,
        /// Where it is written.
        origin: Origin,
    },
    /// The policy DROP of a chain of iptables.
    IptablesPolicy {
        /// The chain.
        chain: Text,
        /// Where it is written.
        origin: Origin,
    },
    /// A rule of nftables, or the policy of a chain.
    Nftables {
        /// The rule, as `nft list ruleset` prints it.
        rule: Text,
        /// Where it is written.
        origin: Origin,
    },
    /// A virtual or real server of IPVS.
    Ipvs {
        /// The server, as `ipvsadm -Sn` prints it.
        server: Text,
        /// Where it is written.
        origin: Origin,
    },
    /// A route, or a rule that selects a routing table.
    Route {
        /// As `ip route` or `ip rule` prints it.
        route: Text,
        /// Where it is written.
        origin: Origin,
    },
    /// A sysctl of a node.
    Sysctl {
        /// Its name: `net.ipv4.ip_forward`.
        name: Text,
        /// Its value.
        value: Text,
    },
    /// A kernel's behaviour without configuration.
    Kernel {
        /// The behaviour.
        habit: Text,
    },
    /// A part of a node's state that its capture lacks.
    NotCaptured {
        /// The missing part.
        what: Text,
    },
    /// An object.
    Object {
        /// The object.
        object: Arc<ObjectRef>,
        /// Where it is written.
        origin: Origin,
    },
    /// The security groups of an interface.
    SecurityGroups {
        /// Their names, in the order in which they are evaluated.
        names: Arc<[Text]>,
        /// The rule that decides, or the last group if none does.
        origin: Origin,
    },
    /// A load balancer.
    LoadBalancer {
        /// Its name.
        name: Text,
        /// The object that asked for it.
        origin: Origin,
    },
    /// A listener of a load balancer.
    Listener {
        /// Its profile, protocol and port.
        listener: Text,
        /// The object that asked for it.
        owner: Arc<ObjectRef>,
        /// Where that is written.
        origin: Origin,
    },
    /// The program that serves Services in place of kube-proxy.
    ServiceProxy {
        /// The program.
        proxy: ServiceProxy,
        /// Whether it translates when a socket connects.
        at_connect: bool,
        /// The Service.
        service: Arc<ObjectRef>,
        /// Where the Service is written.
        origin: Origin,
    },
    /// A DNS server's configuration, or a plugin in it.
    Corefile {
        /// The plugin and its line, or the name of the configuration.
        plugin: Text,
        /// Where it is written.
        origin: Origin,
    },
    /// A pod's own hosts file.
    HostsFile {
        /// The pod.
        pod: Arc<ObjectRef>,
        /// Whether `hostAliases` of the pod add the name.
        is_alias: bool,
        /// Where the pod is written.
        origin: Origin,
    },
    /// A name for which Facts state an address.
    StatedName {
        /// The name.
        name: Text,
    },
    /// A name that an object calls.
    HostName {
        /// The name.
        host: Text,
    },
    /// A client's resolver.
    Resolver,
    /// The network between the nodes.
    Fabric {
        /// The part of it that decides.
        part: FabricPart,
        /// The object that states it; `None` if no object does.
        origin: Option<Origin>,
    },
    /// The world outside the cluster.
    Outside {
        /// The part of it.
        what: Text,
    },
    /// An assumption.
    Supposed {
        /// What is assumed.
        what: Text,
    },
}

/// A part of the network between the nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FabricPart {
    /// The VPC's routes.
    Routes,
    /// The VPC's address translation.
    Translation,
    /// The pod network.
    PodNetwork,
}

impl Evidence {
    /// Makes evidence of a kernel's behaviour without configuration.
    pub fn kernel(habit: impl Into<Text>) -> Self {
        Self::Kernel { habit: habit.into() }
    }

    /// Makes evidence of the value of a sysctl.
    pub fn sysctl(name: impl Into<Text>, value: impl Into<Text>) -> Self {
        Self::Sysctl { name: name.into(), value: value.into() }
    }

    /// Makes evidence of a part of a node's state that its capture lacks.
    pub fn not_captured(what: impl Into<Text>) -> Self {
        Self::NotCaptured { what: what.into() }
    }

    /// Makes evidence of an object and where it is written.
    pub fn object(object: ObjectRef, origin: Origin) -> Self {
        Self::Object { object: Arc::new(object), origin }
    }

    /// Makes evidence of a part of the network between the nodes that no object describes.
    pub fn fabric(part: FabricPart) -> Self {
        Self::Fabric { part, origin: None }
    }

    /// Returns the rule as written, or a name of the evidence.
    pub fn rule(&self) -> Text {
        match self {
            Self::Iptables { rule, .. } | Self::Nftables { rule, .. } => rule.clone(),
            Self::Ipvs { server, .. } => server.clone(),
            Self::Route { route, .. } => route.clone(),
            Self::Kernel { habit } => habit.clone(),
            Self::NotCaptured { what } | Self::Outside { what } | Self::Supposed { what } => {
                what.clone()
            }
            Self::Corefile { plugin, .. } => plugin.clone(),
            Self::IptablesPolicy { chain, .. } => format!(":{chain} DROP").into(),
            Self::Sysctl { name, value } => format!("{name} = {value}").into(),
            Self::Object { object, .. } => object.to_string().into(),
            Self::SecurityGroups { names, .. } => {
                format!("SecurityGroup {}", names.join(", ")).into()
            }
            Self::LoadBalancer { name, .. } => format!("load balancer {name}").into(),
            Self::Listener { listener, owner, .. } => format!("{listener} of {owner}").into(),
            Self::ServiceProxy { proxy, at_connect: true, service, .. } => {
                format!("{proxy}, when it connects: {service}").into()
            }
            Self::ServiceProxy { proxy, service, .. } => format!("{proxy}: {service}").into(),
            Self::HostsFile { pod, is_alias: true, .. } => format!("{pod} hostAliases").into(),
            Self::HostsFile { pod, .. } => format!("{pod} hosts file").into(),
            Self::StatedName { name } => format!("Facts dns.outside {name}").into(),
            Self::HostName { host } => format!("the name {host}").into(),
            Self::Resolver => "the client's resolver".into(),
            Self::Fabric { part, .. } => part.as_str().into(),
        }
    }

    /// Returns where the evidence is written, or what it is derived from.
    pub fn origin(&self) -> Cow<'_, Origin> {
        let derived = |from| Cow::Owned(Origin::Derived(from));
        match self {
            Self::Iptables { origin, .. }
            | Self::IptablesPolicy { origin, .. }
            | Self::Nftables { origin, .. }
            | Self::Ipvs { origin, .. }
            | Self::Route { origin, .. }
            | Self::Object { origin, .. }
            | Self::SecurityGroups { origin, .. }
            | Self::LoadBalancer { origin, .. }
            | Self::Listener { origin, .. }
            | Self::ServiceProxy { origin, .. }
            | Self::Corefile { origin, .. }
            | Self::HostsFile { origin, .. }
            | Self::Fabric { origin: Some(origin), .. } => Cow::Borrowed(origin),
            Self::Fabric { origin: None, .. } => derived(DerivedFrom::Fabric),
            Self::Sysctl { .. } => derived(DerivedFrom::Sysctl),
            Self::NotCaptured { .. } => derived(DerivedFrom::NotCaptured),
            Self::StatedName { .. } => derived(DerivedFrom::Facts),
            Self::HostName { .. } => derived(DerivedFrom::Dns),
            Self::Resolver => derived(DerivedFrom::Resolver),
            Self::Outside { .. } => derived(DerivedFrom::Outside),
            Self::Kernel { .. } => Cow::Owned(Origin::Kernel),
            Self::Supposed { .. } => Cow::Owned(Origin::SUPPOSED),
        }
    }

    /// Removes the line number of rules that uturn wrote.
    pub fn clear_generated_line(&mut self) {
        if let Self::Iptables { origin, .. }
        | Self::IptablesPolicy { origin, .. }
        | Self::Nftables { origin, .. }
        | Self::Ipvs { origin, .. } = self
        {
            origin.clear_generated_line();
        }
    }
}

impl FabricPart {
    fn as_str(self) -> &'static str {
        match self {
            Self::Routes => "the VPC's routes",
            Self::Translation => "the VPC's address translation",
            Self::PodNetwork => "the pod network",
        }
    }
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.rule(), self.origin())
    }
}
