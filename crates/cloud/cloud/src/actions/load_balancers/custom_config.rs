//! Custom configurations of load balancers.

use uturn_cloud_api::clb::{
    BindDetailItem, ConfigListItem, DescribeCustomizedConfigAssociateListRequest,
    DescribeCustomizedConfigAssociateListResponse, DescribeCustomizedConfigListRequest,
    DescribeCustomizedConfigListResponse, Filter, SetCustomizedConfigForLoadBalancerRequest,
    SetCustomizedConfigForLoadBalancerResponse,
};
use uturn_cloud_api::wire::error::{ApiError, ErrorCode};

use crate::actions::check::{self, given, missing, operation_error, parameter_error, value_error};
use crate::actions::page::Page;
use crate::actions::{filter, time};
use crate::state::{CustomConfig, LoadBalancer, Transaction};

/// The longest configurations.
const MAX_CONTENT: usize = 64 << 10;
/// The most load balancers of a request.
const MAX_LOAD_BALANCERS: usize = 20;
/// The range of `proxy_connect_timeout` in seconds.
const CONNECT_TIMEOUT: std::ops::RangeInclusive<u64> = 4..=120;

/// `SetCustomizedConfigForLoadBalancer`: creates, changes, deletes, binds or unbinds a
/// configuration. INF: its tags are not stored, since no answer returns them.
pub(in crate::actions) fn set(
    transaction: &mut Transaction<'_>,
    request: &SetCustomizedConfigForLoadBalancerRequest,
) -> Result<SetCustomizedConfigForLoadBalancerResponse, ApiError> {
    let operation = request.operation_type.as_str();
    check::choice("OperationType", operation, &["ADD", "DELETE", "UPDATE", "BIND", "UNBIND"])?;
    let id = match operation {
        "ADD" => add(transaction, request)?,
        _ => {
            let id = given(request.uconfig_id.as_ref()).ok_or_else(|| missing("UconfigId"))?;
            let config = transaction.custom_config(id).cloned().ok_or_else(|| {
                parameter_error(format!("the custom configuration {id} does not exist"))
            })?;
            match operation {
                "DELETE" => delete(transaction, id)?,
                "UPDATE" => update(transaction, config, request)?,
                _ => bind(transaction, id, request, operation == "BIND")?,
            }
            id.to_owned()
        }
    };
    Ok(SetCustomizedConfigForLoadBalancerResponse { config_id: Some(id) })
}

fn add(
    transaction: &mut Transaction<'_>,
    request: &SetCustomizedConfigForLoadBalancerRequest,
) -> Result<String, ApiError> {
    let name = given(request.config_name.as_ref()).ok_or_else(|| missing("ConfigName"))?;
    let content = given(request.config_content.as_ref()).ok_or_else(|| missing("ConfigContent"))?;
    check::name("ConfigName", name)?;
    check_content(content)?;
    if transaction.custom_configs().any(|existing| existing.name == name) {
        return Err(value_error(format!("there is a custom configuration {name} already")));
    }
    let quota = transaction.context.quotas.custom_configs;
    if transaction.custom_configs().count() >= quota {
        return Err(check::quota_error("custom configurations", quota));
    }
    let now = transaction.context.now;
    let id = transaction.context.ids.resource("pz");
    transaction.put_custom_config(CustomConfig {
        id: id.clone(),
        name: name.to_owned(),
        content: content.to_owned(),
        created: now,
        updated: now,
    });
    Ok(id)
}

fn update(
    transaction: &mut Transaction<'_>,
    mut config: CustomConfig,
    request: &SetCustomizedConfigForLoadBalancerRequest,
) -> Result<(), ApiError> {
    let name = given(request.config_name.as_ref());
    let content = given(request.config_content.as_ref());
    if name.is_none() && content.is_none() {
        return Err(missing("ConfigContent"));
    }
    if let Some(name) = name {
        check::name("ConfigName", name)?;
        name.clone_into(&mut config.name);
    }
    if let Some(content) = content {
        check_content(content)?;
        content.clone_into(&mut config.content);
    }
    config.updated = transaction.context.now;
    transaction.put_custom_config(config);
    Ok(())
}

fn delete(transaction: &mut Transaction<'_>, id: &str) -> Result<(), ApiError> {
    let load_balancers = transaction.load_balancers();
    if let Some(bound) = load_balancers.values().find(|existing| is_bound(existing, id)) {
        let bound = &bound.id;
        return Err(operation_error(format!("the custom configuration {id} is bound to {bound}")));
    }
    transaction.remove_custom_config(id);
    Ok(())
}

fn bind(
    transaction: &mut Transaction<'_>,
    id: &str,
    request: &SetCustomizedConfigForLoadBalancerRequest,
    binds: bool,
) -> Result<(), ApiError> {
    let load_balancers = request.load_balancer_ids.as_deref().unwrap_or_default();
    if load_balancers.is_empty() {
        return Err(missing("LoadBalancerIds"));
    }
    check::count("LoadBalancerIds", load_balancers, 1..=MAX_LOAD_BALANCERS)?;
    for bound in load_balancers {
        let load_balancer = transaction.load_balancer_mut(bound, ErrorCode::LbIdNotFound)?;
        match (binds, is_bound(load_balancer, id)) {
            (true, _) => load_balancer.custom_config = Some(id.to_owned()),
            (false, true) => load_balancer.custom_config = None,
            (false, false) => {
                let message = format!("the custom configuration {id} is not bound to {bound}");
                return Err(parameter_error(message));
            }
        }
    }
    Ok(())
}

