#!/usr/bin/env bash
# Memory runs out: of the container, by its limit, and of the GPU, by what PyTorch says in the log. muster explain says which, and what
# would help.
source "$(dirname "$0")/../lib.sh"
up_machine
explained() { contains "$("$MUSTER" explain "$1" "$2")" "$3" "muster explain"; }
kubectl apply -f "$EXAMPLE"
eventually 60 explained pod out-of-memory "container trainer of out-of-memory reached its memory limit of 128Mi (OOMKilled"
explained pod out-of-memory "raise resources.limits.memory, or use less: a smaller batch, gradient checkpointing, mixed precision"
kubectl apply -f - <<YAML
apiVersion: batch/v1
kind: Job
metadata: {name: gpu}
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: trainer
          image: pytorch/pytorch:latest
          command: [python, -c, "raise SystemExit('RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 39.59 GiB total capacity)')"]
YAML
eventually 60 explained job gpu "the memory of its GPU ran out; use less:"
explained job gpu "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True against fragmentation"
say "result: memory that ran out, of a container and of a GPU"
