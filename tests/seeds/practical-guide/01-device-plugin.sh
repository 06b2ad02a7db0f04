#!/usr/bin/env bash
# NVIDIA's DaemonSet: the node offers its GPUs all the same, the answer and an event say so, and no pod of it fails for ever.
source "$(dirname "$0")/../lib.sh"
a100 2
up
told=$(kubectl apply -f "$EXAMPLE" 2>&1)
contains "$told" "Warning: DaemonSet nvidia-device-plugin-daemonset: spec.template.spec: muster offers nvidia.com/gpu itself and makes no pods of NVIDIA's device plugin"
eventually 10 has_event nvidia-device-plugin-daemonset DevicePluginNotNeeded "muster offers nvidia.com/gpu itself"
kubectl rollout status -n kube-system daemonset/nvidia-device-plugin-daemonset --timeout=10s
# gpu-orchestration's `kubectl apply -f https://...` is the same with a priority class and another version.
sed 's/^      tolerations:/      priorityClassName: system-node-critical\n&/; s/v0.15.0/v0.17.1/' "$EXAMPLE" | kubectl apply -f -
kubectl rollout status -n kube-system daemonset/nvidia-device-plugin-daemonset --timeout=10s
equals "$(kubectl get pods -A -o name)" "" "pods"
equals "$(jsonpath "node/$(real_node)" '.status.allocatable.nvidia\.com/gpu')" 2 "GPUs offered"
equals "$(jsonpath "node/$(real_node)" '.metadata.labels.nvidia\.com/gpu\.product')" NVIDIA-A100-SXM4-40GB "label"