fn is_bound(load_balancer: &LoadBalancer, config: &str) -> bool {
    load_balancer.custom_config.as_deref() == Some(config)
}

/// Refuses a configuration that does not consist of directives, or a connect timeout out of range.
fn check_content(content: &str) -> Result<(), ApiError> {
    check::length("ConfigContent", content, 1..=MAX_CONTENT)?;
    let Some(directives) = content.trim_end().strip_suffix(';') else {
        return Err(value_error("each directive of a custom configuration ends with a semicolon"));
    };
    for directive in directives.split(';') {
        let mut words = directive.split_whitespace();
        let (Some(name), Some(value)) = (words.next(), words.next()) else {
            return Err(value_error(format!("the directive {:?} has no value", directive.trim())));
        };
        let seconds = value.strip_suffix('s').unwrap_or(value).parse();
        if name == "proxy_connect_timeout"
            && !seconds.is_ok_and(|seconds| CONNECT_TIMEOUT.contains(&seconds))
        {
            let message = format!("proxy_connect_timeout is {value}; 4s to 120s are allowed");
            return Err(value_error(message));
        }
    }
    Ok(())
}

/// `DescribeCustomizedConfigList`. Only load balancers have configurations here, not domains or
/// rules.
pub(in crate::actions) fn describe(
    transaction: &mut Transaction<'_>,
    request: &DescribeCustomizedConfigListRequest,
) -> Result<DescribeCustomizedConfigListResponse, ApiError> {
    check::choice("ConfigType", &request.config_type, &["CLB", "SERVER", "LOCATION"])?;
    let filters = request.filters.clone().unwrap_or_default();
    filter::check(&filters, &["loadbalancer-id", "vip"])?;
    let page = Page::of(request.offset, request.limit, ErrorCode::InvalidParameterValue)?;
    let ids = request.uconfig_ids.clone().unwrap_or_default();
    let name = given(request.config_name.as_ref());
    let load_balancers = transaction.load_balancers();
    let passes = |config: &CustomConfig, filter: &Filter| {
        let mut bound = load_balancers.values().filter(|existing| is_bound(existing, &config.id));
        bound.any(|existing| is_meant(existing, filter))
    };
    let found: Vec<&CustomConfig> = transaction
        .custom_configs()
        .filter(|_| request.config_type == "CLB")
        .filter(|config| ids.is_empty() || ids.contains(&config.id))
        .filter(|config| name.is_none_or(|part| config.name.contains(part)))
        .filter(|config| filters.iter().all(|filter| passes(config, filter)))
        .collect();
    let total_count = i64::try_from(found.len()).ok();
    let config_list = page.take(found).into_iter().map(item).collect();
    Ok(DescribeCustomizedConfigListResponse { config_list: Some(config_list), total_count })
}

fn is_meant(load_balancer: &LoadBalancer, filter: &Filter) -> bool {
    match filter.name.as_str() {
        "loadbalancer-id" => filter.values.contains(&load_balancer.id),
        _ => load_balancer.addresses.iter().any(|vip| filter.values.contains(&vip.to_string())),
    }
}

fn item(config: &CustomConfig) -> ConfigListItem {
    ConfigListItem {
        uconfig_id: Some(config.id.clone()),
        config_type: Some("CLB".to_owned()),
        config_name: Some(config.name.clone()),
        config_content: Some(config.content.clone()),
        create_timestamp: Some(time::written(config.created)),
        update_timestamp: Some(time::written(config.updated)),
    }
}

/// `DescribeCustomizedConfigAssociateList`: lists the load balancers with a configuration. None is
/// bound to a domain.
pub(in crate::actions) fn describe_bound(
    transaction: &mut Transaction<'_>,
    request: &DescribeCustomizedConfigAssociateListRequest,
) -> Result<DescribeCustomizedConfigAssociateListResponse, ApiError> {
    let page = Page::of(request.offset, request.limit, ErrorCode::InvalidParameterValue)?;
    let id = given(request.uconfig_id.as_ref()).ok_or_else(|| missing("UconfigId"))?;
    if transaction.custom_config(id).is_none() {
        return Err(parameter_error(format!("the custom configuration {id} does not exist")));
    }
    let wants_domain = given(request.domain.as_ref()).is_some();
    let load_balancers = transaction.load_balancers().into_values();
    let bound: Vec<&LoadBalancer> =
        load_balancers.filter(|existing| !wants_domain && is_bound(existing, id)).collect();
    let total_count = i64::try_from(bound.len()).ok();
    let items = page.take(bound).into_iter().map(|load_balancer| BindDetailItem {
        load_balancer_id: Some(load_balancer.id.clone()),
        uconfig_id: Some(id.to_owned()),
        ..BindDetailItem::default()
    });
    let bind_list = Some(items.collect());
    Ok(DescribeCustomizedConfigAssociateListResponse { bind_list, total_count })
}
