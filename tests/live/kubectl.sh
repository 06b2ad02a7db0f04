#!/usr/bin/env bash
# Issue 2, shown by 2: stock kubectl 1.32. Every command's exit code, the object on the server and the table cells are
# asserted; nothing may go to stderr.
source "$(dirname "$0")/lib.sh"
[ -x "$KUBECTL_DIR/kubectl" ] || skip "no kubectl: run tests/tools/fetch-kubectl"
up --simulate-gpus 2
NODE=$(kubectl get nodes -o name | sed 's|node/||')
COUNT=$SCRATCH/commands

k() { # k ARGUMENTS...: output on stdout; fails on a wrong exit code or on anything on stderr
  echo >>"$COUNT"
  local output status=0
  output=$(kubectl "$@" 2>"$SCRATCH/stderr") || status=$?
  [ $status = 0 ] || fail "kubectl $* -> exit $status: $(cat "$SCRATCH/stderr") $output"
  [ ! -s "$SCRATCH/stderr" ] || fail "kubectl $* wrote to stderr: $(cat "$SCRATCH/stderr")"
  printf '%s\n' "$output"
}
refused() { # refused TEXT ARGUMENTS...
  local text=$1 output status=0
  shift
  echo >>"$COUNT"
  output=$(kubectl "$@" 2>&1) || status=$?
  [ $status != 0 ] || fail "kubectl $* should have failed: $output"
  contains "$output" "$text" "kubectl $*"
}

contains "$(k version)" "Server Version: v1.32" version
resources=$(k api-resources)
for line in 'pods +po +v1 +true +Pod' 'pytorchjobs +kubeflow.org/v1 +true +PyTorchJob' \
  'podgroups +.*scheduling.volcano.sh/v1beta1 +true +PodGroup' 'endpointslices +discovery.k8s.io/v1 +true +EndpointSlice'; do
  grep -qE "^$line" <<<"$resources" || fail "api-resources has no '$line': $resources"
done
explain=$(k explain pod.spec.containers)
contains "$explain" "KIND:       Pod" explain
contains "$explain" "FIELD: containers <[]Container>" explain
contains "$explain" "command" explain
contains "$(k explain pytorchjob.spec.runPolicy)" "backoffLimit" "explain of a custom kind"

equals "$(k create namespace team-a)" "namespace/team-a created"
equals "$(k create configmap settings --from-literal=lr=0.1 -n team-a)" "configmap/settings created"
equals "$(k create secret generic token --from-literal=key=s3cret -n team-a)" "secret/token created"
equals "$(k get configmap settings -n team-a -o 'jsonpath={.data.lr}')" 0.1
equals "$(k get secret token -n team-a -o 'jsonpath={.data.key}')" "$(printf s3cret | base64)"
refused 'namespaces "team-a" already exists' create namespace team-a
refused 'pods "nope" not found' get pod nope
refused 'namespaces "nowhere" not found' create configmap x --from-literal=a=b -n nowhere

cat >"$SCRATCH/pod.yaml" <<YAML
apiVersion: v1
kind: Pod
metadata: {name: hello, labels: {app: hello}}
spec:
  restartPolicy: Never
  containers:
    - name: main
      image: none
      command: ["sh", "-c", "echo hello; while [ ! -e /gate/open ]; do sleep 0.1; done; echo bye"]
      volumeMounts: [{name: gate, mountPath: /gate}]
  volumes: [{name: gate, hostPath: {path: $SCRATCH/gate, type: Directory}}]
