#!/usr/bin/env bash
# Part of tests/live/user.sh, as an ordinary user: exec, logs, Services, what a pod sees, crashes and restarts.
source "$(dirname "$0")/../lib.sh"
[ "$(id -u)" != 0 ] || fail "this test is for an ordinary user"
up

pod() { # pod NAME POLICY SCRIPT
  cat <<YAML
apiVersion: v1
kind: Pod
metadata: {name: $1, labels: {app: $1}}
spec:
  restartPolicy: $2
  containers:
    - name: main
      image: none
      command: ["sh", "-c", "$3"]
YAML
}
runs() { pod_phase_is "$1" Running; }
logged() { kubectl logs "$1" 2>/dev/null | grep -qx "$2"; }

say "== exec, logs, Services"
pod web Always "mkdir /srv/w && cd /srv/w && echo hello >index.html && exec python3 -m http.server 8000" | kubectl apply -f -
kubectl expose pod web --port=80 --target-port=8000 >/dev/null 2>&1 || cat <<YAML | kubectl apply -f -
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8000}]}
YAML
eventually 20 runs web
equals "$(kubectl exec web -- hostname)" web
equals "$(echo typed | kubectl exec -i web -- cat)" typed
pod client Never "python3 -c 'import urllib.request as r; print(r.urlopen(\\\"http://web\\\").read().decode().strip())'" |
  kubectl apply -f -
eventually 20 pod_phase_is client Succeeded
equals "$(kubectl logs client)" hello "through the Service"

say "== probes, which are asked from inside the node's network"
pod probed Always "cd /srv && exec python3 -m http.server 8001" |
  sed '/command:/a\      readinessProbe: {httpGet: {port: 8001, path: /}, periodSeconds: 1}' | kubectl apply -f -
ready() { [ "$(jsonpath pod/probed '.status.containerStatuses[0].ready')" = true ]; }
eventually 20 ready
kubectl delete pod probed --grace-period=1 --wait >/dev/null

say "== a volume of an NFS server, which only the machine's root may mount"
kubectl apply -f - <<YAML
apiVersion: v1
kind: Pod
metadata: {name: filed}
spec:
  volumes: [{name: v, nfs: {server: files.example, path: /export}}]
  containers: [{name: main, image: none, command: [sleep, "1000"], volumeMounts: [{name: v, mountPath: /data}]}]
YAML
says_why() {
  contains "$(kubectl get events --field-selector involvedObject.name=filed,reason=FailedMount -o 'jsonpath={.items[*].message}')" \
    'MountVolume.SetUp failed for volume "v" : the node of an ordinary user cannot mount NFS'
}
eventually 20 says_why
kubectl delete pod filed >/dev/null

say "== what a pod sees"
echo "my secret" >"$HOME/secret"
chmod 644 "$HOME/secret"
mkdir -p "$SCRATCH/open" && echo "open secret" >"$SCRATCH/open/for-all"
kubectl create secret generic other --from-literal=key=other-pod-secret >/dev/null
canary=canary-${SCRATCH##*/} # not that of a test beside this one
attack=$(kubectl exec web -- sh -c "
  for d in / /etc /usr /usr/bin /var /var/lib /opt /boot /root /home /tmp /run /sys /proc/sys/kernel; do
    echo pwned >\$d/$canary 2>/dev/null
  done
  rm -rf /usr/share/doc /etc/apt 2>/dev/null
  cat '$HOME/secret' '$DATA/kubeconfig' 2>/dev/null && echo LEAK: home
  ls '$DATA' 2>/dev/null | sed 's/^/LEAK: data directory /'
  cat /proc/1/root/'$HOME/secret' 2>/dev/null && echo LEAK: through /proc/1/root
  mount -o remount,rw / 2>/dev/null && echo LEAK: remounted /
  mount -t tmpfs x /mnt 2>/dev/null && echo LEAK: mounted
  unshare -Ur true 2>/dev/null && echo LEAK: a user namespace
  echo 1 >/proc/sys/kernel/panic 2>/dev/null && echo LEAK: sysctl
  ls /proc | grep -c '^[0-9]' | awk '\$1 > 8 { print \"LEAK: \" \$1 \" processes visible\" }'
  grep -s . /sys/firmware/* /proc/kcore /proc/keys 2>/dev/null | head -n 1 | sed 's/^/LEAK: /'
  kill -9 -1 2>/dev/null
  echo done" 2>/dev/null)
equals "$attack" done "what the attack found"
equals "$(find / -xdev -name "$canary" -not -path "$SCRATCH/*" 2>/dev/null || true)" "" "files outside"
test -d /etc/apt || fail "/etc/apt is gone"
pod guarded Never "exit 0" | sed 's/image: none/&\n      securityContext: {readOnlyRootFilesystem: true}/; s/exit 0/for d in \/ \/usr \/etc; do touch $d\/x \&\& echo wrote; done; true/' |
  kubectl apply -f -
eventually 20 pod_phase_is guarded Succeeded
contains "$(kubectl logs guarded)" "Read-only file system" "readOnlyRootFilesystem"
[[ "$(kubectl logs guarded)" != *wrote* ]] || fail "readOnlyRootFilesystem: $(kubectl logs guarded)"

say "== the control plane dies"
pod ticker Never "for i in \$(seq 1 40); do echo tick \$i; sleep 0.1; done" | kubectl apply -f -
eventually 20 logged ticker "tick 3"
before=$(jsonpath pod/ticker .metadata.uid)
kill -9 "$(control_plane_pid)"
up >/dev/null
eventually 30 pod_phase_is ticker Succeeded
equals "$(jsonpath pod/ticker .metadata.uid)" "$before" "the pod is the same one"
equals "$(jsonpath pod/ticker '.status.containerStatuses[0].restartCount')" 0 restarts
equals "$(kubectl logs ticker)" "$(seq -f 'tick %g' 40)" "the log is whole"

say "== everything dies"
uid=$(id -u)
pkill -9 -u "$uid" '^muster'
up >/dev/null
# The status is that of the time before until the agent has looked.
restarted() { [ "$(jsonpath pod/web '.status.containerStatuses[0].restartCount')" -ge "$1" ]; }
eventually 60 restarted 1
eventually 30 runs web
pod again Never "python3 -c 'import urllib.request as r; print(r.urlopen(\\\"http://web\\\").read().decode().strip())'" |
  kubectl apply -f -
eventually 30 pod_phase_is again Succeeded
equals "$(kubectl logs again)" hello "through the Service, after everything was killed"

say "== the holder of the namespaces and the control plane die, the pods do not"
pkill -9 -u "$uid" '^muster(-node|-spawner)?$'
up >/dev/null
eventually 60 restarted 2
eventually 30 runs web

say "== down"
"$MUSTER" down --data-dir "$DATA"
equals "$(pgrep -u "$uid" -a muster || true)" "" "processes after down"
up >/dev/null
eventually 60 runs web
pkill -9 -u "$uid" '^muster'
"$MUSTER" down --purge --data-dir "$DATA"
[ ! -e "$DATA" ] || fail "$DATA is still there: $(find "$DATA")"
say "result: an ordinary user's pods are isolated, outlive the control plane, and restart after everything was killed"
