#!/usr/bin/env bash
# Issue 6: probes, hooks and sidecars on a real node: what the kubelet does with them, and says.
source "$(dirname "$0")/lib.sh"
up

# A server of the four kinds that probes ask. Its folder /state says how it does: what is not there is fine.
cat >"$SCRATCH/server.py" <<'PY'
import http.server, os, signal, sys, threading, time
def says(name): return os.path.exists("/state/" + name)
def log(text):
    with open("/state/log", "a") as f: f.write(text + "\n")
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if says("hangs"): time.sleep(60)
        self.send_response(500 if says("sick") else 200)
        self.end_headers()
    def log_message(self, *a): pass
def leave(*a):
    log("term"); os._exit(0)
signal.signal(signal.SIGTERM, leave)
log("up")
if len(sys.argv) > 1:
    import concurrent.futures, grpc
    def check(request, context): return b"\x08\x02" if says("sick") else b"\x08\x01"
    handler = grpc.method_handlers_generic_handler("grpc.health.v1.Health", {"Check": grpc.unary_unary_rpc_method_handler(check)})
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(2), handlers=[handler])
    server.add_insecure_port("0.0.0.0:9000"); server.start()
http.server.ThreadingHTTPServer(("", 8080), Handler).serve_forever()
PY
kubectl create configmap server --from-file="$SCRATCH/server.py" >/dev/null

pod() { # pod NAME CONTAINER-FIELDS [POD-FIELDS [ARGUMENT]]: the server with probes
  kubectl apply -f - <<YAML >/dev/null
apiVersion: v1
kind: Pod
metadata: {name: $1, labels: {app: $1}}
spec:
  terminationGracePeriodSeconds: 10
  ${3:-restartPolicy: Always}
  volumes:
    - {name: server, configMap: {name: server}}
    - {name: state, emptyDir: {}}
  containers:
    - name: main
      image: none
      command: [python3, /server/server.py${4:+, $4}]
      ports: [{name: web, containerPort: 8080}]
      volumeMounts: [{name: server, mountPath: /server}, {name: state, mountPath: /state}]
      $2
YAML
}
ready() { [ "$(kubectl get pod "$1" -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}')" = "$2" ]; }
sick() { kubectl exec "$1" -- touch /state/sick; }
well() { kubectl exec "$1" -- rm -f /state/sick; }
said() { # said POD REASON TEXT: an event of that reason that has the text
  kubectl get events --field-selector "involvedObject.name=$1,reason=$2" -o 'jsonpath={.items[*].message}' | grep -qF -- "$3"
}
restarts_of() { kubectl get pod "$1" -o 'jsonpath={.status.containerStatuses[0].restartCount}'; }
restarted() { [ "$(restarts_of "$1")" -ge 1 ] && ready "$1" True; }
endpoint_ready() { [ "$(kubectl get endpointslice -l "kubernetes.io/service-name=$1" -o 'jsonpath={.items[*].endpoints[*].conditions.ready}')" = "$2" ]; }

# Readiness by HTTP on a named port: endpoints follow, and back.
pod web 'readinessProbe: {httpGet: {port: web, path: /healthz}, periodSeconds: 1, failureThreshold: 2}'
kubectl expose pod web --port=80 --target-port=8080 >/dev/null
eventually 20 ready web True
eventually 20 endpoint_ready web true
sick web
eventually 20 ready web False
eventually 20 endpoint_ready web false
eventually 10 said web Unhealthy "Readiness probe failed: HTTP probe failed with statuscode: 500"
contains "$(kubectl get pod web --no-headers)" "0/1" "READY"
well web
eventually 20 ready web True
equals "$(restarts_of web)" 0 "restarts because of readiness"

