#!/usr/bin/env bash
# Issue 4, shown by 3: real GPUs as far as that goes without any, on a stand-in for NVIDIA's library: who gets which, over
# restarts; a GPU that vanishes, flaps, or hangs the driver; pods of a gang that share a sandbox; metrics.
source "$(dirname "$0")/lib.sh"

own_dev 4
fake_nvml
gpu() { # gpu LETTER PEER [LINE...]: the letters are linked in pairs
  printf 'gpu GPU-%s\nmodel NVIDIA H200\nlink GPU-%s 18\n' "$1" "$2"
  shift 2
  printf '%s\n' "$@"
}
fine() { gpu a b 'util 37' 'used 1073741824' 'temp 41' 'power 123456'; gpu b a; gpu c d; gpu d c; }
fine | driver
contains "$("$MUSTER" doctor --data-dir "$DATA")" "4 x NVIDIA H200" "doctor"
up --gpu-steady 15
node=$(kubectl get nodes -o name)

pod() { # pod NAME GPUS [ANNOTATIONS]: runs until it is deleted
  kubectl apply -f - <<YAML
apiVersion: v1
kind: Pod
metadata: {name: $1, annotations: {$3}, labels: {${4:-}}}
spec:
  terminationGracePeriodSeconds: 0
  containers:
    - name: main
      image: none
      command: ["sh", "-c", "ls /dev | grep nvidia | xargs; echo \$NVIDIA_VISIBLE_DEVICES \$CUDA_VISIBLE_DEVICES; exec sleep 1000"]
      $([ "$2" = 0 ] || echo "resources: {limits: {nvidia.com/gpu: $2}}")
YAML
}
start() { pod "$@" "" >/dev/null && eventually 20 pod_phase_is "$1" Running; }
devices() { # what the pod sees: GPUs, then numbers
  kubectl exec "$1" -- sh -c 'echo $NVIDIA_VISIBLE_DEVICES'
}
allocatable_is() { [ "$(jsonpath "$node" '.status.allocatable.nvidia\.com/gpu')" = "$1" ]; }
condition() { kubectl get "$node" -o "jsonpath={.status.conditions[?(@.type==\"AcceleratedHardwareReady\")].$1}"; }
condition_is() { [ "$(condition reason)" = "$1" ]; }
restart_control_plane() {
  local pid
  pid=$(control_plane_pid)
  kill -9 "$pid"
  eventually 10 bash -c "! kill -0 $pid 2>/dev/null"
  up --gpu-steady 15
}

# Neighbours for two, a single from the pair that is broken already, and nobody's GPU twice.
allocatable_is 4 || fail "allocatable: $(jsonpath "$node" .status.allocatable)"
equals "$(jsonpath "$node" '.metadata.labels.nvidia\.com/gpu\.product')" NVIDIA-H200 label

# Shares of a GPU: two fill the first one's thousandths, the third opens another; none of both goes to a pod that wants a
# whole one; the agent knows after a restart who shares.
share() { # share NAME MILLI
  kubectl apply -f - >/dev/null <<YAML
apiVersion: v1
kind: Pod
metadata: {name: $1}
spec:
  terminationGracePeriodSeconds: 0
  containers:
    - {name: main, image: none, command: ["sleep", "1000"], resources: {limits: {muster.dev/gpu-milli: $2}}}
YAML
}
equals "$(jsonpath "$node" '.status.allocatable.muster\.dev/gpu-milli')" 4k "thousandths of GPUs"
for name in s1 s2 s3; do share $name 400 && eventually 20 pod_phase_is $name Running; done
equals "$(devices s1)" "$(devices s2)" "the GPU of two shares"
[ "$(devices s1)" != "$(devices s3)" ] || fail "three shares of 400 on one GPU"
start rest 2
case " $(devices rest | tr ',' ' ') " in *" $(devices s1) "* | *" $(devices s3) "*) fail "a shared GPU was given away whole" ;; esac
share s4 700
eventually 10 bash -c "kubectl describe pod s4 | grep -q 'Insufficient muster.dev/gpu-milli'"
restart_control_plane
kubectl delete pod s2 --wait >/dev/null
pod_phase_is s4 Pending || fail "s4 got what nobody has"
kubectl delete pod s1 --wait >/dev/null
eventually 20 pod_phase_is s4 Running
kubectl delete pod s3 s4 rest --wait >/dev/null

