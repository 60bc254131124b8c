//! The implementation of the actions. Each reads its request, reads and changes the account through
//! a [`Transaction`], and returns its answer.

mod absent;
mod certificates;
mod check;
mod deal;
mod filter;
mod find;
mod health_check;
mod listeners;
mod load_balancers;
mod neighbours;
mod number;
mod page;
mod rules;
pub mod targets;
mod tasks;
mod time;

use serde_json::{Map, Value};
use uturn_cloud_api::wire::error::{ApiError, ErrorCode};
use uturn_cloud_api::{Action, cam, clb, cvm, ssl, sts, tag, vpc};

use self::load_balancers as lb;
use self::neighbours::{account, addresses, certificates as ssl_certificates, deployments};
use self::neighbours::{instances, networks, security_groups, tags, zones};
use crate::state::Transaction;

/// Declares [`perform`] with the function of each request.
macro_rules! actions {
    ($($request:path => $handler:path,)*) => {
        /// Performs an action. The parameters must have been checked against the schema.
        ///
        /// # Errors
        ///
        /// Returns the error that the request is answered with. The changes that the transaction
        /// collected must then be dropped.
        pub fn perform(
            transaction: &mut Transaction<'_>,
            service: &str,
            action: &str,
            parameters: Value,
        ) -> Result<Map<String, Value>, ApiError> {
            match (service, action) {
                $((<$request as Action>::SERVICE, <$request as Action>::NAME) => {
                    typed::<$request>(transaction, parameters, $handler)
                })*
                _ => {
                    let message = format!("this server does not perform {service} {action}");
                    Err(ApiError::new(ErrorCode::UnsupportedOperation, message))
                }
            }
        }

        /// The actions that are implemented, as services and names.
        pub const PERFORMED: &[(&str, &str)] =
            &[$((<$request as Action>::SERVICE, <$request as Action>::NAME),)*];
    };
}

