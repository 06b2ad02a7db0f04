#!/usr/bin/env bash
# Issue 3, item 7: a pod cannot leave itself by paths, links, devices, namespaces, system calls or /proc.
source "$(dirname "$0")/lib.sh"
up
mkdir -p "$SCRATCH/shared" "$SCRATCH/outside"
echo outside-secret >"$SCRATCH/outside/secret"
cat >"$SCRATCH/escape.py" <<'PY'
import ctypes, os, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)

def refused(what, call):
    """`call` gives what it reached, or raises."""
    try:
        got = call()
    except OSError:
        return
    if got not in (None, "", b"", 0): print("LEAK:", what, got)

def system(*numbers):
    result = libc.syscall(*numbers)
    if result < 0: raise OSError(ctypes.get_errno(), "refused")
    return result + 1

def run(*words):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    if done.returncode != 0: raise OSError(1, "refused")
    return " ".join(words)

if os.uname().machine == "x86_64":
    refused("user keyring", lambda: system(250, 0, -4, 1))  # keyctl(GET_KEYRING_ID, USER_KEYRING, create)
    refused("add_key", lambda: system(248, b"user", b"muster-test", b"x", 1, -4))
    refused("bpf", lambda: system(321, 0, 0, 0))
    refused("clone3", lambda: system(435, 0, 0))
refused("user namespace", lambda: run("unshare", "-Ur", "true"))
refused("mount namespace", lambda: run("unshare", "-m", "true"))
refused("setns", lambda: run("nsenter", "-t", "1", "-m", "true"))
refused("mount", lambda: run("mount", "-t", "tmpfs", "none", "/mnt"))
refused("cgroup mount", lambda: run("mount", "-t", "cgroup", "-o", "pids", "none", "/mnt"))
refused("umount of a mask", lambda: run("umount", "/proc/kcore"))
refused("another address", lambda: run("ip", "addr", "add", "10.42.0.99/32", "dev", "eth0"))
refused("link down", lambda: run("ip", "link", "set", "eth0", "down"))
refused("nft", lambda: run("nft", "add", "table", "ip", "evil"))
refused("mknod", lambda: os.mknod("/tmp/mem", 0o20600, os.makedev(1, 1)) or "made")
refused("kcore", lambda: open("/proc/kcore", "rb").read(1))
refused("keys", lambda: open("/proc/keys").read())
for path in ("/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname", "/proc/sysrq-trigger", "/sys/kernel/uevent_helper",
             "/sys/power/state"):
    refused("writing " + path, lambda: open(path, "w") and path)
with open("/proc/self/status") as file: status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
for name in ("CapEff", "CapPrm", "CapBnd"):
    if status[name].lstrip("0") != "a00425fb": print("LEAK:", name, status[name])
for name in ("CapInh", "CapAmb"):
    if status[name].strip("0"): print("LEAK:", name, status[name])
if status["Seccomp"] != "2": print("LEAK: no filter of system calls")
# What only root may read on the node is not here, or it is the pod's own.
for place in ("/etc", "/var", "/opt", "/srv", "/"):
    for folder, folders, files in os.walk(place):
        if place == "/": folders.clear()
        for name in files:
            path = os.path.join(folder, name)
            if os.path.isfile(path) and not os.path.islink(path) and not os.stat(path).st_mode & 0o4 and path != "/etc/shadow":
                print("LEAK: for root alone:", path)
for name in os.listdir("/host-dev") if os.path.isdir("/host-dev") else []:
    path = "/host-dev/" + name
    kind = os.lstat(path).st_mode & 0o170000
    if kind in (0o060000, 0o020000): refused("device " + path, lambda: os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK)) or "open")
if os.path.isdir("/host"):
    data = sys.argv[1]
    refused("data folder through a hostPath", lambda: " ".join(os.listdir("/host" + data)))
    refused("data folder through /proc", lambda: os.listdir("/host/proc/1/root" + data) and "seen")
if sys.argv[2:] == ["shared"]:  # process 1 is the shim
    refused("root of the shim", lambda: os.listdir("/proc/1/root"))
    refused("memory of the shim", lambda: open("/proc/1/mem", "rb") and "open")
    refused("program of the shim", lambda: open("/proc/1/exe", "rb") and "open")
    refused("ptrace", lambda: libc.ptrace(16, 1, 0, 0) == 0 and "attached")
    for number in range(1, 32): os.kill(1, number)
print("done")
PY
kubectl create configmap escape --from-file="$SCRATCH/escape.py"

pod() { # pod NAME SPEC_JSON CONTAINER_JSON: runs escape.py, or what CONTAINER_JSON says
  python3 - "$@" <<'PY' | kubectl apply -f - >/dev/null
import json, sys
name, spec, container = sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3])
main = {"name": "main", "image": "none", "command": ["python3", "/escape/escape.py"], **container}
main["volumeMounts"] = [{"name": "escape", "mountPath": "/escape"}] + container.get("volumeMounts", [])
spec["volumes"] = [{"name": "escape", "configMap": {"name": "escape"}}] + spec.get("volumes", [])
print(json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
                  "spec": {"restartPolicy": "Never", "containers": [main], **spec}}))
