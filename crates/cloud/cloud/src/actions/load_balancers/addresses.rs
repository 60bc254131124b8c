//! Assigns addresses to load balancers: those that were asked for, or free ones.

use std::collections::BTreeSet;
use std::net::IpAddr;

use uturn_cloud_api::wire::error::{ApiError, ErrorCode};

use crate::actions::check::value_error;
use crate::state::{Context, SnatAddress, Transaction};

/// The addresses in use, including those that this request has assigned.
#[derive(Debug)]
pub(super) struct AddressPool {
    in_use: BTreeSet<IpAddr>,
}

impl AddressPool {
    /// Returns the pool. All accounts share addresses, since one data plane serves them all.
    pub(super) fn of(transaction: &Transaction<'_>) -> Self {
        Self { in_use: transaction.addresses_in_use() }
    }

    /// Assigns a public address: the requested one, or a free one.
    pub(super) fn public(
        &mut self,
        context: &Context<'_>,
        is_v6: bool,
        wanted: Option<IpAddr>,
    ) -> Result<IpAddr, ApiError> {
        let Context { inventory, region, .. } = context;
        let free = |in_use: &BTreeSet<IpAddr>| {
            inventory.public_address(region, is_v6, |address| match wanted {
                Some(wanted) => address != wanted,
                None => in_use.contains(&address),
            })
        };
        let message = "there is no public address left";
        let found =
            self.check(wanted, free(&self.in_use), ErrorCode::ResourceInsufficient, message)?;
        self.in_use.insert(found);
        Ok(found)
    }

    /// Assigns an address of a subnet: the requested one, or a free one. `exhausted` is the error
    /// code for a subnet without free addresses, which differs between actions.
    pub(super) fn private(
        &mut self,
        context: &Context<'_>,
        subnet: &str,
        is_v6: bool,
        wanted: Option<IpAddr>,
        exhausted: ErrorCode,
    ) -> Result<IpAddr, ApiError> {
        let Context { inventory, region, .. } = context;
        let free = |in_use: &BTreeSet<IpAddr>| {
            inventory.private_address(region, subnet, is_v6, |address| match wanted {
                Some(wanted) => address != wanted,
                None => in_use.contains(&address),
            })
        };
        let found = match wanted {
            // An open inventory has every address in every subnet.
            Some(wanted) if inventory.stated_region(region).is_none() => Some(wanted),
            Some(_) | None => free(&self.in_use),
        };
        let message = format!("the subnet {subnet} has no address left");
        let found = self.check(wanted, found, exhausted, &message)?;
        self.in_use.insert(found);
        Ok(found)
    }

    fn check(
        &self,
        wanted: Option<IpAddr>,
        found: Option<IpAddr>,
        exhausted: ErrorCode,
        message: &str,
    ) -> Result<IpAddr, ApiError> {
        match (wanted, found) {
            (Some(wanted), None) => {
                Err(value_error(format!("the address {wanted} is not there to be given out")))
            }
            (Some(wanted), Some(_)) if self.in_use.contains(&wanted) => {
                let message = format!("the address {wanted} is in use");
                Err(ApiError::new(ErrorCode::FailedOperation, message))
            }
            (_, Some(found)) => Ok(found),
            (None, None) => Err(ApiError::new(exhausted, message)),
        }
    }

    /// Assigns an address that replaces clients' addresses.
    pub(super) fn snat(
        &mut self,
        context: &Context<'_>,
        subnet: &str,
        wanted: Option<&str>,
    ) -> Result<SnatAddress, ApiError> {
        let region = context.region;
        if context.inventory.network_of_subnet(region, subnet, None).is_none() {
            return Err(value_error(format!("the subnet {subnet} does not exist")));
        }
        let wanted = wanted.map(|text| {
            text.parse().map_err(|_| value_error(format!("{text:?} is not an address")))
        });
        let wanted = wanted.transpose()?;
        let is_v6 = wanted.is_some_and(|address: IpAddr| address.is_ipv6());
        let code = ErrorCode::FailedOperation;
        let ip = self.private(context, subnet, is_v6, wanted, code)?;
        Ok(SnatAddress { subnet: subnet.to_owned(), ip })
    }
}
