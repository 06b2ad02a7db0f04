#!/usr/bin/env bash
# Issue 2, shown by 3: a gang is bound whole or not at all, with the true reason, and blocks nobody.
source "$(dirname "$0")/lib.sh"
up --simulate-gpus 4

job() { # job NAME REPLICAS COMMAND
  cat <<YAML
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: $1}
spec:
  runPolicy: {cleanPodPolicy: None}
  pytorchReplicaSpecs:
    Worker:
      replicas: $2
      restartPolicy: Never
      template:
        spec:
          containers:
            - name: pytorch
              image: none
              command: ["sh", "-c", "$3"]
              resources: {limits: {nvidia.com/gpu: 1}}
YAML
}
bound_pods() { kubectl get pods -l "training.kubeflow.org/job-name=$1" -o 'jsonpath={.items[*].spec.nodeName}' | wc -w; }
pods_of() { kubectl get pods -l "training.kubeflow.org/job-name=$1" -o name | wc -l; }
all_bound() { [ "$(bound_pods "$1")" = "$2" ]; }

# A runs until the file appears in a directory of the host that it mounts: no timing in this test.
mkdir -p "$SCRATCH/gate" && chmod 777 "$SCRATCH/gate"
job a 3 'while [ ! -e /gate/open ]; do sleep 0.1; done' |
  sed 's|^            - name: pytorch|            - name: pytorch\n              volumeMounts: [{name: gate, mountPath: /gate}]|; $a\          volumes: [{name: gate, hostPath: {path: '"$SCRATCH"'/gate, type: Directory}}]' |
  kubectl apply -f -
eventually 20 all_bound a 3
eventually 20 job_is a Running

job b 4 'echo devices $NVIDIA_VISIBLE_DEVICES' | kubectl apply -f -
pending_with_reason() {
  [ "$(pods_of b)" = 4 ] &&
    kubectl get pod b-worker-3 -o 'jsonpath={.status.conditions[?(@.type=="PodScheduled")].message}' | grep -q 'nvidia.com/gpu'
}
eventually 20 pending_with_reason
equals "$(bound_pods b)" 0 "bound pods of gang b"
say "reason: $(kubectl get pod b-worker-0 -o 'jsonpath={.status.conditions[?(@.type=="PodScheduled")].message}')"
explained=$("$MUSTER" explain job b)
say "explain: $explained"
contains "$explained" "nvidia.com/gpu" "muster explain job b"
contains "$explained" "a" "muster explain names who holds the GPUs"

job c 1 'echo devices $NVIDIA_VISIBLE_DEVICES' | kubectl apply -f -
kubectl wait --for=condition=Succeeded pytorchjob/c --timeout=30s
equals "$(bound_pods b)" 0 "bound pods of gang b while c ran"

touch "$SCRATCH/gate/open"
kubectl wait --for=condition=Succeeded pytorchjob/a --timeout=30s
kubectl wait --for=condition=Succeeded pytorchjob/b --timeout=60s
devices=$(for i in 0 1 2 3; do kubectl logs "b-worker-$i"; done | sort)
say "$devices"
equals "$(sort -u <<<"$devices" | wc -l)" 4 "different devices of b"
say "result: gang of 4 stayed whole: 0 pods bound while 1 of 4 GPUs was free, then all 4"
