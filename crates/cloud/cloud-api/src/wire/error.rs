//! Errors as the API reports them: a code that programs compare and a message that people read.

use std::fmt;

/// An error that a request is answered with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct ApiError {
    /// The code, which programs compare.
    pub code: ErrorCode,
    /// The message for people.
    pub message: String,
}

impl ApiError {
    /// Returns an error with this code and message.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

/// Declares [`ErrorCode`] with the text of each code.
macro_rules! codes {
    ($($name:ident => $text:literal,)*) => {
        /// The codes that this server sends. Clients compare the whole text.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum ErrorCode {
            $(#[doc = concat!("`", $text, "`")] $name,)*
        }

        impl ErrorCode {
            /// Every code.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// Returns the code as it is sent.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }
    };
}

codes! {
    InvalidAuthorization => "AuthFailure.InvalidAuthorization",
    SecretIdNotFound => "AuthFailure.SecretIdNotFound",
    SignatureExpire => "AuthFailure.SignatureExpire",
    SignatureFailure => "AuthFailure.SignatureFailure",
    TokenFailure => "AuthFailure.TokenFailure",
    FailedOperation => "FailedOperation",
    BoundResources => "FailedOperation.BoundResources",
    CertificateNotFound => "FailedOperation.CertificateNotFound",
    CertificateParseError => "FailedOperation.CertificateParseError",
    EipTrafficCheckRisk => "FailedOperation.EipTrafficCheckRisk",
    FrequencyCheckRisk => "FailedOperation.FrequencyCheckRisk",
    InvalidLbStatus => "FailedOperation.InvalidLBStatus",
    NoListenerInLb => "FailedOperation.NoListenerInLB",
    ResourceInOperating => "FailedOperation.ResourceInOperating",
    TargetNumCheckRisk => "FailedOperation.TargetNumCheckRisk",
    TrafficCheckRisk => "FailedOperation.TrafficCheckRisk",
    InternalError => "InternalError",
    InvalidAction => "InvalidAction",
    InvalidAddressIdNotFound => "InvalidAddressId.NotFound",
    InvalidFilter => "InvalidFilter",
    FilterValueLimitExceeded => "InvalidFilterValue.LimitExceeded",
    InvalidInstanceIdMalformed => "InvalidInstanceId.Malformed",
    InvalidInstanceIdNotFound => "InvalidInstanceId.NotFound",
    InvalidParameter => "InvalidParameter",
    ClientTokenLimitExceeded => "InvalidParameter.ClientTokenLimitExceeded",
    Coexist => "InvalidParameter.Coexist",
    FilterInvalidKey => "InvalidParameter.FilterInvalidKey",
    FormatError => "InvalidParameter.FormatError",
    LbIdNotFound => "InvalidParameter.LBIdNotFound",
    ListenerIdNotFound => "InvalidParameter.ListenerIdNotFound",
    LocationNotFound => "InvalidParameter.LocationNotFound",
    PaginationTokenInvalid => "InvalidParameter.PaginationTokenInvalid",
    PortCheckFailed => "InvalidParameter.PortCheckFailed",
    ProtocolCheckFailed => "InvalidParameter.ProtocolCheckFailed",
    RegionNotFound => "InvalidParameter.RegionNotFound",
    RewriteAlreadyExist => "InvalidParameter.RewriteAlreadyExist",
    SomeRewriteNotFound => "InvalidParameter.SomeRewriteNotFound",
    InvalidParameterCombination => "InvalidParameterCombination",
    InvalidParameterValue => "InvalidParameterValue",
    ValueDuplicate => "InvalidParameterValue.Duplicate",
    ValueInvalidFilter => "InvalidParameterValue.InvalidFilter",
    ValueLength => "InvalidParameterValue.Length",
    ValueLimitExceeded => "InvalidParameterValue.LimitExceeded",
    ValueRange => "InvalidParameterValue.Range",
    RegionInvalid => "InvalidParameterValue.RegionInvalid",
    ReservedTagKey => "InvalidParameterValue.ReservedTagKey",
    ResourceDescriptionError => "InvalidParameterValue.ResourceDescriptionError",
    ResourceIdInvalid => "InvalidParameterValue.ResourceIdInvalid",
    ResourcePrefixInvalid => "InvalidParameterValue.ResourcePrefixInvalid",
    ServiceTypeInvalid => "InvalidParameterValue.ServiceTypeInvalid",
    TagFiltersLengthExceeded => "InvalidParameterValue.TagFiltersLengthExceeded",
    TagKeyDuplicate => "InvalidParameterValue.TagKeyDuplicate",
    TagKeyEmpty => "InvalidParameterValue.TagKeyEmpty",
    TagKeyLengthExceeded => "InvalidParameterValue.TagKeyLengthExceeded",
    TagValueLengthExceeded => "InvalidParameterValue.TagValueLengthExceeded",
    UinInvalid => "InvalidParameterValue.UinInvalid",
    InvalidParameterValueLimit => "InvalidParameterValueLimit",
    InvalidParameterValueOffset => "InvalidParameterValueOffset",
    InvalidRequest => "InvalidRequest",
    LimitExceeded => "LimitExceeded",
    ResourceAttachedTags => "LimitExceeded.ResourceAttachedTags",
    ResourceNumPerRequest => "LimitExceeded.ResourceNumPerRequest",
    TagNumPerRequest => "LimitExceeded.TagNumPerRequest",
    MissingParameter => "MissingParameter",
    NoSuchVersion => "NoSuchVersion",
    OperationDenied => "OperationDenied",
    RequestLimitExceeded => "RequestLimitExceeded",
    RequestSizeLimitExceeded => "RequestSizeLimitExceeded",
    ResourceInsufficient => "ResourceInsufficient",
    ResourceNotFound => "ResourceNotFound",
    ResourceUnavailable => "ResourceUnavailable",
    ServiceUnavailable => "ServiceUnavailable",
    UnauthorizedOperation => "UnauthorizedOperation",
    UnknownParameter => "UnknownParameter",
    UnsupportedOperation => "UnsupportedOperation",
    UnsupportedProtocol => "UnsupportedProtocol",
    UnsupportedRegion => "UnsupportedRegion",
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl From<(ErrorCode, String)> for ApiError {
    fn from((code, message): (ErrorCode, String)) -> Self {
        Self { code, message }
    }
}
