//! The options of `uturn operator`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{Inputs, Output};

#[derive(Debug, Subcommand)]
pub(crate) enum Operator {
    /// Print the calls that make the cloud's load balancers as manifests want them
    Run(OperatorRun),
}

#[derive(Args, Debug)]
pub(crate) struct OperatorRun {
    #[command(flatten)]
    pub(crate) inputs: Inputs,
    /// Only print the calls
    #[arg(long, required = true)]
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
    /// The form of the output
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: Output,
}
