//! Targets as requests name them: a port, and either an instance or the address of an interface.

use std::net::IpAddr;

use uturn_cloud_api::clb;
use uturn_cloud_api::wire::error::ApiError;

use crate::actions::check;
use crate::inventory::Inventory;
use crate::state::{Target, TargetHolder};

/// The weight of a target for which the request sets none.
const DEFAULT_WEIGHT: u8 = 10;

/// A target as a request names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NamedTarget {
    pub(super) holder: TargetHolder,
    pub(super) port: u16,
    pub(super) weight: Option<u8>,
    pub(super) tag: Option<String>,
}

impl NamedTarget {
    /// Reads a target whose parameter is `path`, such as `Targets.0`.
    ///
    /// # Errors
    ///
    /// Returns `InvalidParameter` for a target with both or neither of instance and address, and
    /// `InvalidParameterValue` for an invalid port, weight or address.
    pub(super) fn read(target: &clb::Target, path: &str) -> Result<Self, ApiError> {
        Self::from_parts(
            path,
            target.port,
            target.instance_id.as_ref(),
            target.eni_ip.as_ref(),
            target.weight,
            target.tag.as_ref(),
        )
    }

    /// Reads a target of a batch.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`Self::read`].
    pub(super) fn read_batch(target: &clb::BatchTarget, path: &str) -> Result<Self, ApiError> {
        Self::from_parts(
            path,
            target.port,
            target.instance_id.as_ref(),
            target.eni_ip.as_ref(),
            target.weight,
            target.tag.as_ref(),
        )
    }

    fn from_parts(
        path: &str,
        port: i64,
        instance: Option<&String>,
        address: Option<&String>,
        weight: Option<i64>,
        tag: Option<&String>,
    ) -> Result<Self, ApiError> {
        let holder = match (check::given(instance), check::given(address)) {
            (Some(id), None) => TargetHolder::Instance(id.to_owned()),
            (None, Some(address)) => {
                let address: IpAddr = address.parse().map_err(|_| {
                    check::value_error(format!(
                        "the parameter `{path}.EniIp` is {address:?}, not an IP address"
                    ))
                })?;
                TargetHolder::Interface(address)
            }
            _ => {
                return Err(check::parameter_error(format!(
                    "`{path}` needs exactly one of `InstanceId` and `EniIp`"
                )));
            }
        };
        let weight =
            weight.map(|value| read_weight(&format!("{path}.Weight"), value)).transpose()?;
        Ok(Self {
            holder,
            port: check::port(&format!("{path}.Port"), port)?,
            weight,
            tag: tag.cloned(),
        })
    }

    /// Refuses an instance that does not exist.
    ///
    /// # Errors
    ///
    /// Returns `InvalidParameterValue`.
    pub(super) fn check_exists(&self, inventory: &Inventory, region: &str) -> Result<(), ApiError> {
        match &self.holder {
            TargetHolder::Instance(id) if inventory.instance(region, id).is_none() => {
                Err(check::value_error(format!("the instance {id} does not exist")))
            }
            _ => Ok(()),
        }
    }

    /// Returns whether the request means this target.
    pub(super) fn is(&self, target: &Target) -> bool {
        target.is_same(&self.holder, self.port)
    }

    /// Returns the target, registered at this time.
    pub(super) fn bind(&self, now: jiff::Timestamp) -> Target {
        Target {
            holder: self.holder.clone(),
            port: self.port,
            weight: self.weight.unwrap_or(DEFAULT_WEIGHT),
            tag: self.tag.clone(),
            registered: now,
        }
    }

    /// Returns the target's name in messages.
    pub(super) fn describe(&self) -> String {
        let port = self.port;
        match &self.holder {
            TargetHolder::Instance(id) => format!("{id}:{port}"),
            TargetHolder::Interface(IpAddr::V4(address)) => format!("{address}:{port}"),
            TargetHolder::Interface(IpAddr::V6(address)) => format!("[{address}]:{port}"),
        }
    }
}

/// Reads a weight.
///
/// # Errors
///
/// Returns `InvalidParameterValue` for a number outside 0 to 100.
pub(super) fn read_weight(parameter: &str, value: i64) -> Result<u8, ApiError> {
    u8::try_from(value).ok().filter(|weight| *weight <= 100).ok_or_else(|| {
        check::value_error(format!("the parameter `{parameter}` is {value}; 0 to 100 are allowed"))
    })
}

/// Reads the targets of a request.
///
/// # Errors
///
/// Returns `InvalidParameterValue.Length` for no targets or more than `most`,
/// `InvalidParameterValue.Duplicate` for a target that is named twice, and the errors of
/// [`NamedTarget::read`].
pub(super) fn read_all(
    targets: &[clb::Target],
    path: &str,
    most: usize,
) -> Result<Vec<NamedTarget>, ApiError> {
    check::count(path, targets, 1..=most)?;
    let mut named: Vec<NamedTarget> = Vec::with_capacity(targets.len());
    for (index, target) in targets.iter().enumerate() {
        let target = NamedTarget::read(target, &format!("{path}.{index}"))?;
        if named.iter().any(|known| known.holder == target.holder && known.port == target.port) {
            return Err(duplicate(&format!("{} is named twice", target.describe())));
        }
        named.push(target);
    }
    Ok(named)
}

/// Returns the error for a target that is already bound.
pub(super) fn duplicate(message: &str) -> ApiError {
    ApiError::new(uturn_cloud_api::wire::error::ErrorCode::ValueDuplicate, message)
}
