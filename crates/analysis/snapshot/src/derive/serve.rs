//! Completes what serves calls: Services, endpoints, load balancers, controllers and names.

pub(in crate::derive) mod announcers;
pub(in crate::derive) mod balancer_arguments;
pub(in crate::derive) mod balancer_names;
pub(in crate::derive) mod balancers;
pub(in crate::derive) mod controllers;
pub(in crate::derive) mod endpoints;
pub(in crate::derive) mod gateways;
pub(in crate::derive) mod holders;
pub(in crate::derive) mod ingress_products;
pub(in crate::derive) mod name_server;
pub(in crate::derive) mod network;
pub(in crate::derive) mod pending_balancers;
pub(in crate::derive) mod services;
