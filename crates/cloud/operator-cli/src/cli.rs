//! The options of `uturn operator`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use uturn_cli::{Inputs, Output, Part};
use uturn_model::Name;
use uturn_operator::shares::Share;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    #[command(subcommand, about = Part::Operator.about())]
    #[command(after_help = "Examples:
  uturn operator manifests > operator.yaml
  uturn operator run --cluster-id cls-3f8k2m1q --listen 0.0.0.0:9110
  uturn operator run --dry-run -f deploy/ --cluster-id cls-3f8k2m1q
  uturn operator run --dry-run -f deploy/ --cluster-id c1 --endpoint http://127.0.0.1:8443")]
    Operator(Operator),
}

#[derive(Debug, Subcommand)]
pub(crate) enum Operator {
    /// Watch a cluster, and create and update its load balancers; with --dry-run, print the API
    /// calls that manifests need
    Run(Box<OperatorRun>),
    /// Print the manifests to apply to a cluster first: the definition of TkeServiceConfig, and the
    /// service account of the controllers with its rights
    Manifests(OperatorManifests),
}

#[derive(Args, Debug)]
pub(crate) struct OperatorManifests {
    /// Allow reading Secrets in these namespaces only, by a Role in each; by default in all
    /// namespaces
    #[arg(long, value_name = "NS", value_delimiter = ',')]
    pub(crate) secrets_of: Option<Vec<Name>>,
}

#[derive(Args, Debug)]
pub(crate) struct OperatorRun {
    #[command(flatten)]
    pub(crate) inputs: Inputs,
    /// Print the API calls that the manifests need, and make none
    #[arg(long, requires = "files")]
    pub(crate) dry_run: bool,
    /// The cluster's id, which tags its load balancers
    #[arg(long, value_name = "ID")]
    pub(crate) cluster_id: String,
    /// The id of the cluster's network (VPC), for private load balancers
    #[arg(long, value_name = "ID", default_value = "")]
    pub(crate) network: String,
    /// The URL of the API, such as http://127.0.0.1:8443; by default Tencent Cloud's
    #[arg(long, value_name = "URL")]
    pub(crate) endpoint: Option<String>,
    /// The region of the load balancers
    #[arg(long, value_name = "REGION", default_value = "ap-guangzhou")]
    pub(crate) region: String,
    /// A file with one line SECRET_ID SECRET_KEY; by default the environment variables
    /// TENCENTCLOUD_SECRET_ID and TENCENTCLOUD_SECRET_KEY
    #[arg(long, value_name = "FILE")]
    pub(crate) credentials: Option<PathBuf>,
    /// The kubeconfig of the cluster; by default the one that kubectl finds, or a pod's service
    /// account
    #[arg(long, value_name = "FILE", conflicts_with = "dry_run")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The address for /healthz, /readyz and /metrics; by default they are not served
    #[arg(long, value_name = "ADDR", conflicts_with = "dry_run")]
    pub(crate) listen: Option<SocketAddr>,
    /// The namespaces that may use a load balancer that an annotation names, such as
    /// lb-9f3k2m1q=prod,shop or lb-9f3k2m1q=*; by default, the namespace that uses it first (repeat
    /// for more)
    #[arg(long, value_name = "LB=NS,...")]
    pub(crate) share_load_balancer: Vec<Share>,
    /// The namespace of the lease by which one of several processes is elected, and of the record
    /// of which object has which port of such load balancers
    #[arg(long, value_name = "NS", default_value = "kube-system")]
    pub(crate) lease_namespace: String,
    /// Run without a lease: this is the only process
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) without_lease: bool,
    /// Output format of --dry-run
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: Output,
}
