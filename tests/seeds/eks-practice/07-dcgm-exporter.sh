#!/usr/bin/env bash
# "Monitoring and Observability": helm install dcgm-exporter, a real Prometheus that scrapes the nodes as its users let it (ServiceAccount,
# TLS), the article's alert fires for the training pod that uses its GPU too little, and a GPU that does nothing is told of.
source "$(dirname "$0")/../lib.sh"
# One with Kubernetes discovery where tests/tools/build-prometheus has built it; Debian's is built without and gets the node's name.
prometheus=$ROOT/build/tools/prometheus discovers=yes
[ -x "$prometheus" ] || { prometheus=/usr/bin/prometheus discovers=; }
[ -x "$prometheus" ] || skip "no prometheus (tools/install-packages full)"

a100 2
up_machine --gpu-idle 10
util() { # util PERCENT0 PERCENT1: what the two GPUs do
  printf 'gpu GPU-0\nmodel NVIDIA A100-SXM4-40GB\nutil %s\nmemutil 7\ngpu GPU-1\nmodel NVIDIA A100-SXM4-40GB\nutil %s\n' "$@" | driver
}
util 3 3

# The chart is accepted, makes no pods, and says where the metrics are.
if command -v helm >/dev/null; then
  helm install dcgm-exporter "$ROOT/tests/live/charts/dcgm-exporter" --wait --timeout 60s >/dev/null
  eventually 120 has_event dcgm-exporter DcgmExporterNotNeeded "/api/v1/nodes/NODE/proxy/metrics"
  equals "$(kubectl get pods -o name)" "" "pods of the exporter"
fi

# Prometheus, with the article's ten minutes shortened, and this machine's program in place of an image.
mkdir -p "$SCRATCH/tools" && cp "$prometheus" "$SCRATCH/tools/prometheus"
named="static_configs: [{targets: [node], labels: {__meta_kubernetes_node_name: $(real_node)}}]"
sed -E -e 's/(scrape_interval|evaluation_interval): 15s/\1: 1s/; s/for: 10m/for: 5s/' \
  -e 's|command: \[prometheus\]|command: [/tools/prometheus]|' \
  -e 's|^( +)- \{name: data, mountPath.*|&\n\1- {name: tools, mountPath: /tools}|' \
  -e "s|^( +)- \{name: data, emptyDir.*|&\n\1- {name: tools, hostPath: {path: $SCRATCH/tools}}|" \
  "$EXAMPLE" >"$SCRATCH/prometheus.yaml"
[ -n "$discovers" ] || sed -i "s|kubernetes_sd_configs: .*|$named|" "$SCRATCH/prometheus.yaml"
kubectl apply -f "$SCRATCH/prometheus.yaml" >/dev/null
kubectl apply -f - >/dev/null <<'YAML'
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: slow}
spec:
  pytorchReplicaSpecs:
    Master:
      replicas: 1
      restartPolicy: OnFailure
      template:
        spec:
          terminationGracePeriodSeconds: 0
          containers:
            - {name: pytorch, image: none, command: [sleep, "1000"], resources: {limits: {nvidia.com/gpu: 1}}}
---
apiVersion: v1
kind: Pod
metadata: {name: notebook}
spec:
  terminationGracePeriodSeconds: 0
  containers:
    - {name: main, image: none, command: [sleep, "1000"], resources: {limits: {nvidia.com/gpu: 1}}}
YAML
kubectl wait -n monitoring deployment/prometheus --for=condition=Available --timeout=180s >/dev/null
eventually 120 pod_phase_is slow-master-0 Running
eventually 120 pod_phase_is notebook Running

address=$(kubectl get service -n monitoring prometheus -o 'jsonpath={.spec.clusterIP}'):9090
ask() { curl -sfS --max-time 10 "http://$address/api/v1/$1"; }
query() { curl -sfS --max-time 10 -G "http://$address/api/v1/query" --data-urlencode "query=$1"; }
scraped() { ask targets | jq -e '[.data.activeTargets[].health] | length > 0 and all(. == "up")'; }
eventually 120 scraped
value() { query "$1" | jq -r '.data.result[0].value[1]'; }
value_is() { [ "$(value "$1")" = "$2" ]; }
eventually 120 value_is 'DCGM_FI_DEV_GPU_UTIL{pod="slow-master-0",namespace="default",container="pytorch"}' 3
eventually 120 value_is 'max(DCGM_FI_DEV_MEM_COPY_UTIL)' 7
firing() { # what of the alert fires, by pod
  ask alerts | jq -r '[.data.alerts[] | select(.labels.alertname == "GPUUnderusedInTraining" and .state == "firing") | .labels.pod] | join(" ")'
}
firing_is() { [ "$(firing)" = "$1" ]; }
eventually 120 firing_is slow-master-0
say "result: Prometheus${discovers:+ found the node by itself and} scraped it over TLS with its account's token; the alert fires for $(firing) alone"

# Who holds a GPU and does nothing is told of it: the pod, and the job that made it.
idle="has done nothing for"
eventually 120 has_event slow-master-0 GPUIdle "$idle"
eventually 120 has_event slow GPUIdle "pod default/slow-master-0 of pytorchjob slow holds it"
eventually 120 has_event notebook GPUIdle "pod default/notebook holds it"
say "told: $(events_of notebook GPUIdle)"

# It works: the alert goes, and the event says so.
util 96 96
eventually 120 firing_is ""
eventually 120 has_event slow-master-0 GPUBusy "works again after"
eventually 120 has_event slow GPUBusy "works again after"
say "result: cleared when the GPU works again"
