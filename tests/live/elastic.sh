#!/usr/bin/env bash
# Issue 7: an elastic PyTorchJob of 2 to 4 workers trains on while one is killed, one is added by `kubectl scale`, two are
# taken away and the worker that holds the rendezvous is lost; each time the loss goes on from the checkpoint. Real
# torchrun. Then the article's job, with a Master and an etcd that nobody runs.
source "$(dirname "$0")/lib.sh"
/usr/bin/python3 -c 'import torch' 2>/dev/null || skip "no python3-torch"
up
SHARED=$SCRATCH/shared
mkdir -p "$SHARED" && chmod 777 "$SHARED"

# Least squares of a fixed problem by gradient descent: the loss falls at every step, whatever the number of ranks.
cat >"$SHARED/train.py" <<'PY'
import os
import sys
import time
import torch
import torch.distributed as dist

torch.set_num_threads(1)
folder = sys.argv[1]
os.makedirs(folder, exist_ok=True)
dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(7)
x = torch.randn(512, 16)
y = x @ torch.randn(16, 1)
saved = folder + "/checkpoint.pt"
weights, step = torch.zeros(16, 1), 0
if os.path.exists(saved):
    state = torch.load(saved)
    weights, step = state["weights"], state["step"]
mine = slice(rank * 512 // world, (rank + 1) * 512 // world)
began, group = step, time.time_ns()
while True:
    loss = ((x @ weights - y) ** 2).mean().item()
    if rank == 0:
        with open(folder + "/log", "a") as log:
            log.write(f"{step} {world} {began} {loss:.6f} {group}\n")
    gradient = x[mine].T @ (x[mine] @ weights - y[mine]) / 512
    stop = torch.tensor([float(os.path.exists(folder + "/finish"))])
    dist.all_reduce(gradient)
    dist.all_reduce(stop)
    weights -= 0.002 * gradient
    step += 1
    if rank == 0 and step % 5 == 0:
        torch.save({"weights": weights, "step": step}, saved + ".new")
        os.replace(saved + ".new", saved)
    if stop.item() > 0:
        break
    time.sleep(0.1)
print(f"rank {rank} of {world} done at step {step}", flush=True)
PY

replica() { # replica COUNT COMMAND
  cat <<YAML
      replicas: $1
      restartPolicy: OnFailure
      template:
        spec:
          terminationGracePeriodSeconds: 1
          containers:
            - name: pytorch
              image: none
              command: [$2]
              # For torchrun of Debian 12 on its Python 3.11.
              env: [{name: PET_REDIRECTS, value: "2"}, {name: PET_TEE, value: "2"}, {name: PET_MONITOR_INTERVAL, value: "1"}]
              volumeMounts: [{name: shared, mountPath: /shared}]
          volumes: [{name: shared, hostPath: {path: $SHARED, type: Directory}}]
YAML
}
{
  cat <<'YAML'
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: el}
spec:
  runPolicy: {backoffLimit: 20}
  elasticPolicy:
    minReplicas: 2
    maxReplicas: 4
    maxRestarts: 20
    rdzvId: lesson
    rdzvConf: [{key: last_call_timeout, value: "4"}]
  pytorchReplicaSpecs:
    Worker:
YAML
  replica 3 'python3, -m, torch.distributed.run, --nproc_per_node=1, /shared/train.py, /shared/el'
} | kubectl apply -f -

LOG=$SHARED/el/log
last() { tail -n 1 "$LOG"; } # STEP WORLD STEP-WHERE-IT-BEGAN LOSS GROUP
mark() { last | awk '{print $5}'; }
# trains_with WORLD GROUP: another group than this one, of that size, is some steps on.
trains_with() { last | awk -v world="$1" -v old="$2" '{ exit !($2 == world && $5 != old && $1 >= $3 + 8) }'; }
pods() { kubectl get pods -l training.kubeflow.org/job-name=el -o 'jsonpath={.items[*].metadata.name}'; }
pods_are() { equals "$(pods)" "$1" pods; }

