//! The table of known controllers: how their pods are recognised, which Ingresses they serve, and
//! how they handle a request.
//!
//! An unknown value is `None`: a flow that depends on it is not judged.

use std::time::Duration;

use uturn_model::controller::{Aliases, ControllerBehaviour, TlsRedirect};
use uturn_model::pod::{Container, PodSpec};
use uturn_model::{IngressClass, Labels, Name};

use super::arguments::Arguments;
use super::settings::{Settings, set_tries};

/// An Ingress for whose class a controller is sought.
pub(super) struct Ask<'a> {
    /// The IngressClass object, if there is one.
    pub(super) class: Option<&'a IngressClass>,
    /// The name of the class, if the Ingress has one.
    pub(super) name: Option<&'a str>,
    /// The namespace of the Ingress.
    pub(super) namespace: &'a Name,
}

impl Ask<'_> {
    /// Returns the name of the class.
    pub(super) fn class_name(&self) -> Option<&str> {
        self.class.map_or(self.name, |class| Some(class.name.as_str()))
    }

    /// Returns whether the Ingress names no class, and no class is the default one.
    fn has_no_class(&self) -> bool {
        self.class_name().is_none()
    }

    /// Returns whether the class has this name.
    fn is_called(&self, name: &str) -> bool {
        self.class_name() == Some(name)
    }

    /// Returns whether the Ingress is in one of these namespaces, a list separated by commas. An
    /// empty list means all namespaces.
    fn is_in(&self, namespaces: Option<&str>) -> bool {
        let all = namespaces.unwrap_or_default();
        all.is_empty() || all.split(',').any(|known| known.trim() == self.namespace.as_str())
    }
}

/// A known controller.
pub(super) struct Product {
    /// The product's name, which the recognition of classes uses too.
    pub(super) name: &'static str,
    /// Returns whether a pod takes requests for the controller.
    is_pod: fn(&PodSpec) -> bool,
    /// Returns whether a container controls the product's pods from another workload of their
    /// namespace.
    pub(super) steered_by: Option<fn(&Container) -> bool>,
    /// Returns whether a controller with these arguments serves an Ingress of the product's
    /// classes.
    pub(super) serves: fn(&Arguments<'_>, &Ask<'_>) -> bool,
    /// Returns what has to hold of the controller for it to ignore an Ingress that `serves` excludes,
    /// as a predicate. Returns `None` if it ignores such an Ingress in any case.
    pub(super) doubt: fn(&Arguments<'_>, &Ask<'_>) -> Option<&'static str>,
    /// Returns what the controller does if it ignores an Ingress that it is taken to serve, as a
    /// predicate. Returns `None` if it serves such an Ingress in any case.
    pub(super) may_ignore: fn(&Arguments<'_>, &Ask<'_>) -> Option<&'static str>,
    /// The argument that names the controller's ConfigMap.
    pub(super) config_map: Option<&'static str>,
    /// The argument that names the Service whose address is published for Ingresses.
    pub(super) publishes: Option<&'static str>,
    /// Returns how the controller handles a request.
    pub(super) behaviour: fn(&Arguments<'_>, &Settings<'_>) -> ControllerBehaviour,
    /// The product's own kinds that have rules: the prefix of their group, and their name.
    pub(super) other_kinds: &'static [(&'static str, &'static str)],
    /// Whether the pods listen without any rule.
    pub(super) listens_always: bool,
}

/// Returns the product to which pods with this spec belong.
pub(super) fn of(spec: &PodSpec) -> Option<&'static Product> {
    ALL.iter().find(|product| (product.is_pod)(spec))
}

/// Returns whether it is known how a product handles a request.
pub(super) fn is_known(name: &str) -> bool {
    ALL.iter().any(|product| product.name == name)
}

/// Returns how the proxies of a product handle a request at a Gateway, if that is known.
pub(super) fn of_gateways(name: &str) -> Option<ControllerBehaviour> {
    Some(match name {
        "Envoy Gateway" => envoy(Some(Duration::from_secs(10)), Some(1)),
        "Istio" => ControllerBehaviour {
            connection_tries: None,
            ..envoy(Some(Duration::from_secs(10)), Some(3))
        },
        "Contour" => envoy(Some(Duration::from_secs(2)), Some(1)),
        "NGINX Gateway Fabric" => nginx(Duration::from_secs(60), u32::MAX),
        "Kong" => nginx(Duration::from_secs(60), 6),
        "HAProxy Ingress" => haproxy(),
        "Traefik" => ControllerBehaviour {
            no_endpoint: 503,
            has_default_certificate: true,
            ..nginx(Duration::from_secs(30), 1)
        },
        _ => return None,
    })
}

