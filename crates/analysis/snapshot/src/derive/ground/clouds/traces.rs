//! Tables of traces that controllers in the cluster leave. The traces of clouds are in
//! `uturn_clouds::cloud`.

/// The prefixes of the controllers of Ingress classes whose pods serve Ingresses, and their
/// products.
pub(super) const CONTROLLERS: &[(&str, &str)] = &[
    ("k8s.io/ingress-nginx", "ingress-nginx"),
    ("webapprouting.kubernetes.azure.com/", "ingress-nginx"),
    ("approuting.kubernetes.azure.com/", "ingress-nginx"),
    ("nginx.org/", "NGINX Ingress Controller"),
    ("traefik.io/", "Traefik"),
    ("haproxy.org/", "HAProxy"),
    ("haproxy-ingress.github.io/", "HAProxy Ingress"),
    ("projectcontour.io/", "Contour"),
    ("istio.io/", "Istio"),
    ("ingress-controllers.konghq.com/", "Kong"),
    ("cilium.io/", "Cilium Ingress"),
    ("getambassador.io/", "Emissary-ingress"),
    ("openshift.io/", "the OpenShift router"),
    ("pomerium.io/", "Pomerium"),
    ("voyagermesh.com/", "Voyager"),
    ("apisix.apache.org/", "APISIX"),
];

/// The usual names of classes and the controllers that serve them, for classes without an
/// IngressClass.
pub(super) const USUAL_CLASSES: &[(&str, &str)] = &[
    ("nginx", "k8s.io/ingress-nginx"),
    ("traefik", "traefik.io/"),
    ("haproxy", "haproxy.org/"),
    ("contour", "projectcontour.io/"),
    ("istio", "istio.io/"),
    ("kong", "ingress-controllers.konghq.com/"),
    ("cilium", "cilium.io/"),
    ("openshift-default", "openshift.io/"),
    ("webapprouting.kubernetes.azure.com", "webapprouting.kubernetes.azure.com/"),
];

/// The prefixes of annotations of Ingresses that only one controller reads. They identify the
/// controller if the Ingress names no class.
pub(super) const INGRESS_KEYS: &[(&str, &str)] = &[
    ("nginx.ingress.kubernetes.io/", "k8s.io/ingress-nginx"),
    ("traefik.ingress.kubernetes.io/", "traefik.io/"),
    ("haproxy.org/", "haproxy.org/"),
    ("konghq.com/", "ingress-controllers.konghq.com/"),
];
