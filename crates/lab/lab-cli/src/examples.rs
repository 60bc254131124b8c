//! The built-in examples.

use uturn_snapshot::Source;

/// Returns the manifests of an example.
pub(crate) fn manifests(name: &str) -> Vec<Source> {
    let file = |(path, text): &(&str, &str)| Source {
        name: format!("examples/{path}").into(),
        text: (*text).to_owned(),
    };
    let of_example = |(path, _): &&(&str, &str)| {
        path.strip_prefix(name).is_some_and(|rest| rest.starts_with('/'))
    };
    FILES.iter().filter(of_example).map(file).collect()
}

const FILES: [(&str, &str); 5] = [
    ("shop/api.yaml", include_str!("../../../../examples/shop/api.yaml")),
    ("shop/front.yaml", include_str!("../../../../examples/shop/front.yaml")),
    ("shop/kube-system.yaml", include_str!("../../../../examples/shop/kube-system.yaml")),
    ("shop/nodes.yaml", include_str!("../../../../examples/shop/nodes.yaml")),
    ("shop/web.yaml", include_str!("../../../../examples/shop/web.yaml")),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shop_is_whole() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../examples/shop");
        let files = std::fs::read_dir(folder).unwrap().count();
        assert_eq!(manifests("shop").len(), files);
        assert!(manifests("sho").is_empty());
    }
}