/// Applies the settings of the product's ConfigMap to its behaviour.
pub(super) fn set(behaviour: &mut ControllerBehaviour, product: &Product, settings: &Labels) {
    match product.name {
        "ingress-nginx" => {
            set_tries(behaviour, settings);
            if settings.is("ssl-redirect", "false") {
                behaviour.redirects_to_tls = TlsRedirect::Never;
            } else if let Some(code) = settings.get("http-redirect-code") {
                behaviour.redirects_to_tls =
                    code.parse().map_or(TlsRedirect::Unknown, TlsRedirect::With);
            }
            behaviour.dials_services |= settings.is("service-upstream", "true");
        }
        "NGINX Ingress Controller" => set_tries(behaviour, settings),
        _ => {}
    }
}

const fn envoy(connect_timeout: Option<Duration>, tries: Option<u32>) -> ControllerBehaviour {
    ControllerBehaviour {
        connect_timeout,
        tries,
        connection_tries: tries,
        refused: 503,
        timed_out: 503,
        no_endpoint: 503,
        no_service: 503,
        aliases: Aliases::Followed,
        goes_on_to_other_hosts: false,
        redirects_to_tls: TlsRedirect::Never,
        has_default_certificate: false,
        dials_services: false,
    }
}

const fn nginx(connect_timeout: Duration, tries: u32) -> ControllerBehaviour {
    ControllerBehaviour {
        connect_timeout: Some(connect_timeout),
        tries: Some(tries),
        connection_tries: Some(tries),
        refused: 502,
        timed_out: 504,
        no_endpoint: 503,
        no_service: 503,
        aliases: Aliases::Followed,
        goes_on_to_other_hosts: false,
        redirects_to_tls: TlsRedirect::Never,
        has_default_certificate: true,
        dials_services: false,
    }
}

fn has(spec: &PodSpec, is_it: impl Fn(&Container) -> bool) -> bool {
    spec.containers.iter().any(is_it)
}

fn has_argument(container: &Container, is_it: impl Fn(&str) -> bool) -> bool {
    container.arguments.iter().any(|argument| is_it(argument))
}

fn nginx_release(arguments: &Arguments<'_>) -> Option<(u16, u16)> {
    arguments.release_of(|container| {
        container.image.contains("ingress-nginx/controller")
            || container.program().starts_with("nginx-ingress-controller")
    })
}

/// Returns how Traefik treats Services of type ExternalName: from 2.5 on it refuses them unless it is
/// told otherwise.
fn traefik_aliases(arguments: &Arguments<'_>) -> Aliases {
    let release = arguments.release_of(|container| container.program().ends_with("traefik"));
    let is_old = release.is_none_or(|release| release < (2, 5));
    // A file may have this setting instead.
    let is_open = arguments.get("configfile").is_some();
    if is_old || is_open || arguments.is_on("providers.kubernetesingress.allowexternalnameservices")
    {
        Aliases::Followed
    } else {
        Aliases::Dropped
    }
}

fn haproxy_release(arguments: &Arguments<'_>) -> Option<(u16, u16)> {
    arguments.release_of(|container| container.program() == "haproxy-ingress")
}

