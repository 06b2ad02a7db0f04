# Pods with one volume, for the tests of volumes. Source it after lib.sh.

# pod NAME VOLUME COMMAND [MORE_OF_MOUNT] [MORE_OF_SPEC]; VOLUME: the name of a claim, or "nfs: {...}" and the like
pod() {
  local volume=$2
  [[ $volume == *:* ]] || volume="persistentVolumeClaim: {claimName: $2}"
  kubectl apply -f - >/dev/null <<YAML
apiVersion: v1
kind: Pod
metadata: {name: $1}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  ${5:-}
  volumes: [{name: v, $volume}]
  containers:
    - name: main
      image: none
      command: [sh, -c, '$3']
      volumeMounts: [{name: v, mountPath: /data${4:-}}]
YAML
}
# runs, as pod: to its end; says what it printed
runs() {
  pod "$@"
  kubectl wait --for=jsonpath='{.status.phase}'=Succeeded "pod/$1" --timeout=60s >/dev/null ||
    fail "pod $1: $(kubectl get pod "$1" -o jsonpath='{.status}') $(kubectl logs "$1" 2>&1)"
  kubectl logs "$1"
}
# waits POD TEXT: with that event, and nothing of it runs
waits() {
  shows "$2" events_of "$1" FailedMount
  equals "$(jsonpath "pod/$1" .status.phase)" Pending "phase of $1"
  equals "$(jsonpath "pod/$1" '.status.containerStatuses[0].state.waiting.reason')" ContainerCreating "state of $1"
}
is_gone() { local found; found=$(kubectl get "$1" --ignore-not-found -o name) && [ -z "$found" ]; }
has_file() { [ -e "$1" ]; }
has_no_file() { [ ! -e "$1" ]; }
