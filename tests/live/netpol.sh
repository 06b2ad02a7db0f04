#!/usr/bin/env bash
# Network policies on a real node, from inside pods of two namespaces: nobody may come in, a labelled namespace may, out to
# DNS and one pod alone, ranges with exceptions, ports by name, policies that go; through Services, over restarts.
source "$(dirname "$0")/lib.sh"
up

kubectl create namespace shop >/dev/null
kubectl create namespace guests >/dev/null
server() { # server NAMESPACE NAME
  cat <<YAML
---
apiVersion: v1
kind: Pod
metadata: {name: $2, namespace: $1, labels: {app: $2}}
spec:
  terminationGracePeriodSeconds: 0
  containers:
    - name: main
      image: none
      command:
        - python3
        - -c
        - |
          import socketserver, threading
          class Hello(socketserver.BaseRequestHandler):
              def handle(self):
                  self.request.sendall(b"hello\n")
                  self.request.sendall(self.request.recv(1))
          class Server(socketserver.ThreadingMixIn, socketserver.TCPServer): allow_reuse_address = True
          servers = [Server(("", port), Hello) for port in (8080, 8081)]
          for each in servers: threading.Thread(target=each.serve_forever).start()
      ports: [{name: http, containerPort: 8080}]
      readinessProbe: {tcpSocket: {port: 8080}, periodSeconds: 1}
YAML
}
client() { # client NAMESPACE NAME
  cat <<YAML
---
apiVersion: v1
kind: Pod
metadata: {name: $2, namespace: $1, labels: {app: $2}}
spec:
  terminationGracePeriodSeconds: 0
  containers: [{name: main, image: none, command: [sleep, "1000"]}]
YAML
}
{ server shop web; server shop other; client shop till; client guests guest; } | kubectl apply -f - >/dev/null
kubectl expose pod web -n shop --port 80 --target-port http --name web >/dev/null
for pod in web other till; do kubectl wait -n shop --for=condition=Ready "pod/$pod" --timeout=30s >/dev/null; done
kubectl wait -n guests --for=condition=Ready pod/guest --timeout=30s >/dev/null
address() { kubectl get pod -n "$1" "$2" -o 'jsonpath={.status.podIP}'; }
WEB=$(address shop web) OTHER=$(address shop other) GUEST=$(address guests guest)

reaches() { # reaches NAMESPACE POD HOST PORT
  kubectl exec -n "$1" "$2" -- timeout 10 bash -c "exec 3<>/dev/tcp/$3/$4; echo x >&3; head -1 <&3" 2>/dev/null | grep -qx hello
}
cut_off() { ! kubectl exec -n "$1" "$2" -- timeout 1 bash -c "exec 3<>/dev/tcp/$3/$4" 2>/dev/null; }
policy() { # policy NAME < SPEC
  { printf 'apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: %s, namespace: shop}\nspec:\n' "$1"; sed 's/^/  /'; } | kubectl apply -f - >/dev/null
}
for who in "shop till" "guests guest"; do
  for where in "$WEB 8080" "$OTHER 8081" "web.shop 80"; do reaches $who $where || fail "$who does not reach $where without policies"; done
done

say "== nobody may come in"
# A connection from before goes on.
kubectl exec -n shop till -- bash -c "exec 3<>/dev/tcp/$WEB/8080; head -1 <&3; until [ -e /tmp/go ]; do read -rt 0.1 <> <(:); done; echo x >&3; cat <&3" >"$SCRATCH/before" 2>&1 &
before=$!
before_is() { [ "$(head -1 "$SCRATCH/before")" = hello ]; }
eventually 10 before_is
policy deny <<<'podSelector: {}'
eventually 10 cut_off shop till "$WEB" 8080
cut_off guests guest "$WEB" 8080 || fail "a guest comes in"
cut_off guests guest web.shop 80 || fail "a guest comes in through the Service"
reaches shop web 127.0.0.1 8080 || fail "a pod does not reach itself"
reaches shop web web.shop 80 || fail "a pod does not reach itself through its Service"
kubectl exec -n shop till -- touch /tmp/go
wait $before || fail "the connection from before: $(cat "$SCRATCH/before")"
equals "$(tail -1 "$SCRATCH/before")" x "what came back over the connection from before"
# Probes are the node's, and go on: a pod that is new becomes ready.
server shop late | kubectl apply -f - >/dev/null
kubectl wait -n shop --for=condition=Ready pod/late --timeout=30s >/dev/null
cut_off shop till "$(address shop late)" 8080 || fail "a new pod is open"
kubectl get netpol -n shop deny | grep -q '<none>' || fail "table: $(kubectl get netpol -n shop)"
shows "Selected pods are isolated for ingress connectivity" kubectl describe netpol -n shop deny
contains "$(kubectl explain netpol.spec.ingress.from)" ipBlock

say "== a labelled namespace may"
policy friends <<'YAML'
podSelector: {matchLabels: {app: web}}
ingress:
  - from: [{namespaceSelector: {matchLabels: {friend: "yes"}}}]
    ports: [{port: http}]
YAML
cut_off guests guest "$WEB" 8080 || fail "a namespace without the label comes in"
kubectl label namespace guests friend=yes >/dev/null
eventually 10 reaches guests guest "$WEB" 8080
reaches guests guest web.shop 80 || fail "not through the Service"
cut_off guests guest "$WEB" 8081 || fail "another port is open"
cut_off guests guest "$OTHER" 8080 || fail "another pod is open"
cut_off shop till "$WEB" 8080 || fail "the own namespace is open"
kubectl label namespace guests friend- >/dev/null
eventually 10 cut_off guests guest "$WEB" 8080

say "== ranges without what is left out"
policy friends <<YAML
podSelector: {matchLabels: {app: web}}
ingress:
  - from: [{ipBlock: {cidr: 10.0.0.0/8, except: [$GUEST/32]}}]
    ports: [{port: 8079, endPort: 8080}]
YAML
eventually 10 reaches shop till "$WEB" 8080
cut_off guests guest "$WEB" 8080 || fail "what is left out comes in"
cut_off shop till "$WEB" 8081 || fail "a port behind the range is open"

say "== out to DNS and one pod alone"
kubectl delete netpol -n shop deny friends >/dev/null
policy out <<'YAML'
podSelector: {matchLabels: {app: till}}
policyTypes: [Egress]
egress:
  - ports: [{port: 53, protocol: UDP}, {port: 53}]
  - to: [{podSelector: {matchLabels: {app: web}}}]
YAML
eventually 10 cut_off shop till "$OTHER" 8080
reaches shop till web.shop.svc.cluster.local 80 || fail "not by name"
reaches guests guest "$OTHER" 8080 || fail "others are restricted, too"

say "== over kill -9 of the agent"
kill -9 "$(control_plane_pid)"
up
cut_off shop till "$OTHER" 8080 || fail "open after a restart"
eventually 10 reaches shop till "$WEB" 8080
cut_off shop till "$OTHER" 8080 || fail "open after a restart"

say "== and gone"
kubectl delete netpol -n shop --all >/dev/null
eventually 10 reaches shop till "$OTHER" 8080
for who in "shop till" "guests guest"; do
  for where in "$WEB 8081" "$OTHER 8081" "web.shop 80"; do reaches $who $where || fail "$who does not reach $where afterwards"; done
done
if [ "$(id -u)" = 0 ]; then # else the table is in the user's own network
  left=$(nft list table ip muster | grep policy_ || true)
  equals "$left" "" "what is left of policies"
fi
say "result: policies came, changed and went under running pods; new pods were never open"
