//! The implementations of load balancers: clouds, and controllers for clusters without a cloud.
//!
//! A row is only a name: the behaviour of load balancers is described by a profile, and only
//! Tencent's have one yet.

use std::fmt;

/// A cloud, or a load balancer implementation for clusters without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each is the cloud or the program of that name")]
pub enum Cloud {
    Aws,
    Azure,
    Gcp,
    Alibaba,
    Huawei,
    OpenStack,
    DigitalOcean,
    Hetzner,
    Linode,
    Scaleway,
    Vultr,
    Exoscale,
    Oracle,
    Ibm,
    MetalLb,
    KubeVip,
    K3s,
    CiliumLbIpam,
    F5,
}

impl Cloud {
    /// All of them, with their word in Facts and the vendor's spelling.
    pub const ALL: [(Self, &'static str, &'static str); 19] = [
        (Self::Aws, "aws", "AWS"),
        (Self::Azure, "azure", "Azure"),
        (Self::Gcp, "gcp", "Google Cloud"),
        (Self::Alibaba, "alibaba", "Alibaba Cloud"),
        (Self::Huawei, "huawei", "Huawei Cloud"),
        (Self::OpenStack, "openstack", "OpenStack"),
        (Self::DigitalOcean, "digitalocean", "DigitalOcean"),
        (Self::Hetzner, "hetzner", "Hetzner"),
        (Self::Linode, "linode", "Linode"),
        (Self::Scaleway, "scaleway", "Scaleway"),
        (Self::Vultr, "vultr", "Vultr"),
        (Self::Exoscale, "exoscale", "Exoscale"),
        (Self::Oracle, "oracle", "Oracle Cloud"),
        (Self::Ibm, "ibm", "IBM Cloud"),
        (Self::MetalLb, "metallb", "MetalLB"),
        (Self::KubeVip, "kube-vip", "kube-vip"),
        (Self::K3s, "k3s", "K3s ServiceLB"),
        (Self::CiliumLbIpam, "cilium", "Cilium"),
        (Self::F5, "f5", "F5"),
    ];

    fn row(self) -> (Self, &'static str, &'static str) {
        let row = Self::ALL.into_iter().find(|(cloud, ..)| *cloud == self);
        row.expect("every cloud is listed")
    }

    /// The word in Facts: `aws`.
    pub fn word(self) -> &'static str {
        self.row().1
    }

    /// The vendor's name: `AWS`.
    pub fn name(self) -> &'static str {
        self.row().2
    }

    /// The vendor's name for the firewall around nodes, if known.
    pub fn node_firewall(self) -> Option<&'static str> {
        match self {
            Self::Aws | Self::OpenStack | Self::Huawei | Self::Alibaba => Some("security group"),
            Self::Azure => Some("network security group"),
            Self::Gcp => Some("VPC firewall"),
            Self::Oracle => Some("security list"),
            _ => None,
        }
    }
}

impl fmt::Display for Cloud {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_cloud_has_a_word_and_a_name_of_its_own() {
        let words: BTreeSet<&str> = Cloud::ALL.iter().map(|(cloud, ..)| cloud.word()).collect();
        let names: BTreeSet<&str> = Cloud::ALL.iter().map(|(cloud, ..)| cloud.name()).collect();
        assert_eq!((words.len(), names.len()), (Cloud::ALL.len(), Cloud::ALL.len()));
    }
}