eventually 120 trains_with 3 none
equals "$(kubectl get pod el-worker-1 -o json | jq -r '.spec.containers[0].env[] | select(.name | startswith("PET_R") or . == "PET_NNODES") | select(.name | test("REDIRECTS") | not) | "\(.name)=\(.value)"' | sort | tr '\n' ' ')" \
  "PET_NNODES=2:4 PET_RDZV_BACKEND=c10d PET_RDZV_CONF=last_call_timeout=4 PET_RDZV_ENDPOINT=el-worker-0:23456 PET_RDZV_ID=lesson " environment
say "3 workers: $(last)"

at=$(mark)
kubectl exec el-worker-2 -- pkill -9 python3 || true
eventually 120 trains_with 3 "$at"
say "worker 2 was killed and is back: $(last)"

at=$(mark)
kubectl scale pytorchjob el --replicas=4
eventually 120 trains_with 4 "$at"
pods_are "el-worker-0 el-worker-1 el-worker-2 el-worker-3"
say "scaled up: $(last)"

at=$(mark)
kubectl scale pytorchjob el --replicas=2
two_pods() { pods_are "el-worker-0 el-worker-1"; }
eventually 30 two_pods
eventually 120 trains_with 2 "$at"
say "scaled down: $(last)"

at=$(mark)
old=$(jsonpath pod/el-worker-0 .metadata.uid)
kubectl delete pod el-worker-0 --wait=false
eventually 180 trains_with 2 "$at"
[ "$(jsonpath pod/el-worker-0 .metadata.uid)" != "$old" ] || fail "worker 0 is still the old one"
say "worker 0, which holds the rendezvous, was lost and is back: $(last)"

job_is el Running || fail "the job is not Running"
touch "$SHARED/el/finish"
kubectl wait --for=condition=Succeeded pytorchjob/el --timeout=60s
# Every group went on where the checkpoint was, and the loss with it.
awk '
  function bad(what) { print what ": " $0; failed = 1 }
  $5 != group && NR > 1 {
    if ($1 != $3 || $1 % 5 != 0 || $1 > step + 1 || $1 < step - 10) bad("not from the checkpoint")
    ++beginnings
  }
  $5 == group && $1 != step + 1 { bad("a step is missing") }
  $1 in seen && $4 != seen[$1] { bad("another loss than the first time, " seen[$1]) }
  !($1 in seen) && NR > 1 && $4 >= least { bad("the loss rose from " least) }
  { step = $1; group = $5; seen[$1] = $4; if (NR == 1 || $4 < least) least = $4 }
  END { if (beginnings < 4) bad("only " beginnings " new beginnings"); exit failed }' "$LOG" || fail "see above"
groups="$(last | awk '{print $1}') steps, loss $(head -n 1 "$LOG" | awk '{print $4}') to $(last | awk '{print $4}'), groups: $(awk '$5 != old {printf "%s ", $2} {old = $5}' "$LOG")"
say "$groups"

# The article's job, CPU-sized: its policy as it stands, one process a pod. Nobody runs etcd-service: the server warns,
# an event says what is done instead, and it trains.
{
  cat <<'YAML'
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: llm-finetune-job}
spec:
  elasticPolicy:
    rdzvBackend: etcd
    rdzvHost: etcd-service
    minReplicas: 2
    maxReplicas: 8
  pytorchReplicaSpecs:
    Master:
YAML
  replica 1 'python, -m, torch.distributed.run, --nproc_per_node=1, --nnodes=4, /shared/train.py, /shared/article'
  echo '    Worker:'
  replica 3 'python, -m, torch.distributed.run, --nproc_per_node=1, /shared/train.py, /shared/article'
} >"$SCRATCH/article.yaml"
contains "$(kubectl apply -f "$SCRATCH/article.yaml" 2>&1)" "spec.elasticPolicy.rdzvBackend: etcd needs an etcd" "warning"
LOG=$SHARED/article/log
eventually 180 trains_with 4 none
contains "$("$MUSTER" explain job llm-finetune-job)" "no Service default/etcd-service" "muster explain job"
touch "$SHARED/article/finish"
kubectl wait --for=condition=Succeeded pytorchjob/llm-finetune-job --timeout=60s
say "result: $groups; the article's job trained with $(last | awk '{print $2}') ranks, without etcd"
