#!/usr/bin/env bash
# Issue 6: a LimitRange through stock kubectl: containers get what they do not say, pods outside the bounds are refused,
# and a Deployment whose pods are refused says why.
source "$(dirname "$0")/lib.sh"
up --simulate-nodes 1

kubectl apply -f - <<'YAML' >/dev/null
apiVersion: v1
kind: LimitRange
metadata: {name: bounds}
spec:
  limits:
    - type: Container
      default: {cpu: 500m, memory: 256Mi}
      defaultRequest: {cpu: 100m}
      max: {cpu: "1"}
YAML
shows "500m" kubectl describe limitrange bounds
kubectl run filled --image=none --overrides='{"spec":{"nodeName":"simulated-0000"}}' >/dev/null
equals "$(jsonpath pod/filled '.spec.containers[0].resources.requests.cpu}{.spec.containers[0].resources.limits.memory')" 100m256Mi filled
kubectl create deployment greedy --image=none -- sleep 1000 >/dev/null
kubectl set resources deployment greedy --limits=cpu=2 >/dev/null
says() { contains "$(kubectl get deployment greedy -o 'jsonpath={.status.conditions[?(@.type=="ReplicaFailure")].message}')" "$1"; }
eventually 20 says "maximum cpu usage per Container is 1, but limit is 2"
kubectl set resources deployment greedy --limits=cpu=1 >/dev/null
kubectl rollout status deployment/greedy --timeout=30s | tail -n 1
