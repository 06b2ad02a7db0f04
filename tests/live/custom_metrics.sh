#!/usr/bin/env bash
# API aggregation with stock kubectl: a pod behind an APIService serves custom and external metrics, and
# HorizontalPodAutoscalers on a Pods, an Object and an External metric follow them up and down; what becomes of them
# while it is gone; whom it is told, and what kubectl sees of it.
source "$(dirname "$0")/lib.sh"
HERE=$ROOT/tests/live/aggregation
up --horizontal-pod-autoscaler-sync-period 2s

# An authority, and a certificate in the Service's name.
cd "$SCRATCH"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=adapter-ca \
  -keyout ca.key -out ca.crt 2>/dev/null
openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=adapter -keyout tls.key -out tls.csr 2>/dev/null
printf 'subjectAltName=DNS:adapter.monitoring.svc\n' >san
openssl x509 -req -in tls.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -extfile san -out tls.crt 2>/dev/null
cd "$ROOT"

# register VERSION GROUP [CA_FILE]
register() {
  kubectl apply -f - <<YAML >/dev/null
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: $1.$2}
spec:
  service: {namespace: monitoring, name: adapter}
  group: $2
  version: $1
  caBundle: $(base64 -w0 "${3:-$SCRATCH/ca.crt}")
  groupPriorityMinimum: 100
  versionPriority: 100
YAML
}
CUSTOM=v1beta2.custom.metrics.k8s.io EXTERNAL=v1beta1.external.metrics.k8s.io
available() { # available NAME: "True Passed"
  jsonpath "apiservice/$1" '.status.conditions[?(@.type=="Available")].status'
  printf ' '
  jsonpath "apiservice/$1" '.status.conditions[?(@.type=="Available")].reason'
}
availability_is() { equals "$(available "$1")" "$2"; }
load() { kubectl patch configmap load --type merge -p "{\"data\":{\"$1\":\"$2\"}}" >/dev/null; }
replicas_are() { equals "$(jsonpath "deployment/$1" .spec.replicas)" "$2"; }
active() { jsonpath "hpa/$1" '.status.conditions[?(@.type=="ScalingActive")].reason'; }
active_is() { equals "$(active "$1")" "$2"; }

say "--- nothing is there yet"
register v1beta2 custom.metrics.k8s.io
eventually 20 availability_is $CUSTOM "False ServiceNotFound"
contains "$(kubectl get apiservice $CUSTOM)" "monitoring/adapter   False (ServiceNotFound)" table
refused=$(kubectl get --raw /apis/custom.metrics.k8s.io/v1beta2 2>&1) && fail "a Service that is not there answered"
contains "$refused" "Error from server (ServiceUnavailable): the server is currently unable to handle the request" refusal
# One that fails costs kubectl nothing of the rest.
contains "$(kubectl get namespaces default)" Active "kubectl get"
contains "$(kubectl api-resources)" PyTorchJob api-resources
contains "$(kubectl get --raw /apis)" '"custom.metrics.k8s.io/v1beta2"' "the list of groups"

say "--- a pod behind a Service"
kubectl create namespace monitoring >/dev/null
kubectl -n monitoring create secret tls adapter --cert="$SCRATCH/tls.crt" --key="$SCRATCH/tls.key" >/dev/null
kubectl -n monitoring create configmap adapter --from-file="$HERE/metrics_adapter.py" >/dev/null
kubectl apply -f - <<'YAML' >/dev/null
apiVersion: v1
kind: ServiceAccount
metadata: {name: adapter, namespace: monitoring}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: adapter, namespace: kube-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: extension-apiserver-authentication-reader}
subjects: [{kind: ServiceAccount, name: adapter, namespace: monitoring}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: adapter}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects: [{kind: ServiceAccount, name: adapter, namespace: monitoring}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: adapter, namespace: monitoring}
spec:
  selector: {matchLabels: {app: adapter}}
  template:
    metadata: {labels: {app: adapter}}
    spec:
      serviceAccountName: adapter
      terminationGracePeriodSeconds: 1
      containers:
        - name: main
          image: none
          command: [python3, /code/metrics_adapter.py, "6443", /tls/tls.crt, /tls/tls.key]
          ports: [{name: https, containerPort: 6443}]
          readinessProbe: {tcpSocket: {port: https}, periodSeconds: 1}
          volumeMounts: [{name: code, mountPath: /code}, {name: tls, mountPath: /tls}]
      volumes:
        - {name: code, configMap: {name: adapter}}
        - {name: tls, secret: {secretName: adapter}}
