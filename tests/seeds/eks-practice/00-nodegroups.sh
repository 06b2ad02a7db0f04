#!/usr/bin/env bash
# The two node groups: none of their nodes is there until pods want them, GPU pods get p3.2xlarge nodes with the group's label, ten at most.
source "$(dirname "$0")/../lib.sh"
up_machine --node-start-delay 1s
kubectl apply -f "$EXAMPLE"
kubectl wait --for=condition=Ready nodepool --all --timeout=20s
equals "$(kubectl get nodeclaims -o name)" "" "machines before there are pods"
kubectl apply -f - <<'YAML'
apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec:
  completions: 11
  parallelism: 11
  template:
    spec:
      restartPolicy: Never
      affinity:
        nodeAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            nodeSelectorTerms: [{matchExpressions: [{key: workload, operator: In, values: [gpu-training]}]}]
      containers: [{name: c, image: any, resources: {limits: {nvidia.com/gpu: "1"}}}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      nodeSelector: {karpenter.sh/nodepool: cpu-workers}
      containers: [{name: c, image: any, resources: {requests: {cpu: "6"}}}]
YAML
of_pool() { kubectl get nodes -l "karpenter.sh/nodepool=$1" -o 'jsonpath={range .items[*]}{.metadata.labels.node\.kubernetes\.io/instance-type} {end}' | tr ' ' '\n' | sort | uniq -c | tr -s ' '; }
nodes_are() { equals "$(of_pool "$1")" "$2" "nodes of $1"; }
eventually 40 nodes_are gpu-workers " 10 p3.2xlarge"
eventually 40 nodes_are cpu-workers " 2 m5.2xlarge"
running() { equals "$(kubectl get pods -l "$1" --field-selector status.phase=Running -o name | wc -l)" "$2" "running pods"; }
eventually 30 running job-name=train 10
eventually 30 running app=web 2
waiting=$(kubectl get pods -l job-name=train --field-selector status.phase=Pending -o 'jsonpath={.items[*].metadata.name}')
why() { contains "$(muster explain pod "$waiting")" "NodePool gpu-workers: its limit of 10 nodes is reached (10 there)"; }
eventually 20 why
equals "$(kubectl get nodes -l workload=gpu-training -o name | wc -l)" 10 "nodes with the label"
say "result: ten p3.2xlarge for eleven pods, the eleventh is told why"
