//! Rules in the form of answers.

use uturn_cloud_api::clb::{RewriteTarget, RuleOutput};

use crate::actions::{certificates, health_check, time};
use crate::state::{Listener, Redirection, Rule};

/// Returns a rule in the form of `DescribeListeners` and `DescribeRewrite`.
pub(in crate::actions) fn view(listener: &Listener, rule: &Rule) -> RuleOutput {
    let domain = rule.domains.first();
    let probed = domain.filter(|domain| !domain.contains(['*', '~']));
    let quic = if rule.quic { "QUIC_ACTIVE" } else { "QUIC_INACTIVE" };
    RuleOutput {
        location_id: Some(rule.id.clone()),
        domain: domain.cloned(),
        url: Some(rule.url.clone()),
        session_expire_time: Some(rule.session_seconds.into()),
        health_check: Some(health_check::view(&rule.health_check, probed.map(String::as_str))),
        certificate: rule.certificate.as_ref().map(certificates::view),
        scheduler: Some(rule.scheduler.as_str().to_owned()),
        listener_id: Some(listener.id.clone()),
        rewrite_target: Some(rule.redirection.as_ref().map(rewrite_target).unwrap_or_default()),
        http_gzip: Some(false),
        be_auto_created: Some(
            rule.redirection.as_ref().is_some_and(|redirection| redirection.is_automatic),
        ),
        default_server: Some(rule.is_default_server),
        http2: Some(rule.http2),
        forward_type: Some(rule.forward_type.clone()),
        create_time: Some(time::written(rule.created)),
        target_type: Some("NODE".to_owned()),
        target_group: None,
        waf_domain_id: None,
        trpc_callee: None,
        trpc_func: None,
        quic_status: Some(quic.to_owned()),
        domains: Some(rule.domains.clone()),
        target_group_list: None,
        o_auth: None,
        cookie_name: rule.cookie.clone(),
    }
}

fn rewrite_target(redirection: &Redirection) -> RewriteTarget {
    let rewrite_type = if redirection.is_automatic { "Auto" } else { "Manual" };
    RewriteTarget {
        target_listener_id: Some(redirection.listener.clone()),
        target_location_id: Some(redirection.rule.clone()),
        rewrite_code: Some(redirection.code.into()),
        take_url: Some(redirection.keeps_url),
        rewrite_type: Some(rewrite_type.to_owned()),
    }
}