---
apiVersion: v1
kind: Service
metadata: {name: adapter, namespace: monitoring}
spec: {selector: {app: adapter}, ports: [{port: 443, targetPort: https}]}
YAML
kubectl -n monitoring rollout status deployment/adapter --timeout=60s | tail -n 1
register v1beta1 external.metrics.k8s.io
eventually 20 availability_is $CUSTOM "True Passed"
eventually 20 availability_is $EXTERNAL "True Passed"
contains "$(kubectl get apiservice $CUSTOM)" "monitoring/adapter   True" table
contains "$(kubectl explain apiservice.spec.service)" "namespace" explain
contains "$(kubectl get --raw /apis/custom.metrics.k8s.io/v1beta2)" '"pods/requests_per_second"' "its discovery"
contains "$(kubectl get --raw /apis/custom.metrics.k8s.io)" '"custom.metrics.k8s.io/v1beta2"' "its group"
contains "$(kubectl api-versions)" external.metrics.k8s.io/v1beta1 api-versions
kubectl api-resources >/dev/null || fail "kubectl api-resources"

say "--- who asks"
WHO=/apis/custom.metrics.k8s.io/v1beta2/namespaces/default/whoami
who=$(kubectl get --raw $WHO)
contains "$who" '"user": ["muster-admin"]' "the user"
contains "$who" '"groups": ["system:masters", "system:authenticated"]' "groups"
# Whoever says himself that he is somebody else is not believed, and credentials stay here.
kubectl create serviceaccount someone >/dev/null
kubectl apply -f - <<'YAML' >/dev/null
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: metrics}
rules: [{apiGroups: [custom.metrics.k8s.io], resources: [whoami], verbs: [get, list]}]
YAML
TOKEN=$(kubectl create token someone)
as_someone() {
  python3 - "$TOKEN" "$WHO" <<'PY'
import ssl, sys, urllib.error, urllib.request
headers = {'Authorization': 'Bearer ' + sys.argv[1], 'X-Remote-User': 'admin', 'X-Remote-Group': 'system:masters',
           'Connection': 'x-remote-extra-a'}
try:
    print(urllib.request.urlopen(urllib.request.Request('https://127.0.0.1:6443' + sys.argv[2], headers=headers),
                                 context=ssl._create_unverified_context()).read().decode())
except urllib.error.HTTPError as error:
    print(error.code, error.read().decode())
PY
}
contains "$(as_someone)" "403" "no role yet"
kubectl create clusterrolebinding metrics --clusterrole=metrics --serviceaccount=default:someone >/dev/null
who=$(as_someone)
contains "$who" '"user": ["system:serviceaccount:default:someone"]' "the user"
contains "$who" '"authorization": null' "credentials"
[[ "$who" != *system:masters* ]] || fail "a client's X-Remote-Group went through: $who"
who=$(kubectl get --raw $WHO --as jane --as-group readers 2>&1) && fail "jane may not ask"
contains "$who" 'User "jane" cannot' "impersonation without a role"
who=$(kubectl get --raw $WHO --as jane --as-group system:masters)
contains "$who" '"user": ["jane"]' "impersonation"
contains "$who" '"impersonate": null' "impersonation is answered here"

say "--- a watch passes piece by piece"
kubectl get --raw "/apis/external.metrics.k8s.io/v1beta1/namespaces/default/ticks?watch=true" |
  while read -r line; do printf '%s %s\n' "$(date +%s.%N)" "$line"; done >"$SCRATCH/ticks"
python3 - "$SCRATCH/ticks" <<'PY' || fail "ticks came late: $(cat "$SCRATCH/ticks")"
import json, sys
lines = [line.split(' ', 1) for line in open(sys.argv[1])]
assert len(lines) == 3, lines
assert float(lines[0][0]) < json.loads(lines[2][1])['at'], 'the first came after the last was sent'
PY

