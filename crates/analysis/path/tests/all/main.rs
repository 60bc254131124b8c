//! Calls through whole clusters.

#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]

mod antrea;
mod captures;
mod cases;
mod clouds;
mod clouds_aws;
mod clouds_bare;
mod clouds_cilium;
mod clouds_ingress;
mod clouds_openstack;
mod clouds_proxies;
mod errors;
mod flannel;
mod front;
mod gateway_headers;
mod gateways;
mod in_cluster;
mod ipvs;
mod istio;
mod kong;
mod listeners;
mod listening;
mod names;
mod nodes;
mod older_dumps;
mod policies;
mod releases;
mod resets;
mod scenarios;
mod security_groups;
mod small;
mod stated_balancers;
mod tcp_routes;
mod traefik;
mod tunnels;
