#!/usr/bin/env bash
# One master and three workers find each other and add up over torch.distributed; and a worker that dies is started again, its
# rank and all.
source "$(dirname "$0")/../lib.sh"
up_machine
SHARED=$SCRATCH/shared
mkdir -p "$SHARED" && chmod 777 "$SHARED"
pods="master-0 worker-0 worker-1 worker-2"
# Each resolves the master, whose name holds until it ends, and prints its rank; rank 2 dies once; the master ends after all.
role() { # role NAME REPLICAS
  cat <<YAML
    $1:
      replicas: $2
      restartPolicy: OnFailure
      template:
        spec:
          containers:
            - name: pytorch
              image: pytorch/pytorch:latest
              volumeMounts: [{name: shared, mountPath: /shared}]
              command:
                - sh
                - -c
                - |
                  until getent hosts \$MASTER_ADDR >/dev/null; do sleep 0.1; done
                  echo "rank \$RANK of \$WORLD_SIZE"
                  [ \$RANK != 2 ] || [ -e /shared/one ] || { touch /shared/one; exit 1; }
                  touch /shared/met-\$RANK
                  [ \$RANK != 0 ] || while [ "\$(ls /shared | grep -c met)" != 4 ]; do sleep 0.1; done
          volumes: [{name: shared, hostPath: {path: $SHARED, type: Directory}}]
YAML
}
{ printf 'apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: ranks}\nspec:\n  pytorchReplicaSpecs:\n'
  role Master 1; role Worker 3; } | kubectl apply -f -
eventually 60 job_is ranks Succeeded
for pod in $pods; do kubectl wait --for=jsonpath='{.status.phase}'=Succeeded "pod/ranks-$pod" --timeout=30s; done
rank=0
for pod in $pods; do
  contains "$(kubectl logs "ranks-$pod")" "rank $rank of 4" "what $pod printed"
  rank=$((rank + 1))
done
equals "$(jsonpath pod/ranks-worker-1 '.status.containerStatuses[0].restartCount')" 1 "restarts of the worker that died"

tools/probe python_torch || skip "ranks and restarts hold; python3-torch is not installed (tools/install-packages example)"
kubectl apply -f "$EXAMPLE"
eventually 90 job_is pytorch-training Succeeded
for pod in $pods; do contains "$(kubectl logs "pytorch-training-$pod")" "of 4: sum 6" "what $pod printed"; done
say "result: one master and three workers of torch.distributed added up"
