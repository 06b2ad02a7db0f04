#!/usr/bin/env bash
# Two GPUs for one pod: while one of three is held it gets the others, the next waits until two are free, and gets those.
source "$(dirname "$0")/../lib.sh"
a100 3
up_machine
kubectl apply -f "$EXAMPLE"
eventually 20 pod_phase_is two-gpus Running
gpus() { kubectl exec "$1" -- sh -c 'echo $NVIDIA_VISIBLE_DEVICES'; }
first=$(gpus two-gpus)
equals "$(tr , '\n' <<<"$first" | sort -u | wc -l)" 2 "GPUs of the pod"
equals "$(kubectl exec two-gpus -- sh -c 'ls /dev | grep -c "nvidia[0-9]"')" 2 "GPU devices in the pod"
sed 's/name: two-gpus/name: next/' "$EXAMPLE" | kubectl apply -f -
eventually 10 waits_for next "Insufficient nvidia.com/gpu"
contains "$("$MUSTER" explain pod next)" "1 of 3 free (2 held by pod default/two-gpus" "muster explain"
pod_phase_is next Pending || fail "next got what is held"
kubectl delete pod two-gpus --grace-period=0 --force 2>/dev/null
eventually 20 pod_phase_is next Running
equals "$(gpus next | tr , '\n' | sort -u | wc -l)" 2 "GPUs of the next pod"
# Requests that differ from limits are none that GPUs can have.
refused=$(sed 's/name: two-gpus/name: unequal/; s/gpu: 2/gpu: 1/; t; ' "$EXAMPLE" | sed '0,/gpu: 1/s//gpu: 2/' | kubectl apply -f - 2>&1) &&
  fail "a request below its limit was taken"
contains "$refused" 'spec.containers[0].resources.requests: Invalid value: "1": must be equal to nvidia.com/gpu limit of 2'
