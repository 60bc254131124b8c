//! examples/shop, made larger.

use std::fs;

use super::common::{Folder, root};

/// The shop with this many more Ingresses, all of which loop. The function names the Service that
/// each leads to.
pub(crate) fn shop_with(
    test: &str,
    more: usize,
    service: impl Fn(usize) -> &'static str,
) -> Folder {
    let folder = Folder::new(test);
    for entry in fs::read_dir(root().join("examples/shop")).unwrap() {
        let file = entry.unwrap();
        let text = fs::read_to_string(file.path()).unwrap();
        folder.file(file.file_name().to_str().unwrap(), &text);
    }
    let ingress = |at: usize| {
        let service = service(at);
        format!(
            "---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: more-{at}
  namespace: shop
  annotations: {{kubernetes.io/ingress.class: qcloud, kubernetes.io/ingress.subnetId: subnet-1}}
spec:
  rules:
  - host: h{at}.example.com
    http:
      paths:
      - path: /
        pathType: ImplementationSpecific
        backend: {{service: {{name: {service}, port: {{number: 80}}}}}}
status: {{loadBalancer: {{ingress: [{{ip: 10.0.9.{at}}}]}}}}
"
        )
    };
    folder.file("more.yaml", &(1..=more).map(ingress).collect::<String>());
    folder
}
