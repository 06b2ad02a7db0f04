#!/usr/bin/env bash
# The claim is bound when its first pod comes, what that wrote outlives it, and the next pod reads it.
source "$(dirname "$0")/../lib.sh"
up_machine
kubectl apply -f "$EXAMPLE"
eventually 20 pod_phase_is writer Succeeded
equals "$(jsonpath pvc/training-data .status.phase)" Bound "claim"
equals "$(jsonpath pvc/training-data .status.capacity.storage)" 100Gi "capacity"
kubectl delete pod writer --wait >/dev/null
sed -n '/^kind: Pod/,$p' "$EXAMPLE" | sed '1i apiVersion: v1' | sed 's/writer/reader/; s/echo samples >/cat /' | kubectl apply -f -
eventually 20 pod_phase_is reader Succeeded
equals "$(kubectl logs reader)" samples "what the next pod read"