YAML
mkdir -p "$SCRATCH/gate"
sed 's/restartPolicy/restartPolicyy/' "$SCRATCH/pod.yaml" >"$SCRATCH/bad.yaml"
refused 'unknown field "spec.restartPolicyy"' apply -f "$SCRATCH/bad.yaml"
sed 's/restartPolicy: Never/restartPolicy: Sometimes/' "$SCRATCH/pod.yaml" >"$SCRATCH/bad.yaml"
refused 'spec.restartPolicy: Unsupported value: "Sometimes"' apply -f "$SCRATCH/bad.yaml"
# kubectl asks for /openapi/v2 only here; unknown fields are then found by the server.
list() { # list KEY: a list of one ConfigMap
  printf 'apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, '
  printf 'metadata: {name: listed}, %s: {a: b}}\n' "$1"
}
list data >"$SCRATCH/list.yaml"
equals "$(k apply -f "$SCRATCH/list.yaml")" "configmap/listed created"
list dota >"$SCRATCH/bad.yaml"
refused 'unknown field "dota"' apply -f "$SCRATCH/bad.yaml"
equals "$(k apply -f "$SCRATCH/pod.yaml")" "pod/hello created"
# kubectl sends the order of the lists that are longer than the file says: the pod has the volume with its token, too.
spec_of_hello() { k get pod hello -o json | jq -S 'del(.spec.nodeName).spec'; }
spec=$(spec_of_hello)
contains "$spec" kube-api-access- "the volume with the token"
equals "$(k apply -f "$SCRATCH/pod.yaml")" "pod/hello configured"
equals "$(spec_of_hello)" "$spec" "the pod after the second apply"
kubectl get pods -w --no-headers >"$SCRATCH/watch.out" 2>"$SCRATCH/watch.err" &
WATCH=$!
eventually 20 pod_phase_is hello Running
cells=$(k get pod hello --no-headers -o wide)
read -r name ready status restarts age ip node nominated gates <<<"$cells"
equals "$name $ready $status $restarts $node $nominated $gates" "hello 1/1 Running 0 $NODE <none> <none>" "table cells"
[[ $age =~ ^[0-9]+s$ ]] || fail "AGE '$age'"
equals "$ip" "$(jsonpath pod/hello .status.podIP)" "IP cell"
equals "$(k get pods -o name -l app=hello)" "pod/hello"
equals "$(k get pods -o name -l 'app in (other)')" ""
equals "$(k get pods -o name --field-selector=status.phase=Running,spec.nodeName=$NODE)" "pod/hello"
contains "$(k get pod hello -o yaml)" "kind: Pod" "-o yaml"
equals "$(k get pod hello -o json | jq -r .spec.schedulerName)" default-scheduler
contains "$(k get pods -A --sort-by=.metadata.name)" hello "--sort-by"
shows "Started" k describe pod hello
shows "nvidia.com/gpu" k describe node "$NODE"
equals "$(k label pod hello tier=front)" "pod/hello labeled"
equals "$(k annotate pod hello note=x)" "pod/hello annotated"
equals "$(jsonpath pod/hello '.metadata.labels.tier}{.metadata.annotations.note')" "frontx"
equals "$(k patch configmap settings -n team-a --type=strategic -p '{"data":{"b":"2"}}')" "configmap/settings patched"
equals "$(k patch configmap settings -n team-a --type=merge -p '{"data":{"b":null,"c":"3"}}')" "configmap/settings patched"
equals "$(k patch configmap settings -n team-a --type=json -p '[{"op":"replace","path":"/data/c","value":"4"}]')" "configmap/settings patched"
equals "$(k get configmap settings -n team-a -o json | jq -c .data)" '{"c":"4","lr":"0.1"}'

# What is not served says what to use instead.
refused 'port-forward is not served yet: reach the pod at its address' port-forward pod/hello 8080:80
refused 'attach is not served yet: kubectl logs -f shows' attach hello
refused 'are not served yet: kubectl exec -it starts a shell' debug hello --image=busybox

kubectl logs -f hello >"$SCRATCH/logs.out" 2>"$SCRATCH/stderr" &
FOLLOW=$!
touch "$SCRATCH/gate/open"
wait $FOLLOW
equals "$(tr '\n' ' ' <"$SCRATCH/logs.out")" "hello bye " "logs -f"
eventually 20 pod_phase_is hello Succeeded
equals "$(k get pod hello --no-headers | awk '{print $2, $3}')" "0/1 Completed" "table cells at the end"
shows Completed cat "$SCRATCH/watch.out"
kill $WATCH
wait $WATCH 2>/dev/null || true
contains "$(cat "$SCRATCH/watch.out")" Running "get -w"
[ ! -s "$SCRATCH/watch.err" ] || fail "get -w wrote to stderr: $(cat "$SCRATCH/watch.err")"

k create -f examples/pytorchjob-ddp.yaml >/dev/null
contains "$(k wait --for=condition=Succeeded pytorchjob/digits --timeout=120s)" "condition met"
contains "$(k get pytorchjobs --no-headers)" "Succeeded" "printer column"
shows "PyTorchJobSucceeded" k describe pytorchjob digits
contains "$(k delete pytorchjob digits --cascade=foreground)" "deleted"
gone() { [ -z "$(kubectl get pods,services,podgroups -l training.kubeflow.org/job-name=digits -o name)" ]; }
eventually 30 gone
equals "$(k delete pod hello)" 'pod "hello" deleted'
# A finalizer that nobody takes off: the namespace says what it waits for, and goes when it is off.
k create configmap held -n team-a --from-literal=a=b >/dev/null
k patch configmap held -n team-a --type=merge -p '{"metadata": {"finalizers": ["example.com/held"]}}' >/dev/null
contains "$(k delete namespace team-a --wait=false)" "deleted"
says_why() { contains "$(kubectl describe namespace team-a)" "example.com/held in 1 resource instances"; }
eventually 20 says_why
k patch configmap held -n team-a --type=merge -p '{"metadata": {"finalizers": null}}' >/dev/null
k wait --for=delete namespace/team-a --timeout=20s >/dev/null
refused 'not found' get namespace team-a
say "result: stock kubectl $(kubectl version -o json --client | jq -r .clientVersion.gitVersion): $(wc -l <"$COUNT") commands, exit codes, objects, cells as expected, stderr empty"
