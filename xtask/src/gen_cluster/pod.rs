//! A pod as `kubectl get -o json` prints it.

use super::addresses::{node_ip, node_name};

pub(super) struct Pod<'p> {
    pub(super) namespace: &'p str,
    pub(super) name: &'p str,
    pub(super) app: &'p str,
    pub(super) owner: (&'p str, &'p str),
    pub(super) node: u32,
    pub(super) ip: &'p str,
    pub(super) port: u32,
    pub(super) host: bool,
    pub(super) ready: bool,
}

pub(super) fn pod_text(pod: &Pod<'_>, uid: &str) -> String {
    let Pod { namespace, name, app, ip, .. } = pod;
    let ports = match pod.port {
        0 => String::new(),
        port => format!(r#","ports":[{{"containerPort":{port},"name":"http","protocol":"TCP"}}]"#),
    };
    let host = if pod.host { r#""hostNetwork":true,"# } else { "" };
    let ready = if pod.ready { "True" } else { "False" };
    format!(
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"creationTimestamp":"2026-02-03T04:05:06Z","generateName":"{app}-6b7f9c5d4-","labels":{{"app":"{app}","pod-template-hash":"6b7f9c5d4","team":"{namespace}"}},"name":"{name}","namespace":"{namespace}","ownerReferences":[{{"apiVersion":"apps/v1","blockOwnerDeletion":true,"controller":true,"kind":"{kind}","name":"{owner}","uid":"{uid}"}}],"resourceVersion":"{node}","uid":"{uid}"}},"spec":{{"containers":[{{"env":[{{"name":"POD_NAME","valueFrom":{{"fieldRef":{{"apiVersion":"v1","fieldPath":"metadata.name"}}}}}},{{"name":"LOG_LEVEL","value":"info"}}],"image":"images.example.com/{namespace}/{app}:v1.2.3","imagePullPolicy":"IfNotPresent","livenessProbe":{{"failureThreshold":3,"httpGet":{{"path":"/healthz","port":8080,"scheme":"HTTP"}},"periodSeconds":10,"timeoutSeconds":1}},"name":"main"{ports},"resources":{{"limits":{{"cpu":"1","memory":"1Gi"}},"requests":{{"cpu":"100m","memory":"128Mi"}}}},"volumeMounts":[{{"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount","name":"kube-api-access","readOnly":true}}]}}],"dnsPolicy":"ClusterFirst","enableServiceLinks":true,{host}"nodeName":"{node_name}","priority":0,"restartPolicy":"Always","schedulerName":"default-scheduler","serviceAccountName":"default","tolerations":[{{"effect":"NoExecute","key":"node.kubernetes.io/not-ready","operator":"Exists","tolerationSeconds":300}}],"volumes":[{{"name":"kube-api-access","projected":{{"defaultMode":420,"sources":[{{"serviceAccountToken":{{"expirationSeconds":3607,"path":"token"}}}}]}}}}]}},"status":{{"conditions":[{{"lastTransitionTime":"2026-02-03T04:05:06Z","status":"True","type":"Initialized"}},{{"lastTransitionTime":"2026-02-03T04:05:16Z","status":"{ready}","type":"Ready"}}],"containerStatuses":[{{"containerID":"containerd://{uid}","image":"images.example.com/{namespace}/{app}:v1.2.3","name":"main","ready":true,"restartCount":0,"started":true}}],"hostIP":"{host_ip}","phase":"Running","podIP":"{ip}","podIPs":[{{"ip":"{ip}"}}],"qosClass":"Burstable","startTime":"2026-02-03T04:05:06Z"}}}}"#,
        kind = pod.owner.0,
        owner = pod.owner.1,
        node = pod.node,
        node_name = node_name(pod.node),
        host_ip = node_ip(pod.node),
    )
}