# Pods that come to the node without the scheduler get a GPU there, and the others go to the others.
own() { # own NAME: for this node
  kubectl apply -f - >/dev/null <<YAML
apiVersion: v1
kind: Pod
metadata: {name: $1}
spec:
  nodeName: ${node#node/}
  terminationGracePeriodSeconds: 0
  containers: [{name: main, image: none, command: ["sleep", "1000"], resources: {limits: {nvidia.com/gpu: 1}}}]
YAML
}
own placed && eventually 20 pod_phase_is placed Running
for name in o1 o2 o3; do start $name 1; done
equals "$(for name in placed o1 o2 o3; do devices $name; done | sort | xargs)" "GPU-a GPU-b GPU-c GPU-d" "GPUs beside a pod's that came by itself"
kubectl delete pod placed o1 o2 o3 --wait >/dev/null

start one 1
start pair 2
start single 1
start none 0
equals "$(devices one)" GPU-a "pod one"
equals "$(devices pair)" GPU-c,GPU-d "pod pair"
equals "$(devices single)" GPU-b "pod single"
equals "$(kubectl exec one -- sh -c 'ls /dev | grep nvidia | xargs')" "nvidia-uvm nvidia0 nvidiactl" "/dev of pod one"
equals "$(kubectl exec none -- sh -c 'ls /dev | grep -c nvidia || true')" 0 "GPU files of a pod without GPUs"
if kubectl exec one -- mknod /tmp/nvidia1 c 195 1 2>/dev/null; then fail "a pod made a device node"; fi
pod late 1 "" >/dev/null
waits() { jsonpath pod/late '.status.conditions[?(@.type=="PodScheduled")].message' | grep -q nvidia.com/gpu; }
eventually 10 waits
say "reason: $(jsonpath pod/late '.status.conditions[?(@.type=="PodScheduled")].message')"
say "result: pairs stay whole, a fifth GPU pod waits with the reason"

# The control plane and the agent die: who has what is as before, and what is free is given once.
restart_control_plane
equals "$(devices one) $(devices pair) $(devices single)" "GPU-a GPU-c,GPU-d GPU-b" "after a restart"
kubectl delete pod single >/dev/null
eventually 20 pod_phase_is late Running
equals "$(devices late)" GPU-b "what became free"
say "result: owners over kill -9 of the control plane"

# What cannot be is refused with the reason.
kubectl apply -f - >/dev/null <<YAML
apiVersion: v1
kind: Pod
metadata: {name: thief, annotations: {muster.dev/assigned-devices: '{"main":{"nvidia.com/gpu":["GPU-a"]}}'}}
spec:
  nodeName: ${node#node/}
  restartPolicy: Never
  containers: [{name: main, image: none, command: ["true"], resources: {limits: {nvidia.com/gpu: 1}}}]
YAML
eventually 10 pod_phase_is thief Failed
equals "$(jsonpath pod/thief .status.reason)" UnexpectedAdmissionError "reason of pod thief"
contains "$(jsonpath pod/thief .status.message)" "belongs to another pod" "message of pod thief"
kubectl delete pod thief >/dev/null

# Metrics, by the API server and by the node.
metrics=$(kubectl get --raw /metrics | grep -F 'UUID="GPU-a"')
contains "$metrics" 'DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-a"'
contains "$metrics" 'container="main",namespace="default",pod="one"} 37'
contains "$metrics" 'pod="one"} 123.456'
top=$(muster top gpus)
say "$top"
contains "$top" "default/one" "muster top gpus"

# A GPU vanishes: it leaves allocatable, its pod goes on, nobody else suffers; it comes back when it is steady.
{ gpu a b; gpu b a; gpu c d; gpu d c 'error 15'; } | driver
eventually 20 allocatable_is 3
equals "$(jsonpath "$node" '.status.capacity.nvidia\.com/gpu')" 4 capacity
eventually 10 condition_is GPUUnhealthy
contains "$(condition message)" "GPU 3 (GPU-d, NVIDIA H200): GPU is lost" condition
pod_phase_is pair Running || fail "the pod with the lost GPU was ended"
shows GPU-d kubectl get events --field-selector reason=GPUUnhealthy
kubectl delete pod pair >/dev/null
pod two 2 "" >/dev/null
start again 1
equals "$(devices again)" GPU-c "the healthy one of the pair"
pod_phase_is two Pending || fail "a pod got an unhealthy GPU"
say "result: a lost GPU leaves allocatable, its pod goes on, its neighbour is given"

# It flaps: each time it is seen fine once, which is less than it takes.
seen_fine() { [[ "$(condition message)" == *"since then fine"* ]]; }
seen_gone() { [[ "$(condition message)" == *"no longer lists it" ]]; }
for _ in 1 2 3; do
  fine | driver
  eventually 20 seen_fine
  { gpu a b; gpu b a; gpu c d; } | driver
  eventually 20 seen_gone
  allocatable_is 3 || fail "a GPU that flaps was offered"
done
fine | driver
eventually 30 allocatable_is 4
eventually 10 condition_is GPUsHealthy
kubectl delete pod again >/dev/null
eventually 20 pod_phase_is two Running
equals "$(devices two)" GPU-c,GPU-d "pod two"
say "result: a GPU that flaps is offered only after it was steady"

# The driver hangs: no GPU is offered, the node and its pods go on, one process waits and no more.
{ fine; echo hang; } | driver
eventually 30 condition_is NVMLHang
allocatable_is 0 || fail "GPUs are offered while the driver hangs"
start bystander 0
kubectl exec one -- true || fail "exec while the driver hangs"
equals "$(jsonpath "$node" '.status.conditions[?(@.type=="Ready")].status')" True "node Ready while the driver hangs"
[ "$(pgrep -fc internal-gpu-probe)" -le 1 ] || fail "probes pile up: $(pgrep -fa internal-gpu-probe)"
fine | driver
eventually 90 allocatable_is 4
say "result: a driver that hangs stalls nothing, and is asked again"

# XIDs: one that a program causes is told to its pod; one of the GPU itself takes it out of service, until somebody looks after it.
health() { jsonpath pod/one '.status.containerStatuses[0].allocatedResourcesStatus[?(@.name=="nvidia.com/gpu")].resources[0].'"$1"; }
health_is() { [ "$(health health)" = "$1" ]; }
told() { kubectl get events --field-selector "involvedObject.name=$1,reason=$2" -o 'jsonpath={.items[*].message}' | grep -qF "$3"; }
of_one=$(devices one)
equals "$(health resourceID) $(health health)" "$of_one Healthy" "the status of pod one"
with_xids() { fine | sed "/^gpu $of_one\$/a $1"; }
with_xids 'xid 31' | driver
eventually 20 told one GPUXid "XID 31: a program touched GPU memory that is not mapped"
contains "$(kubectl get --raw /metrics | grep "^DCGM_FI_DEV_XID_ERRORS{.*$of_one")" "} 31" "metric"
allocatable_is 4 || fail "an error of a program took its GPU away"
with_xids 'xid 31\nxid 79' | driver
eventually 20 health_is Unhealthy
contains "$(health message)" "XID 79: the GPU has fallen off the bus" "the status of pod one"
eventually 10 allocatable_is 3
eventually 10 told one DeviceUnhealthy "XID 79"
eventually 10 told "${node#node/}" GPUUnhealthy "$of_one, NVIDIA H200) is not offered to pods any more: XID 79"
contains "$(condition message)" "XID 79" "the node's condition"
kubectl exec one -- true || fail "pod one was ended"
restart_control_plane
eventually 20 allocatable_is 4
eventually 20 health_is Healthy
fine | driver
say "result: an XID of a program is told, one of the GPU takes it away and is in status, events, condition and metrics"

# A gang that shares its sandbox: one network and /dev/shm, names of its own; it goes with its last pod.
kubectl delete pod one late two none bystander >/dev/null
job() {
  cat <<YAML
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: $1}
spec:
  pytorchReplicaSpecs:
YAML
  for type in Master Worker; do
    cat <<YAML
    $type:
      replicas: 1
      restartPolicy: Never
      template:
        metadata: {annotations: {$2}}
        spec:
          containers:
            - name: pytorch
              image: none
              command: ["sh", "-c", "$3"]
              resources: {limits: {nvidia.com/gpu: 1}}
YAML
  done
}
# shellcheck disable=SC2016
meet='echo $(hostname) $NVIDIA_VISIBLE_DEVICES $NCCL_HOSTID; echo files $(ls /dev | grep nvidia); touch /dev/shm/$RANK; while [ ! -e /dev/shm/$((1 - RANK)) ]; do sleep 0.1; done; sleep 1'
warned=$(job plain '' true | kubectl apply -f - 2>&1)
contains "$warned" ": spec.pytorchReplicaSpecs: 2 pods with one GPU each" "the answer to a job of one-GPU pods"
contains "$warned" "muster.dev/gang-sandbox: shared" "the answer to a job of one-GPU pods"
eventually 20 job_is plain Succeeded
warned=$(job gang '"muster.dev/gang-sandbox": shared' "$meet" | kubectl apply -f - 2>&1)
[[ "$warned" != *Warning* ]] || fail "a warning for a job that shares its sandbox: $warned"
eventually 30 job_is gang Succeeded
logs=$(kubectl logs gang-master-0; kubectl logs gang-worker-0)
say "$logs"
id=default/gang@${node#node/}
contains "$logs" "gang-master-0 GPU-a $id"
contains "$logs" "gang-worker-0 GPU-b $id"
# CUDA has to open the GPUs of its peers: their device nodes are there, and those of nobody else.
contains "$logs" "files nvidia-uvm nvidia0 nvidia1 nvidiactl" "device nodes of a gang"
equals "$(jsonpath pod/gang-master-0 .status.podIP)" "$(jsonpath pod/gang-worker-0 .status.podIP)" "addresses"
kubectl delete pytorchjob gang plain >/dev/null
no_links() { ! ip -o link | grep -q veth && [ "$(ip -o link | grep -c master)" = 0 ]; }
eventually 20 no_links
say "result: a gang with a shared sandbox meets over /dev/shm, with one address, and leaves nothing"
