//! The options of `uturn whatif` and `uturn diff`.

use clap::{ArgAction, ArgMatches, Args, FromArgMatches, ValueEnum, ValueHint};
use uturn_whatif::Change;
use uturn_whatif::change::{data_plane, life, object};

use super::{ClusterArgs, Output};
use crate::completion;

#[derive(Args, Debug)]
pub(crate) struct WhatIf {
    #[command(flatten)]
    pub(crate) changes: Changes,
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    /// Report on this namespace only; also the namespace of names without one
    #[arg(short, long, value_name = "NS", add = completion::namespace())]
    pub(crate) namespace: Option<String>,
    /// Exit with status 1 if calls get worse, if any call changes, or never
    #[arg(long, value_name = "WHAT", default_value = "worse")]
    pub(crate) fail_on: FailOnChange,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: WhatIfOutput,
}

#[derive(Args, Debug)]
pub(crate) struct Diff {
    /// The cluster before: a file, a folder, a bundle, or context:NAME for a running cluster
    #[arg(value_name = "BEFORE", value_hint = ValueHint::AnyPath)]
    pub(crate) before: String,
    /// The cluster after, in the same forms
    #[arg(value_name = "AFTER", value_hint = ValueHint::AnyPath)]
    pub(crate) after: String,
    /// What is named here belongs to both sides: Facts, say
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    /// Report on this namespace only
    #[arg(short, long, value_name = "NS", add = completion::namespace())]
    pub(crate) namespace: Option<String>,
    /// Exit with status 1 if calls get worse, if any call changes, or never
    #[arg(long, value_name = "WHAT", default_value = "worse")]
    pub(crate) fail_on: FailOnChange,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: WhatIfOutput,
}

/// The beginning of the name of a running cluster.
pub(crate) const CONTEXT: &str = "context:";

