#!/usr/bin/env bash
# No pod while nobody asks; the first requests are held until the model is ready and then answered, also when many come at once;
# a rate of requests brings more pods, its end takes them away; what never becomes ready is a clear error.
source "$(dirname "$0")/lib.sh"
source tests/live/serving/models.sh
up --images machine
constant_model "$SCRATCH/seven" 7
isvc() { # isvc NAME SPEC-LINES: window of 6 s, the shortest
  kubectl apply -f - <<YAML
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata:
  name: $1
  annotations: {autoscaling.knative.dev/window: 6s}
spec:
  predictor:
    model: {modelFormat: {name: sklearn}, storageUri: file://$SCRATCH/seven}
$2
YAML
}
isvc sleeper "    minReplicas: 0"
isvc_ready sleeper
pods_of() { kubectl get pods -l "serving.kserve.io/inferenceservice=$1" -o name; }
asleep() { [ -z "$(pods_of sleeper)" ]; }
eventually 60 asleep
# Asleep is not broken.
equals "$(jsonpath isvc/sleeper '.status.conditions[?(@.type=="Ready")].status')" True
equals "$(jsonpath isvc/sleeper .status.modelStatus.states.activeModelState)" Standby

# The first requests wait for the one pod that they wake, and all are answered.
url=http://$(cluster_ip sleeper)/v1/models/sleeper:predict
equals "$("$PYTHON" tests/live/serving/load.py "$url" 20 20)" '[7] 20' "the first answers"
equals "$(pods_of sleeper | wc -l)" 1 "pods that woke up"
# By its host, at the address of any of them.
equals "$(curl -sS -H 'Host: sleeper-default.example.com' "http://$(cluster_ip sleeper)/v1/models/sleeper")" '{"name": "sleeper", "ready": true}'
contains "$(curl -sS -H 'Host: nobody-default.example.com' "http://$(cluster_ip sleeper)/")" 'no InferenceService answers for the host'

# Two requests a second for each pod are asked for, and far more come.
isvc busy "    minReplicas: 1
    maxReplicas: 3
    scaleMetric: rps
    scaleTarget: 2"
isvc_ready busy
"$PYTHON" tests/live/serving/load.py "http://$(cluster_ip busy)/v1/models/busy:predict" until "$SCRATCH/stop" 4 >"$SCRATCH/counts" &
asking=$!
has_ready() { [ "$(jsonpath deploy/busy-predictor .status.readyReplicas)" = "$1" ]; }
eventually 60 has_ready 3
touch "$SCRATCH/stop"
wait $asking
grep failed "$SCRATCH/counts" && fail "requests were lost"
eventually 60 has_ready 1

# A server that never gets ready: the request ends with its timeout and says what is missing.
kubectl apply -f - <<YAML
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {name: never}
spec:
  predictor:
    timeout: 3
    model: {modelFormat: {name: sklearn}, storageUri: file://$SCRATCH/nothing}
YAML
has_service() { [ -n "$(cluster_ip never)" ]; }
eventually 30 has_service
refused() { [[ $(curl -sS --max-time 20 "http://$(cluster_ip never)/v1/models/never") == *"no pod of InferenceService default/never was ready to answer within 3 s"* ]]; }
eventually 60 refused
