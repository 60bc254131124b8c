//! Names and addresses: every number has its own.

pub(super) fn node_name(node: u32) -> String {
    node_ip(node)
}

pub(super) fn node_ip(node: u32) -> String {
    format!("10.{}.{}.{}", node / 62_500, node / 250 % 250, 1 + node % 250)
}

pub(super) fn pod_ip(node: u32, host: u32) -> String {
    let at = (node << 6) + host;
    format!("10.{}.{}.{}", 64 + (at >> 16), at >> 8 & 255, at & 255)
}

pub(super) fn service_ip(number: u32) -> String {
    let at = number + 256;
    format!("172.{}.{}.{}", 16 + (at >> 16), at >> 8 & 255, at & 255)
}

pub(super) fn vip(number: u32) -> String {
    format!("10.{}.{}.{}", 32 + (number >> 16), number >> 8 & 255, number & 255)
}

pub(super) fn namespace(service: u32) -> String {
    format!("team-{}", service / 20)
}

pub(super) fn uid(kind: u32, number: u32) -> String {
    format!("{number:08x}-0000-4000-8000-{kind:012x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_apart() {
        assert_eq!(node_ip(5000), "10.0.20.1");
        assert_eq!(pod_ip(1023, 61), "10.64.255.253");
        assert_eq!(pod_ip(1024, 2), "10.65.0.2");
    }
}
