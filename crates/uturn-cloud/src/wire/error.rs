//! Errors as the API reports them: a code that programs compare and a message that people read.

use std::fmt;

/// An error that a request is answered with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct ApiError {
    /// What programs compare.
    pub code: ErrorCode,
    /// What people read.
    pub message: String,
}

impl ApiError {
    /// An error with this code and message.
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

            /// The code as it is sent.
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
    EipTrafficCheckRisk => "FailedOperation.EipTrafficCheckRisk",
    FrequencyCheckRisk => "FailedOperation.FrequencyCheckRisk",
    InvalidLbStatus => "FailedOperation.InvalidLBStatus",
    NoListenerInLb => "FailedOperation.NoListenerInLB",
    ResourceInOperating => "FailedOperation.ResourceInOperating",
    TargetNumCheckRisk => "FailedOperation.TargetNumCheckRisk",
    TrafficCheckRisk => "FailedOperation.TrafficCheckRisk",
    InternalError => "InternalError",
    InvalidAction => "InvalidAction",
    InvalidParameter => "InvalidParameter",
    ClientTokenLimitExceeded => "InvalidParameter.ClientTokenLimitExceeded",
    FormatError => "InvalidParameter.FormatError",
    LbIdNotFound => "InvalidParameter.LBIdNotFound",
    ListenerIdNotFound => "InvalidParameter.ListenerIdNotFound",
    LocationNotFound => "InvalidParameter.LocationNotFound",
    PortCheckFailed => "InvalidParameter.PortCheckFailed",
    ProtocolCheckFailed => "InvalidParameter.ProtocolCheckFailed",
    RegionNotFound => "InvalidParameter.RegionNotFound",
    RewriteAlreadyExist => "InvalidParameter.RewriteAlreadyExist",
    SomeRewriteNotFound => "InvalidParameter.SomeRewriteNotFound",
    InvalidParameterValue => "InvalidParameterValue",
    ValueDuplicate => "InvalidParameterValue.Duplicate",
    ValueInvalidFilter => "InvalidParameterValue.InvalidFilter",
    ValueLength => "InvalidParameterValue.Length",
    ValueRange => "InvalidParameterValue.Range",
    InvalidRequest => "InvalidRequest",
    LimitExceeded => "LimitExceeded",
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
