#!/usr/bin/env bash
# Admission webhooks with stock kubectl and a real HTTPS server: outside of the cluster by URL, then a pod behind a
# Service; mutating, validating, both failure policies with the server gone, an authority that did not sign.
source "$(dirname "$0")/lib.sh"
HERE=$ROOT/tests/live/webhooks
up

# An authority, and a certificate for both ways to the server.
cd "$SCRATCH"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=hooks-ca \
  -keyout ca.key -out ca.crt 2>/dev/null
openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=hook -keyout tls.key -out tls.csr 2>/dev/null
printf 'subjectAltName=DNS:hook.hooks.svc,IP:127.0.0.1\n' >san
openssl x509 -req -in tls.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -extfile san -out tls.crt 2>/dev/null
cd "$ROOT"
CA=$(base64 -w0 "$SCRATCH/ca.crt")

# configure KIND NAME CLIENT_CONFIG FAILURE_POLICY: about pods and configmaps of namespaces with the label hooks=on.
configure() {
  kubectl apply -f - <<YAML >/dev/null
apiVersion: admissionregistration.k8s.io/v1
kind: $1
metadata: {name: $2}
webhooks:
  - name: $2.example.com
    clientConfig: $3
    rules: [{operations: [CREATE, UPDATE], apiGroups: [""], apiVersions: [v1], resources: [pods, configmaps]}]
    namespaceSelector: {matchLabels: {hooks: "on"}}
    failurePolicy: $4
    timeoutSeconds: 3
    sideEffects: None
    admissionReviewVersions: [v1]
YAML
}
by_url() { echo "{url: \"https://127.0.0.1:9443$1\", caBundle: $CA}"; }
by_service() { echo "{service: {namespace: hooks, name: hook, path: $1}, caBundle: $CA}"; }

python3 "$HERE/webhook_server.py" 9443 "$SCRATCH/tls.crt" "$SCRATCH/tls.key" &
server=$!
listens() { bash -c 'exec 3<>/dev/tcp/127.0.0.1/9443'; }
eventually 20 listens
kubectl label namespace default hooks=on >/dev/null

say "--- by URL"
configure MutatingWebhookConfiguration mutate "$(by_url /mutate)" Fail
configure ValidatingWebhookConfiguration validate "$(by_url /validate)" Fail
contains "$(kubectl get mutatingwebhookconfigurations)" "mutate   1" table
kubectl create deployment web --image=none -- sleep 1000 >/dev/null
labelled() { [ -n "$(kubectl get pods -l app=web,hooked=yes -o name)" ]; }
eventually 20 labelled
kubectl rollout status deployment/web --timeout=30s | tail -n 1
kubectl create configmap fine >/dev/null
equals "$(jsonpath configmap/fine .metadata.labels.hooked)" yes "a label of the webhook"
refused=$(kubectl label configmap fine verdict=no 2>&1) && fail "a denied update went through"
equals "$refused" 'Error from server (Forbidden): admission webhook "validate.example.com" denied the request: the label says no' refusal
contains "$(kubectl label configmap fine verdict=hm 2>&1)" "Warning: the label says hm" warning
contains "$(kubectl create configmap dry --dry-run=server -o yaml)" "hooked:" "a dry run"
kubectl -n kube-system create configmap elsewhere >/dev/null
equals "$(kubectl -n kube-system get configmap elsewhere -o 'jsonpath={.metadata.labels}')" "" "another namespace"

say "--- the server is gone"
kill "$server"
wait "$server" 2>/dev/null || true
refused=$(kubectl create configmap lost 2>&1) && fail "failurePolicy Fail let a request pass"
contains "$refused" 'Internal error occurred: failed calling webhook "mutate.example.com": failed to call webhook: Post "https://127.0.0.1:9443/mutate?timeout=3s"' refusal
configure MutatingWebhookConfiguration mutate "$(by_url /mutate)" Ignore
configure ValidatingWebhookConfiguration validate "$(by_url /validate)" Ignore
kubectl create configmap open >/dev/null
equals "$(jsonpath configmap/open .metadata.labels)" "" "nobody labelled it"
kubectl delete mutatingwebhookconfiguration mutate >/dev/null
kubectl delete validatingwebhookconfiguration validate >/dev/null

