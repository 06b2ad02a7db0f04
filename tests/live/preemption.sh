#!/usr/bin/env bash
# Issue 5: a pod of higher priority takes the room of one of lower priority, which is told why; one whose class says Never
# waits; a gang takes all the room that it needs or none.
source "$(dirname "$0")/lib.sh"
up --simulate-gpus 2

class() { # class NAME VALUE POLICY
  kubectl apply -f - <<YAML
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: $1}
value: $2
preemptionPolicy: $3
YAML
}
class low 10 PreemptLowerPriority
class high 1000 PreemptLowerPriority
class polite 2000 Never

pod() { # pod NAME CLASS GPUS [ANNOTATIONS]: runs until it is deleted
  kubectl apply -f - <<YAML
apiVersion: v1
kind: Pod
metadata: {name: $1, annotations: {${4:-}}}
spec:
  priorityClassName: $2
  terminationGracePeriodSeconds: 1
  containers:
    - {name: main, image: none, command: ["sleep", "1000"], resources: {limits: {nvidia.com/gpu: $3}}}
YAML
}
gone() { ! kubectl get pod "$1" 2>/dev/null; }
event_of() { kubectl get events --field-selector "involvedObject.name=$1,reason=$2" -o 'jsonpath={.items[*].message}'; }
says() { contains "$(kubectl get pod "$1" -o 'jsonpath={.status.conditions[?(@.type=="PodScheduled")].message}')" "$2" "$1"; }

pod low-0 low 1
pod low-1 low 1
for name in low-0 low-1; do eventually 20 pod_phase_is $name Running; done

# Never: it waits, and nobody goes.
pod polite polite 1
eventually 20 says polite "Insufficient nvidia.com/gpu"
for name in low-0 low-1; do pod_phase_is $name Running || fail "$name went for a pod that preempts nobody"; done
kubectl delete pod polite --wait >/dev/null

# One GPU is wanted: one pod goes, the other stays.
pod urgent high 1
eventually 20 pod_phase_is urgent Running
left=0
for name in low-0 low-1; do gone $name || { left=$((left + 1)); stays=$name; }; done
equals "$left" 1 "pods of low priority that stay"
victim=low-0; [ "$stays" != low-0 ] || victim=low-1
contains "$(event_of $victim Preempted)" "Preempted by pod" "event of the victim"
pod_phase_is "$stays" Running || fail "$stays does not run"

# A gang of three does not fit, whoever goes: nobody does. A gang of two takes what is left of lower priority, not its equals.
gang() { # gang NAME PODS
  kubectl apply -f - <<YAML
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {name: $1}
spec: {minMember: $2, priorityClassName: high}
YAML
  for i in $(seq "$2"); do pod "$1-$i" high 1 "scheduling.k8s.io/group-name: $1"; done
}
gang three 3
eventually 20 says three-1 "it does not fit even an empty cluster"
pod_phase_is "$stays" Running || fail "$stays went for a gang that never fits"
kubectl delete pod three-1 three-2 three-3 --wait >/dev/null
gang two 2
eventually 20 says two-1 "Insufficient nvidia.com/gpu"
pod_phase_is "$stays" Running || fail "$stays went for a gang that does not fit beside its equal"
kubectl delete pod urgent --wait >/dev/null
eventually 20 gone "$stays"
for name in two-1 two-2; do eventually 20 pod_phase_is $name Running; done
say "result: $victim went for urgent, $stays for the gang of two, nobody for Never or in vain"
