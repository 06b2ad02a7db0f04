#!/usr/bin/env bash
# "Every training job registers its model in the registry with metadata about data, parameters, and validation metrics." MLflow's own
# client, in the job's pod; what it registered as champion is served.
source "$(dirname "$0")/../lib.sh"
source tests/live/registry/mlflow.sh
source tests/live/serving/models.sh
up_machine
kubectl create configmap register --from-file=tests/live/registry/train.py >/dev/null
with_mlflow <"$EXAMPLE" | kubectl apply -f - >/dev/null
job_ends() { [ -n "$(jsonpath job/train-iris '.status.conditions[?(@.status=="True")].type')" ]; }
eventually 180 job_ends
logs=$(kubectl logs -l job-name=train-iris --tail=-1 2>&1 || true)
equals "$(jsonpath job/train-iris .status.succeeded)" 1 "jobs that succeeded: $logs"
run=$(jsonpath modelversion/iris.1 .spec.runID)
equals "$(jsonpath modelversion/iris.1 '.spec.source} {.spec.user')" \
  "pvc://models/runs/$run/artifacts/model system:serviceaccount:default:trainer"
equals "$(jsonpath "runs.registry.muster.dev/$run" '.spec.experiment} {.status.state} {.spec.params.max_iter')" "irises FINISHED 1000"
contains "$(jsonpath "runs.registry.muster.dev/$run" .status.metrics.accuracy.value)" 0.9 "the metric"
equals "$(jsonpath registeredmodel/iris .spec.aliases.champion)" 1 "the champion"
kubectl get modelversions
described=$(muster models describe iris)
contains "$described" "version 1  stage None  aliases champion"
contains "$described" "max_iter=1000"

kubectl apply -f - >/dev/null <<YAML
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {name: iris}
spec: {predictor: {sklearn: {storageUri: "$(jsonpath modelversion/iris.1 .spec.source)"}}}
YAML
isvc_ready iris
equals "$(ask iris /v1/models/iris:predict '{"instances": [[6.8, 2.8, 4.8, 1.4], [5.1, 3.5, 1.4, 0.2]]}')" '{"predictions": [1, 0]}'
say "result: a job registered its model, which is served"
