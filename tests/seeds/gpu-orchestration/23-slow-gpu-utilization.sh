#!/usr/bin/env bash
# One of three GPUs of a training is slower than its peers, and one has nothing to do: muster explain says which, and by what signs.
source "$(dirname "$0")/../lib.sh"
a100 3
cp "$MUSTER_FAKE_NVML" "$SCRATCH/fine"
busy() { sed '/^gpu /a util 99\ntemp 61' "$SCRATCH/fine"; }
busy | driver
up_machine
kubectl apply -f - <<YAML
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: train}
spec:
  pytorchReplicaSpecs:
    Master:
      template: &pod
        spec:
          terminationGracePeriodSeconds: 0
          containers: [{name: pytorch, image: "pytorch/pytorch:latest", command: [sleep, "1000"], resources: {limits: {nvidia.com/gpu: 1}}}]
    Worker: {replicas: 2, template: *pod}
YAML
for pod in master-0 worker-0 worker-1; do eventually 30 pod_phase_is train-$pod Running; done
pod_of() { # pod_of GPU: the rank that has it
  kubectl get --raw /metrics | sed -nE "s/^DCGM_FI_DEV_GPU_UTIL.*UUID=\"$1\".*pod=\"([^\"]+)\".*/\1/p"
}
has_pod() { contains "$(pod_of "$1")" "train-" "the rank with $1"; }
explained() { contains "$("$MUSTER" explain job train)" "$1" "muster explain"; }
for gpu in GPU-0 GPU-1 GPU-2; do eventually 20 has_pod $gpu; done
if "$MUSTER" explain job train | grep GPU-; then fail "three equal GPUs are told of"; fi

busy | sed '/^gpu GPU-1/,/^temp/ s/^temp 61/temp 91\nclock 705\nslow 72/' | driver
eventually 30 explained "GPU GPU-1 of $(pod_of GPU-1) on node $(real_node) differs from its 2 peers: its clock is 705 MHz and theirs 1410; the driver holds it back (hardware slowdown, too hot, by hardware); it is at 91 C and they at 61"
equals "$(kubectl get --raw /metrics | sed -nE 's/^DCGM_FI_DEV_CLOCK_THROTTLE_REASONS.*UUID="GPU-1".* //p')" 72 "the metric"

busy | sed '/^gpu GPU-2/,/^temp/ s/^util 99/util 7/' | driver
eventually 30 explained "it is busy 7 % of the time and they 99 %: its input may not keep up"

busy | sed '/^gpu GPU-0/,/^temp/ s/^temp 61/temp 61\necc 2/' | driver
eventually 30 explained "its memory had 2 uncorrected errors (ECC)"
say "result: the slow, the starved and the faulty GPU among their peers"
