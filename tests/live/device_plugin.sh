#!/usr/bin/env bash
# Issue 7: a device plugin that registers over the kubelet's device plugin API. It is a program of its own, with Python's gRPC and
# protobuf, in a pod of a DaemonSet: the node offers its devices, a container gets what it answers, and devices fail, the plugin
# restarts, the agent is killed, all without harm to what runs.
source "$(dirname "$0")/lib.sh"
/usr/bin/python3 -c 'import grpc, google.protobuf' 2>/dev/null || skip "no python3-grpcio"
state=$SCRATCH/state
mkdir -p "$state"
printf 'foo0 Healthy\nfoo1 Healthy\nfoo2 Unhealthy\n' >"$state/devices"
# Never half of it: the plugin may read at any moment.
set_devices() { printf "$1" >"$state/devices.new" && mv "$state/devices.new" "$state/devices"; }
up
node=$(kubectl get nodes -o name)

offered() { echo "$(jsonpath "$node" '.status.capacity.example\.com/foo') $(jsonpath "$node" '.status.allocatable.example\.com/foo')"; }
offered_are() { local now; now=$(offered); [ "$now" = "$1" ] || { echo "offered: $now"; return 1; }; }
pod() { # pod NAME [MORE_OF_CONTAINER]
  kubectl apply -f - >/dev/null <<YAML
apiVersion: v1
kind: Pod
metadata: {name: $1}
spec:
  restartPolicy: Always
  terminationGracePeriodSeconds: 0
  containers:
    - name: main
      image: none
      command: [sh, -c, 'trap "exit 1" USR1; sleep 1000 & wait']
      resources: {limits: {example.com/foo: 1}}
      ${2:-}
YAML
}
in_pod() { kubectl exec "$1" -- sh -c "$2"; }
health_is() { # health_is POD DEVICE HEALTH
  local now
  now=$(jsonpath "pod/$1" '.status.containerStatuses[0].allocatedResourcesStatus[?(@.name=="example.com/foo")].resources[*]')
  [[ "$now" == *"\"health\":\"$3\""* && "$now" == *"\"$2\""* ]] || { echo "$now"; return 1; }
}
fails_with() { # fails_with POD TEXT
  eventually 30 pod_phase_is "$1" Failed
  equals "$(jsonpath "pod/$1" .status.reason)" UnexpectedAdmissionError "reason of $1"
  contains "$(jsonpath "pod/$1" .status.message)" "$2" "message of $1"
  kubectl delete pod "$1" >/dev/null
}

say "== a DaemonSet's plugin registers: healthy devices are allocatable, all are capacity"
kubectl apply -f - >/dev/null <<YAML
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: foo-plugin}
spec:
  selector: {matchLabels: {app: foo-plugin}}
  template:
    metadata: {labels: {app: foo-plugin}}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
        - name: plugin
          image: none
          command: [/usr/bin/python3, /program/plugin.py, example.com/foo, $state]
          volumeMounts:
            - {name: device-plugin, mountPath: /var/lib/kubelet/device-plugins}
            - {name: state, mountPath: $state}
            - {name: program, mountPath: /program}
      volumes:
        - {name: device-plugin, hostPath: {path: /var/lib/kubelet/device-plugins}}
        - {name: state, hostPath: {path: $state}}
        - {name: program, hostPath: {path: $ROOT/tests/live/device_plugin}}
YAML
eventually 60 offered_are "3 2"

