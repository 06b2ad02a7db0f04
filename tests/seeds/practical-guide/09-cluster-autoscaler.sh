#!/usr/bin/env bash
# A pod that no node takes brings the cheapest machine that does, a gang all of its machines at once, and idle ones go. Until then, and
# where a limit is reached, it is said what is added, at what price, or why nothing is.
source "$(dirname "$0")/../lib.sh"
up_machine --node-start-delay 3s
kubectl apply -f "$EXAMPLE"
claims() { kubectl get nodeclaims -o 'jsonpath={range .items[*]}{.metadata.labels.node\.kubernetes\.io/instance-type} {end}'; }
claims_are() { equals "$(claims)" "$1" "machines"; }
nominated() { has_event one-gpu Nominated "NodePool gpu adds g5.2xlarge (on-demand, 1.212 USD/h)"; }
eventually 20 claims_are "g5.2xlarge "
eventually 10 nominated
node=$(kubectl get nodeclaims -o 'jsonpath={.items[0].metadata.name}')
eventually 20 kubectl wait --for=condition=Ready "nodeclaim/$node" --timeout=20s
eventually 20 kubectl wait --for=jsonpath='{.status.phase}'=Succeeded pod/one-gpu --timeout=20s
equals "$(node_of one-gpu)" "$node" "node"
equals "$(jsonpath "node/$node" '.metadata.labels.team')" ml-platform "label of the pool"

# Idle for two minutes; the test does not wait for that long.
stays() { contains "$(jsonpath "nodeclaim/$node" '.status.conditions[?(@.type=="Consolidatable")].message')" "goes when it has been for"; }
eventually 20 stays
kubectl patch nodepool gpu --type merge -p '{"spec":{"disruption":{"consolidateAfter":"1s"}}}'
no_claims() { claims_are ""; }
eventually 50 no_claims
gone() { ! kubectl get node "$node"; }
eventually 10 gone

# Two pods with eight GPUs each: two machines, or none. A third pod is above the pool's limit.
kubectl apply -f - <<'YAML'
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: gang}
spec:
  pytorchReplicaSpecs:
    Worker:
      replicas: 2
      template:
        spec:
          tolerations: [{key: nvidia.com/gpu, operator: Exists}]
          containers:
            - name: pytorch
              image: any
              resources: {requests: {memory: 800Gi}, limits: {nvidia.com/gpu: "8"}}
YAML
eventually 30 claims_are "p4d.24xlarge p4d.24xlarge "
eventually 30 job_is gang Running
kubectl apply -f - <<'YAML'
apiVersion: v1
kind: Pod
metadata: {name: above}
spec:
  tolerations: [{key: nvidia.com/gpu, operator: Exists}]
  containers: [{name: c, image: any, resources: {limits: {nvidia.com/gpu: "4"}}}]
YAML
why() { contains "$(muster explain pod above)" "no node is added: NodePool gpu: its limit of 17 nvidia.com/gpu is reached (16 there)"; }
eventually 20 why
claims_are "p4d.24xlarge p4d.24xlarge "
say "result: g5.2xlarge for one GPU, gone when idle; two p4d.24xlarge for a gang"
