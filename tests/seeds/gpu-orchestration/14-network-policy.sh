#!/usr/bin/env bash
# Pods labelled gpu=enabled are reached by the coordinator and by nobody else; the policy goes and they are open again.
source "$(dirname "$0")/../lib.sh"
up_machine
pod() { # pod NAME LABEL PROGRAM
  cat <<YAML
---
apiVersion: v1
kind: Pod
metadata: {name: $1, labels: {$2}}
spec:
  terminationGracePeriodSeconds: 0
  containers: [{name: main, image: "pytorch/pytorch:latest", command: [$3]}]
YAML
}
server='python, -m, http.server, "8080"' client='sleep, "1000"'
{ pod worker "gpu: enabled" "$server"; pod other "app: web" "$server"; pod coordinator "role: training-coordinator" "$client"
  pod stranger "role: visitor" "$client"; } | kubectl apply -f - >/dev/null
for name in worker other coordinator stranger; do eventually 20 pod_phase_is $name Running; done
# A pod without requests has the least share of a busy processor: what is allowed has its time, what is not is given up soon.
connects() { # connects FROM TO SECONDS
  kubectl exec "$1" -- timeout "$3" bash -c "exec 3<>/dev/tcp/$(jsonpath "pod/$2" .status.podIP)/8080" 2>/dev/null
}
reaches() { connects "$@" 10; }
cut_off() { ! connects "$@" 1; }
for from in coordinator stranger; do for to in worker other; do eventually 20 reaches $from $to; done; done
kubectl apply -f "$EXAMPLE"
eventually 30 cut_off stranger worker
# A connection may also fail because the machine is busy, so those that are allowed are tried again.
eventually 30 reaches coordinator worker
eventually 30 reaches stranger other
for _ in 1 2 3; do cut_off stranger worker || fail "a stranger came in"; done
kubectl delete -f "$EXAMPLE"
eventually 30 reaches stranger worker
