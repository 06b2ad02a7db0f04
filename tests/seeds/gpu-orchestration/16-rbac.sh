#!/usr/bin/env bash
# The role lets its user have PyTorchJobs in this namespace, and nothing else.
source "$(dirname "$0")/../lib.sh"
up_machine
may() { kubectl auth can-i "$@" --as=researcher || true; }
equals "$(may create pytorchjobs.kubeflow.org)" no "without the role"
kubectl apply -f "$EXAMPLE"
for verb in create get list delete; do equals "$(may $verb pytorchjobs.kubeflow.org)" yes "$verb pytorchjobs"; done
for verb in update patch watch deletecollection; do equals "$(may $verb pytorchjobs.kubeflow.org)" no "$verb pytorchjobs"; done
equals "$(may create pods)" no "create pods"
equals "$(may list pytorchjobs.kubeflow.org -n kube-system)" no "in another namespace"
equals "$(may get nodes 2>/dev/null)" no "get nodes"
# And so it is: a job is made and taken away, the rest is forbidden.
job=examples/seeds/gpu-orchestration/04-pytorchjob.yaml
kubectl create -f $job --as=researcher
kubectl get pytorchjobs --as=researcher
kubectl delete pytorchjob pytorch-training --as=researcher --wait=false
refused=$(kubectl get pods --as=researcher 2>&1) && fail "the researcher lists pods"
contains "$refused" 'User "researcher" cannot list resource "pods" in API group "" in the namespace "default"'
refused=$(kubectl taint nodes --all a=b:NoSchedule --as=researcher 2>&1) && fail "the researcher changes nodes"
contains "$refused" 'User "researcher" cannot'