# One that flaps below its threshold, failing every second time, writes no status.
pod flaps 'readinessProbe: {exec: {command: [sh, -c, "n=$(cat /state/n || echo 0); echo $((n + 1)) > /state/n; test $((n % 2)) = 0"]}, periodSeconds: 1, timeoutSeconds: 20, failureThreshold: 2}'
asked() { kubectl exec flaps -- cat /state/n; }
asked_often() { [ "$(asked)" -ge "$1" ]; }
eventually 20 ready flaps True
eventually 20 asked_often 2
before=$(kubectl get pod flaps -o 'jsonpath={.metadata.resourceVersion}')
eventually 30 asked_often $(($(asked) + 6))
equals "$(kubectl get pod flaps -o 'jsonpath={.metadata.resourceVersion}')" "$before" "resourceVersion after a probe that flapped"
eventually 30 said flaps Unhealthy "Readiness probe failed"

# A restart of the control plane does not make a ready pod flap, and its probes go on.
ready_since() { kubectl get pod web -o 'jsonpath={.status.conditions[?(@.type=="Ready")].lastTransitionTime}'; }
since=$(ready_since)
kill -9 "$(control_plane_pid)"
up
eventually 20 ready web True
equals "$(ready_since)" "$since" "since when the pod is ready, after kill -9"
sick web
eventually 20 ready web False
well web

# Liveness: restarted, with the reason; a command that hangs is a failure.
pod live 'livenessProbe: {exec: {command: [sh, -c, "! test -e /state/sick"]}, periodSeconds: 1, timeoutSeconds: 20, failureThreshold: 2}'
eventually 20 ready live True
pod hangs 'livenessProbe: {exec: {command: [sh, -c, "test ! -e /state/sick || sleep 1000"]}, periodSeconds: 1, failureThreshold: 1}'
eventually 20 ready hangs True
sick live
eventually 20 said live Killing "Container main failed liveness probe, will be restarted"
eventually 20 well live # it may be between two lives
sick hangs
eventually 20 said hangs Unhealthy 'timed out'
eventually 20 said hangs Killing "Container main failed liveness probe, will be restarted"
eventually 20 restarted live
kubectl delete pod hangs --grace-period=1 --wait >/dev/null

# Startup gates liveness; a probe's own grace; TCP; gRPC.
pod slow 'startupProbe: {exec: {command: [test, -e, /state/go]}, periodSeconds: 1, timeoutSeconds: 20, failureThreshold: 100}
      livenessProbe: {exec: {command: [test, -e, /state/go]}, periodSeconds: 1, timeoutSeconds: 20, failureThreshold: 1}'
eventually 20 said slow Unhealthy "Startup probe failed"
equals "$(kubectl get pod slow -o 'jsonpath={.status.containerStatuses[0].started} {.status.containerStatuses[0].ready}')" "false false" "started, ready"
kubectl exec slow -- touch /state/go
eventually 20 ready slow True
equals "$(restarts_of slow)" 0 "restarts before the startup probe was through"
pod tcp 'readinessProbe: {tcpSocket: {port: 8080}, periodSeconds: 1}'
pod closed 'readinessProbe: {tcpSocket: {port: 81}, periodSeconds: 1}'
eventually 20 ready tcp True
eventually 20 said closed Unhealthy ":81: connect: connection refused"
ready closed True && fail "a pod whose port is closed is ready"
if /usr/bin/python3 -c 'import grpc' 2>/dev/null; then
  pod rpc 'readinessProbe: {grpc: {port: 9000}, periodSeconds: 1, failureThreshold: 1}' '' grpc
  eventually 30 ready rpc True
  sick rpc
  eventually 20 ready rpc False
  eventually 20 said rpc Unhealthy 'service unhealthy (responded with "NOT_SERVING")'
else
  say "result: gRPC not tried against a real server: python3-grpcio is missing"
fi

