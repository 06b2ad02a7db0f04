#!/usr/bin/env bash
# The article's custom resource, word for word, becomes a gang with the right GPUs and a checkpoint folder, and trains. Then: other
# GPUs are waited for, workers are added, the duration ends a training, and what was made goes with it.
source "$(dirname "$0")/../lib.sh"
up_machine --simulate-gpus 8:H100
dt_condition() { kubectl get distributedtraining "$1" -o "jsonpath={.status.conditions[?(@.type==\"$2\")].$3}"; }
dt_is() { equals "$(dt_condition "$1" "$2" status)" True "$2 of $1"; }
pods_of() { kubectl get pods -l "training.kubeflow.org/job-name=$1" -o "jsonpath={.items[*].$2}"; }
contains_log() { contains "$(kubectl logs "$1")" "$2" "log of $1"; }
placed() { # a GPU for each of eight pods, all on a node whose label says H100
  equals "$(pods_of my-training 'spec.nodeName' | tr ' ' '\n' | sort | uniq -c | tr -s ' ')" " 8 $(real_node)" "where they are"
}

# Programs that wait for a word: what the controller does is seen without torch.
waiter() { # waiter NAME WORKERS MORE...
  local name=$1 workers=$2
  shift 2
  kubectl apply -f - <<YAML
apiVersion: ml.example.com/v1
kind: DistributedTraining
metadata: {name: $name}
spec:
  numWorkers: $workers
$(printf '  %s\n' "$@")
  template:
    spec:
      terminationGracePeriodSeconds: 0
      containers:
        - name: pytorch
          image: pytorch/pytorch:latest
          command: [sh, -c, 'echo "rank \$RANK of \$WORLD_SIZE" >>/checkpoints/seen; cat /checkpoints/seen; exec sleep 1000']
YAML
}
waiter small 2 "gpuType: H100" "modelType: cnn"
eventually 30 dt_is small Running
equals "$(jsonpath podgroup/small .spec.minMember)" 2 "pods placed all or none"
equals "$(pods_of small 'spec.containers[0].resources.limits.nvidia\.com/gpu')" "1 1" GPUs
eventually 30 contains_log small-worker-0 "rank 1 of 2"
contains "$(muster status)" "small" status
kubectl scale distributedtraining small --replicas=3
eventually 60 pod_phase_is small-worker-1 Running
eventually 30 dt_is small Running
# Worker 0 of the larger group finds what the former one has kept.
eventually 60 contains_log small-master-0 "rank 0 of 3"
contains_log small-master-0 "rank 0 of 2"
kubectl patch distributedtraining small --type=merge -p '{"spec": {"suspend": true}}'
eventually 20 dt_is small Suspended
equals "$(pods_of small metadata.name)" "" "pods of a training that is suspended"
kubectl delete distributedtraining small --cascade=foreground --timeout=30s
nothing_of() { equals "$(kubectl get pytorchjobs,podgroups,pods,services,pvc -o name | grep "/$1" || true)" "" "left of $1"; }
eventually 20 nothing_of small

waiter other 1 "gpuType: B200"
eventually 20 has_event other GpuTypeNotFound "no node has GPUs of the type B200 (nvidia.com/gpu.product says Simulated-H100)"
explained() { contains "$(muster explain job other)" "$1" "muster explain"; }
eventually 20 explained "nvidia.com/gpu.product"
kubectl label node "$(real_node)" nvidia.com/gpu.product=NVIDIA-B200 --overwrite
eventually 30 dt_is other Running
kubectl label node "$(real_node)" nvidia.com/gpu.product=Simulated-H100 --overwrite
kubectl delete distributedtraining other --timeout=30s

waiter short 1 "trainingDuration: 2s"
eventually 40 dt_is short Succeeded
contains "$(dt_condition short Succeeded message)" "has trained for 2s (spec.trainingDuration)" "why it ended"
no_pods() { equals "$(pods_of "$1" metadata.name)" "" "pods of $1"; }
eventually 20 no_pods short

contains "$(waiter wrong 1 'datasetSize: plenty' 2>&1)" 'spec.datasetSize: Invalid value: "plenty"' "a size that is none"

kubectl apply -f "$EXAMPLE"
eventually 60 placed
equals "$(jsonpath podgroup/my-training .spec.minMember)" 8 "the gang"
equals "$(jsonpath pytorchjob/my-training '.spec.pytorchReplicaSpecs.Master.template.spec.volumes[?(@.name=="data")].emptyDir.sizeLimit')" 100G
shows "ReferenceProgram" kubectl describe distributedtraining my-training
kubectl delete distributedtraining my-training --timeout=60s

tools/probe python_torch || skip "the gang holds; python3-torch is not installed (tools/install-packages example)"
sed 's/numWorkers: 8/numWorkers: 2/' "$EXAMPLE" | kubectl apply -f -
eventually 240 dt_is my-training Succeeded
contains "$(kubectl logs my-training-master-0)" "reference Transformer on cpu, 2 workers: begins" "what worker 0 printed"
contains "$(kubectl logs my-training-master-0)" "step 60: loss" "what worker 0 printed"
say "result: the article's custom resource is placed on 8 H100s, and trained on two with checkpoints"
