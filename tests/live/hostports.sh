#!/usr/bin/env bash
# hostPorts on a real node: from the node (also at 127.0.0.1), from other pods and the pod itself, TCP and UDP; of one
# address; gone with the pod, also one that ended while no control plane ran; refused past the scheduler, kept apart by it;
# judged by network policies.
source "$(dirname "$0")/lib.sh"
up

server() { # server NAME PORTS [MORE]: says its name, by TCP and UDP at port 8080
  kubectl apply -f - >/dev/null <<YAML
apiVersion: v1
kind: Pod
metadata: {name: $1, labels: {app: $1}}
spec:
  terminationGracePeriodSeconds: 0
  ${3:-}
  containers:
    - name: main
      image: none
      command:
        - python3
        - -c
        - |
          import socket, threading
          name = socket.gethostname().encode()
          udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); udp.bind(("", 8080))
          def datagrams():
              while True: udp.sendto(name, udp.recvfrom(10)[1])
          threading.Thread(target=datagrams).start()
          tcp = socket.create_server(("", 8080))
          while True:
              peer, address = tcp.accept()
              peer.sendall(name + b" " + address[0].encode()); peer.close()
      ports: [$2]
      readinessProbe: {tcpSocket: {port: 8080}, periodSeconds: 1}
YAML
}
TCP='
import socket, sys
print(socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=2).recv(99).decode())'
UDP='
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(2); s.connect((sys.argv[1], int(sys.argv[2])))
s.send(b"x"); print(s.recv(99).decode())'
says() { equals "$("${@:4}" python3 -c "$1" "$2" 30800 2>&1 | tail -1)" "$3" "who answers at $2:30800 to '${*:4}'"; }
in_pod() { kubectl exec "$@"; }

BOTH='{containerPort: 8080, hostPort: 30800}, {containerPort: 8080, hostPort: 30800, protocol: UDP}'
server web "$BOTH"
kubectl apply -f - >/dev/null <<'YAML'
apiVersion: v1
kind: Pod
metadata: {name: client, labels: {app: client}}
spec:
  terminationGracePeriodSeconds: 0
  containers: [{name: main, image: none, command: [sleep, "1000"]}]
YAML
for pod in web client; do kubectl wait --for=condition=Ready "pod/$pod" --timeout=30s >/dev/null; done
equals "$(kubectl get events -o jsonpath='{.items[?(@.reason=="UnsupportedField")].message}')" "" "events about fields"
CLIENT=$(jsonpath pod/client .status.podIP)
everywhere() { # everywhere NAME
  says "$TCP" 10.42.0.1 "$1 10.42.0.1" env
  says "$TCP" 127.0.0.1 "$1 10.42.0.1" env
  says "$TCP" 10.42.0.1 "$1 $CLIENT" in_pod client --
  says "$TCP" 10.42.0.1 "$1 10.42.0.1" in_pod "$1" --
  says "$UDP" 10.42.0.1 "$1" env
  says "$UDP" 127.0.0.1 "$1" env
  says "$UDP" 10.42.0.1 "$1" in_pod client --
}
eventually 10 everywhere web

# The scheduler keeps a second one waiting; past the scheduler the node refuses it.
server waits "$BOTH"
unschedulable() { contains "$(kubectl get pod waits -o 'jsonpath={.status.conditions[?(@.type=="PodScheduled")].message}')" "free ports"; }
eventually 10 unschedulable
NODE=$(jsonpath pod/web .spec.nodeName)
server refused "$BOTH" "nodeName: $NODE"
eventually 10 pod_phase_is refused Failed
equals "$(jsonpath pod/refused .status.reason)" NodePorts
contains "$(jsonpath pod/refused .status.message)" "Predicate NodePorts failed: node(s) didn't have free ports"
kubectl delete pod refused >/dev/null
everywhere web

# Nor does a pod take a port from a program of the node, such as the API server: it waits until that ends.
says_not_free() { contains "$(kubectl get events --field-selector "involvedObject.name=$1" -o 'jsonpath={.items[*].message}')" "hostPort $2/TCP is not free: a program of the node itself listens at "; }
server shadow '{containerPort: 8080, hostPort: 6443}'
eventually 10 says_not_free shadow 6443
pod_phase_is shadow Pending
python3 -c 'import socket, time; kept = socket.create_server(("", 30801)); time.sleep(1000)' &
program=$!
read -rt 0.5 <> <(:) || true
server later '{containerPort: 8080, hostPort: 30801}'
eventually 10 says_not_free later 30801
kill $program
kubectl wait --for=condition=Ready pod/later --timeout=30s >/dev/null
kubectl delete pod later >/dev/null
kubectl delete pod shadow >/dev/null

# Nothing stale: what ended while nobody looked is caught up with, and who waited has the port.
kill -9 "$(control_plane_pid)"
says "$TCP" 127.0.0.1 "web 10.42.0.1" env
up >/dev/null 2>&1
everywhere web
kubectl delete pod web >/dev/null
kubectl wait --for=condition=Ready pod/waits --timeout=30s >/dev/null
eventually 10 everywhere waits

# Policies judge the connection at the pod, by the client's own address.
kubectl apply -f - >/dev/null <<YAML
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: nobody}
spec: {podSelector: {matchLabels: {app: waits}}, policyTypes: [Ingress]}
YAML
cut_off() { ! kubectl exec client -- timeout 1 python3 -c "$TCP" 10.42.0.1 30800 >/dev/null 2>&1; }
eventually 10 cut_off
kubectl apply -f - >/dev/null <<YAML
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: nobody}
spec: {podSelector: {matchLabels: {app: waits}}, policyTypes: [Ingress], ingress: [{from: [{ipBlock: {cidr: $CLIENT/32}}]}]}
YAML
let_in() { says "$TCP" 10.42.0.1 "waits $CLIENT" in_pod client --; }
eventually 10 let_in
kubectl delete networkpolicy nobody >/dev/null

# Of one address.
kubectl delete pod waits >/dev/null
server local '{containerPort: 8080, hostPort: 30800, hostIP: 127.0.0.1}'
kubectl wait --for=condition=Ready pod/local --timeout=30s >/dev/null
only_there() { says "$TCP" 127.0.0.1 "local 10.42.0.1" env; }
eventually 10 only_there
refused() { contains "$("$@" python3 -c "$TCP" 10.42.0.1 30800 2>&1)" "ConnectionRefusedError"; }
refused env
refused in_pod client --

kubectl delete pod local >/dev/null
none_left() { ! nft list table ip muster | grep -q 30800; }
eventually 10 none_left
say "result: hostPorts by TCP and UDP from the node, 127.0.0.1, pods and the pod itself; one of two pods; policies; no rule left"
