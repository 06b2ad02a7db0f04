#!/usr/bin/env bash
# Issue 6: what a pod that is not root can do: fsGroup on all kinds of volumes, further groups, a database's claim, port 80.
source "$(dirname "$0")/lib.sh"
up

kubectl create secret generic key --from-literal=key=secret >/dev/null
kubectl apply -f - >/dev/null <<'YAML'
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: first}
spec:
  restartPolicy: Never
  securityContext: {runAsUser: 1000, runAsGroup: 1000, fsGroup: 2000, supplementalGroups: [3000]}
  volumes:
    - {name: data, persistentVolumeClaim: {claimName: data}}
    - {name: disk, emptyDir: {}}
    - {name: memory, emptyDir: {medium: Memory}}
    - {name: key, secret: {secretName: key, defaultMode: 0400}}
  containers:
    - name: main
      image: none
      command:
        - sh
        - -euc
        - |
          id -u; id -g; id -G
          cat /key/key; echo
          for folder in /data /disk /memory; do
            mkdir "$folder/own"
            echo x >"$folder/own/file"
            stat -c '%g %A' "$folder" "$folder/own"
            stat -c %g "$folder/own/file"
          done
          chmod 600 /data/own/file
          stat -c '%g %A' /inner; touch /inner/file
          touch /key/more 2>/dev/null || echo closed
          python3 -c 'import socket; socket.socket().bind(("", 80)); print("port 80")'
          sleep 1000
      volumeMounts: [{name: data, mountPath: /data}, {name: disk, mountPath: /disk},
        {name: data, mountPath: /inner, subPath: deep/inner}, {name: memory, mountPath: /memory}, {name: key, mountPath: /key}]
YAML
runs() { [ "$(jsonpath pod/first .status.phase)" = Running ] && [ "$(kubectl logs first | wc -l)" = 16 ]; }
eventually 40 runs
expected='1000
1000
1000 2000 3000
secret'
for _ in 1 2 3; do expected+=$'\n2000 drwxrwsrwx\n2000 drwxr-sr-x\n2000'; done
expected+=$'\n2000 drwxrwsrwx\nclosed\nport 80' # a subPath's folder is like its volume; a secret is for reading; a user may serve
equals "$(kubectl logs first)" "$expected" "what the pod sees"
equals "$(kubectl exec first -- id -G)" "1000 2000 3000" "the groups of exec"
kubectl delete pod first --grace-period=1 >/dev/null

# Another user of the same group finds the claim's files usable, also those that were closed to the group.
kubectl apply -f - >/dev/null <<'YAML'
apiVersion: v1
kind: Pod
metadata: {name: second}
spec:
  restartPolicy: Never
  securityContext: {runAsUser: 1001, runAsGroup: 1001, fsGroup: 2000}
  volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
  containers:
    - {name: main, image: none, command: [sh, -c, 'echo y >>/data/own/file && cat /data/own/file'], volumeMounts: [{name: data, mountPath: /data}]}
YAML
kubectl wait --for=jsonpath='{.status.phase}'=Succeeded pod/second --timeout=40s >/dev/null
equals "$(kubectl logs second)" $'x\ny' "what the second pod reads"
say "result: fsGroup and further groups: claims, emptyDirs on disk and in memory, secrets, exec"