PY
}
ended() { [[ $(jsonpath "pod/$1" .status.phase) =~ ^(Succeeded|Failed)$ ]]; }

run="\"command\": [\"python3\", \"/escape/escape.py\", \"$DATA\""
pod plain '{}' "{$run]}"
pod shared '{"shareProcessNamespace": true}' "{$run, \"shared\"]}"
pod host '{"volumes": [{"name": "h", "hostPath": {"path": "/"}}, {"name": "d", "hostPath": {"path": "/dev"}}]}' \
  "{$run], \"volumeMounts\": [{\"name\": \"h\", \"mountPath\": \"/host\"}, {\"name\": \"d\", \"mountPath\": \"/host-dev\"}]}"
pod escalate '{}' '{"command": ["sh", "-c", "grep NoNewPrivs /proc/self/status"], "securityContext": {"allowPrivilegeEscalation": false}}'
# What containers commonly give up, by themselves or with what they want back; exec has no more than they have.
caps='"command": ["sh", "-c", "grep -E ^Cap[EPB] /proc/self/status; sleep 1000"]'
pod dropped '{}' "{$caps"', "securityContext": {"capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"}}}'
pod back '{"securityContext": {"seccompProfile": {"type": "RuntimeDefault"}}}' \
  "{$caps"', "securityContext": {"capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}}}'
pod user '{"securityContext": {"runAsUser": 1000}}' "{$caps"', "securityContext": {"capabilities": {"drop": ["NET_RAW", "SETUID"]}}}'
pod unknown '{}' "{$caps"', "securityContext": {"capabilities": {"drop": ["NET_RAWW"]}}}'
# Paths that climb stay inside; read-only volumes are read-only below a link, too.
pod paths '{"volumes": [{"name": "v", "emptyDir": {}}, {"name": "s", "hostPath": {"path": "'"$SCRATCH"'/shared"}}],
  "initContainers": [{"name": "links", "image": "none", "command": ["sh", "-c", "ln -s / /v/root; mkdir /v/real; ln -s real /v/inner"],
    "volumeMounts": [{"name": "v", "mountPath": "/v"}]}]}' \
  '{"command": ["sh", "-c", "ls -d /b && ls /v/root/etc/passwd && touch /v/root/climbed && touch /inner/x && ! touch /ro/y 2>/dev/null && echo inside"],
    "volumeMounts": [{"name": "v", "mountPath": "/v"}, {"name": "s", "mountPath": "/a/../../b"}, {"name": "v", "mountPath": "/inner", "subPath": "inner"},
      {"name": "s", "mountPath": "/v/root/ro", "readOnly": true}]}'
pod subpath '{"volumes": [{"name": "v", "emptyDir": {}}], "initContainers": [{"name": "links", "image": "none",
  "command": ["sh", "-c", "ln -s / /v/root"], "volumeMounts": [{"name": "v", "mountPath": "/v"}]}]}' \
  '{"command": ["ls", "/m"], "volumeMounts": [{"name": "v", "mountPath": "/m", "subPath": "root/etc"}]}'
pod data '{"volumes": [{"name": "v", "hostPath": {"path": "'"$DATA"'/pki"}}]}' '{"volumeMounts": [{"name": "v", "mountPath": "/m"}]}'
ln -s "$DATA" "$SCRATCH/shared/link"
pod link '{"volumes": [{"name": "v", "hostPath": {"path": "'"$SCRATCH"'/shared/link"}}]}' '{"volumeMounts": [{"name": "v", "mountPath": "/m"}]}'

for name in plain shared host; do
  eventually 90 ended $name
  log=$(kubectl logs $name)
  contains "$log" done "pod $name ran to its end: $(jsonpath pod/$name .status)"
  [[ $log != *LEAK* ]] || fail "pod $name: $log"
done
eventually 30 ended escalate
equals "$(kubectl logs escalate | tr -d '\t')" "NoNewPrivs:1"
capabilities() { tr -d '\t' | tr '\n' ' ' | sed 's/0000*\([0-9a-f]\)/\1/g'; }
has_capabilities() { equals "$(kubectl logs "$1" | capabilities)" "$2" "capabilities of pod $1"; }
eventually 30 has_capabilities dropped "CapPrm:0 CapEff:0 CapBnd:0 "
eventually 30 has_capabilities back "CapPrm:400 CapEff:400 CapBnd:400 "
eventually 30 has_capabilities user "CapPrm:0 CapEff:0 CapBnd:a004057b "
equals "$(kubectl exec dropped -- grep -E '^Cap[EPB]' /proc/self/status | capabilities)" "CapPrm:0 CapEff:0 CapBnd:0 " exec
shows 'no capability is named "NET_RAWW"' events_of unknown
eventually 30 ended paths
equals "$(kubectl logs paths | tail -1)" inside "paths: $(kubectl logs paths)"
[ ! -e /climbed ] || fail "a link led out of the container"
eventually 30 ended subpath
shows "leads out of its volume" events_of subpath
shows "is inside muster's own data folder" events_of data
shows "is inside muster's own data folder" events_of link
say "result: pods tried 40 ways out (paths, links, devices, namespaces, keyrings, masks, the shim): none led out"
