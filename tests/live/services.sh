#!/usr/bin/env bash
# Issue 6: Services on a real node, from inside pods: ClusterIP by DNS and address, headless, NodePort, session affinity,
# hand-made endpoints, hints, no endpoints, default/kubernetes with its certificate; nothing stale after kill -9.
source "$(dirname "$0")/lib.sh"
up

kubectl apply -f - <<'YAML'
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
        - name: main
          image: none
          command:
            - python3
            - -c
            - |
              import http.server, socket, socketserver
              class Name(http.server.BaseHTTPRequestHandler):
                  def do_GET(self):
                      body = socket.gethostname().encode()
                      self.send_response(200); self.send_header("Content-Length", str(len(body))); self.end_headers()
                      self.wfile.write(body)
                  def log_message(self, *_): pass
              class Server(socketserver.ThreadingMixIn, http.server.HTTPServer): request_queue_size = 100
              Server(("", 8080), Name).serve_forever()
          ports: [{name: http, containerPort: 8080}]
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {type: NodePort, selector: {app: web}, ports: [{name: http, port: 80, targetPort: http, nodePort: 30080}]}
---
apiVersion: v1
kind: Service
metadata: {name: sticky}
spec: {sessionAffinity: ClientIP, selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: v1
kind: Service
metadata: {name: pods}
spec: {clusterIP: None, selector: {app: web}, ports: [{name: http, port: 8080}]}
---
apiVersion: v1
kind: Service
metadata: {name: made}
spec: {ports: [{port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: alias}
spec: {type: ExternalName, externalName: web.default.svc.cluster.local}
---
apiVersion: v1
kind: Pod
metadata: {name: client}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 0
  volumes: [{name: ca, configMap: {name: kube-root-ca.crt}}]
  containers:
    - name: main
      image: none
      command: [sleep, "1000"]
      volumeMounts: [{name: ca, mountPath: /ca}]
YAML
kubectl rollout status deployment/web --timeout=30s >/dev/null
kubectl wait --for=condition=Ready pod/client --timeout=30s >/dev/null

inside() { kubectl exec client -- "$@"; }
# names URL N: the names that N requests of the client pod get, each once
names() {
  inside python3 -c '
import sys, urllib.request
print(*sorted({urllib.request.urlopen(sys.argv[1], timeout=5).read().decode() for _ in range(int(sys.argv[2]))}))' "$@"
}
how_many() { names "$@" | wc -w; }
reaches_all() { equals "$(how_many "$1" 60)" 3 "endpoints behind $1"; }

eventually 10 reaches_all http://web/
reaches_all "http://$(jsonpath service/web .spec.clusterIP)/"
reaches_all http://web.default.svc.cluster.local/
reaches_all http://alias/
reaches_all http://10.42.0.1:30080/
equals "$(how_many http://sticky/ 20)" 1 "endpoints of one client"
equals "$(inside getent ahostsv4 pods | awk '{print $1}' | sort -u | wc -l)" 3 "addresses of the headless Service"
# The node's own programs, too.
reached_by_node() { python3 -c 'import urllib.request as u; print(len({u.urlopen("http://10.42.0.1:30080/").read() for _ in range(60)}))'; }
equals "$(reached_by_node)" 3 "endpoints behind the NodePort"

# Load balancers outside ask which nodes have pods.
kubectl apply -f - >/dev/null 2>&1 <<'YAML'
apiVersion: v1
kind: Service
metadata: {name: balanced}
spec: {type: LoadBalancer, externalTrafficPolicy: Local, selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
YAML
HEALTH=$(jsonpath service/balanced .spec.healthCheckNodePort)
health() { python3 -c '
import sys, urllib.request, urllib.error
try: answer = urllib.request.urlopen(sys.argv[1], timeout=5)
except urllib.error.HTTPError as e: answer = e
print(answer.status, " ".join(answer.read().decode().split()))' "http://10.42.0.1:$HEALTH/"; }
has_pods() { contains "$(health)" '200 { "service": { "namespace": "default", "name": "balanced" }, "localEndpoints": 3'; }
eventually 10 has_pods
kubectl patch service balanced -p '{"spec":{"selector":{"app":"nobody"}}}' >/dev/null
has_none() { contains "$(health)" '503 { "service"'; contains "$(health)" '"localEndpoints": 0'; }
eventually 10 has_none
kubectl delete service balanced >/dev/null
silent() { ! health 2>/dev/null; }
eventually 10 silent

# Endpoints that somebody else writes.
address=$(kubectl get pod -l app=web -o 'jsonpath={.items[0].status.podIP}')
kubectl apply -f - >/dev/null <<YAML
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: made-1, labels: {kubernetes.io/service-name: made}}
addressType: IPv4
ports: [{port: 8080}]
endpoints: [{addresses: [$address]}]
YAML
eventually 10 names http://made/ 1 >/dev/null

# Whom endpoints are for: the controller writes what the Service asks for, and follows the node's zone.
hints() { kubectl get endpointslice -l kubernetes.io/service-name=web \
  -o 'jsonpath={range .items[0].endpoints[*]}{.hints.forZones[*].name}/{.hints.forNodes[*].name} {end}'; }
hints_are() { equals "$(hints)" "$1 $1 $1 " "hints of the endpoints"; }
node=$(kubectl get nodes -o 'jsonpath={.items[0].metadata.name}')
zone() { kubectl label node "$node" --overwrite "topology.kubernetes.io/zone$1" >/dev/null; }
zone =west
kubectl patch service web -p '{"spec":{"trafficDistribution":"PreferSameZone"}}' >/dev/null
eventually 10 hints_are west/
kubectl patch service web -p '{"spec":{"trafficDistribution":"PreferSameNode"}}' >/dev/null
eventually 10 hints_are "west/$node"
zone =east
eventually 10 hints_are "east/$node"
reaches_all http://web/
# The node goes by them: endpoints of other zones as somebody else writes them.
kubectl delete endpointslice made-1 >/dev/null
IFS=' ' read -r first first_address second second_address < <(kubectl get pod -l app=web \
  -o 'jsonpath={range .items[:2]}{.metadata.name} {.status.podIP} {end}'; echo)
kubectl apply -f - >/dev/null <<YAML
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: made-1, labels: {kubernetes.io/service-name: made}}
addressType: IPv4
ports: [{port: 8080}]
endpoints:
  - {addresses: [$first_address], hints: {forZones: [{name: east}]}}
  - {addresses: [$second_address], hints: {forZones: [{name: west}]}}
YAML
only() { equals "$(names http://made/ 30)" "$1" "endpoints for this zone"; }
eventually 10 only "$first"
zone =west
eventually 10 only "$second"
zone -
both() { equals "$(how_many http://made/ 40)" 2 "endpoints for a node without a zone"; }
eventually 10 both
eventually 10 hints_are "/$node"
kubectl patch service web -p '{"spec":{"trafficDistribution":null}}' >/dev/null
eventually 10 hints_are /

# Without endpoints: refused at once.
refused() { inside python3 -c '
import socket, sys
try: socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=3)
except ConnectionRefusedError: sys.exit(0)
sys.exit("was not refused")' "$@"; }
kubectl delete endpointslice made-1 >/dev/null
eventually 10 refused made 80

# The older kind: ours says where the pods are, a user's counts where the Service has no selector.
ready_addresses() { equals "$(kubectl get endpoints web -o 'jsonpath={.subsets[0].addresses[*].ip}' | wc -w)" 3 "addresses in the Endpoints"; }
eventually 10 ready_addresses
contains "$(kubectl get endpoints web)" ":8080" "the table"
shows ":8080" kubectl describe service web
contains "$(kubectl get endpoints kubernetes)" "10.42.0.1:" "the endpoint of the API server"
kubectl apply -f - >/dev/null <<YAML
apiVersion: v1
kind: Endpoints
metadata: {name: made}
subsets: [{addresses: [{ip: $address}], ports: [{port: 8080}]}]
YAML
eventually 10 names http://made/ 1 >/dev/null
kubectl delete endpoints made >/dev/null
eventually 10 refused made 80
kubectl delete endpoints kubernetes >/dev/null
eventually 10 kubectl get endpoints kubernetes >/dev/null

# The API server, with a certificate for the names and the address that pods use.
api() { inside python3 -c '
import http.client, ssl, sys
context = ssl.create_default_context(cafile="/ca/ca.crt")
connection = http.client.HTTPSConnection(sys.argv[1], 443, context=context, timeout=5)
connection.request("GET", "/readyz"); print(connection.getresponse().status)' "$1"; }
for name in kubernetes kubernetes.default kubernetes.default.svc kubernetes.default.svc.cluster.local 10.43.0.1; do
  equals "$(api $name)" 200 "the API server at $name"
done

# Whatever changed while no agent ran is caught up with; what is right is not touched.
STICKY=$(names http://sticky/ 5)
rules() { nft list map ip muster services; nft list map ip muster nodeports; }
kill -9 "$(control_plane_pid)"
equals "$(reached_by_node)" 3 "endpoints behind the NodePort without a control plane"
up >/dev/null 2>&1
# Where a client was led to is remembered over that, and another timeout is taken up: forgotten a second later.
equals "$(names http://sticky/ 5)" "$STICKY" "the endpoint of one client after kill -9"
kubectl patch service sticky -p '{"spec":{"sessionAffinityConfig":{"clientIP":{"timeoutSeconds":1}}}}' >/dev/null
short() { contains "$(rules)" "client_3_1"; ! rules | grep -q client_3_10800; }
eventually 10 short
names http://sticky/ 1 >/dev/null
forgotten() { ! nft list set ip muster clients | grep -q expires; }
eventually 10 forgotten
equals "$(how_many http://sticky/ 20)" 1 "endpoints of one client"
kubectl delete service sticky >/dev/null
sticky_is_gone() { ! rules | grep -q client_; }
eventually 10 sticky_is_gone
kubectl scale deployment/web --replicas=1 >/dev/null
one_is_left() { equals "$(how_many http://web/ 20)" 1 "endpoints"; }
eventually 10 one_is_left
kubectl delete service web pods made >/dev/null
only_ours() { equals "$(rules | grep -c goto)" 1 "frontends: default/kubernetes alone"; }
eventually 10 only_ours
say "result: ClusterIP, headless, NodePort, affinity, hand-made and no endpoints, health for load balancers, default/kubernetes from a pod; no rule left after kill -9"
