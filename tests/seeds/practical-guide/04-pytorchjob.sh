#!/usr/bin/env bash
# The elastic PyTorchJob: at the article's size sixteen GPUs of two nodes, all or none, and any number of pods between two and eight; then
# real torchrun with a process a pod, which shares the claims and has /dev/shm in memory. Through kills and changes: tests/live/elastic.sh.
source "$(dirname "$0")/../lib.sh"
up_machine --simulate-nodes 4
kubectl config set-context --current --namespace ml-training >/dev/null
# NFS, as the article's claims are, so that pods of several nodes share them; nothing is mounted on simulated nodes.
shared_claims() { sed 's/ReadWriteOnce"\].*/ReadWriteMany"]\n  storageClassName: nfs/' "$EXAMPLE"; }
for name in a b; do
  kubectl apply -f - <<YAML
apiVersion: v1
kind: PersistentVolume
metadata: {name: $name}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteMany]
  storageClassName: nfs
  nfs: {server: nfs.internal, path: /$name}
YAML
done
told=$(shared_claims | kubectl apply -f - 2>&1)
contains "$told" "spec.elasticPolicy.rdzvBackend: etcd needs an etcd" warning
contains "$told" "Master.template.spec.containers[0]: --nnodes=4 goes before PET_NNODES" warning
field() { kubectl get pods -o "jsonpath={.items[*].$1}"; }
run() { [ "$(field status.phase | tr ' ' '\n' | grep -c Running)" = "$1" ]; }
eventually 30 run 4
nodes() { field spec.nodeName | tr ' ' '\n' | sort | uniq -c | awk '{print $1}' | xargs; }
equals "$(nodes)" "2 2" "pods with four GPUs on nodes with eight"
equals "$(jsonpath podgroup/llm-finetune-job .spec.minMember)" 3 "the master and minReplicas, placed all or none"
env_of() { jsonpath "pod/$1" ".spec.containers[0].env[?(@.name==\"$2\")].value"; }
equals "$(env_of llm-finetune-job-worker-2 PET_NNODES)" 2:8 "the bounds that torchrun is told"
before=$(field metadata.uid)
kubectl scale pytorchjob llm-finetune-job --replicas=7
eventually 30 run 8
contains "$(field metadata.uid)" "${before%% *}" "the pods that were there"
# "If a spot instance gets preempted ..., the job continues with the remaining workers and scales back up when a new node joins."
lost=$(node_of llm-finetune-job-worker-6)
others() { kubectl get pods -o json | jq -r --arg lost "$lost" '.items[] | select((.spec.nodeName // $lost) != $lost) | .metadata.uid' | sort; }
remaining=$(others)
equals "$(wc -l <<<"$remaining")" 6 "pods on other nodes"
muster node interrupt "$lost" --after 10m
eventually 30 run 6
eventually 30 waits_for llm-finetune-job-worker-6 "Insufficient nvidia.com/gpu"
equals "$(others)" "$remaining" "the remaining pods"
job_is llm-finetune-job Running || fail "the job does not run on"
muster node restore "$lost"
eventually 30 run 8
contains "$(others)" "$remaining" "the remaining pods"
kubectl scale pytorchjob llm-finetune-job --replicas=1
eventually 30 run 2

tools/probe python_torch || skip "the gang holds; python3-torch is not installed (tools/install-packages example)"
kubectl delete namespace ml-training --timeout=60s >/dev/null
kubectl delete nodes -l muster.dev/simulated >/dev/null
# As the head of the example has it, with one worker less, without its pauses, the wait for an etcd, and torchrun's half minute for more pods.
sed -E '/gpu: "4"/d; /nnodes=4/d; s/(nproc_per_node=)4/\11/; s/(replicas:) 3/\1 1/; s/(cpu:) .*/\1 250m/; s/(memory:) ".*/\1 1Gi/' "$EXAMPLE" |
  sed '/time.sleep/d; /rdzvBackend/d; s/rdzvHost: .*/rdzvConf: [{key: last_call_timeout, value: "2"}]/' | kubectl apply -f -
kubectl wait --for=condition=Succeeded pytorchjob/llm-finetune-job --timeout=300s
printed=$(kubectl logs llm-finetune-job-master-0)
contains "$printed" "llama-7b: 2 ranks begin at step 0, /dev/shm has 16384 MiB" "what the master printed"
contains "$printed" "step 300: loss 0.0" "what the master printed"
volume=$(jsonpath pvc/model-output-pvc .spec.volumeName)
[ -s "$(kubectl get pv "$volume" -o 'jsonpath={.spec.hostPath.path}{.spec.local.path}')/checkpoints/latest.pt" ] || fail "no checkpoint in the claim"
say "result: sixteen GPUs of two nodes, from two pods to eight; trained with two ranks of torchrun"