actions! {
    clb::AutoRewriteRequest => rules::auto_rewrite::create,
    clb::BatchDeregisterTargetsRequest => targets::deregister_batch,
    clb::BatchModifyTargetTagRequest => targets::modify_tags,
    clb::BatchModifyTargetWeightRequest => targets::modify_weights,
    clb::BatchRegisterTargetsRequest => targets::register_batch,
    clb::CreateListenerRequest => listeners::create::create,
    clb::CreateLoadBalancerRequest => lb::create::create,
    clb::CreateLoadBalancerSnatIpsRequest => lb::snat::create,
    clb::CreateRuleRequest => rules::create::create,
    clb::DeleteListenerRequest => listeners::delete::delete,
    clb::DeleteLoadBalancerListenersRequest => listeners::delete::delete_several,
    clb::DeleteLoadBalancerRequest => lb::delete::delete,
    clb::DeleteLoadBalancerSnatIpsRequest => lb::snat::delete,
    clb::DeleteRewriteRequest => rules::rewrite::delete,
    clb::DeleteRuleRequest => rules::delete::delete,
    clb::DeregisterTargetsRequest => targets::deregister,
    clb::DescribeClusterResourcesRequest => absent::cluster_resources,
    clb::DescribeCrossTargetsRequest => absent::cross_targets,
    clb::DescribeCustomizedConfigAssociateListRequest => lb::custom_config::describe_bound,
    clb::DescribeCustomizedConfigListRequest => lb::custom_config::describe,
    clb::DescribeExclusiveClustersRequest => absent::exclusive_clusters,
    clb::DescribeLBListenersRequest => targets::describe_bound,
    clb::DescribeLBOperateProtectRequest => lb::protection::describe,
    clb::DescribeListenersRequest => listeners::describe::describe,
    clb::DescribeLoadBalancerListByCertIdRequest => certificates::replace::describe,
    clb::DescribeLoadBalancersDetailRequest => lb::detail::describe,
    clb::DescribeLoadBalancersRequest => lb::describe::describe,
    clb::DescribeQuotaRequest => lb::quota::describe,
    clb::DescribeResourcesRequest => lb::resources::describe,
    clb::DescribeRewriteRequest => rules::rewrite::describe,
    clb::DescribeTargetGroupListRequest => absent::target_group_list,
    clb::DescribeTargetGroupsRequest => absent::target_groups,
    clb::DescribeTargetHealthRequest => targets::describe_health,
    clb::DescribeTargetsRequest => targets::describe,
    clb::DescribeTaskStatusRequest => tasks::describe_status,
    clb::ManualRewriteRequest => rules::rewrite::create,
    clb::ModifyDomainAttributesRequest => rules::domain_attributes::modify,
    clb::ModifyDomainRequest => rules::domain_attributes::rename,
    clb::ModifyListenerRequest => listeners::modify::modify,
    clb::ModifyLoadBalancerAttributesRequest => lb::modify::modify,
    clb::ModifyLoadBalancersProjectRequest => lb::project::modify,
    clb::ModifyRuleRequest => rules::modify::modify,
    clb::ModifyTargetPortRequest => targets::modify_port,
    clb::ModifyTargetWeightRequest => targets::modify_weight,
    clb::RegisterTargetsRequest => targets::register,
    clb::ReplaceCertForLoadBalancersRequest => certificates::replace::replace,
    clb::SetCustomizedConfigForLoadBalancerRequest => lb::custom_config::set,
    clb::SetLoadBalancerSecurityGroupsRequest => lb::security_groups::set,
    clb::SetLoadBalancerStartStatusRequest => lb::start_status::set,
    clb::SetSecurityGroupForLoadbalancersRequest => lb::security_groups::set_for_load_balancers,
    cam::GetUserAppIdRequest => account::describe,
    cvm::DescribeInstancesRequest => instances::describe,
    cvm::DescribeRegionsRequest => zones::describe_regions,
    cvm::DescribeZonesRequest => zones::describe,
    ssl::DeleteCertificateRequest => ssl_certificates::delete,
    ssl::DeployCertificateInstanceRequest => deployments::deploy,
    ssl::DescribeCertificateDetailRequest => ssl_certificates::describe_detail,
    ssl::DescribeCertificatesRequest => ssl_certificates::describe,
    ssl::DescribeHostDeployRecordDetailRequest => deployments::describe,
    ssl::UploadCertificateRequest => ssl_certificates::upload,
    sts::GetCallerIdentityRequest => account::describe_caller,
    tag::DescribeResourceTagsRequest => tags::attached::describe,
    tag::DescribeResourceTagsByResourceIdsRequest => tags::attached::describe_by_ids,
    tag::GetResourcesRequest => tags::list::describe,
    tag::GetTagKeysRequest => tags::names::describe_keys,
    tag::GetTagValuesRequest => tags::names::describe_values,
    tag::GetTagsRequest => tags::names::describe,
    tag::ModifyResourceTagsRequest => tags::change::modify,
    tag::TagResourcesRequest => tags::change::add,
    tag::UnTagResourcesRequest => tags::change::remove,
    vpc::DescribeAddressesRequest => addresses::describe,
    vpc::DescribeSecurityGroupPoliciesRequest => security_groups::describe_policies,
    vpc::DescribeSecurityGroupsRequest => security_groups::describe,
    vpc::DescribeSubnetsRequest => networks::describe_subnets,
    vpc::DescribeVpcsRequest => networks::describe,
}

fn typed<A: Action>(
    transaction: &mut Transaction<'_>,
    parameters: Value,
    handler: fn(&mut Transaction<'_>, &A) -> Result<A::Response, ApiError>,
) -> Result<Map<String, Value>, ApiError> {
    let internal = |error: serde_json::Error| {
        let message = format!("{}: {error}", A::NAME);
        ApiError::new(ErrorCode::InternalError, message)
    };
    // Members that are `null` are absent.
    let request: A = serde_json::from_value(parameters).map_err(internal)?;
    let response = handler(transaction, &request)?;
    match serde_json::to_value(response).map_err(internal)? {
        Value::Object(members) => Ok(members),
        _ => Ok(Map::new()),
    }
}
