#!/usr/bin/env bash
# The three cases in which the article has one look at events: "Insufficient nvidia.com/gpu", "Unschedulable" and
# "ImagePullBackOff". `kubectl describe` has the event, `muster explain` says what would change it.
source "$(dirname "$0")/../lib.sh"
a100 2
up
pod() { # pod NAME IMAGE GPUS [SPEC]
  kubectl apply -f - <<YAML
apiVersion: v1
kind: Pod
metadata: {name: $1}
spec:
  terminationGracePeriodSeconds: 0
  containers:
    - {name: main, image: "$2", command: [sleep, "1000"], resources: {limits: {nvidia.com/gpu: $3}}}
  ${4-}
YAML
}
shows() { contains "$(kubectl describe pod "$1")" "$2" "kubectl describe pod $1"; }
explains() { contains "$("$MUSTER" explain pod "$1")" "$2" "muster explain pod $1"; }

pod holder none 2
eventually 20 pod_phase_is holder Running
pod late none 1
eventually 10 shows late "Insufficient nvidia.com/gpu"
explains late "0 of 2 free (2 held by pod default/holder)"
explains late "fits when pod default/holder ends"
pod large none 16
eventually 10 shows large "Insufficient nvidia.com/gpu"
explains large "It does not fit even an empty cluster"

reason() { jsonpath "pod/$1" '.status.conditions[?(@.type=="PodScheduled")].reason'; }
pod selective none 0 'nodeSelector: {accelerator: nvidia-h100}'
eventually 10 shows selective "didn't match Pod's node affinity/selector"
equals "$(reason selective)" Unschedulable
explains selective "accelerator"
taint dedicated=serving:NoSchedule
pod intolerant none 0
eventually 10 shows intolerant "untolerated taint {dedicated: serving}"
equals "$(reason intolerant)" Unschedulable
explains intolerant "dedicated"
taint dedicated-

pod absent localhost:9/team/trainer:v1 0
waiting() { [ "$(jsonpath pod/absent '.status.containerStatuses[0].state.waiting.reason')" = ImagePullBackOff ]; }
eventually 20 waiting
shows absent 'Back-off pulling image "localhost:9/team/trainer:v1"'
shows absent "connection refused"
explains absent "localhost:9/team/trainer:v1"