say "== a container gets variables, a mount and a device node; the scheduler counts"
pod first
pod second
eventually 30 pod_phase_is first Running
eventually 30 pod_phase_is second Running
one=$(in_pod first 'echo $FOO_DEVICES')
two=$(in_pod second 'echo $FOO_DEVICES')
equals "$(printf '%s\n' "$one" "$two" | sort | xargs)" "foo0 foo1" "devices of both"
equals "$(in_pod first 'echo $FOO_MODE; ls /dev/foo; head -c 3 /dev/foo/* | od -An -tx1 | xargs')" "plugin
$one
00 00 00" "in the container"
contains "$(in_pod first 'cat /opt/foo/devices; touch /opt/foo/x 2>&1 || true')" "Read-only file system" "the mount"
equals "$(in_pod first 'echo ${NVIDIA_VISIBLE_DEVICES-none}')" none "no GPUs, no variable of theirs"
contains "$(cat "$state/calls")" "pre-start $one" "calls of the plugin"
pod third
waits() { contains "$(jsonpath pod/third '.status.conditions[?(@.type=="PodScheduled")].message')" "example.com/foo"; }
eventually 30 waits
equals "$(jsonpath pod/third .status.phase)" Pending "the third"

say "== a device fails: nobody gets it, who has it goes on and is told"
set_devices "$one Unhealthy\n$two Healthy\nfoo2 Unhealthy\n"
eventually 30 offered_are "3 1"
eventually 30 health_is first "$one" Unhealthy
shows "its device plugin says that it is unhealthy" events_of first DeviceUnhealthy
equals "$(in_pod first 'echo $FOO_DEVICES')" "$one" "it runs"
set_devices "$one Healthy\n$two Healthy\nfoo2 Unhealthy\n"
eventually 30 offered_are "3 2"
eventually 30 health_is first "$one" Healthy

say "== the plugin ends: nothing is allocatable; it comes back, and nobody lost anything"
kubectl patch daemonset foo-plugin --type merge -p 'spec: {template: {spec: {nodeSelector: {no: such}}}}' >/dev/null
eventually 60 offered_are "3 0"
kubectl patch daemonset foo-plugin --type merge -p 'spec: {template: {spec: {nodeSelector: null}}}' >/dev/null
eventually 60 offered_are "3 2"
equals "$(in_pod first 'echo $FOO_DEVICES') $(jsonpath pod/first '.status.containerStatuses[0].restartCount')" "$one 0" "the first"

say "== kill -9 of the agent: the plugin registers again, what runs keeps its devices, and they are nobody else's"
kill -9 "$(control_plane_pid)"
up >/dev/null
eventually 60 offered_are "3 2"
eventually 30 health_is first "$one" Healthy
equals "$(in_pod first 'echo $FOO_DEVICES') $(jsonpath pod/first '.status.containerStatuses[0].restartCount')" "$one 0" "the first"
equals "$(jsonpath pod/third .status.phase)" Pending "the third"
kubectl delete pod second >/dev/null
eventually 30 pod_phase_is third Running
equals "$(in_pod third 'echo $FOO_DEVICES')" "$two" "the third has the second's"
# A container that starts again has what it had.
in_pod first 'kill -USR1 1' || true # it may go with its container
restarted() { [ "$(jsonpath pod/first '.status.containerStatuses[0].restartCount')" -ge 1 ] && pod_phase_is first Running; }
eventually 60 restarted
running_again() { [ "$(in_pod first 'echo $FOO_DEVICES')" = "$one" ]; }
eventually 30 running_again

say "== what the plugin refuses, and what this node cannot do, fails the pod with the reason"
kubectl delete pod third >/dev/null
echo fail >"$state/allocate"
pod refused
fails_with refused "Allocate failed due to the plugin says no, which is unexpected"
echo cdi >"$state/allocate"
pod cdi
fails_with cdi "the plugin names CDI devices (example.com/foo=$two), which this node does not inject"
rm "$state/allocate"

say "== what the node offers itself no plugin may offer"
output=$(timeout 60 /usr/bin/python3 tests/live/device_plugin/plugin.py nvidia.com/gpu "$state" "$DATA/kubelet/device-plugins" 2>&1) && fail "accepted"
contains "$output" "refused: UNKNOWN this node offers nvidia.com/gpu itself, without a device plugin" "the plugin's answer"
shows "this node offers nvidia.com/gpu itself" events_of "${node#node/}" DevicePluginRefused
say "result: a device plugin's devices are offered, given and kept, through failures of all three sides"
