#!/usr/bin/env bash
# Four pods to a GPU: eight get the two GPUs, the ninth waits. What a pod has stays as it is: a change comes when it is gone, also
# over kill -9. A file that cannot be read is told of, and changes nothing.
source "$(dirname "$0")/../lib.sh"
a100 2
up_machine
config() { sed "$1" "$EXAMPLE" | kubectl apply -f - >/dev/null; }
offered() { jsonpath "node/$(real_node)" ".status.allocatable.$1"; }
offered_is() { equals "$(offered "${2-nvidia\.com/gpu}")" "$1" "allocatable"; }
label_is() { equals "$(jsonpath "node/$(real_node)" ".metadata.labels.nvidia\.com/gpu\.$1")" "$2" "label $1"; }
pod() { # pod NAME [COUNT] [RESOURCE]
  kubectl apply -f - >/dev/null <<YAML
apiVersion: v1
kind: Pod
metadata: {name: $1}
spec:
  terminationGracePeriodSeconds: 0
  containers:
    - name: main
      image: pytorch/pytorch:latest
      command: [sleep, "1000"]
      resources: {limits: {${3-nvidia.com/gpu}: ${2-1}}}
YAML
}
start() { pod "$@" && eventually 20 pod_phase_is "$1" Running; }
gpu() { kubectl exec "$1" -- sh -c 'echo $NVIDIA_VISIBLE_DEVICES'; }
remove() { kubectl delete pod "$@" --wait >/dev/null; }

# While one GPU is somebody's, it stays whole.
start before
equals "$(gpu before)" GPU-0
config ''
eventually 10 offered_is 5
eventually 30 has_event "$(real_node)" TimeSlicing "each GPU is offered as 4 nvidia.com/gpu; 1 of 2 only when no pod has any of it"
equals "$(offered 'muster\.dev/gpu-milli')" "" "thousandths of GPUs beside time-slicing"
for i in 1 2 3 4; do start "early-$i"; equals "$(gpu "early-$i")" GPU-1 "early-$i"; done
pod early-5
eventually 10 waits_for early-5 "Insufficient nvidia.com/gpu"
remove before
eventually 10 offered_is 8
eventually 20 pod_phase_is early-5 Running
equals "$(gpu early-5)" GPU-0
label_is replicas 4
label_is product NVIDIA-A100-SXM4-40GB-SHARED
label_is sharing-strategy time-slicing

# Eight pods; a pod with two shares sees a GPU once.
start two 2
equals "$(gpu two)" GPU-0 "the GPU of two shares"
equals "$(kubectl exec two -- sh -c 'ls /dev | grep "nvidia[0-9]"')" nvidia0
start last
pod ninth
eventually 10 waits_for ninth "Insufficient nvidia.com/gpu"
top=$("$MUSTER" top gpus)
contains "$top" "default/early-1, default/early-2, default/early-3, default/early-4" "muster top gpus"
equals "$(wc -l <<<"$top")" 3 "lines of muster top gpus"
contains "$("$MUSTER" explain node "$(real_node)")" "nvidia.com/gpu GPU-1::3: pod default/early-" "muster explain node"
say "result: two GPUs, shared by four pods each; the ninth waits"

# The agent dies: everybody has what it had, and what is free is given once.
kill -9 "$(control_plane_pid)"
up_machine
eventually 10 offered_is 8
for i in 1 2 3 4; do equals "$(gpu "early-$i")" GPU-1 "early-$i after a restart"; done
pod_phase_is ninth Pending || fail "the ninth pod got what is somebody's"
remove last
eventually 20 pod_phase_is ninth Running
equals "$(gpu ninth)" GPU-0

# What cannot be is told, and what held before goes on.
config 's/replicas: 4/replicas: none/'
told() { has_event "$1" TimeSlicingRefused "config.yaml: sharing.timeSlicing.resources[0].replicas: expected a whole number above 1, got \"none\"; what held before goes on"; }
eventually 10 told nvidia-device-plugin-config
told "$(real_node)"
config 's/replicas: 4/replicas: 65/'
refused() { has_event "$(real_node)" TimeSlicingRefused "replicas: 65 of 2 GPUs are more than the 128 devices of a node"; }
eventually 10 refused
offered_is 8

# Renamed, one share at most each; GPU 0 follows when the last of its pods is gone.
config 's/replicas: 4/replicas: 3/; s/renameByDefault: false/renameByDefault: true\n        failRequestsGreaterThanOne: true/'
shared='nvidia\.com/gpu\.shared'
remove early-1 early-2 early-3 early-4
eventually 10 offered_is 3 "$shared"
offered_is 4
start renamed 1 nvidia.com/gpu.shared
equals "$(gpu renamed)" GPU-1
pod greedy 2 nvidia.com/gpu.shared
eventually 10 pod_phase_is greedy Failed
contains "$(jsonpath pod/greedy .status.message)" "invalid request: maximum request size for shared resources is 1; found 2"
remove early-5 two ninth
eventually 10 offered_is 6 "$shared"
equals "$(offered 'nvidia\.com/gpu')" "" "nvidia.com/gpu"
label_is product NVIDIA-A100-SXM4-40GB

# Without the ConfigMap GPUs are whole again.
kubectl delete -f "$EXAMPLE" >/dev/null
remove renamed greedy
eventually 10 offered_is 2
equals "$(offered 'muster\.dev/gpu-milli')" 2k "thousandths of GPUs"
label_is sharing-strategy none

# GPUs that are simulated are whole, and it is said that they stay so.
"$MUSTER" down --data-dir "$DATA" >/dev/null
up_machine --simulate-gpus 2:A100
config ''
whole() { has_event "$1" TimeSlicingRefused "GPUs that are simulated are not cut"; }
eventually 10 whole nvidia-device-plugin-config
eventually 10 whole "$(real_node)"
offered_is 2