const ALL: &[Product] = &[
    Product {
        name: "ingress-nginx",
        is_pod: |spec| {
            has(spec, |container| {
                container.image.contains("ingress-nginx/controller")
                    || container.program().starts_with("nginx-ingress-controller")
                    || has_argument(container, |argument| {
                        argument == "/nginx-ingress-controller"
                            || argument.starts_with("--controller-class=k8s.io/")
                    })
            })
        },
        steered_by: None,
        serves: |arguments, ask| {
            let own = arguments.get("controller-class").unwrap_or("k8s.io/ingress-nginx");
            let called = arguments.get("ingress-class").unwrap_or("nginx");
            let is_served = match (ask.class, ask.name) {
                (Some(class), _) => {
                    *class.controller == *own
                        || (arguments.is_on("ingress-class-by-name") && ask.is_called(called))
                }
                (None, Some(name)) => name == called,
                // Before 1.0 the usual class was that of every Ingress without one.
                (None, None) => {
                    arguments.is_on("watch-ingress-without-class")
                        || (called == "nginx"
                            && nginx_release(arguments).is_some_and(|release| release < (1, 0)))
                }
            };
            is_served && ask.is_in(arguments.get("watch-namespace"))
        },
        doubt: |arguments, ask| {
            let is_open = ask.has_no_class() && nginx_release(arguments).is_none();
            is_open.then_some("is of release 1.0 or later")
        },
        may_ignore: |_, _| None,
        config_map: Some("configmap"),
        publishes: Some("publish-service"),
        behaviour: |_, _| ControllerBehaviour {
            redirects_to_tls: TlsRedirect::With(308),
            ..nginx(Duration::from_secs(5), 3)
        },
        other_kinds: &[],
        listens_always: true,
    },
    Product {
        name: "NGINX Ingress Controller",
        is_pod: |spec| {
            has(spec, |container| {
                let begins = |argument: &str| {
                    argument.trim_start_matches('-').starts_with("nginx-configmaps=")
                };
                matches!(container.program(), "nginx-ingress" | "nginx-plus-ingress")
                    || has_argument(container, begins)
            })
        },
        steered_by: None,
        serves: |arguments, ask| {
            ask.is_called(arguments.get("ingress-class").unwrap_or("nginx"))
                && ask.is_in(arguments.get("watch-namespace"))
        },
        doubt: |arguments, ask| {
            let release = arguments.release_of(|container| container.program().contains("nginx"));
            let is_open = ask.has_no_class() && release.is_none_or(|release| release < (2, 0));
            is_open.then_some("is of release 2.0 or later")
        },
        may_ignore: |_, _| None,
        config_map: Some("nginx-configmaps"),
        publishes: Some("external-service"),
        behaviour: |_, _| ControllerBehaviour {
            no_endpoint: 502,
            no_service: 502,
            redirects_to_tls: TlsRedirect::With(301),
            ..nginx(Duration::from_secs(60), u32::MAX)
        },
        other_kinds: &[("k8s.nginx.org/", "VirtualServer"), ("k8s.nginx.org/", "TransportServer")],
        listens_always: true,
    },
    Product {
        name: "Traefik",
        is_pod: |spec| {
            has(spec, |container| {
                let program = container.program();
                program == "traefik" || program.ends_with("-traefik")
            })
        },
        steered_by: None,
        serves: |arguments, ask| {
            let own = arguments.get("providers.kubernetesingress.ingressclass");
            own.is_none_or(|own| own.is_empty() || ask.is_called(own))
                && ask.is_in(arguments.get("providers.kubernetesingress.namespaces"))
        },
        doubt: |_, _| None,
        may_ignore: |_, _| None,
        config_map: None,
        publishes: Some("providers.kubernetesingress.ingressendpoint.publishedservice"),
        behaviour: |arguments, _| ControllerBehaviour {
            connect_timeout: Some(Duration::from_secs(30)),
            tries: Some(1),
            connection_tries: Some(1),
            refused: 502,
            timed_out: 504,
            no_endpoint: if arguments.is_on("providers.kubernetesingress.allowemptyservices") {
                503
            } else {
                404
            },
            // A router without a service is not made.
            no_service: 404,
            aliases: traefik_aliases(arguments),
            goes_on_to_other_hosts: true,
            redirects_to_tls: TlsRedirect::Never,
            has_default_certificate: arguments.has_below("entrypoints.websecure.http.tls"),
            dials_services: arguments.is_on("providers.kubernetesingress.nativelbbydefault"),
        },
        other_kinds: &[("traefik.io/", "IngressRoute"), ("traefik.containo.us/", "IngressRoute")],
        listens_always: true,
    },
    Product {
        name: "HAProxy",
        is_pod: |spec| {
            // The program of another controller is called kubernetes-ingress-controller.
            has(spec, |container| {
                let rest = container.program().strip_prefix("kubernetes-ingress");
                rest.is_some_and(|rest| !rest.starts_with("-controller"))
            })
        },
        steered_by: None,
        serves: |arguments, ask| {
            let fits = |own: &str| {
                let ends = |class: &IngressClass| {
                    class.controller.rsplit_once('/').is_some_and(|(_, last)| last == own)
                };
                own.is_empty() || ask.is_called(own) || ask.class.is_some_and(ends)
            };
            let takes_any = ask.has_no_class() && arguments.is_on("empty-ingress-class");
            takes_any || arguments.get("ingress.class").is_none_or(fits)
        },
        doubt: |_, _| None,
        may_ignore: |arguments, ask| {
            let own = arguments.get("ingress.class").filter(|own| !own.is_empty())?;
            (ask.class.is_some() && !ask.is_called(own)).then_some("goes by the names of classes")
        },
        config_map: Some("configmap"),
        publishes: Some("publish-service"),
        behaviour: |_, _| haproxy(),
        other_kinds: &[("ingress.v", "TCP"), ("core.haproxy.org/", "TCP")],
        listens_always: true,
    },
    Product {
        name: "HAProxy Ingress",
        is_pod: |spec| has(spec, |container| container.program() == "haproxy-ingress"),
        steered_by: None,
        serves: |arguments, ask| match ask.class {
            Some(class) => {
                let suffix = arguments.get("controller-class").unwrap_or_default();
                let own = "haproxy-ingress.github.io/controller";
                *class.controller == *own && suffix.is_empty()
                    || class.controller.strip_prefix(own) == Some(&*format!("/{suffix}"))
            }
            None if ask.has_no_class() => {
                arguments.is_on("watch-ingress-without-class")
                    || (haproxy_release(arguments).is_some_and(|release| release < (0, 12))
                        && !arguments.is_on("ignore-ingress-without-class"))
            }
            None => ask.is_called(arguments.get("ingress-class").unwrap_or("haproxy")),
        },
        doubt: |arguments, ask| {
            let is_open = ask.has_no_class() && haproxy_release(arguments).is_none();
            is_open.then_some("is of release 0.12 or later")
        },
        may_ignore: |_, _| None,
        config_map: Some("configmap"),
        publishes: Some("publish-service"),
        behaviour: |arguments, _| ControllerBehaviour {
            // A path without a service, or without its port, is left out.
            no_service: 404,
            aliases: match arguments.version_of(|own| own.program() == "haproxy-ingress") {
                Some(own) if (own.major, own.minor, own.patch) < (0, 13, 9) => {
                    Aliases::FollowedByPort
                }
                _ => Aliases::Followed,
            },
            ..haproxy()
        },
        other_kinds: &[],
        listens_always: true,
    },
    Product {
        name: "Contour",
        is_pod: |spec| {
            has(spec, |container| {
                has_argument(container, |argument| argument == "shutdown-manager")
            }) && has(spec, |container| container.program().starts_with("envoy"))
        },
        steered_by: Some(|container| {
            container.program() == "contour" && has_argument(container, |word| word == "serve")
        }),
        serves: |arguments, ask| {
            let own = arguments.get("ingress-class-name");
            own.is_none_or(|own| own.split(',').any(|own| ask.is_called(own)))
        },
        doubt: |_, _| None,
        may_ignore: |_, _| None,
        config_map: None,
        publishes: None,
        behaviour: |_, _| envoy(Some(Duration::from_secs(2)), Some(1)),
        other_kinds: &[("projectcontour.io/", "HTTPProxy")],
        listens_always: false,
    },
    Product {
        name: "Istio",
        is_pod: |spec| {
            let is_router = |container: &Container| {
                &*container.name == "istio-proxy"
                    && has_argument(container, |word| word == "router")
            };
            has(spec, is_router) && spec.labels.is("istio", "ingressgateway")
        },
        steered_by: None,
        serves: |_, _| true,
        doubt: |_, _| None,
        may_ignore: |_, _| None,
        config_map: None,
        publishes: None,
        behaviour: |_, _| envoy(Some(Duration::from_secs(10)), Some(3)),
        other_kinds: &[("networking.istio.io/", "VirtualService")],
        listens_always: false,
    },
    Product {
        name: "Kong",
        is_pod: |spec| {
            has(spec, |container| {
                matches!(container.program(), "kong" | "kong-gateway")
                    && container.ports.iter().any(|port| {
                        port.name.as_deref().is_some_and(|name| name.starts_with("proxy"))
                    })
            })
        },
        steered_by: Some(|container| container.program() == "kubernetes-ingress-controller"),
        serves: |arguments, ask| {
            arguments.get("ingress-class").is_none_or(|own| ask.is_called(own))
                && ask.is_in(arguments.get("watch-namespace"))
        },
        doubt: |_, ask| ask.has_no_class().then_some("does not process Ingresses without a class"),
        may_ignore: |_, _| None,
        config_map: None,
        publishes: Some("publish-service"),
        behaviour: |_, _| nginx(Duration::from_secs(60), 6),
        other_kinds: &[("configuration.konghq.com/", "KongIngress")],
        listens_always: true,
    },
];

/// Returns the behaviour of HAProxy. How long it waits for a server that does not answer depends on
/// retries and on the server that is tried next, which differ between releases.
const fn haproxy() -> ControllerBehaviour {
    ControllerBehaviour {
        connect_timeout: None,
        tries: None,
        connection_tries: None,
        refused: 503,
        timed_out: 503,
        no_endpoint: 503,
        no_service: 503,
        aliases: Aliases::Followed,
        goes_on_to_other_hosts: true,
        redirects_to_tls: TlsRedirect::Unknown,
        has_default_certificate: true,
        dials_services: false,
    }
}
