#!/usr/bin/env bash
# Part of tests/live/user.sh, as an ordinary user for whom the kernel makes no user namespaces: the fallback and its
# words.
source "$(dirname "$0")/../lib.sh"
source tests/live/user/rendezvous.sh
[ "$(id -u)" != 0 ] || fail "this test is for an ordinary user"
! unshare -U true 2>/dev/null || fail "this test is for a machine without user namespaces"
up >"$SCRATCH/up.out"
up_says=$(cat "$SCRATCH/up.out")
condition() { kubectl get nodes -o "jsonpath={.items[0].status.conditions[?(@.type=='$1')].$2}"; }
for text in "pods are plain processes" "user.max_user_namespaces is 0" "sudo sysctl -w user.max_user_namespaces=" "limits of memory"; do
  contains "$up_says" "$text" "what up says"
done
equals "$(condition NoNamespaces status)" True "condition NoNamespaces"
contains "$(condition NoNamespaces message)" "sudo sysctl -w" "condition NoNamespaces"
shows NoNamespaces kubectl get events -A

pod() { # pod NAME POLICY PORT COMMAND [MORE]
  cat <<YAML | kubectl apply -f - >/dev/null
apiVersion: v1
kind: Pod
metadata: {name: $1}
spec:
  restartPolicy: $2
  containers:
    - name: main
      image: none
      command: ["sh", "-c", "$4"]
      ports: [{containerPort: $3}]
      $5
YAML
}
ended() { pod_phase_is "$1" Succeeded || pod_phase_is "$1" Failed; }
refused() { # refused POD REASON TEXT...
  eventually 20 pod_phase_is "$1" Failed
  equals "$(jsonpath "pod/$1" .status.reason)" "$2" "why $1 failed"
  local text
  for text in "${@:3}"; do contains "$(jsonpath "pod/$1" .status.message)" "$text" "why $1 failed"; done
}

say "== a pod, its logs and commands in it"
pod web Always 8000 'echo up as $(id -u) in $HOME; sleep 9876 & exec python3 -m http.server 8000' ''
eventually 20 pod_phase_is web Running
logged() { kubectl logs web | grep -q "^up as $(id -u) in $DATA"; }
eventually 20 logged
equals "$(echo typed | kubectl exec -i web -- cat)" typed
equals "$(kubectl exec web -- sh -c 'echo $HOME')" "$(kubectl logs web | sed -n '1s/.* in //p')" "its home"

say "== what cannot be kept is refused"
pod two Never 8000 'exit 0' ''
refused two NodePorts "port 8000/TCP is taken by pod default/web" "give this one another port"
python3 -m http.server --bind 127.0.0.1 8001 >/dev/null 2>&1 &
server=$!
listens() { grep -q ':1F41 ' /proc/net/tcp; }
eventually 10 listens
pod three Never 8001 'exit 0' ''
refused three NodePorts "port 8001/TCP is taken by a program of this machine"
kill $server
pod readonly Never 8002 'exit 0' 'securityContext: {readOnlyRootFilesystem: true}'
refused readonly UnsupportedField readOnlyRootFilesystem "NoNamespaces says why"
kubectl run image --image=registry.example/x:1 --restart=Never >/dev/null
waiting() { jsonpath "pod/$1" ".status.containerStatuses[0].state.waiting.$2"; }
waits_with() { [ "$(waiting "$1" reason)" = "$2" ]; }
eventually 20 waits_with image CreateContainerConfigError
contains "$(waiting image message)" "image registry.example/x:1 cannot be the root folder of container image: this node has no namespaces"
contains "$(waiting image message)" 'image "none" runs the machine'
equals "$(jsonpath pod/image .status.phase)" Pending "phase of a pod that waits for namespaces"
shows "cannot be the root folder" kubectl get events --field-selector involvedObject.name=image
kubectl delete pod image --grace-period=0 --force >/dev/null 2>&1
kubectl create configmap script --from-literal=a=b >/dev/null
cat <<YAML | kubectl apply -f - >/dev/null
apiVersion: v1
kind: Pod
metadata: {name: volume}
spec:
  restartPolicy: Never
  containers: [{name: main, image: none, command: ["true"], volumeMounts: [{name: s, mountPath: /script}]}]
  volumes: [{name: s, configMap: {name: script}}]
YAML
refused volume UnsupportedField "volume s cannot be mounted at /script"

say "== network policies: who is selected is refused, who runs goes on with a warning"
cat <<YAML | kubectl apply -f - >/dev/null
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: fence}
spec: {podSelector: {}}
YAML
pod fenced Never 8003 'exit 0' ''
refused fenced NetworkPolicyNotEnforced "the network policy fence selects the pod, and this node cannot enforce it"
warned() { kubectl get events | grep NetworkPolicyNotEnforced | grep -q "$1"; }
eventually 10 warned "pod/web"
eventually 10 warned "node/"
pod_phase_is web Running || fail "a pod that ran was ended"
kubectl delete networkpolicy fence >/dev/null
pod open Never 8003 'exit 0' ''
eventually 20 pod_phase_is open Succeeded

say "== a job on one port, and a second one"
mkdir "$SCRATCH/open" "$SCRATCH/gate"
cp tests/live/user/rendezvous.py "$SCRATCH/open/"
job() { rendezvous_job "$1" "$SCRATCH/open/rendezvous.py" "$SCRATCH/gate" | kubectl apply -f - >/dev/null; }
job one
eventually 30 pod_phase_is one-worker-0 Succeeded
contains "$(kubectl logs one-worker-0)" "hello from " "through MASTER_ADDR"
job two
refused two-master-0 NodePorts "port 23456/TCP is taken by pod default/one-"
touch "$SCRATCH/gate/go"
kubectl wait --for=condition=Succeeded pytorchjob/one --timeout=30s >/dev/null

say "== ends and restarts"
pod family Never 8003 'sleep 9875 & sleep 9875 & exit 0' ''
eventually 20 pod_phase_is family Succeeded
alone() { ! pgrep -u "$(id -u)" -f "sleep 987[5]" >/dev/null; }
eventually 10 alone
equals "$(jsonpath pod/web '.status.containerStatuses[0].restartCount')" 0 "restarts before"
before=$(jsonpath pod/web .metadata.uid)
kill -9 "$(control_plane_pid)"
up >/dev/null
equals "$(jsonpath pod/web .metadata.uid)" "$before" "the pod is the same one"
equals "$(jsonpath pod/web '.status.containerStatuses[0].restartCount')" 0 restarts
equals "$(kubectl exec web -- echo here)" here "exec after a restart"
pkill -9 -u "$(id -u)" '^muster'
up >/dev/null
restarted() { [ "$(jsonpath pod/web '.status.containerStatuses[0].restartCount')" -ge 1 ] && pod_phase_is web Running; }
eventually 60 restarted
shim=$(ps -o ppid= -p "$(pgrep -u "$(id -u)" -f '^python3 -m http.server 8000')")
kill -9 $shim
restarted_again() { [ "$(jsonpath pod/web '.status.containerStatuses[0].restartCount')" -ge 2 ] && pod_phase_is web Running; }
eventually 60 restarted_again
one_child() { [ "$(pgrep -c -u "$(id -u)" -fx "sleep 9876")" = 1 ]; }
eventually 10 one_child
"$MUSTER" down --purge --data-dir "$DATA"
[ ! -e "$DATA" ] || fail "$DATA is still there: $(find "$DATA")"
say "result: without user namespaces: plain processes, a taken port refused with reason and remedy, jobs run, down leaves nothing"
