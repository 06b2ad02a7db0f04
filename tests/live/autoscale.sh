#!/usr/bin/env bash
# Issue 6: a HorizontalPodAutoscaler on simulated nodes, whose pods use what their annotations say: it goes up under
# load, is held by its limits, and comes down when the load ends; and what stock kubectl shows of it.
source "$(dirname "$0")/lib.sh"
up --simulate-nodes 2 --horizontal-pod-autoscaler-sync-period 2s

deployment() { # deployment NAME CPU
  kubectl apply -f - <<YAML >/dev/null
apiVersion: apps/v1
kind: Deployment
metadata: {name: $1}
spec:
  replicas: 1
  selector: {matchLabels: {app: $1}}
  template:
    metadata:
      labels: {app: $1}
      annotations: {muster.dev/simulated-cpu: 100m}
    spec:
      nodeSelector: {muster.dev/simulated: "true"}
      containers:
        - {name: main, image: none, resources: {requests: {cpu: 200m}}}
YAML
}
# load NAME CPU: what each pod uses from now on. The pods that are there are told, and those that will come.
load() {
  kubectl patch deployment "$1" --type merge -p \
    "{\"spec\":{\"template\":{\"metadata\":{\"annotations\":{\"muster.dev/simulated-cpu\":\"$2\"}}}}}" >/dev/null
}
replicas_are() { [ "$(jsonpath "deployment/$1" .status.readyReplicas)" = "$2" ]; }
condition() { # condition NAME TYPE: its reason
  jsonpath "hpa/$1" ".status.conditions[?(@.type==\"$2\")].reason"
}
condition_is() { [ "$(condition "$1" "$2")" = "$3" ]; }
endpoints_are() { # endpoints_are SERVICE COUNT
  equals "$(jsonpath "endpoints/$1" '.subsets[*].addresses[*].ip' | wc -w)" "$2" "endpoints of $1"
}
has_event() { kubectl get events --field-selector "involvedObject.kind=HorizontalPodAutoscaler" -o \
  'jsonpath={range .items[*]}{.reason}{" "}{.message}{"\n"}{end}' | grep -qF "$1"; }

deployment web
kubectl apply -f - <<'YAML' >/dev/null
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 1
  maxReplicas: 5
  metrics:
    - {type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}
  behavior:
    scaleDown: {stabilizationWindowSeconds: 15}
YAML
eventually 120 condition_is web ScalingActive ValidMetricFound
contains "$(kubectl get hpa web --no-headers)" "cpu: 50%/50%" "targets at rest"

# Three times its share: from 1 to 3, and no further than 5.
load web 300m
eventually 240 replicas_are web 5
eventually 60 condition_is web ScalingLimited TooManyReplicas
went_up() { # by one step or by two
  local above="cpu resource utilization (percentage of request) above target"
  has_event "SuccessfulRescale New size: 3; reason: $above" || has_event "SuccessfulRescale New size: 5; reason: $above"
}
eventually 30 went_up
line=$(kubectl get hpa web --no-headers)
contains "$line" "Deployment/web" "get hpa"
contains "$line" "cpu: 150%/50%" "get hpa"
contains "$(kubectl get hpa web)" "REFERENCE" "get hpa"
said=$(kubectl describe hpa web)
contains "$said" "resource cpu on pods  (as a percentage of request):  150% (300m) / 50%" "describe hpa"
contains "$said" "TooManyReplicas" "describe hpa"
contains "$said" "SuccessfulRescale" "describe hpa"
say "result: an autoscaler took a Deployment from 1 to 5 replicas under load"

# The load ends.
load web 10m
eventually 240 replicas_are web 1
eventually 30 has_event "SuccessfulRescale New size: 1; reason: All metrics below target"
say "result: and back to 1 when the load ended"

# Whoever scales to zero switches it off.
kubectl scale deployment web --replicas 0 >/dev/null
eventually 60 condition_is web ScalingActive ScalingDisabled

uses_half() { [ "$(jsonpath "$v1" .status.currentCPUUtilizationPercentage)" = 50 ]; }
# As kubectl makes one: autoscaling/v1 in protobuf, which is served beside v2 and acted on.
deployment plain
kubectl autoscale deployment plain --min=2 --max=4 --cpu-percent=50 >/dev/null
eventually 120 replicas_are plain 2
eventually 120 condition_is plain ScalingActive ValidMetricFound
v1=horizontalpodautoscalers.v1.autoscaling/plain # kubectl takes the short name for the preferred version's
equals "$(jsonpath $v1 .spec.targetCPUUtilizationPercentage)" 50 "target in autoscaling/v1"
equals "$(jsonpath hpa/plain '.spec.metrics[*].resource.target.averageUtilization')" 50 "target in autoscaling/v2"
eventually 120 uses_half
contains "$(kubectl get "$v1" --no-headers)" "cpu: 50%/50%" "get of autoscaling/v1"
contains "$(kubectl explain hpa.spec --api-version=autoscaling/v1)" "targetCPUUtilizationPercentage" "explain of autoscaling/v1"
equals "$(muster get all | grep -c '^horizontalpodautoscaler.autoscaling/plain ')" 1 "plain in muster get all"
kubectl expose deployment plain --port=80 --target-port=8080 >/dev/null
equals "$(jsonpath service/plain '.spec.ports[0].targetPort') $(jsonpath service/plain .spec.selector.app)" "8080 plain" \
  "kubectl expose deployment"
eventually 60 endpoints_are plain 2
say "result: kubectl autoscale and kubectl expose made what they make elsewhere"

# An elastic training job brings its own autoscaler, and follows it within its bounds.
kubectl apply -f - <<'YAML' >/dev/null
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: el}
spec:
  elasticPolicy:
    minReplicas: 1
    maxReplicas: 3
    metrics:
      - {type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}
  pytorchReplicaSpecs:
    Worker:
      replicas: 1
      restartPolicy: OnFailure
      template:
        metadata: {annotations: {muster.dev/simulated-cpu: 300m}}
        spec:
          nodeSelector: {muster.dev/simulated: "true"}
          containers: [{name: pytorch, image: none, resources: {requests: {cpu: 200m}}}]
YAML
contains "$(kubectl get hpa el --no-headers)" "PyTorchJob/el" "the job's autoscaler"
workers_are() { [ "$(jsonpath pytorchjob/el .status.replicaStatuses.Worker.active)" = "$1" ]; }
eventually 240 workers_are 3
kubectl patch pytorchjob el --type merge -p '{"spec": {"runPolicy": {"suspend": true}}}' >/dev/null
kubectl wait --for=delete hpa/el --timeout=30s >/dev/null
kubectl delete pytorchjob el >/dev/null
say "result: the metrics of an elastic PyTorchJob took it from 1 to 3 workers"

# A target that is not there, and a metric that nobody serves.
kubectl apply -f - <<'YAML' >/dev/null
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: lost}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: lost}
  maxReplicas: 3
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: queue}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: queue}
  maxReplicas: 3
  metrics:
    - {type: Pods, pods: {metric: {name: requests}, target: {type: AverageValue, averageValue: "5"}}}
YAML
deployment queue
eventually 60 condition_is lost AbleToScale FailedGetScale
eventually 60 condition_is queue ScalingActive FailedGetPodsMetric
shows "no custom metrics API (custom.metrics.k8s.io) registered" kubectl describe hpa queue
