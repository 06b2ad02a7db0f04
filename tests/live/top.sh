#!/usr/bin/env bash
# Issue 6: what nodes and pods use, through stock kubectl top: a container that burns a core and one that sleeps, on the
# real node; simulated nodes, whose pods use what their annotations say.
source "$(dirname "$0")/lib.sh"
up --simulate-nodes 2

kubectl apply -f - <<'YAML' >/dev/null
apiVersion: v1
kind: Pod
metadata: {name: busy, labels: {app: load}}
spec:
  terminationGracePeriodSeconds: 1
  containers:
    - {name: burn, image: none, command: [sh, -c, "while :; do :; done"]}
    - {name: rest, image: none, command: [sleep, "1000"]}
---
apiVersion: v1
kind: Pod
metadata:
  name: said
  annotations: {muster.dev/simulated-cpu: 1500m, muster.dev/simulated-memory: 300Mi}
spec:
  nodeName: simulated-0000
  containers: [{name: main, image: none}]
YAML

field() { awk -v n="$2" '{print $n}' <<<"$1"; }
# used POD CONTAINER: its milli-cores, as kubectl top shows them.
used() { kubectl top pod "$1" --containers --no-headers | awk -v c="$2" '$2 == c {sub("m", "", $3); print $3}'; }
burns() { [ "$(used busy burn)" -gt "$1" ]; }

eventually 60 burns 200
idle=$(used busy rest)
[ "$idle" -lt 50 ] || fail "a sleeping container uses ${idle}m"
say "result: kubectl top saw a busy loop with $(used busy burn)m and a sleeper with ${idle}m of cpu"
line=$(kubectl top pod said --no-headers)
equals "$(field "$line" 2) $(field "$line" 3)" "1500m 300Mi" "said"
equals "$(kubectl top pod -A -l app=load --no-headers | wc -l)" 1 "pods by label"
equals "$(kubectl top pod --sort-by=cpu --no-headers | awk '{print $1}' | sort | xargs)" "busy said" "pods"
line=$(kubectl top node simulated-0000 --no-headers)
equals "$(field "$line" 2) $(field "$line" 4)" "1500m 300Mi" "a simulated node"
all_nodes() { [ "$(kubectl top node --no-headers | grep -vc unknown)" = 3 ]; }
eventually 30 all_nodes
contains "$(kubectl get pods.metrics.k8s.io)" "WINDOW" "the table"
contains "$(kubectl get --raw /apis/metrics.k8s.io/v1beta1/nodes)" '"NodeMetricsList"' "raw"
contains "$(kubectl delete pods.metrics.k8s.io said 2>&1 || true)" "does not allow this method" "a deletion"
