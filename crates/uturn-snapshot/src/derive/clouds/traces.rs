//! What clouds and controllers leave behind, as tables.

use uturn_model::Cloud;

/// How providerIDs begin.
pub(super) const PROVIDER_IDS: &[(&str, Cloud)] = &[
    ("aws://", Cloud::Aws),
    ("azure://", Cloud::Azure),
    ("gce://", Cloud::Gcp),
    ("alicloud://", Cloud::Alibaba),
    ("ack-hybrid://", Cloud::Alibaba),
    ("huaweicloud://", Cloud::Huawei),
    ("openstack://", Cloud::OpenStack),
    ("digitalocean://", Cloud::DigitalOcean),
    ("hcloud://", Cloud::Hetzner),
    ("hrobot://", Cloud::Hetzner),
    ("linode://", Cloud::Linode),
    ("scaleway://", Cloud::Scaleway),
    ("vultr://", Cloud::Vultr),
    ("exoscale://", Cloud::Exoscale),
    ("oci://", Cloud::Oracle),
    ("ocid1.", Cloud::Oracle),
    ("ibm://", Cloud::Ibm),
];

/// How labels and annotations of nodes begin.
pub(super) const NODE_KEYS: &[(&str, Cloud)] = &[
    ("eks.amazonaws.com/", Cloud::Aws),
    ("alpha.eksctl.io/", Cloud::Aws),
    ("kubernetes.azure.com/", Cloud::Azure),
    ("cloud.google.com/", Cloud::Gcp),
    ("alibabacloud.com/", Cloud::Alibaba),
    ("doks.digitalocean.com/", Cloud::DigitalOcean),
    ("oci.oraclecloud.com/", Cloud::Oracle),
    ("ibm-cloud.kubernetes.io/", Cloud::Ibm),
];

/// How annotations of a Service begin. The longer of two that fit stands first.
pub(super) const SERVICE_KEYS: &[(&str, Cloud)] = &[
    ("service.beta.kubernetes.io/aws-", Cloud::Aws),
    ("service.beta.kubernetes.io/azure-", Cloud::Azure),
    ("networking.gke.io/", Cloud::Gcp),
    ("cloud.google.com/", Cloud::Gcp),
    ("service.beta.kubernetes.io/alibaba-cloud-", Cloud::Alibaba),
    ("service.beta.kubernetes.io/alicloud-", Cloud::Alibaba),
    ("service.beta.kubernetes.io/backend-type", Cloud::Alibaba),
    ("kubernetes.io/elb.", Cloud::Huawei),
    ("loadbalancer.openstack.org/", Cloud::OpenStack),
    ("service.beta.kubernetes.io/openstack-", Cloud::OpenStack),
    ("service.beta.kubernetes.io/do-", Cloud::DigitalOcean),
    ("kubernetes.digitalocean.com/", Cloud::DigitalOcean),
    ("load-balancer.hetzner.cloud/", Cloud::Hetzner),
    ("service.beta.kubernetes.io/linode-", Cloud::Linode),
    ("service.beta.kubernetes.io/scw-", Cloud::Scaleway),
    ("service.beta.kubernetes.io/vultr-", Cloud::Vultr),
    ("service.beta.kubernetes.io/exoscale-", Cloud::Exoscale),
    ("oci.oraclecloud.com/", Cloud::Oracle),
    ("service.beta.kubernetes.io/oci-", Cloud::Oracle),
    ("oci-network-load-balancer.oraclecloud.com/", Cloud::Oracle),
    ("service.kubernetes.io/ibm-", Cloud::Ibm),
    ("metallb.io/", Cloud::MetalLb),
    ("metallb.universe.tf/", Cloud::MetalLb),
    ("kube-vip.io/", Cloud::KubeVip),
    ("lbipam.cilium.io/", Cloud::CiliumLbIpam),
    ("io.cilium/lb-ipam", Cloud::CiliumLbIpam),
    ("svccontroller.k3s.cattle.io/", Cloud::K3s),
    ("cis.f5.com/", Cloud::F5),
    ("virtual-server.f5.com/", Cloud::F5),
];

/// Values of `spec.loadBalancerClass`, or how they begin where they end with a `/`.
pub(super) const CLASSES: &[(&str, &str)] = &[
    ("service.k8s.aws/nlb", "AWS NLB"),
    ("eks.amazonaws.com/nlb", "AWS NLB"),
    ("networking.gke.io/", "Google Cloud"),
    ("kube-vip.io/", "kube-vip"),
    ("io.cilium/", "Cilium"),
    ("alibabacloud.com/nlb", "Alibaba Cloud NLB"),
    ("metallb.io/", "MetalLB"),
    ("metallb.universe.tf/", "MetalLB"),
    ("tailscale", "Tailscale"),
    ("loxilb.io/", "LoxiLB"),
    ("purelb.io/", "PureLB"),
];

/// How host names of load balancers end.
pub(super) const HOST_NAMES: &[(&str, &str)] = &[
    (".amazonaws.com", "AWS"),
    (".amazonaws.com.cn", "AWS"),
    (".nlb.aliyuncs.com", "Alibaba Cloud NLB"),
    (".alb.aliyuncs.com", "Alibaba Cloud ALB"),
    (".ip.linodeusercontent.com", "Linode"),
    (".scw.cloud", "Scaleway"),
    (".appdomain.cloud", "IBM Cloud"),
];

/// How controllers of Ingress classes begin, where a cloud's load balancer serves them.
pub(super) const CLOUD_CONTROLLERS: &[(&str, &str)] = &[
    ("ingress.k8s.aws/alb", "AWS ALB"),
    ("eks.amazonaws.com/alb", "AWS ALB"),
    ("azure/application-gateway", "Azure Application Gateway"),
    ("alb.networking.azure.io/", "Azure Application Gateway for Containers"),
    ("k8s.io/gce", "Google Cloud"),
    ("ingress.k8s.alibabacloud/alb", "Alibaba Cloud ALB"),
];

/// The same where pods of the cluster do.
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

/// Classes by the name that they usually have, where no IngressClass says whose they are: the
/// controller that serves them.
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
    ("alb", "ingress.k8s.aws/alb"),
    ("azure/application-gateway", "azure/application-gateway"),
    ("azure-application-gateway", "azure/application-gateway"),
    ("azure-alb-external", "alb.networking.azure.io/"),
    ("gce", "k8s.io/gce"),
    ("gce-internal", "k8s.io/gce"),
];

/// Annotations of Ingresses that only one controller reads, by which it is known where no class
/// is named.
pub(super) const INGRESS_KEYS: &[(&str, &str)] = &[
    ("alb.ingress.kubernetes.io/", "ingress.k8s.aws/alb"),
    ("appgw.ingress.kubernetes.io/", "azure/application-gateway"),
    ("nginx.ingress.kubernetes.io/", "k8s.io/ingress-nginx"),
    ("traefik.ingress.kubernetes.io/", "traefik.io/"),
    ("haproxy.org/", "haproxy.org/"),
    ("konghq.com/", "ingress-controllers.konghq.com/"),
];
