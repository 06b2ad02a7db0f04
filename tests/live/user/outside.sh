#!/usr/bin/env bash
# Part of tests/live/user.sh, as an ordinary user: the way to the outside, and limits that cannot be kept.
source "$(dirname "$0")/../lib.sh"
way=$1 # pasta, slirp4netns or none
up >"$SCRATCH/up.out"
condition() { kubectl get nodes -o "jsonpath={.items[0].status.conditions[?(@.type=='$1')].$2}"; }

fetch() { # fetch NAME URL: what a pod gets
  cat <<YAML | kubectl apply -f - >/dev/null
apiVersion: v1
kind: Pod
metadata: {name: $1}
spec:
  restartPolicy: Never
  containers:
    - name: main
      image: none
      command: ["curl", "-s", "--retry", "20", "--retry-connrefused", "--retry-all-errors", "--retry-delay", "1", "-m", "5", "$2"]
      resources: {limits: {memory: 64Mi}}
YAML
}
if [ "$way" = none ]; then
  equals "$(condition NoOutsideNetwork status)" True "condition NoOutsideNetwork"
  contains "$(cat "$SCRATCH/up.out")" "apt-get install passt" "what up says"
  shows NoOutsideNetwork kubectl get events -A
  [ -x /usr/bin/newuidmap ] || exit 0
  say "== other ids"
  cat <<YAML | kubectl apply -f - >/dev/null
apiVersion: v1
kind: Pod
metadata: {name: ids}
spec:
  restartPolicy: Never
  containers:
    - name: main
      image: none
      command: ["sh", "-c", "mkdir -m 700 /data/x && chown 1000:1000 /data/x && setpriv --reuid=1000 --clear-groups touch /data/x/y && stat -c %u /data/x/y"]
      volumeMounts: [{name: data, mountPath: /data}]
  volumes: [{name: data, emptyDir: {}}]
YAML
  ended() { pod_phase_is ids Succeeded || pod_phase_is ids Failed; }
  eventually 30 ended
  equals "$(kubectl logs ids)" 1000 "a file of another id"
  say "result: an ordinary user with a range of ids: files of another id are made, and gone after down"
  exit 0
fi
equals "$(condition NoOutsideNetwork status)" "" "condition NoOutsideNetwork"
fetch by-address http://198.51.100.2/
ended() { pod_phase_is "$1" Succeeded || { pod_phase_is "$1" Failed && fail "$1 failed: $(kubectl logs "$1")"; }; }
eventually 60 ended by-address
equals "$(kubectl logs by-address)" "the outside" "by address, through $way"
fetch by-name http://outside.example/
eventually 30 pod_phase_is by-name Succeeded
equals "$(kubectl logs by-name)" "the outside" "by name, through $way"
# What listens on the machine's loopback is not for pods.
python3 -m http.server --bind 127.0.0.1 7999 >/dev/null 2>&1 &
server=$!
gateway=$(ip route | awk '$1 == "default" { print $3 }')
kubectl exec -i by-address -- true >/dev/null 2>&1 && fail "exec in a pod that ended"
cat <<YAML | kubectl apply -f - >/dev/null
apiVersion: v1
kind: Pod
metadata: {name: loopback}
spec:
  restartPolicy: Never
  containers:
    - name: main
      image: none
      command: ["sh", "-c", "for a in 127.0.0.1 10.42.0.1 10.0.2.2 $gateway; do curl -s -m 2 http://\$a:7999/ && echo LEAK \$a; done; echo done"]
YAML
eventually 40 pod_phase_is loopback Succeeded
kill $server
equals "$(kubectl logs loopback)" done "the machine's loopback, through $way"

say "== limits"
equals "$(condition LimitsNotEnforced status)" True "condition LimitsNotEnforced"
equals "$(condition LimitsNotEnforced reason)" NoDelegatedCgroup
contains "$(cat "$SCRATCH/up.out")" "limits of memory and CPU are not enforced" "what up says"
shows LimitsNotEnforced kubectl get events --field-selector involvedObject.name=by-name

say "== the program and its keeper die"
program=$(pgrep -u "$(id -u)" -f "^/usr/bin/$way" | tail -n 1)
kill -9 "$program"
fetch again http://198.51.100.2/
eventually 30 pod_phase_is again Succeeded
equals "$(kubectl logs again)" "the outside" "after $way was killed"
say "result: an ordinary user's pods reach the outside through $way, by name and address"
