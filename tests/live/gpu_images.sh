#!/usr/bin/env bash
# A container with a GPU whose root is an image: it gets the files of the machine's driver, those that its capabilities name,
# where its dynamic linker finds them; a node without them says so. On a stand-in for NVIDIA's library.
source "$(dirname "$0")/lib.sh"
for program in skopeo umoci; do
  command -v "$program" >/dev/null || skip "$program is not installed (tools/install-packages run)"
done

# --- a /dev of our own, and a driver: libraries by their names on a machine, and programs
own_dev 1
driver=$SCRATCH/driver
mkdir -p "$driver/lib64" "$driver/bin"
library() { # library FILE NAME LINK...
  cp -L "$1" "$driver/lib64/$2.so.999.1"
  local link
  for link in "${@:3}"; do ln -s "$2.so.999.1" "$driver/lib64/$2.so$link"; done
}
any=$(dirname "$(ldd /bin/sh | grep -o '/[^ ]*/libc.so.6')")/libm.so.6 # a library that can be loaded and needs no other
library "$(dirname "$MUSTER")/tests/fake_nvml/libfake-nvml.so" libnvidia-ml .1
library "$any" libcuda .1 ''
library "$any" libnvidia-ptxjitcompiler .1
library "$any" libnvidia-gpucomp
library "$any" libnvidia-glcore
printf '#!/bin/sh\necho smi of the machine\n' >"$driver/bin/nvidia-smi"
chmod 755 "$driver/bin/nvidia-smi"
export MUSTER_FAKE_NVML=$SCRATCH/nvml MUSTER_NVML_LIBRARY=$driver/lib64/libnvidia-ml.so.1
printf 'gpu GPU-a\nmodel NVIDIA H200\n' >"$MUSTER_FAKE_NVML"

# --- an image with a shell and a dynamic linker, and nothing of a driver
image=$SCRATCH/image
for file in /bin/sh /bin/cat /bin/sleep $(ldd /bin/sh /bin/cat | grep -o '/[^ ):]* ' | sort -u); do
  [ -e "$image$file" ] || { mkdir -p "$image$(dirname "$file")" && cp -L "$file" "$image$file"; }
done
tests/live/images/make_image.py "$SCRATCH/layout" cuda:1 '{"Env": ["LD_LIBRARY_PATH=/opt/lib"]}' "$image" >/dev/null
up
"$MUSTER" image load "$SCRATCH/layout" >/dev/null
pod() { # pod NAME IMAGE GPUS CAPABILITIES: runs until it is deleted
  kubectl apply -f - >/dev/null <<YAML
{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "$1"}, "spec": {"terminationGracePeriodSeconds": 0, "containers": [{
 "name": "main", "image": "$2", "imagePullPolicy": "Never", "command": ["/bin/sleep", "1000"],
 "env": [$([ -z "$4" ] || echo "{\"name\": \"NVIDIA_DRIVER_CAPABILITIES\", \"value\": \"$4\"}")],
 "resources": {"limits": {"nvidia.com/gpu": "$3"}}}]}}
YAML
}
start() { pod "$@" && eventually 20 pod_phase_is "$1" Running; }
gone() { kubectl delete pod "$@" >/dev/null; }
in_pod() { kubectl exec "$1" -- /bin/sh -c "$2"; }
libraries() { in_pod "$1" "cd /usr/local/nvidia/lib64 && echo *"; }
events() { kubectl get events --field-selector "involvedObject.name=$1" -o 'jsonpath={range .items[*]}{.reason}: {.message}{"\n"}{end}'; }

start default cuda:1 1 ''
equals "$(libraries default)" \
  "libcuda.so libcuda.so.1 libcuda.so.999.1 libnvidia-gpucomp.so.999.1 libnvidia-ml.so.1 libnvidia-ml.so.999.1 libnvidia-ptxjitcompiler.so.1 libnvidia-ptxjitcompiler.so.999.1"
equals "$(in_pod default nvidia-smi)" "smi of the machine"
equals "$(in_pod default 'echo $LD_LIBRARY_PATH')" /opt/lib:/usr/local/nvidia/lib64
preload='LD_PRELOAD=libcuda.so.1 cat /proc/self/maps 2>&1' # the dynamic linker looks for it as for any other
contains "$(in_pod default "$preload")" /usr/local/nvidia/lib64/libcuda.so "what is loaded"
contains "$(in_pod default "unset LD_LIBRARY_PATH; $preload")" /libcuda.so.1 "what is loaded by a program that knows no LD_LIBRARY_PATH, as one of sshd"
if in_pod default 'echo x >/usr/local/nvidia/lib64/libcuda.so.1' 2>/dev/null; then fail "the driver's files can be written"; fi
[[ "$(events default)" != *NoDriverFiles* ]] || fail "a warning for a node with a driver: $(events default)"
gone default
start smi cuda:1 1 utility
equals "$(libraries smi)" "libnvidia-ml.so.1 libnvidia-ml.so.999.1"
gone smi
start all cuda:1 1 all
contains "$(libraries all)" libnvidia-glcore.so.999.1
gone all
pod typo cuda:1 1 cuda
reason() { [ "$(jsonpath "pod/$1" '.status.containerStatuses[0].state.waiting.reason')" = "$2" ]; }
eventually 20 reason typo CreateContainerConfigError
contains "$(jsonpath pod/typo '.status.containerStatuses[0].state.waiting.message')" '"cuda" is no capability'
gone typo
start none cuda:1 0 ''
if in_pod none 'cd /usr/local/nvidia' 2>/dev/null; then fail "a pod without GPUs has files of the driver"; fi
gone none

# --- a node whose NVML library has no version: nothing tells which files are the driver's
kill "$(control_plane_pid)"
eventually 10 sh -c "! kill -0 $(control_plane_pid) 2>/dev/null"
MUSTER_NVML_LIBRARY=$(dirname "$MUSTER")/tests/fake_nvml/libfake-nvml.so up >/dev/null
start bare cuda:1 1 ''
shows "NoDriverFiles: Container main has the device files of its GPUs, but no libcuda.so of their driver: none" events bare
say "result: files of the driver by capability, found by the dynamic linker with and without LD_LIBRARY_PATH; without any the event says so"
