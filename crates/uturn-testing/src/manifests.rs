//! The network and the nodes of the small clusters that tests are about.

/// The `spec.network` of Facts: nodes in 10.0.0.0/16, pods in 10.1.0.0/16 and Services in
/// 172.16.0.0/16.
pub const NETWORK: &str = "{mode: global-router, podCIDRs: [10.1.0.0/16], \
                           vpcCIDRs: [10.0.0.0/16], serviceCIDRs: [172.16.0.0/16]}";

/// A Facts document that states [`NETWORK`] and these fields of `spec`.
pub fn facts(fields: &[&str]) -> String {
    let fields: String = fields.iter().map(|field| format!("  {field}\n")).collect();
    format!(
        "---\napiVersion: uturn.dev/v1alpha1\nkind: Facts\nspec:\n  network: {NETWORK}\n{fields}"
    )
}

/// The Node `nN`: its address is 10.0.0.1N, its pods are in 10.1.N.0/24.
pub fn node(number: u8) -> String {
    format!(
        "---
apiVersion: v1
kind: Node
metadata: {{name: n{number}}}
spec: {{podCIDR: 10.1.{number}.0/24}}
status: {{addresses: [{{type: InternalIP, address: 10.0.0.{}}}]}}
",
        10 + number
    )
}
