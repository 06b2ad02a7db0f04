#!/usr/bin/env bash
# "helm install gpu-operator": the chart is accepted, also by who waits for it; no pod of the operator fails for ever, the answer and an event
# say why, and the GPUs are there as before.
source "$(dirname "$0")/../lib.sh"
source tests/live/charts/lib.sh
a100 2
up
offered() { equals "$(jsonpath "node/$(real_node)" '.status.allocatable.nvidia\.com/gpu')" 2 "GPUs offered"; }
offered
install() { helm "$1" gpu-operator "$CHARTS/gpu-operator" --namespace gpu-operator-system --create-namespace --wait --timeout 60s 2>&1; }
told=$(install install)
contains "$told" "STATUS: deployed"
contains "$told" "spec.replicas: kept at 0: muster's nodes offer nvidia.com/gpu and their metrics themselves" "what helm passes on"
told=$(install upgrade)
contains "$told" "STATUS: deployed"
kubectl rollout status -n gpu-operator-system deployment/gpu-operator --timeout=10s
eventually 10 has_event gpu-operator GpuOperatorNotNeeded "is kept at 0 replicas"
equals "$(kubectl get pods -A -o name)" "" "pods"
equals "$(jsonpath clusterpolicy/cluster-policy .spec.driver.enabled)" true "what the chart wants of the operator"
offered
helm uninstall gpu-operator --namespace gpu-operator-system --wait >/dev/null
equals "$(left_in gpu-operator-system)" "" "left of it"
say "result: the chart is accepted, and its operator has nothing to do"
