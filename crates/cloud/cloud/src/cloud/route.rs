//! Finds the action and the service that a request is for, and its parameters.

use serde_json::{Map, Value};
use uturn_cloud_api::schema::{Service, query, services};
use uturn_cloud_api::wire::error::{ApiError, ErrorCode};

use crate::authorization::{Caller, Received};
use crate::inventory::Inventory;

/// The longest query string of a GET.
const MAX_QUERY: usize = 32 << 10;
/// The longest body of a POST.
pub(crate) const MAX_BODY: usize = 10 << 20;

/// The services whose resources belong to no region.
const GLOBAL: [&str; 4] = ["tag", "cam", "ssl", "sts"];
/// The actions of these services that nevertheless have a region.
const REGIONAL: [&str; 2] = ["DeployCertificateInstance", "DescribeHostDeployRecordDetail"];
/// The actions of other services that have no region.
const WITHOUT_REGION: [&str; 1] = ["DescribeRegions"];

/// Refuses requests with another method than GET and POST.
pub(super) fn check_method(request: &Received<'_>) -> Result<(), ApiError> {
    if ["GET", "POST"].contains(&request.method) {
        return Ok(());
    }
    let message = format!("requests are sent with GET or POST, not {}", request.method);
    Err(ApiError::new(ErrorCode::UnsupportedProtocol, message))
}

/// Refuses requests with another method than GET and POST, and those that are too large.
pub(super) fn check_size(request: &Received<'_>) -> Result<(), ApiError> {
    check_method(request)?;
    let (what, length, limit) = match request.method {
        "GET" => ("query string", request.query.len(), MAX_QUERY),
        _ => ("body", request.body.len(), MAX_BODY),
    };
    if length > limit {
        let message = format!("the {what} has {length} bytes; {limit} are allowed");
        return Err(ApiError::new(ErrorCode::RequestSizeLimitExceeded, message));
    }
    Ok(())
}

/// The action that a request is for.
#[derive(Debug)]
pub(super) struct Route {
    pub(super) service: &'static Service,
    pub(super) action: &'static str,
}

impl Route {
    /// Finds the service by the version of its API and the action. The service in the credential's
    /// scope counts only if it is the name of a service: some clients derive it from the address
    /// that they send to.
    pub(super) fn of(request: &Received<'_>, caller: &Caller) -> Result<Self, ApiError> {
        let version = required(request, "X-TC-Version")?;
        let action = required(request, "X-TC-Action")?;
        let named = services().iter().find(|service| service.name == caller.service);
        let candidates: Vec<&'static Service> = match named {
            Some(service) => vec![service],
            None => services().iter().collect(),
        };
        let mut of_version =
            candidates.into_iter().filter(|service| service.version == version).peekable();
        if of_version.peek().is_none() {
            let message = match named {
                Some(service) => {
                    format!("{} has the version {}, not {version}", service.name, service.version)
                }
                None => format!("no service here has the version {version}"),
            };
            return Err(ApiError::new(ErrorCode::NoSuchVersion, message));
        }
        let found = of_version.find_map(|service| Some((service, service.actions.get(action)?)));
        let (service, action) = found.ok_or_else(|| {
            ApiError::new(ErrorCode::InvalidAction, format!("there is no action {action}"))
        })?;
        Ok(Self { service, action })
    }

    /// Returns whether the action only reads, judging by its name. If such an action leaves changes
    /// nevertheless, it is run again as a write.
    pub(super) fn only_reads(&self) -> bool {
        ["Describe", "Get", "List"].iter().any(|prefix| self.action.starts_with(prefix))
    }

    /// Returns the region of the request; the empty text for services without regions.
    pub(super) fn region<'a>(
        &self,
        request: &Received<'a>,
        inventory: &Inventory,
    ) -> Result<&'a str, ApiError> {
        let is_global = GLOBAL.contains(&self.service.name.as_str());
        if is_global && !REGIONAL.contains(&self.action) || WITHOUT_REGION.contains(&self.action) {
            return Ok("");
        }
        let region = required(request, "X-TC-Region")?;
        if !inventory.has_region(region) {
            let message = format!("there is no region {region}");
            return Err(ApiError::new(ErrorCode::UnsupportedRegion, message));
        }
        Ok(region)
    }

    /// Returns the parameters, checked against the schema.
    pub(super) fn parameters(&self, request: &Received<'_>) -> Result<Value, ApiError> {
        let object = self.service.request(self.action).unwrap_or_default();
        let parameters = match request.method {
            "GET" => query::parameters(self.service, object, request.query)?,
            _ if request.body.is_empty() => Value::Object(Map::new()),
            _ => serde_json::from_slice(request.body).map_err(|error| {
                let message = format!("the body is not JSON: {error}");
                ApiError::new(ErrorCode::InvalidParameter, message)
            })?,
        };
        self.service.check(object, &parameters)?;
        Ok(parameters)
    }
}

fn required<'a>(request: &Received<'a>, name: &str) -> Result<&'a str, ApiError> {
    request.header(name).filter(|value| !value.is_empty()).ok_or_else(|| {
        ApiError::new(ErrorCode::MissingParameter, format!("the header {name} is missing"))
    })
}
