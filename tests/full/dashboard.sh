#!/usr/bin/env bash
# Issue 7, shown by 4: the dashboard in Chromium. First a small cluster whose GPUs a stand-in for NVIDIA's library measures:
# nodes, queue with reasons, ranks and logs, changes as they happen, tokens that may little, a server that goes and comes
# back. Then 1,000 simulated nodes with 10,000 pods: nothing freezes.
#   tests/full/dashboard.sh              SCREENSHOT=FILE.png also takes the picture of docs/dashboard.md
set -euo pipefail
cd "$(dirname "$0")/../.."
if [ -z "${MUSTER_IN_NETBOX-}" ]; then
  command -v chromium >/dev/null || { echo "skipped: chromium is missing: apt-get install chromium"; exit 77; }
  tests/tools/fetch-puppeteer >/dev/null || { echo "skipped: puppeteer-core cannot be fetched"; exit 77; }
  exec env MUSTER_IN_NETBOX=1 tests/netbox/netbox "$PWD/tests/full/dashboard.sh"
fi
source tests/live/lib.sh

hostname gpu-box # its own, in the netbox
own_dev 8
fake_nvml
for gpu in 0:93 1:97 2:88 3:95 4:0 5:0 6:71 7:0; do
  printf 'gpu GPU-%s\nmodel NVIDIA H200\nmemory 150754820096\nused 98784247808\nutil %s\ntemp 61\npower 612000\n' "${gpu%:*}" "${gpu#*:}"
done | driver
up --simulate-nodes 3
own=gpu-box

job() { # job NAMESPACE NAME WORKERS [IMAGE-LESS PROGRAM]: one GPU a rank, on this machine's own node
  kubectl apply -f - >/dev/null 2>&1 <<YAML
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: $2, namespace: $1}
spec:
  runPolicy: {cleanPodPolicy: None}
  pytorchReplicaSpecs:
    Master: &role
      replicas: 1
      template: &template
        spec:
          terminationGracePeriodSeconds: 1
          nodeSelector: {kubernetes.io/hostname: $own}
          containers:
            - name: pytorch
              image: none
              command: [sh, -c, 'n=0; while true; do n=\$((n + 1)); echo "step \$n  loss \$(awk "BEGIN{printf \"%.4f\", 2.3/(1+\$n/40)}")"; sleep 0.5; done']
              resources: {requests: {cpu: 50m, memory: 64Mi}, limits: {nvidia.com/gpu: 1}}
    Worker: {replicas: $3, template: *template}
YAML
}
job_runs() { [ "$(kubectl get pod "$2" -n "$1" -o 'jsonpath={.status.phase}')" = Running ]; }
kubectl create namespace vision >/dev/null
kubectl create namespace language >/dev/null
job language llm-finetune 3
eventually 60 job_runs language llm-finetune-worker-2
job vision resnet 1
eventually 60 job_runs vision resnet-worker-0
job language too-big 7 # waits: six of eight are taken
kubectl create deployment embed --image=none --replicas=9 --dry-run=client -o json |
  jq '.spec.template.spec |= . + {nodeSelector: {"muster.dev/simulated": "true"}} | .spec.template.spec.containers[0] |= . + {resources: {requests: {cpu: "8", memory: "64Gi"}, limits: {"nvidia.com/gpu": "2"}}}' |
  kubectl apply -f - >/dev/null
kubectl rollout status deployment/embed --timeout=60s >/dev/null

"$MUSTER" dashboard --no-open >"$SCRATCH/dashboard.out" 2>&1 &
dashboard=$!
eventually 20 grep -q '#token=' "$SCRATCH/dashboard.out"
url=$(grep -o 'http://[^ ]*#token=[^ ]*' "$SCRATCH/dashboard.out")
kubectl create serviceaccount nobody >/dev/null
poor=$(kubectl create token nobody)
kubectl create serviceaccount viewer -n language >/dev/null
kubectl create rolebinding viewer -n language --clusterrole=view --serviceaccount=language:viewer >/dev/null
team=$(kubectl create token viewer -n language)

# The browser's script asks for what has to happen to the cluster by a line, and is told when it is done.
mkfifo "$SCRATCH/asks" "$SCRATCH/done"
URL=$url POOR=$poor TEAM=$team NODE=$own DIRECT=https://127.0.0.1:6443/dashboard/ HOME=$SCRATCH/home timeout 240 \
  node tests/live/dashboard/small.mjs >"$SCRATCH/asks" <"$SCRATCH/done" &
browser=$!
exec 7<"$SCRATCH/asks" 8>"$SCRATCH/done"
while read -ru 7 word rest; do
  case $word in
    delete-resnet) kubectl delete pytorchjob resnet -n vision >/dev/null ;;
    start-resnet) job vision resnet 1 ;;
    kill-server) kill -9 "$(control_plane_pid)" ;;
    start-server) up --simulate-nodes 3 >/dev/null ;;
    *) say "$word $rest"; continue ;;
  esac
  echo done >&8
done
wait $browser || fail "the browser's checks, above"
kill -INT $dashboard
wait $dashboard || fail "muster dashboard ends with $?"
"$MUSTER" down --purge --data-dir "$DATA" >/dev/null

rm "$SCRATCH/dashboard.out" # the former address
up --simulate-nodes 1000
kubectl create deployment many --image=none --replicas=10000 --dry-run=client -o json |
  jq '.spec.template.spec |= . + {nodeSelector: {"muster.dev/simulated": "true"}}' | kubectl apply -f - >/dev/null
kubectl rollout status deployment/many --timeout=120s >/dev/null
"$MUSTER" dashboard --no-open >"$SCRATCH/dashboard.out" 2>&1 &
dashboard=$!
eventually 20 grep -q '#token=' "$SCRATCH/dashboard.out"
url=$(grep -o 'http://[^ ]*#token=[^ ]*' "$SCRATCH/dashboard.out")
URL=$url timeout 120 node tests/live/dashboard/large.mjs || fail "the browser's checks of a large cluster, above"
kill -INT $dashboard
wait $dashboard
say "ok"
