#!/usr/bin/env bash
# The scheduler as a process of its own: over HTTPS and a kubeconfig, one of several copies leads.
source "$(dirname "$0")/lib.sh"
up --simulate-gpus 2 --scheduler=off

gpu_pod() { # gpu_pod NAME
  cat <<YAML
apiVersion: v1
kind: Pod
metadata: {name: $1}
spec:
  restartPolicy: Never
  containers:
    - {name: main, image: none, command: ["sh", "-c", "echo \$NVIDIA_VISIBLE_DEVICES"], resources: {limits: {nvidia.com/gpu: 1}}}
YAML
}
scheduler() { # scheduler PORT: starts a copy, its pid in $copy
  "$MUSTER" scheduler --kubeconfig "$KUBECONFIG" --listen "127.0.0.1:$1" >"$SCRATCH/scheduler-$1.log" 2>&1 &
  copy=$!
}
holder() { kubectl -n kube-system get lease muster-scheduler -o 'jsonpath={.spec.holderIdentity}'; }
leads() { curl -sf "http://127.0.0.1:$1/metrics" | grep -q '^leader_election_master_status.* 1$'; }
pod_is() { [ "$(kubectl get pod "$1" -o 'jsonpath={.status.phase}')" = "$2" ]; }
is_bound() { [ -n "$(kubectl get pod "$1" -o 'jsonpath={.spec.nodeName}')" ]; }

gpu_pod first | kubectl apply -f -
is_bound first && fail "bound, and nobody schedules"
contains "$("$MUSTER" explain pod first)" "it fits now, on " "explain while nobody schedules"
scheduler 7001
one=$copy
eventually 20 leads 7001
eventually 20 pod_is first Succeeded
say "result: the scheduler apart: bound over HTTPS, devices $(kubectl logs first)"
equals "$(curl -s "http://127.0.0.1:7001/readyz")" ok "readyz of the leader"
contains "$(curl -s "http://127.0.0.1:7001/metrics")" 'scheduler_schedule_attempts_total{result="scheduled"} 1' "metrics of the leader"

# Explain and what-if read the API alone, so it is the same to them where the scheduler runs.
gpu_pod large | sed 's|nvidia.com/gpu: 1|nvidia.com/gpu: 3|' >"$SCRATCH/large.yaml"
code=0
answer=$("$MUSTER" simulate --live --submit "$SCRATCH/large.yaml") || code=$?
equals "$code" 4 "exit code of simulate --submit for what never fits"
contains "$answer" "default/large never starts: " "simulate --submit"
kubectl apply -f "$SCRATCH/large.yaml"
told() { [ -n "$(kubectl get pod large -o 'jsonpath={.status.conditions[?(@.type=="PodScheduled")].message}')" ]; }
eventually 10 told
contains "$("$MUSTER" explain pod large -o json)" '"why": "NeverFits"' "explain -o json of a scheduler apart"
contains "$("$MUSTER" explain pod large)" "it needs a node with 3 free nvidia.com/gpu" "explain of a scheduler apart"
kubectl delete pod large --grace-period=0 >/dev/null
contains "$("$MUSTER" simulate --live --submit <(gpu_pod small | sed 's|nvidia.com/gpu: 1|nvidia.com/gpu: 2|'))" "starts at once" "simulate --submit"

# A second copy waits; the first gives the Lease up when it is asked to stop, and the second leads at once.
scheduler 7002
two=$copy
eventually 10 curl -sf http://127.0.0.1:7002/readyz
leads 7002 && fail "two copies lead"
kill "$one"
wait "$one" || fail "a scheduler that is asked to stop ended with $?"
eventually 10 leads 7002
gpu_pod second | kubectl apply -f -
eventually 20 pod_is second Succeeded

# One that is killed keeps the Lease until it runs out: nobody else leads before, somebody does after.
scheduler 7003
three=$copy
eventually 10 curl -sf http://127.0.0.1:7003/readyz
kill -9 "$two"
wait "$two" 2>/dev/null || true
gpu_pod third | kubectl apply -f -
is_bound third && fail "bound while the Lease of a dead leader ran"
eventually 30 pod_is third Succeeded
equals "$(kubectl -n kube-system get lease muster-scheduler -o 'jsonpath={.spec.leaseTransitions}')" 2 "transitions of the Lease"

equals "$("$MUSTER" rbac scheduler -n default | grep -c '^kind:')" 5 "objects of muster rbac scheduler"
kill "$three"
wait "$three" || fail "the last scheduler ended with $?"

# Without its controllers nobody makes anything of a Deployment: a kube-controller-manager may be beside (bench/run).
"$MUSTER" down --data-dir "$DATA" >/dev/null
up --controllers=off
kubectl create namespace apart >/dev/null
kubectl create deployment web -n apart --image=none >/dev/null
kubectl wait --for=jsonpath='{.status.observedGeneration}'=1 -n apart deployment/web --timeout=2s 2>/dev/null && fail "a controller works"
equals "$(kubectl get replicasets,serviceaccounts -n apart -o name)" "" "what controllers would have made"
