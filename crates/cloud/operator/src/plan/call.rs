//! Calls, with names for ids that are not known before earlier calls are done.

use uturn_cloud::api::clb::CreateLoadBalancerRequest;
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
    /// `SetLoadBalancerSecurityGroups`: all of them.
    SetSecurityGroups(Vec<String>),
    /// `CreateLoadBalancerSnatIps`.
    CreateSnatAddresses(Vec<SnatAddress>),
    /// `CreateListener`.
    CreateListener {
        /// The port.
        key: ListenerKey,
        /// What it speaks.
        protocol: ListenerProtocol,
        /// How it behaves.
        settings: Box<ListenerSettings>,
        /// Its certificate.
        certificate: Option<Certificate>,
        /// Whether its domains have certificates of their own.
        sni: bool,
    },
    /// `ModifyListener`.
    ModifyListener {
        /// Its id.
        id: String,
        /// The port.
        key: ListenerKey,
        /// What changes.
        settings: Box<ListenerSettings>,
        /// The certificate, if it changes.
        certificate: Option<Certificate>,
        /// Whether its domains get certificates of their own, which cannot be undone.
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
        /// What changes.
        settings: Box<RuleSettings>,
    },
    /// `ModifyDomainAttributes`.
    ModifyDomain {
        /// The listener's id.
        listener: String,
        /// The domain as the API has it.
        domain: String,
        /// What changes.
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
        /// The rules, with their ids and those of the rules that they are redirected to.
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
    /// Whether it changes targets and nothing else.
    pub fn is_on_targets(&self) -> bool {
        matches!(self, Self::Register(_) | Self::Weigh(_) | Self::Deregister(_))
    }

    /// The name of the action.
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
    /// How it behaves.
    pub settings: RuleSettings,
    /// How its domain behaves.
    pub domain: DomainSettings,
}

/// A redirect that is created.
#[derive(Clone, Debug, PartialEq)]
pub struct NewRedirect {
    /// The rule that is redirected.
    pub from: RuleRef,
    /// The rule that it is redirected to.
    pub to: RuleRef,
    /// The status.
    pub code: u16,
    /// Whether the path that was asked for is kept.
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
    /// Its weight.
    pub weight: u8,
}

/// A listener of the load balancer that a plan is for.
#[derive(Clone, Debug, PartialEq)]
pub struct ListenerRef {
    /// The port.
    pub key: ListenerKey,
    /// Its id; `None` if an earlier call creates it.
    pub id: Option<String>,
}

/// A rule of the load balancer that a plan is for.
#[derive(Clone, Debug, PartialEq)]
pub struct RuleRef {
    /// Its listener.
    pub listener: ListenerKey,
    /// The rule.
    pub key: RuleKey,
    /// Its id; `None` if an earlier call creates it.
    pub id: Option<String>,
}
