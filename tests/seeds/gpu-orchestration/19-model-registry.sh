#!/usr/bin/env bash
# "Every training job registers its model in the registry with metadata about data, parameters, and validation metrics."
source "$(dirname "$0")/../lib.sh"
up_machine
kubectl create configmap register --from-file=tests/live/registry/train.py >/dev/null
source tests/live/serving/models.sh
kubectl apply -f "$EXAMPLE" >/dev/null
kubectl wait --for=condition=Complete job/train-iris --timeout=180s
run=$(jsonpath modelversion/iris.1 .spec.runID)
equals "$(jsonpath "runs.registry.muster.dev/$run" .spec.params.max_iter)" 1000 "the parameter"
contains "$(jsonpath "runs.registry.muster.dev/$run" .status.metrics.accuracy.value)" 0.9 "the metric"
described=$(muster models describe iris)
contains "$described" pvc://models/iris
contains "$described" "max_iter=1000"
say "$described"
