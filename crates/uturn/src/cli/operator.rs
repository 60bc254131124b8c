//! The options of `uturn operator`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use uturn_model::Name;

use super::{Inputs, Output};

#[cfg(feature = "live")]
type Share = uturn_operator::shares::Share;
/// Not read where the command only says what it lacks.
#[cfg(not(feature = "live"))]
type Share = String;

#[derive(Debug, Subcommand)]
pub(crate) enum Operator {
    /// Watch a cluster and keep its load balancers as it wants them; with --dry-run, print the
    /// calls that this needs for manifests
    Run(Box<OperatorRun>),
    /// Print what has to be applied to a cluster first: the definition of TkeServiceConfig, and
    /// the account of the controllers with its rights
    Manifests(OperatorManifests),
}

#[derive(Args, Debug)]
pub(crate) struct OperatorManifests {
    /// Let Secrets be read in these namespaces only, by a Role in each; without it, in all
    #[arg(long, value_name = "NS", value_delimiter = ',')]
    pub(crate) secrets_of: Option<Vec<Name>>,
}

#[derive(Args, Debug)]
pub(crate) struct OperatorRun {
    #[command(flatten)]
    pub(crate) inputs: Inputs,
    /// Only print the calls, for manifests
    #[arg(long, requires = "files")]
    pub(crate) dry_run: bool,
    /// The cluster's id, which tags its load balancers
    #[arg(long, value_name = "ID")]
    pub(crate) cluster_id: String,
    /// The id of the cluster's network (VPC), for private load balancers
    #[arg(long, value_name = "ID", default_value = "")]
    pub(crate) network: String,
    /// Where the API is, such as http://127.0.0.1:8443; without it, Tencent Cloud
    #[arg(long, value_name = "URL")]
    pub(crate) endpoint: Option<String>,
    /// The region of the load balancers
    #[arg(long, value_name = "REGION", default_value = "ap-guangzhou")]
    pub(crate) region: String,
    /// A file with a line SECRET_ID SECRET_KEY; without one, TENCENTCLOUD_SECRET_ID and
    /// TENCENTCLOUD_SECRET_KEY of the environment
    #[arg(long, value_name = "FILE")]
    pub(crate) credentials: Option<PathBuf>,
    /// Where the API server is; without a file, as kubectl finds it, or as a pod does
    #[arg(long, value_name = "FILE", conflicts_with = "dry_run")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Where to answer /healthz, /readyz and /metrics
    #[arg(long, value_name = "ADDR", conflicts_with = "dry_run")]
    pub(crate) listen: Option<SocketAddr>,
    /// Which namespaces may use a load balancer that an annotation names, such as
    /// lb-9f3k2m1q=prod,shop or lb-9f3k2m1q=*; without it, the namespace that uses it first. May
    /// be repeated
    #[arg(long, value_name = "LB=NS,...")]
    pub(crate) share_load_balancer: Vec<Share>,
    /// The namespace of the lease by which one of several processes works, and of the record of
    /// who has which port of such load balancers
    #[arg(long, value_name = "NS", default_value = "kube-system")]
    pub(crate) lease_namespace: String,
    /// Take no lease: this is the only process
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) without_lease: bool,
    /// The form of the output of --dry-run
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: Output,
}
