//! The parts of a container's image: `registry:5000/system/kube-proxy:v1.34.1@sha256:…`.

/// Returns its repository, without tag and digest.
pub fn repository(image: &str) -> &str {
    parts(image).0
}

/// Returns the last part of its repository: `kube-proxy`.
pub fn name(image: &str) -> &str {
    let repository = repository(image);
    repository.rsplit_once('/').map_or(repository, |(_, name)| name)
}

/// Returns its tag.
pub fn tag(image: &str) -> Option<&str> {
    parts(image).1
}

/// Returns the repository and the tag. A colon before a slash belongs to a port.
fn parts(image: &str) -> (&str, Option<&str>) {
    let image = image.split_once('@').map_or(image, |(image, _)| image);
    match image.rsplit_once(':') {
        Some((repository, tag)) if !tag.contains('/') => (repository, Some(tag)),
        _ => (image, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_an_image() {
        for (image, of_repository, of_name, of_tag) in [
            ("kube-proxy", "kube-proxy", "kube-proxy", None),
            ("k8s.io/kube-proxy:v1.34.1", "k8s.io/kube-proxy", "kube-proxy", Some("v1.34.1")),
            ("host:5000/kube-proxy", "host:5000/kube-proxy", "kube-proxy", None),
            ("host:5000/a/b:v1@sha256:0f", "host:5000/a/b", "b", Some("v1")),
            ("a/b@sha256:0f", "a/b", "b", None),
        ] {
            let found = (repository(image), name(image), tag(image));
            assert_eq!(found, (of_repository, of_name, of_tag), "{image}");
        }
    }
}
