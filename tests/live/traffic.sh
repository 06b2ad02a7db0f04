#!/usr/bin/env bash
# Issue 6: no request fails through rollouts, drains and lost endpoints, over kept connections and over one for each; the
# same without a preStop hook must show failures, or the test proves nothing. tests/full/traffic.sh is the full size:
#   ROLLOUTS=2 DRAINS=1 LOSSES=2 REQUESTS=2000 tests/live/traffic.sh
source "$(dirname "$0")/lib.sh"
ROLLOUTS=${ROLLOUTS:-2} DRAINS=${DRAINS:-1} LOSSES=${LOSSES:-2} REQUESTS=${REQUESTS:-2000}
PROGRAMS=$(dirname "$MUSTER")/bench
up >/dev/null
node=$(kubectl get nodes -o 'jsonpath={.items[0].metadata.name}')

web() { # web NAME PRESTOP: three servers behind a Service, and a budget that lets one go at a time
  kubectl apply -f - >/dev/null <<YAML
apiVersion: apps/v1
kind: Deployment
metadata: {name: $1}
spec:
  replicas: 3
  strategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}
  selector: {matchLabels: {app: $1}}
  template:
    metadata: {labels: {app: $1}}
    spec:
      terminationGracePeriodSeconds: 10
      volumes: [{name: programs, hostPath: {path: $PROGRAMS}}]
      containers:
        - name: main
          image: none
          command: [/programs/traffic, serve, "8080"]
          volumeMounts: [{name: programs, mountPath: /programs, readOnly: true}]
          readinessProbe: {periodSeconds: 1, failureThreshold: 1, httpGet: {path: /ready, port: 8080}}
          lifecycle: $2
---
apiVersion: v1
kind: Service
metadata: {name: $1}
spec: {selector: {app: $1}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: $1}
spec: {minAvailable: 2, selector: {matchLabels: {app: $1}}}
YAML
  kubectl rollout status "deployment/$1" --timeout=60s >/dev/null
}
pods_of() { # not those that end
  kubectl get pods -l "app=$1" -o go-template='{{range .items}}{{if not .metadata.deletionTimestamp}}{{.metadata.name}} {{end}}{{end}}'
}
all_ready() { equals "$(kubectl get deployment "$1" -o 'jsonpath={.status.readyReplicas}/{.status.replicas}')" 3/3 "ready of $1"; }
rollout() {
  eventually 5 kubectl rollout restart "deployment/$1" # once a second, kubectl demands
  kubectl rollout status "deployment/$1" --timeout=60s >/dev/null
}
evict() {
  kubectl create --raw "/api/v1/namespaces/default/pods/$1/eviction" -f - <<<"
{\"apiVersion\": \"policy/v1\", \"kind\": \"Eviction\", \"metadata\": {\"name\": \"$1\", \"namespace\": \"default\"}}" >/dev/null
}
# As kubectl drain does; there is one node only, so it takes pods again once the first is gone.
drain() {
  local pod
  kubectl cordon "$node" >/dev/null
  for pod in $(pods_of "$1"); do
    eventually 60 evict "$pod"
    kubectl uncordon "$node" >/dev/null
  done
  eventually 60 all_ready "$1"
}
# An endpoint that stops to be ready comes back; one that is deleted is replaced.
lose() { # lose NAME NUMBER
  local pod
  pod=$(pods_of "$1" | awk '{print $1}')
  if [ $(($2 % 2)) = 0 ]; then
    kubectl delete pod "$pod" --wait=false >/dev/null
    eventually 60 all_ready "$1"
  else
    kubectl exec "$pod" -- touch /tmp/unready
    one_less() { equals "$(kubectl get deployment "$1" -o 'jsonpath={.status.readyReplicas}')" 2 "ready of $1"; }
    eventually 60 one_less "$1"
    kubectl exec "$pod" -- rm /tmp/unready
    eventually 60 all_ready "$1"
  fi
}
start_load() { # start_load NAME
  rm -f "$SCRATCH/stop"
  "$PROGRAMS/traffic" load "$(jsonpath "service/$1" .spec.clusterIP)" 80 "$SCRATCH/stop" >"$SCRATCH/$1.load" &
  load=$!
}
stop_load() { # stop_load: its exit code
  touch "$SCRATCH/stop"
  wait "$load"
}

# While a pod drains it is no endpoint any more, serves what comes, and sends those away who keep a connection.
web safe '{preStop: {exec: {command: [sh, -c, "touch /tmp/drain; sleep 1"]}}}'
start_load safe
for ((i = 0; i < ROLLOUTS; ++i)); do rollout safe; done
for ((i = 0; i < DRAINS; ++i)); do drain safe; done
for ((i = 0; i < LOSSES; ++i)); do lose safe $i; done
stop_load || fail "requests failed: $(cat "$SCRATCH/safe.load")"
requests=$(sed 's/requests=\([0-9]*\) .*/\1/' "$SCRATCH/safe.load")
[ "$requests" -ge "$REQUESTS" ] || fail "only $requests requests, want $REQUESTS"
say "result: $ROLLOUTS rollouts, $DRAINS drains, $LOSSES lost endpoints: $(cat "$SCRATCH/safe.load")"
kubectl delete deployment safe --wait=false >/dev/null

web rude '{}'
start_load rude
rollout rude
! stop_load || fail "without preStop nothing failed: $(cat "$SCRATCH/rude.load")"
say "result: without preStop, one rollout: $(cat "$SCRATCH/rude.load")"
