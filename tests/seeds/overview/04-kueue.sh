#!/usr/bin/env bash
# Jobs of all kinds wait in a queue of Kueue's until all their pods have quota, in the order in which they came; quota is free
# when no pod is left; and muster explain says who must end.
source "$(dirname "$0")/../lib.sh"
a100 8
up_machine
kubectl label node "$(real_node)" accelerator=nvidia-a100
of_workload() { # of_workload NAME PATH: of the workload of the job so called
  kubectl get workloads -o json | jq -r ".items[] | select(.metadata.ownerReferences[0].name == \"$1\") | $2"
}
condition() { of_workload "$1" ".status.conditions[] | select(.type == \"$2\") | .$3"; }
is() { equals "$(condition "$1" "$2" status)" True "$2 of $1"; }
says() { contains "$(condition "$1" QuotaReserved message)" "$2" "why $1 waits"; }
counts() { # counts QUEUE PENDING ADMITTED
  equals "$(kubectl get "$1" -o 'jsonpath={.status.pendingWorkloads} {.status.admittedWorkloads}')" "$2 $3" "pending and admitted in $1"
}
job() { # job NAME GPUS COMMAND: one pod
  kubectl apply -f - <<YAML
apiVersion: batch/v1
kind: Job
metadata: {name: $1, labels: {kueue.x-k8s.io/queue-name: team}}
spec:
  template:
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 1
      containers: [{name: main, image: "pytorch/pytorch:latest", command: [sh, -c, "$3"], resources: {limits: {nvidia.com/gpu: $2}}}]
YAML
}
no_pods() { equals "$(kubectl get pods -l "$1" -o name)" "" "pods of $1"; }

# Before the queue is there, nothing begins.
job early 1 "sleep 1000"
eventually 20 says early "LocalQueue team doesn't exist"
equals "$(jsonpath job/early .spec.suspend)" true "suspension of a job in a queue"
kubectl delete job early
kubectl apply -f "$EXAMPLE"
for pod in master-0 worker-0 worker-1 worker-2; do eventually 30 pod_phase_is ddp-$pod Running; done
is ddp Admitted
equals "$(of_workload ddp '.status.admission.podSetAssignments | map(.name + ":" + .flavors["nvidia.com/gpu"] + ":" + .resourceUsage["nvidia.com/gpu"]) | join(" ")')" \
  "master:a100:1 worker:a100:3" "what ddp was given"
equals "$(jsonpath pod/ddp-master-0 .spec.nodeSelector)" '{"accelerator":"nvidia-a100"}' "the flavor's labels"
eventually 20 has_event ddp Started "Admitted by clusterQueue gpus"

# GPUs are free, quota is not.
job second 2 "sleep 1000"
job third 1 "sleep 1000"
eventually 20 says second "couldn't assign flavors to pod set main: insufficient unused quota for nvidia.com/gpu in flavor a100, 2 more needed"
eventually 20 says third "waits behind workload default/job-second-"
eventually 20 counts clusterqueue/gpus 2 1
eventually 20 counts localqueue/team 2 1
equals "$(jsonpath clusterqueue/gpus '.status.flavorsReservation[0].resources[0].total')" 4 "GPUs reserved"
no_pods job-name=second
explained() { contains "$(muster explain job "$1")" "$2" "muster explain"; }
explained second "waits in queue team (ClusterQueue gpus), next in turn"
explained second "admitted when pytorchjob default/ddp ends (4 nvidia.com/gpu)"
explained third "waits in queue team (ClusterQueue gpus), 1 before it"

# Deleted, but its pods take a second to go: until then nobody else begins.
kubectl delete pytorchjob ddp
eventually 30 is second Admitted
running=$(kubectl get pods -l training.kubeflow.org/job-name=ddp --field-selector=status.phase!=Succeeded,status.phase!=Failed -o name)
equals "$running" "" "pods of ddp that have not ended"
pod_of_runs() { equals "$(kubectl get pods -l "job-name=$1" -o 'jsonpath={.items[*].status.phase}')" Running "the pod of $1"; }
eventually 30 pod_of_runs second
eventually 30 is third Admitted
eventually 20 counts clusterqueue/gpus 0 2

# A job that ends gives its quota back; one that is told to stand aside stops.
kubectl patch workload "$(of_workload second .metadata.name)" --type=merge -p '{"spec": {"active": false}}'
suspended() { equals "$(jsonpath "job/$1" .spec.suspend)" true "suspension of $1"; }
eventually 20 suspended second
eventually 30 is second Evicted
job fourth 3 "exit 0"
eventually 60 is fourth Finished
equals "$(condition fourth Finished reason)" Succeeded "how fourth ended"
eventually 20 counts clusterqueue/gpus 0 1

# A plain pod is held by a gate; a training of few words and a JobSet wait, too.
kubectl apply -f - <<YAML
apiVersion: v1
kind: Pod
metadata: {name: large, labels: {kueue.x-k8s.io/queue-name: team}}
spec:
  containers: [{name: main, image: "pytorch/pytorch:latest", command: [sleep, "1000"], resources: {limits: {nvidia.com/gpu: 4}}}]
---
apiVersion: ml.example.com/v1
kind: DistributedTraining
metadata: {name: words, labels: {kueue.x-k8s.io/queue-name: team}}
spec: {numWorkers: 5}
---
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: set, labels: {kueue.x-k8s.io/queue-name: team}}
spec:
  replicatedJobs:
    - name: workers
      replicas: 2
      template:
        spec:
          template: {spec: {restartPolicy: Never, terminationGracePeriodSeconds: 1, containers: [{name: main, image: "pytorch/pytorch:latest", command: [sleep, "1000"]}]}}
YAML
eventually 20 says large "insufficient unused quota for nvidia.com/gpu in flavor a100, 1 more needed"
equals "$(jsonpath pod/large '.spec.schedulingGates[0].name')" kueue.x-k8s.io/admission "what holds the pod"
kubectl delete job third
eventually 30 pod_phase_is large Running
kubectl delete pod large --grace-period=1
eventually 30 says words "previously considered podsets requests (1) + current podset request (4) > maximum capacity (4)"
explained words "never admitted"
kubectl delete distributedtraining words
eventually 30 is set Admitted

# What is in use stays: the flavor until the ClusterQueue is gone, and that until its last pod is.
kubectl delete resourceflavor/a100 clusterqueue/gpus --wait=false
terminating() { equals "$(jsonpath clusterqueue/gpus '.status.conditions[?(@.type=="Active")].reason')" Terminating "why gpus is not active"; }
eventually 20 terminating
contains "$(jsonpath resourceflavor/a100 .metadata.deletionTimestamp)" T "when the flavor was deleted"
kubectl delete jobset set
kubectl wait --for=delete resourceflavor/a100 clusterqueue/gpus --timeout=60s
say "result: a queue admitted PyTorchJobs, Jobs, JobSets and pods as quota allowed, whole and in turn"