# preStop before SIGTERM; both leave their mark in a folder of the machine.
mkdir -p "$SCRATCH/marks"
kubectl apply -f - <<YAML >/dev/null
apiVersion: v1
kind: Pod
metadata: {name: hooks}
spec:
  volumes: [{name: m, hostPath: {path: $SCRATCH/marks}}]
  containers:
    - name: main
      image: none
      command: [sh, -c, "trap 'echo term >> /m/log; exit 0' TERM; echo up >> /m/log; while true; do sleep 0.1; done"]
      volumeMounts: [{name: m, mountPath: /m}]
      lifecycle:
        postStart: {exec: {command: [sh, -c, "until [ -e /m/log ]; do sleep 0.1; done; echo post >> /m/log"]}}
        preStop: {exec: {command: [sh, -c, "sleep 1; echo pre >> /m/log"]}}
---
apiVersion: v1
kind: Pod
metadata: {name: badhook}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  containers:
    - {name: main, image: none, command: [sleep, "1000"], lifecycle: {postStart: {exec: {command: ["false"]}}}}
YAML
eventually 20 ready hooks True
kubectl delete pod hooks --wait >/dev/null
equals "$(tr '\n' ' ' <"$SCRATCH/marks/log")" "up post pre term " "what the hooks left"
eventually 20 pod_phase_is badhook Failed
eventually 10 said badhook FailedPostStartHook "PostStartHook failed"

# Sidecars: started one after the other, gated by their startup probe, ended last in reverse; a Job with one completes.
side() { # side NAME: a sidecar that says when it begins and ends
  printf '{name: %s, image: none, restartPolicy: Always, command: [sh, -c, "trap '"'"'echo -%s >> /m/order; exit 0'"'"' TERM; echo +%s >> /m/order; while true; do sleep 0.1; done"], volumeMounts: [{name: m, mountPath: /m}], startupProbe: {exec: {command: [sh, -c, "sleep 0.3; echo started-%s >> /m/order"]}, periodSeconds: 1, timeoutSeconds: 30}}' "$1" "$1" "$1" "$1"
}
kubectl apply -f - <<YAML >/dev/null
apiVersion: batch/v1
kind: Job
metadata: {name: sidecars}
spec:
  template:
    spec:
      restartPolicy: Never
      volumes: [{name: m, hostPath: {path: $SCRATCH/marks}}]
      initContainers:
        - $(side one)
        - $(side two)
      containers:
        - {name: main, image: none, command: [sh, -c, "echo main >> /m/order; sleep 0.5"], volumeMounts: [{name: m, mountPath: /m}]}
YAML
kubectl wait --for=condition=complete job/sidecars --timeout=60s >/dev/null
equals "$(tr '\n' ' ' <"$SCRATCH/marks/order")" "+one started-one +two started-two main -two -one " "order of sidecars"

# A pod that the node refuses shows no containers that are being created.
kubectl apply -f - <<YAML >/dev/null 2>&1
apiVersion: v1
kind: Pod
metadata: {name: refused}
spec:
  hostPID: true
  containers: [{name: main, image: none, command: [sleep, "1000"]}]
YAML
eventually 20 pod_phase_is refused Failed
contains "$(jsonpath pod/refused .status.message)" "Pod was rejected: " "message of a refused pod"
equals "$(jsonpath pod/refused .status.containerStatuses)" "" "containers of a refused pod"

# A readiness gate is another's condition.
pod gated 'readinessProbe: {tcpSocket: {port: 8080}, periodSeconds: 1}' 'readinessGates: [{conditionType: example.com/ok}]'
gate_says() { contains "$(kubectl get pod gated -o 'jsonpath={.status.conditions[?(@.type=="Ready")]}')" "$1" "Ready"; }
eventually 20 gate_says 'corresponding condition of pod readiness gate \"example.com/ok\" does not exist.'
kubectl patch pod gated --subresource=status -p '{"status":{"conditions":[{"type":"example.com/ok","status":"True"}]}}' >/dev/null
eventually 20 ready gated True
say "result: $(kubectl get events -o name | wc -l) events"
