#!/usr/bin/env bash
# Part of tests/live/user.sh, as an ordinary user: quickstart, and two PyTorchJobs at once on the same port.
source "$(dirname "$0")/../lib.sh"
source tests/live/user/rendezvous.sh
[ "$(id -u)" != 0 ] || fail "this test is for an ordinary user"

start=$SECONDS
MUSTER_DATA_DIR=$DATA ./quickstart >"$SCRATCH/quickstart.out" || fail "quickstart: $(cat "$SCRATCH/quickstart.out")"
took=$((SECONDS - start))
contains "$(cat "$SCRATCH/quickstart.out")" "final test accuracy 0.9" "training log"
contains "$(cat "$SCRATCH/quickstart.out")" "What you could try next" "last words"
equals "$(stat -c %a "$DATA" "$DATA/kubeconfig" | tr '\n' ' ')" "700 600 " "modes"

# The master of each job listens on its port, and goes on when both have been reached by their worker.
mkdir -m 777 "$SCRATCH/gate"
kubectl create configmap rendezvous --from-file=tests/live/user/rendezvous.py >/dev/null
for name in one two; do
  rendezvous_job $name /script/rendezvous.py /gate \
    "volumeMounts: [{name: script, mountPath: /script}, {name: gate, mountPath: /gate}]" \
    "volumes: [{name: script, configMap: {name: rendezvous}}, {name: gate, hostPath: {path: $SCRATCH/gate}}]" |
    kubectl apply -f - >/dev/null
done
for name in one two; do
  kubectl wait --for=condition=Succeeded "pytorchjob/$name" --timeout=60s >/dev/null ||
    fail "job $name: $(kubectl describe pods)"
  equals "$(kubectl logs "$name-master-0")" "served port 23456"
  equals "$(kubectl logs "$name-worker-0")" "hello from $name-master-0"
done

# Pods of his reach the API server by its name, too: translation and the listener work in his network.
kubectl apply -f - >/dev/null <<'YAML'
apiVersion: v1
kind: Pod
metadata: {name: api}
spec:
  restartPolicy: Never
  volumes: [{name: ca, configMap: {name: kube-root-ca.crt}}]
  containers:
    - name: main
      image: none
      volumeMounts: [{name: ca, mountPath: /ca}]
      command:
        - python3
        - -c
        - |
          import ssl, urllib.request
          context = ssl.create_default_context(cafile="/ca/ca.crt")
          print(urllib.request.urlopen("https://kubernetes.default.svc/readyz", context=context, timeout=20).status)
YAML
kubectl wait --for=jsonpath='{.status.phase}'=Succeeded pod/api --timeout=60s >/dev/null ||
  fail "kubernetes.default: $(kubectl logs api; kubectl describe pod api)"
equals "$(kubectl logs api)" 200 "the API server, from a pod"

"$MUSTER" down --purge --data-dir "$DATA"
[ ! -e "$DATA" ] || fail "$DATA is still there: $(find "$DATA")"
say "result: an ordinary user: quickstart $took s, two jobs at once on port 23456"