impl Diff {
    /// Returns whether no side is a running cluster.
    pub(crate) fn is_of_files(&self) -> bool {
        !self.cluster.api.live
            && ![&self.before, &self.after].iter().any(|own| own.starts_with(CONTEXT))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOnChange {
    /// If calls get worse
    Worse,
    /// If any call changes
    Any,
    /// Never, whatever changes
    Never,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum WhatIfOutput {
    Text,
    /// Text with all details
    Wide,
    Json,
    Yaml,
    /// For the comment of a pull request
    Markdown,
    /// For code scanning: what gets worse, on the lines of the manifests
    Sarif,
}

impl WhatIfOutput {
    /// As what every command can give, where it is such a form.
    pub(crate) fn plain(self) -> Option<Output> {
        match self {
            Self::Text => Some(Output::Text),
            Self::Wide => Some(Output::Wide),
            Self::Json => Some(Output::Json),
            Self::Yaml => Some(Output::Yaml),
            Self::Markdown | Self::Sarif => None,
        }
    }
}

/// A flag that makes a change.
#[derive(Debug)]
pub(crate) struct Flag {
    name: &'static str,
    short: Option<char>,
    value: &'static str,
    help: &'static str,
    pub(crate) makes: Makes,
}

/// How a flag makes changes of its value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Makes {
    /// The changes of a file.
    OfFile,
    /// A change, with the namespace of names without one.
    InNamespace(fn(&str, Option<&str>) -> Result<Change, String>),
    /// A change of the cluster as a whole.
    OfCluster(fn(&str) -> Result<Change, String>),
}

impl Flag {
    /// Returns the flag as it is typed.
    pub(crate) fn as_typed(&self) -> String {
        match self.short {
            Some(short) => format!("-{short}"),
            None => format!("--{}", self.name),
        }
    }
}

/// The flags that make changes, by family. Each may be repeated.
const FLAGS: &[Flag] = &[
    Flag {
        name: "patch",
        short: Some('p'),
        value: "FILE",
        help: "Objects and patches of a file, a folder or - for standard input: a whole object \
               replaces the one of its name or is added, a part of one is merged into it, and \
               `target` with `patch` is a patch as kustomize takes it",
        makes: Makes::OfFile,
    },
    Flag {
        name: "delete",
        short: None,
        value: "KIND/NS/NAME",
        help: "Delete an object, with the pods that it makes",
        makes: Makes::InNamespace(object::delete),
    },
    Flag {
        name: "set",
        short: None,
        value: "KIND/NS/NAME:PATH=VALUE",
        help: "Set a value, such as svc/shop/front:spec.ports[name=http].targetPort=8080; null \
               removes it",
        makes: Makes::InNamespace(object::set),
    },
    Flag {
        name: "annotate",
        short: None,
        value: "KIND/NS/NAME:KEY=VALUE",
        help: "Set an annotation; KIND/NS/NAME:KEY- removes it",
        makes: Makes::InNamespace(object::annotate),
    },
    Flag {
        name: "kube-proxy-mode",
        short: None,
        value: "MODE",
        help: "Run kube-proxy in another mode: iptables, ipvs, nftables",
        makes: Makes::OfCluster(data_plane::mode),
    },
    Flag {
        name: "kube-proxy-version",
        short: None,
        value: "VERSION",
        help: "Run another release of kube-proxy, such as v1.36",
        makes: Makes::OfCluster(data_plane::release),
    },
    Flag {
        name: "cluster-cidr",
        short: None,
        value: "RANGES",
        help: "Give kube-proxy other ranges of pods, with commas between; none takes them away",
        makes: Makes::OfCluster(data_plane::cluster_cidr),
    },
    Flag {
        name: "data-plane",
        short: None,
        value: "PROGRAM",
        help: "Have another program serve Services: kube-proxy, cilium, calico-ebpf, kube-router, \
               ovn-kubernetes, antrea",
        makes: Makes::OfCluster(data_plane::program),
    },
    Flag {
        name: "drain",
        short: None,
        value: "NODE",
        help: "Cordon a node and evict its pods, but those of DaemonSets; they run nowhere else yet",
        makes: Makes::OfCluster(life::drain),
    },
    Flag {
        name: "lose",
        short: None,
        value: "NODE",
        help: "Lose a node, after health checks and endpoints have followed; NODE=unnoticed while \
               nothing knows of it",
        makes: Makes::OfCluster(life::lose),
    },
    Flag {
        name: "lose-zone",
        short: None,
        value: "ZONE",
        help: "Lose all nodes with this label topology.kubernetes.io/zone, in the same ways",
        makes: Makes::OfCluster(life::lose_zone),
    },
    Flag {
        name: "scale",
        short: None,
        value: "KIND/NS/NAME=REPLICAS",
        help: "Give a workload another number of pods, such as deploy/shop/web=0; new pods serve \
               nothing yet",
        makes: Makes::InNamespace(life::scale),
    },
    Flag {
        name: "unready",
        short: None,
        value: "pod/NS/NAME",
        help: "Have a pod that is not ready: its endpoints are gone, and it goes on calling",
        makes: Makes::InNamespace(life::unready),
    },
];

/// The heading of these flags in `--help`.
const HEADING: &str = "Changes (made in the order in which they are typed)";

/// The changes, in the order in which they were typed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Changes {
    /// The flags with their values.
    pub(crate) typed: Vec<(&'static Flag, String)>,
}

impl Changes {
    /// Makes changes of flags' names and values. Names that are no flag's are left out.
    pub(crate) fn of(typed: impl Iterator<Item = (&'static str, String)>) -> Self {
        let known = |(name, value)| Some((FLAGS.iter().find(|flag| flag.name == name)?, value));
        Self { typed: typed.filter_map(known).collect() }
    }
}

impl FromArgMatches for Changes {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut typed: Vec<(usize, &'static Flag, String)> = Vec::new();
        for flag in FLAGS {
            let values = matches.get_many::<String>(flag.name).into_iter().flatten();
            let places = matches.indices_of(flag.name).into_iter().flatten();
            typed.extend(places.zip(values).map(|(at, value)| (at, flag, value.clone())));
        }
        typed.sort_by_key(|(at, ..)| *at);
        Ok(Self { typed: typed.into_iter().map(|(_, flag, value)| (flag, value)).collect() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for Changes {
    fn augment_args(command: clap::Command) -> clap::Command {
        FLAGS.iter().fold(command, |command, flag| {
            let hint = match flag.makes {
                Makes::OfFile => ValueHint::AnyPath,
                Makes::InNamespace(_) | Makes::OfCluster(_) => ValueHint::Unknown,
            };
            let arg = clap::Arg::new(flag.name)
                .long(flag.name)
                .value_name(flag.value)
                .help(flag.help)
                .value_hint(hint)
                .action(ArgAction::Append)
                .help_heading(HEADING);
            command.arg(match flag.short {
                Some(short) => arg.short(short),
                None => arg,
            })
        })
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}
