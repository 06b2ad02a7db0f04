#!/usr/bin/env bash
# Issue 2, shown by 5: a pod that writes everywhere it can and reads what it can changes nothing and learns nothing.
source "$(dirname "$0")/lib.sh"
up
echo "host secret" >/root/.muster-isolation-secret
kubectl create secret generic other --from-literal=key=other-pod-secret
cat <<YAML | kubectl apply -f -
apiVersion: v1
kind: Pod
metadata: {name: neighbour}
spec:
  restartPolicy: Never
  containers:
    - name: main
      image: none
      command: ["sleep", "300"]
      volumeMounts: [{name: s, mountPath: /secret}]
  volumes: [{name: s, secret: {secretName: other}}]
YAML
eventually 20 pod_phase_is neighbour Running
touch "$SCRATCH/mark"
cat >"$SCRATCH/attack.sh" <<'ATTACK'
set +e
for d in / /etc /usr /usr/bin /usr/lib /var /var/lib /opt /srv /mnt /boot /bin /root /home /tmp /run /dev/shm /sys /sys/fs/cgroup /proc/sys/kernel; do
  echo pwned > "$d/muster-isolation-canary" 2>/dev/null
done
echo pwned >> /etc/passwd
echo pwned >> /etc/hostname
rm -rf /usr/share/doc /etc/apt 2>/dev/null
chmod 777 /etc/shadow 2>/dev/null
mount -o remount,rw / 2>/dev/null && echo "LEAK: remounted /"
mknod /tmp/disk b 254 0 2>/dev/null && dd if=/tmp/disk of=/dev/null count=1 2>/dev/null && echo "LEAK: raw disk"
echo 1 > /proc/sys/kernel/panic 2>/dev/null && echo "LEAK: sysctl"
echo b > /proc/sysrq-trigger 2>/dev/null && echo "LEAK: sysrq"
find / -xdev -name 'muster.db*' 2>/dev/null | sed 's/^/LEAK: store /'
find / -name 'ca.key' -path '*pki*' 2>/dev/null | sed 's/^/LEAK: key /'
grep -rs other-pod-secret /run /tmp /var /mnt /srv DATA_DIR 2>/dev/null | sed 's/^/LEAK: secret /'
ls DATA_DIR 2>/dev/null | sed 's/^/LEAK: data directory /'
cat /root/.muster-isolation-secret 2>/dev/null && echo "LEAK: /root"
ls /proc | grep -c '^[0-9]' | awk '$1 > 12 { print "LEAK: " $1 " processes visible" }'
cat /proc/1/root/root/.muster-isolation-secret 2>/dev/null && echo "LEAK: through /proc/1/root"
kill -9 -1 2>/dev/null
echo done
ATTACK
sed -i "s|DATA_DIR|$DATA|g" "$SCRATCH/attack.sh"
kubectl create configmap attack --from-file="$SCRATCH/attack.sh"
cat <<YAML | kubectl apply -f -
apiVersion: v1
kind: Pod
metadata: {name: attacker}
spec:
  restartPolicy: Never
  containers:
    - name: main
      image: none
      command: ["sh", "/attack/attack.sh"]
      volumeMounts: [{name: a, mountPath: /attack}]
  volumes: [{name: a, configMap: {name: attack}}]
YAML
ended() { pod_phase_is attacker Succeeded || pod_phase_is attacker Failed; }
eventually 120 ended
kubectl logs attacker >"$SCRATCH/attacker.log"
cat "$SCRATCH/attacker.log"
contains "$(cat "$SCRATCH/attacker.log")" done "the attack ran to its end"
if grep LEAK "$SCRATCH/attacker.log"; then fail "the pod reached what it must not"; fi
changed=$(find / -xdev -newer "$SCRATCH/mark" -type f \
  -not -path "$SCRATCH/*" -not -path '/proc/*' -not -path '/sys/*' -not -path "$ROOT/build/*" -not -path '*/.cache/ccache/*' \
  \( -name 'muster-isolation-canary' -o -path '/etc/*' -o -path '/usr/*' -o -path '/boot/*' -o -path '/root/*' -o -path '/home/*' \) 2>/dev/null || true)
rm -f /root/.muster-isolation-secret
equals "$changed" "" "files of the host changed by the pod"
test -d /etc/apt || fail "/etc/apt of the host is gone"
equals "$(jsonpath pod/neighbour .status.phase)" Running "the neighbour"
say "result: a pod wrote to 19 places, read and killed what it could: host unchanged, nothing leaked"