say "--- autoscalers"
kubectl create configmap load --from-literal=requests_per_second=5 --from-literal=hits=5 --from-literal=queue=5 >/dev/null
# scaled NAME METRIC: a Deployment and its autoscaler.
scaled() {
  kubectl create deployment "$1" --image=none -- sleep 1000 >/dev/null
  kubectl apply -f - <<YAML >/dev/null
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: $1}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: $1}
  minReplicas: 1
  maxReplicas: 3
  metrics:
    - $2
  behavior: {scaleDown: {stabilizationWindowSeconds: 0}}
YAML
}
scaled by-pods 'type: Pods
      pods: {metric: {name: requests_per_second}, target: {type: AverageValue, averageValue: "10"}}'
scaled by-object 'type: Object
      object: {metric: {name: hits}, describedObject: {apiVersion: v1, kind: Service, name: by-object}, target: {type: Value, value: "10"}}'
scaled by-external 'type: External
      external: {metric: {name: queue}, target: {type: AverageValue, averageValue: "10"}}'
kubectl expose deployment by-object --port=80 >/dev/null
for name in by-pods by-object by-external; do eventually 60 active_is $name ValidMetricFound; done
contains "$(kubectl get hpa by-pods --no-headers)" "5/10" "get hpa"
shows '"hits" on Service/by-object' kubectl describe hpa by-object
load requests_per_second 30
load hits 30
load queue 25
for name in by-pods by-object by-external; do eventually 90 replicas_are $name 3; done
say "result: three autoscalers went from 1 to 3 on a Pods, an Object and an External metric"

say "--- the adapter is gone"
kubectl -n monitoring scale deployment adapter --replicas=0 >/dev/null
eventually 40 availability_is $CUSTOM "False MissingEndpoints"
eventually 60 active_is by-pods FailedGetPodsMetric
eventually 60 active_is by-object FailedGetObjectMetric
eventually 60 active_is by-external FailedGetExternalMetric
shows "unable to fetch metrics from custom metrics API: the server is currently unable to handle the request" kubectl describe hpa by-pods
replicas_are by-pods 3
contains "$(kubectl get --raw /metrics)" "aggregator_unavailable_apiservice{name=\"$CUSTOM\"} 1" metrics
# The rest goes on: namespaces go.
kubectl create namespace short >/dev/null
kubectl -n short create configmap gone >/dev/null
kubectl delete namespace short --timeout=60s >/dev/null || fail "a namespace waits for a group that nobody serves"

say "--- and back"
load requests_per_second 2
load hits 1
load queue 1
kubectl -n monitoring scale deployment adapter --replicas=1 >/dev/null
eventually 40 availability_is $CUSTOM "True Passed"
for name in by-pods by-object by-external; do eventually 90 replicas_are $name 1; done
say "result: and back to 1 once the adapter answered again"

say "--- an authority that did not sign"
register v1beta2 custom.metrics.k8s.io "$DATA/pki/ca.crt"
eventually 40 availability_is $CUSTOM "False FailedDiscoveryCheck"
contains "$(jsonpath apiservice/$CUSTOM '.status.conditions[0].message')" certificate message
register v1beta2 custom.metrics.k8s.io
eventually 40 availability_is $CUSTOM "True Passed"

say "--- what is ours stays ours, and a restart remembers"
refused=$(kubectl apply -f - 2>&1 <<'YAML'
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.apps}
spec: {service: {namespace: monitoring, name: adapter}, group: apps, version: v1, groupPriorityMinimum: 1, versionPriority: 1}
YAML
) && fail "apps/v1 was given away"
contains "$refused" "is served by this server itself" refusal
"$MUSTER" down --data-dir "$DATA" >/dev/null
up >/dev/null
eventually 60 availability_is $CUSTOM "True Passed"
answers() { contains "$(kubectl get --raw /apis/custom.metrics.k8s.io/v1beta2)" '"services/hits"'; }
eventually 30 answers
key=$(find "$DATA/pki/front-proxy" -name '*.key' -perm /077)
equals "$key" "" "keys that others may read"
! grep -q "PRIVATE KEY" "$DATA/logs/muster.log" || fail "a key is in the log"
kubectl delete apiservice $CUSTOM >/dev/null
refused=$(kubectl get --raw /apis/custom.metrics.k8s.io/v1beta2 2>&1) && fail "an APIService that is gone answers"
contains "$refused" NotFound refusal
say ok
