#!/usr/bin/env bash
# The article's list of all images that run, to be scanned.
source "$(dirname "$0")/../lib.sh"
up_machine --simulate-nodes 1
for name in a b; do kubectl run $name --image=pytorch/pytorch:latest -- sleep 1000; done
kubectl run c --image=busybox -- sleep 1000
equals "$(kubectl get pods -o json | jq '.items[].spec.containers[].image' | sort -u | xargs)" "busybox pytorch/pytorch:latest" "images"
