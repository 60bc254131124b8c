//! The calls of a plan. They refer by keys to objects whose ids are not known before earlier calls
//! are done.

use uturn_cloud_api::clb::CreateLoadBalancerRequest;
use uturn_model::lb::ListenerProtocol;

use crate::clb::{
    BalancerSettings, Certificate, DomainSettings, ListenerKey, ListenerSettings, RuleKey,
    RuleSettings, SnatAddress, TargetKey,
};

/// The request that creates a load balancer.
pub type Creation = CreateLoadBalancerRequest;

/// A call on a load balancer.
#[derive(Clone, Debug, PartialEq)]
pub enum Call {
    /// `CreateLoadBalancer`.
    CreateBalancer(Box<Creation>),
    /// `DeleteLoadBalancer`.
    DeleteBalancer,
    /// `ModifyLoadBalancerAttributes`.
    ModifyBalancer(BalancerSettings),
    /// `SetLoadBalancerSecurityGroups`, with all groups that remain.
    SetSecurityGroups(Vec<String>),
    /// `CreateLoadBalancerSnatIps`.
    CreateSnatAddresses(Vec<SnatAddress>),
    /// `CreateListener`.
    CreateListener {
        /// The port and the transport protocol.
        key: ListenerKey,
        /// The protocol that clients speak.
        protocol: ListenerProtocol,
        /// The settings.
        settings: Box<ListenerSettings>,
        /// The certificate.
        certificate: Option<Certificate>,
        /// Whether the domains have their own certificates.
        sni: bool,
    },
    /// `ModifyListener`.
    ModifyListener {
        /// The id.
        id: String,
        /// The port and the transport protocol.
        key: ListenerKey,
        /// The settings that change.
        settings: Box<ListenerSettings>,
        /// The certificate, if it changes.
        certificate: Option<Certificate>,
        /// Whether domains get their own certificates from now on, which cannot be undone.
        turns_sni_on: bool,
    },
    /// `DeleteLoadBalancerListeners`.
    DeleteListeners(Vec<(ListenerKey, String)>),
    /// `CreateRule`.
    CreateRules {
        /// The listener.
        listener: ListenerRef,
        /// The rules.
        rules: Vec<NewRule>,
    },
    /// `ModifyRule`.
    ModifyRule {
        /// The listener's id.
        listener: String,
        /// The rule's id.
        id: String,
        /// The rule.
        key: RuleKey,
        /// The settings that change.
        settings: Box<RuleSettings>,
    },
    /// `ModifyDomainAttributes`.
    ModifyDomain {
        /// The listener's id.
        listener: String,
        /// The domain in the API's form.
        domain: String,
        /// The settings that change.
        settings: DomainSettings,
    },
    /// `DeleteRule`.
    DeleteRules {
        /// The listener's id.
        listener: String,
        /// The rules.
        rules: Vec<(RuleKey, String)>,
    },
    /// `ManualRewrite`.
    Redirect {
        /// The listener whose rules are redirected.
        from: ListenerRef,
        /// The listener that they are redirected to.
        to: ListenerRef,
        /// The rules.
        rules: Vec<NewRedirect>,
    },
    /// `DeleteRewrite`.
    RemoveRedirects {
        /// The id of the listener whose rules are redirected.
        from: String,
        /// The id of the listener that they are redirected to.
        to: String,
        /// The rules with their ids, each with the id of the rule that it is redirected to.
        rules: Vec<(RuleKey, String, String)>,
    },
    /// `BatchRegisterTargets`.
    Register(Vec<Binding>),
    /// `BatchModifyTargetWeight`.
    Weigh(Vec<Binding>),
    /// `BatchDeregisterTargets`.
    Deregister(Vec<Binding>),
}

impl Call {
    /// Returns whether the call changes only targets.
    pub fn is_on_targets(&self) -> bool {
        matches!(self, Self::Register(_) | Self::Weigh(_) | Self::Deregister(_))
    }

    /// Returns the name of the action.
    pub fn action(&self) -> &'static str {
        match self {
            Self::CreateBalancer(_) => "CreateLoadBalancer",
            Self::DeleteBalancer => "DeleteLoadBalancer",
            Self::ModifyBalancer(_) => "ModifyLoadBalancerAttributes",
            Self::SetSecurityGroups(_) => "SetLoadBalancerSecurityGroups",
            Self::CreateSnatAddresses(_) => "CreateLoadBalancerSnatIps",
            Self::CreateListener { .. } => "CreateListener",
            Self::ModifyListener { .. } => "ModifyListener",
            Self::DeleteListeners(_) => "DeleteLoadBalancerListeners",
            Self::CreateRules { .. } => "CreateRule",
            Self::ModifyRule { .. } => "ModifyRule",
            Self::ModifyDomain { .. } => "ModifyDomainAttributes",
            Self::DeleteRules { .. } => "DeleteRule",
            Self::Redirect { .. } => "ManualRewrite",
            Self::RemoveRedirects { .. } => "DeleteRewrite",
            Self::Register(_) => "BatchRegisterTargets",
            Self::Weigh(_) => "BatchModifyTargetWeight",
            Self::Deregister(_) => "BatchDeregisterTargets",
        }
    }
}

/// A rule that is created.
#[derive(Clone, Debug, PartialEq)]
pub struct NewRule {
    /// The rule.
    pub key: RuleKey,
    /// The settings of the rule.
    pub settings: RuleSettings,
    /// The settings of the rule's domain.
    pub domain: DomainSettings,
}

/// A redirect that is created.
#[derive(Clone, Debug, PartialEq)]
pub struct NewRedirect {
    /// The rule that redirects.
    pub from: RuleRef,
    /// The rule that serves the new URL.
    pub to: RuleRef,
    /// The status.
    pub code: u16,
    /// Whether the path of the request is kept.
    pub keeps_url: bool,
}

/// A target of a listener or a rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Binding {
    /// The listener.
    pub listener: ListenerRef,
    /// The rule; `None` on layer 4.
    pub rule: Option<RuleRef>,
    /// The target.
    pub target: TargetKey,
    /// The weight of the target.
    pub weight: u8,
}

/// A listener of the load balancer that a plan is for.
#[derive(Clone, Debug, PartialEq)]
pub struct ListenerRef {
    /// The port and the transport protocol.
    pub key: ListenerKey,
    /// The id; `None` if an earlier call creates the listener.
    pub id: Option<String>,
}

/// A rule of the load balancer that a plan is for.
#[derive(Clone, Debug, PartialEq)]
pub struct RuleRef {
    /// The key of the rule's listener.
    pub listener: ListenerKey,
    /// The rule.
    pub key: RuleKey,
    /// The id; `None` if an earlier call creates the rule.
    pub id: Option<String>,
}
