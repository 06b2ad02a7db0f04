#!/usr/bin/env bash
# Issue 7: an MPIJob of kubeflow.org/v1: real OpenMPI computes pi with two workers of two ranks each. mpirun starts them
# by kubectl exec, through the API server, with an account that may do nothing else.
source "$(dirname "$0")/lib.sh"
command -v mpirun >/dev/null || skip "no openmpi-bin"
/usr/bin/python3 -c 'import mpi4py' 2>/dev/null || skip "no python3-mpi4py"
[ -x "$KUBECTL_DIR/kubectl" ] || skip "no kubectl: run tests/tools/fetch-kubectl"
up
SHARED=$SCRATCH/shared
mkdir -p "$SHARED" && chmod 755 "$SHARED"
cp "$(readlink -f "$KUBECTL_DIR/kubectl")" "$SHARED/kubectl"
cp tests/live/mpi/pi.py "$SHARED"
job() { # job NAME COMMAND [MORE-OF-THE-LAUNCHER]
  cat <<YAML
apiVersion: kubeflow.org/v1
kind: MPIJob
metadata: {name: $1}
spec:
  slotsPerWorker: 2
  runPolicy: {cleanPodPolicy: Running}
  mpiReplicaSpecs:
    Launcher:
      replicas: 1
      template:
        spec:
          ${3-}
          containers: [{name: mpi, image: none, command: [sh, -c, '$2']}]
    Worker:
      replicas: 2
      template:
        spec:
          terminationGracePeriodSeconds: 1
          containers:
            - name: mpi
              image: none
              volumeMounts: [{name: shared, mountPath: /shared}]
          volumes: [{name: shared, hostPath: {path: $SHARED, type: Directory}}]
YAML
}
# A launcher that brings kubectl, as one with an image would.
BRINGS="initContainers: [{name: kubectl-delivery, image: none, command: [cp, /shared/kubectl, /opt/kube/kubectl],
            volumeMounts: [{name: shared, mountPath: /shared}]}]
          volumes: [{name: shared, hostPath: {path: $SHARED, type: Directory}}]"

job pi 'mpirun --allow-run-as-root -np 4 --oversubscribe python3 /shared/pi.py' "$BRINGS" | kubectl apply -f -
kubectl wait --for=condition=Succeeded mpijob/pi --timeout=90s
said=$(kubectl logs pi-launcher)
contains "$said" "pi is 3.141593, by 4 ranks on ['pi-worker-0', 'pi-worker-0', 'pi-worker-1', 'pi-worker-1']" "the launcher"
equals "$(kubectl get configmap pi-config -o 'jsonpath={.data.hostfile}')" $'pi-worker-0 slots=2\npi-worker-1 slots=2' hostfile
kubectl wait --for=delete pod/pi-worker-0 pod/pi-worker-1 --timeout=30s
contains "$(kubectl get mpijobs --no-headers)" "Succeeded" "printer column"
contains "$("$MUSTER" explain job pi)" "MPIJob pi succeeded" "muster explain job"
can() { kubectl auth can-i "$@" --as=system:serviceaccount:default:pi-launcher || true; }
equals "$(can create pods/pi-worker-0 --subresource=exec) $(can create pods/other --subresource=exec) $(can delete pods)" \
  "yes no no" "what the launcher may do"

# A rank that fails is the job's failure.
job bad 'mpirun --allow-run-as-root -np 2 --oversubscribe false' "$BRINGS" | kubectl apply -f -
kubectl wait --for=condition=Failed mpijob/bad --timeout=90s

# Without, it is the node's kubectl; a node that has none says so.
PI='mpirun --allow-run-as-root -np 2 --oversubscribe python3 /shared/pi.py'
job plain "$PI" | kubectl apply -f -
if env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin sh -c 'command -v kubectl' >/dev/null; then
  kubectl wait --for=condition=Succeeded mpijob/plain --timeout=90s
  contains "$(kubectl logs plain-launcher 2>/dev/null)" "by 2 ranks" "the launcher with the node's kubectl"
else
  kubectl wait --for=condition=Failed mpijob/plain --timeout=60s
  contains "$("$MUSTER" explain job plain)" "this node has no kubectl" "muster explain job"
fi
say "result: $(grep '^pi is' <<<"$said")"
