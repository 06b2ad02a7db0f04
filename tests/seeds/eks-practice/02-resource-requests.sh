#!/usr/bin/env bash
# Requests decide where the pod goes, limits hold it there: cgroups say so. At the article's size on a node that is large enough.
source "$(dirname "$0")/../lib.sh"
a100 1
up_machine --simulate-nodes 1
kubectl cordon "$(real_node)"
kubectl apply -f "$EXAMPLE"
eventually 20 pod_phase_is sized Running
equals "$(node_of sized) $(jsonpath pod/sized .status.qosClass)" "simulated-0000 Burstable"
allocated=$(kubectl describe node simulated-0000 | sed -n '/^Allocated resources/,$p')
[[ $allocated =~ cpu\ +4\ \(6%\)\ +8\ \(12%\) ]] || fail "CPU: $allocated"
[[ $allocated =~ memory\ +16Gi\ \(3%\)\ +32Gi\ \(6%\) ]] || fail "memory: $allocated"
[[ $allocated =~ nvidia.com/gpu\ +1\ +1 ]] || fail "GPU: $allocated"

# Here, cut down: 50 % of a CPU and 256 MiB at most, and who takes more memory is ended for it.
kubectl delete pod sized --wait >/dev/null
kubectl uncordon "$(real_node)"
kubectl delete node simulated-0000
fit "$EXAMPLE" | sed 's/"sleep", "1000"/"python", "-c", "x = bytearray(1 << 30)"/; s/^spec:/spec:\n  restartPolicy: Never/' | kubectl apply -f -
eventually 20 pod_phase_is sized Failed
equals "$(jsonpath pod/sized '.status.containerStatuses[0].state.terminated.reason')" OOMKilled
# Of GPUs a request must be the limit.
refused=$(sed '0,/nvidia.com\/gpu: "1"/s//nvidia.com\/gpu: "2"/; s/name: sized/name: more/' "$EXAMPLE" | kubectl apply -f - 2>&1) &&
  fail "a request of two GPUs with a limit of one was taken"
contains "$refused" "must be equal to nvidia.com/gpu limit of 1"
