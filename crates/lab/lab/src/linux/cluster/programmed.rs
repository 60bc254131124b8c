//! Checks whether every kube-proxy has programmed the state that the API server had at a moment.
//!
//! A marker is created at that moment: a Service whose only endpoint is the API server. kube-proxy
//! receives changes in their order, so a node that reaches the marker has programmed all earlier
//! endpoints and Services too, in every mode.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{Api, DeleteParams, PostParams};
use kube::{Client, Error, ResourceExt as _};
use serde::de::Error as _;
use serde_json::{Value, json};

use super::credentials::PORT;
use crate::linux::build::lab_cluster::LabCluster;

/// The namespace of the marker.
const NAMESPACE: &str = "kube-system";
/// The port of the marker.
const MARKER_PORT: u16 = 443;

/// The longest time for a connection for which rules may still have to be written.
const CONNECT: Duration = Duration::from_millis(300);

/// A marker in the API server.
pub(super) struct Marker {
    client: Client,
    name: String,
    address: SocketAddr,
}

impl Marker {
    /// Creates a marker that leads to the API server at `api`.
    pub(super) async fn create(client: &Client, api: Ipv4Addr) -> Result<Self, Error> {
        let services: Api<Service> = Api::namespaced(client.clone(), NAMESPACE);
        let slices: Api<EndpointSlice> = Api::namespaced(client.clone(), NAMESPACE);
        let params = PostParams::default();
        let service = services.create(&params, &read(service())?).await?;
        let name = service.name_any();
        slices.create(&params, &read(slice(&name, api))?).await?;
        let ip = service.spec.and_then(|spec| spec.cluster_ip).unwrap_or_default();
        let ip: IpAddr =
            ip.parse().map_err(|_| Error::SerdeError(serde_json::Error::custom("no clusterIP")))?;
        Ok(Self { client: client.clone(), name, address: SocketAddr::new(ip, MARKER_PORT) })
    }

    /// Returns whether every node reaches the marker.
    pub(super) fn is_programmed(&self, lab_cluster: &LabCluster) -> bool {
        let connects = || TcpStream::connect_timeout(&self.address, CONNECT).map(drop);
        lab_cluster.nodes.values().all(|space| space.run(connects).is_ok())
    }

    /// Removes the marker.
    pub(super) async fn remove(self) -> Result<(), Error> {
        let services: Api<Service> = Api::namespaced(self.client.clone(), NAMESPACE);
        // The garbage collector would remove the marker's endpoints only later.
        let slices: Api<EndpointSlice> = Api::namespaced(self.client, NAMESPACE);
        slices.delete(&self.name, &DeleteParams::default()).await?;
        services.delete(&self.name, &DeleteParams::default()).await.map(drop)
    }
}

fn read<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, Error> {
    serde_json::from_value(value).map_err(Error::SerdeError)
}

fn service() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"namespace": NAMESPACE, "generateName": "uturn-lab-marker-"},
        "spec": {"ports": [{"name": "api", "port": MARKER_PORT, "targetPort": PORT}]},
    })
}

fn slice(name: &str, api: Ipv4Addr) -> Value {
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {
            "namespace": NAMESPACE, "name": name,
            "labels": {"kubernetes.io/service-name": name},
        },
        "addressType": "IPv4",
        "ports": [{"name": "api", "port": PORT, "protocol": "TCP"}],
        "endpoints": [{"addresses": [api], "conditions": {"ready": true}}],
    })
}
