#!/usr/bin/env bash
# Issue 6: Deployments, StatefulSets, DaemonSets, Jobs and CronJobs through stock kubectl on a real node: rollouts, undo,
# pause, scale, a template that cannot start, cascades; a budget that holds up a drain.
source "$(dirname "$0")/lib.sh"
up

deployment() { # deployment NAME REPLICAS COMMAND
  kubectl apply -f - <<YAML
apiVersion: apps/v1
kind: Deployment
metadata: {name: $1}
spec:
  replicas: $2
  progressDeadlineSeconds: 10
  selector: {matchLabels: {app: $1}}
  template:
    metadata: {labels: {app: $1}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
        - {name: main, image: none, command: [$3]}
YAML
}
# count ARGS...: how many objects kubectl lists; nothing, which equals no number, if it fails.
count() {
  local names
  names=$(kubectl get "$@" -o name) || return 1
  if [ -n "$names" ]; then wc -l <<<"$names"; else echo 0; fi
}
pods_of() { count pods -l "app=$1"; }
count_is() { equals "$(pods_of "$1")" "$2" "pods of $1"; }
replicas_of() { kubectl get rs -l "app=$1" -o 'jsonpath={.items[?(@.spec.replicas>0)].metadata.name}' | wc -w; }

# A Deployment comes up, is scaled, rolled, paused and undone.
deployment web 3 '"sleep", "1000"'
kubectl rollout status deployment/web --timeout=30s | tail -n 1
contains "$(kubectl get deployment web --no-headers)" "3/3" "READY"
kubectl scale deployment/web --replicas=5 >/dev/null
kubectl rollout status deployment/web --timeout=30s >/dev/null
count_is web 5
deployment web 5 '"sleep", "2000"'
kubectl rollout status deployment/web --timeout=60s | tail -n 1
equals "$(replicas_of web)" 1 "ReplicaSets with pods after the rollout"
equals "$(kubectl rollout history deployment/web | grep -c '^[0-9]')" 2 "revisions"
first=$(kubectl get pods -l app=web -o 'jsonpath={.items[0].spec.containers[0].command[1]}')
equals "$first" 2000 "command after the rollout"
kubectl rollout undo deployment/web >/dev/null
kubectl rollout status deployment/web --timeout=60s >/dev/null
equals "$(kubectl get deployment web -o 'jsonpath={.spec.template.spec.containers[0].command[1]}')" 1000 "command after undo"
kubectl rollout restart deployment/web >/dev/null
kubectl rollout status deployment/web --timeout=60s >/dev/null
shows "Scaled up replica set web-" kubectl get events --field-selector reason=ScalingReplicaSet -o 'jsonpath={.items[*].message}'

# Paused, a change of the template waits.
kubectl rollout pause deployment/web >/dev/null
kubectl set env deployment/web A=b >/dev/null
sets=$(count rs -l app=web)
kubectl rollout resume deployment/web >/dev/null
kubectl rollout status deployment/web --timeout=60s >/dev/null
equals "$(count rs -l app=web)" $((sets + 1)) "ReplicaSets after resume"

# One that cannot start: the old pods stay, and the rollout says so.
deployment web 5 '"/does/not/exist"'
if kubectl rollout status deployment/web --timeout=60s >"$SCRATCH/rollout" 2>&1; then fail "a broken rollout succeeded"; fi
contains "$(cat "$SCRATCH/rollout")" "exceeded its progress deadline" "rollout status"
running=$(count pods -l app=web --field-selector status.phase=Running)
[ "$running" -ge 4 ] || fail "only $running of 5 pods left while the rollout hangs"
kubectl rollout undo deployment/web >/dev/null
kubectl rollout status deployment/web --timeout=60s >/dev/null

# A pod that is deleted comes back; a ReplicaSet that is deleted as well; without its Deployment nothing is left.
kubectl delete "$(kubectl get pods -l app=web -o name | head -n 1)" --wait >/dev/null
eventually 20 count_is web 5
kubectl delete deployment web --wait >/dev/null
eventually 20 count_is web 0
equals "$(count rs -l app=web)" 0 "ReplicaSets of a deleted Deployment"

# A StatefulSet: names that stay, in order.
kubectl apply -f - <<YAML >/dev/null
apiVersion: v1
kind: Service
metadata: {name: db}
spec: {clusterIP: None, selector: {app: db}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 2
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
        - {name: main, image: none, command: ["sh", "-c", "hostname -f; exec sleep 1000"]}
YAML
kubectl rollout status statefulset/db --timeout=30s | tail -n 1
printed_its_name() { contains "$(kubectl logs db-1)" "db-1" "what db-1 printed"; }
eventually 10 printed_its_name
kubectl set env statefulset/db A=b >/dev/null
kubectl rollout status statefulset/db --timeout=60s | tail -n 1
equals "$(kubectl get pod db-0 -o 'jsonpath={.spec.containers[0].env[0].value}')" b "env of db-0 after the update"
kubectl rollout undo statefulset/db >/dev/null
kubectl rollout status statefulset/db --timeout=60s >/dev/null
kubectl scale statefulset/db --replicas=1 >/dev/null
eventually 20 count_is db 1

# A DaemonSet: a pod on this one node.
kubectl apply -f - <<YAML >/dev/null
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: each}
spec:
  selector: {matchLabels: {app: each}}
  template:
    metadata: {labels: {app: each}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
        - {name: main, image: none, command: ["sleep", "1000"]}
YAML
kubectl rollout status daemonset/each --timeout=30s | tail -n 1
kubectl set env daemonset/each A=b >/dev/null
kubectl rollout status daemonset/each --timeout=60s >/dev/null
count_is each 1

# Jobs: one that succeeds, one with an index for each pod, one that fails for good, one made from a CronJob.
kubectl create job hello --image none -- sh -c 'echo hello' >/dev/null
kubectl wait --for=condition=complete job/hello --timeout=30s >/dev/null
equals "$(kubectl logs job/hello)" hello "log of a Job"
contains "$(kubectl get job hello --no-headers)" "Complete   1/1" "row of a Job"
job() { # job NAME SPEC COMMAND
  kubectl apply -f - <<YAML >/dev/null
apiVersion: batch/v1
kind: Job
metadata: {name: $1}
spec:
  $2
  template:
    spec:
      restartPolicy: Never
      containers:
        - {name: main, image: none, command: ["sh", "-c", "$3"]}
YAML
}
job parts "completions: 3
  parallelism: 3
  completionMode: Indexed
  ttlSecondsAfterFinished: 5" 'echo part $JOB_COMPLETION_INDEX'
kubectl wait --for=condition=complete job/parts --timeout=30s >/dev/null
equals "$(jsonpath job/parts .status.completedIndexes)" 0-2 "completed indexes"
job wrong "backoffLimit: 0" 'exit 3'
kubectl wait --for=condition=failed job/wrong --timeout=30s >/dev/null
equals "$(kubectl get job wrong -o 'jsonpath={.status.conditions[?(@.type=="Failed")].reason}')" BackoffLimitExceeded "reason"
kubectl create cronjob nightly --image none --schedule '0 3 * * *' -- sh -c 'echo tick' >/dev/null
kubectl create job --from cronjob/nightly now >/dev/null
kubectl wait --for=condition=complete job/now --timeout=30s >/dev/null
gone() { [[ "$(kubectl get "$1" 2>&1)" == *NotFound* ]]; }
eventually 20 gone job/parts # its time to live is over
kubectl delete cronjob nightly >/dev/null
eventually 20 gone job/now

# A budget holds up a drain until it allows it.
deployment kept 2 '"sleep", "1000"'
kubectl rollout status deployment/kept --timeout=30s >/dev/null
kubectl create poddisruptionbudget kept --selector app=kept --min-available 2 >/dev/null
allowed_is() { equals "$(jsonpath pdb/kept .status.disruptionsAllowed)" "$1" "allowed disruptions"; }
eventually 10 allowed_is 0
node=$(kubectl get nodes -o 'jsonpath={.items[0].metadata.name}')
if kubectl drain "$node" --ignore-daemonsets --force --timeout=5s >"$SCRATCH/drain" 2>&1; then fail "a drain went past a budget"; fi
contains "$(cat "$SCRATCH/drain")" "Cannot evict pod as it would violate the pod's disruption budget" drain
count_is kept 2
kubectl patch pdb kept -p '{"spec": {"minAvailable": 0}}' >/dev/null
eventually 10 allowed_is 2
kubectl drain "$node" --ignore-daemonsets --force --timeout=60s >/dev/null 2>&1 || fail "the drain did not end"
equals "$(count pods -l app=kept --field-selector status.phase=Running)" 0 "pods on a drained node"
kubectl uncordon "$node" >/dev/null
kubectl rollout status deployment/kept --timeout=60s >/dev/null
say "result: rollouts, undo, pause, restart, scale, a broken template, StatefulSet, DaemonSet, Jobs, drain past a budget"
