#!/usr/bin/env bash
# Issue 2, shown by 4: nothing is lost when the control plane, a rank, or everything is killed.
source "$(dirname "$0")/lib.sh"
up

ticker() { # ticker NAME RESTART_POLICY: prints 1..40, ten lines a second
  cat <<YAML
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: $1}
spec:
  runPolicy: {cleanPodPolicy: None, backoffLimit: 3}
  pytorchReplicaSpecs:
    Worker:
      replicas: 2
      restartPolicy: $2
      template:
        spec:
          containers:
            - name: pytorch
              image: none
              command: ["python3", "-uc", "import time\nfor i in range(1, 41):\n    print('tick', i)\n    time.sleep(0.1)"]
YAML
}
logged() { kubectl logs "$1" 2>/dev/null | grep -qx "tick $2"; }
whole_log() { # every line once, in order
  kubectl logs "$1" | grep '^tick' | awk '{ if ($2 != NR) exit 1 } END { if (NR != 40) exit 1 }'
}

say "== the control plane dies during a job"
ticker one OnFailure | kubectl apply -f -
eventually 20 logged one-worker-0 3
before=$(jsonpath pod/one-worker-0 .metadata.uid)
kill -9 "$(control_plane_pid)"
start=$(date +%s%N)
up >"$SCRATCH/up.out"
took_ms=$((($(date +%s%N) - start) / 1000000))
cat "$SCRATCH/up.out"
kubectl wait --for=condition=Succeeded pytorchjob/one --timeout=60s
equals "$(jsonpath pod/one-worker-0 .metadata.uid)" "$before" "the pod is the same one"
equals "$(jsonpath pod/one-worker-0 '.status.containerStatuses[0].restartCount')" 0 "restarts"
whole_log one-worker-0 || fail "log lines are missing or doubled: $(kubectl logs one-worker-0)"
whole_log one-worker-1 || fail "log lines are missing or doubled: $(kubectl logs one-worker-1)"
say "result: kill -9 of the control plane: ready again after $took_ms ms, both logs whole"

say "== one rank is killed"
ticker two OnFailure | kubectl apply -f -
eventually 20 logged two-worker-1 2
pkill -9 -f "range\\(1, 41\\)" -n || fail "no rank to kill"
kubectl wait --for=condition=Succeeded pytorchjob/two --timeout=90s
ticker three Never | kubectl apply -f -
eventually 20 logged three-worker-1 2
pkill -9 -f "range\\(1, 41\\)" -n || fail "no rank to kill"
kubectl wait --for=condition=Failed pytorchjob/three --timeout=60s
say "result: kill -9 of a rank: OnFailure recovers, Never fails the job"

say "== everything is killed"
kubectl create configmap kept --from-literal=a=1
ticker four OnFailure | kubectl apply -f -
eventually 20 logged four-worker-1 3
pkill -9 -x muster || true
pkill -9 -f "range\\(1, 41\\)" || true
up
equals "$(jsonpath configmap/kept .data.a)" 1 "the state"
kubectl wait --for=condition=Succeeded pytorchjob/four --timeout=90s
say "result: kill -9 of everything: state intact, the job ended Succeeded after restarts"

say "== down and up: a node's name, restart counts and logs go on"
kubectl apply -f - <<'YAML'
apiVersion: v1
kind: Pod
metadata: {name: again}
spec:
  containers:
    - name: main
      image: none
      command: ["sh", "-c", "n=$(($(cat /e/n 2>/dev/null || echo 0) + 1)); echo $n > /e/n; echo run $n; [ $n = 1 ] && exit 3; exec sleep 1000"]
      volumeMounts: [{name: e, mountPath: /e}]
  volumes: [{name: e, emptyDir: {}}]
YAML
restarts_of_again() { [ "$(jsonpath pod/again '.status.containerStatuses[0].restartCount')" = "$1" ] && [ "$(kubectl logs again)" = "run $(($1 + 1))" ]; }
eventually 20 restarts_of_again 1
"$MUSTER" down --data-dir "$DATA"
refused=$(up --node-name other 2>&1) && fail "up with another --node-name: $refused"
contains "$refused" "the node of $DATA is $(hostname | tr '[:upper:]' '[:lower:]')"
up
eventually 20 restarts_of_again 2
equals "$(kubectl logs --previous again)" "run 2" "logs --previous"
say "result: down and up: restart counts, logs and the node's name go on"