say "--- a pod behind a Service"
kubectl create namespace hooks >/dev/null
kubectl -n hooks create secret tls hook --cert="$SCRATCH/tls.crt" --key="$SCRATCH/tls.key" >/dev/null
kubectl -n hooks create configmap hook --from-file="$HERE/webhook_server.py" >/dev/null
kubectl -n hooks apply -f - <<'YAML' >/dev/null
apiVersion: apps/v1
kind: Deployment
metadata: {name: hook}
spec:
  selector: {matchLabels: {app: hook}}
  template:
    metadata: {labels: {app: hook}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
        - name: main
          image: none
          command: [python3, /code/webhook_server.py, "9443", /tls/tls.crt, /tls/tls.key]
          ports: [{name: webhook, containerPort: 9443}]
          readinessProbe: {tcpSocket: {port: webhook}, periodSeconds: 1}
          volumeMounts: [{name: code, mountPath: /code}, {name: tls, mountPath: /tls}]
      volumes:
        - {name: code, configMap: {name: hook}}
        - {name: tls, secret: {secretName: hook}}
---
apiVersion: v1
kind: Service
metadata: {name: hook}
spec: {selector: {app: hook}, ports: [{port: 443, targetPort: webhook}]}
YAML
configure MutatingWebhookConfiguration mutate "$(by_service /mutate)" Fail
configure ValidatingWebhookConfiguration validate "$(by_service /validate)" Fail
kubectl -n hooks rollout status deployment/hook --timeout=60s | tail -n 1
made() { kubectl create configmap served; }
eventually 20 made
equals "$(jsonpath configmap/served .metadata.labels.hooked)" yes "a label of the pod"
refused=$(kubectl label configmap served verdict=no 2>&1) && fail "a denied update went through"
contains "$refused" 'admission webhook "validate.example.com" denied the request: the label says no' refusal

say "--- an authority that did not sign"
CA=$(base64 -w0 "$DATA/pki/ca.crt")
configure MutatingWebhookConfiguration mutate "$(by_service /mutate)" Fail
refused=$(kubectl create configmap forged 2>&1) && fail "a certificate of another authority was taken"
contains "$refused" 'failed calling webhook "mutate.example.com"' refusal
contains "$refused" "certificate" refusal

say "--- no pod"
kubectl -n hooks scale deployment hook --replicas=0 >/dev/null
nobody() { contains "$(kubectl create configmap forged 2>&1)" 'no endpoints available for service "hook"'; }
eventually 30 nobody
# The node and the controllers live on: nothing waits for ever.
kubectl -n kube-system create configmap alive >/dev/null
kubectl delete mutatingwebhookconfiguration mutate >/dev/null
kubectl delete validatingwebhookconfiguration validate >/dev/null
kubectl create configmap forged >/dev/null

say "--- a webhook that keeps out the node itself"
kubectl apply -f - <<'YAML' >/dev/null
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: wall}
webhooks:
  - name: wall.example.com
    clientConfig: {url: "https://127.0.0.1:9443/"}
    rules: [{operations: ["*"], apiGroups: ["*"], apiVersions: ["*"], resources: ["*/*"]}]
    timeoutSeconds: 1
    sideEffects: None
    admissionReviewVersions: [v1]
YAML
"$MUSTER" down --data-dir "$DATA" >/dev/null
up >"$SCRATCH/up" 2>&1 &
starting=$!
warned() { grep -q "the API server answers at https://127.0.0.1:6443 .*but the node is not ready yet" "$SCRATCH/up"; }
eventually 20 warned
kubectl delete validatingwebhookconfiguration wall >/dev/null
wait "$starting" || fail "it never got ready: $(cat "$SCRATCH/up")"
kubectl create configmap through >/dev/null
eventually 30 kubectl rollout status deployment/web --timeout=1s
say ok
