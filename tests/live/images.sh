#!/usr/bin/env bash
# Images: built here, pushed to Debian's registry on loopback, pulled by tag and digest, with and without credentials; what
# cannot be pulled says why; a pull that was killed goes on; archives are loaded; what is used is not removed.
source "$(dirname "$0")/lib.sh"
for program in skopeo umoci docker-registry nginx busybox; do
  command -v "$program" >/dev/null || skip "$program is not installed (tools/install-packages run test)"
done
tools=$ROOT/tests/live/images
layout=$SCRATCH/layout

# --- the images
root() { mkdir -p "$SCRATCH/roots/$1"; printf '%s' "$SCRATCH/roots/$1"; }
programs_to() { # programs_to ROOT PROGRAM...: with the libraries that they need
  local to=$1 file
  shift
  for file in "$@" $(ldd "$@" | grep -o '/[^ )]*'); do
    [ -e "$to$file" ] || { mkdir -p "$to$(dirname "$file")" && cp -L "$file" "$to$file"; }
  done
}
busybox=$(root busybox)
mkdir -p "$busybox/bin" "$busybox/etc"
cp "$(command -v busybox)" "$busybox/bin/busybox"
for applet in sh cat id env echo sleep hostname wget httpd pwd ls; do ln -s busybox "$busybox/bin/$applet"; done
printf 'root:x:0:0::/root:/bin/sh\nweb:x:1234:1234::/home/web:/bin/sh\n' >"$busybox/etc/passwd"
printf 'root:x:0:\nweb:x:1234:\nextra:x:77:web\n' >"$busybox/etc/group"
digest=$("$tools/make_image.py" "$layout" bb:1 \
  '{"Entrypoint": ["/bin/sh", "-c"], "Cmd": ["echo from-image; id; pwd; env"], "User": "web", "WorkingDir": "/work", "Env": ["A=image", "B=image"]}' \
  "$busybox")
nginx=$(root nginx)
programs_to "$nginx" "$(command -v nginx)"
mkdir -p "$nginx"/{var/log/nginx,var/lib/nginx/body,run,etc/nginx,www}
echo 'hello from nginx' >"$nginx/www/index.html"
printf 'root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n' >"$nginx/etc/passwd"
printf 'root:x:0:\nnogroup:x:65534:\n' >"$nginx/etc/group"
cat >"$nginx/etc/nginx/nginx.conf" <<CONF
user nobody nogroup;
daemon off;
error_log /dev/stderr;
events {}
http { access_log /dev/stdout; server { listen 80; root /www; } }
CONF
"$tools/make_image.py" "$layout" nginx:latest '{"Cmd": ["/usr/sbin/nginx"], "StopSignal": "SIGQUIT"}' "$nginx" >/dev/null
big=$(root big)
head -c 30M /dev/urandom >"$big/random"
small=$(root small)
head -c 1K /dev/urandom >"$small/random-too"
"$tools/make_image.py" "$layout" big:1 '{"Entrypoint": ["/bin/sleep"], "Cmd": ["1000"]}' "$busybox" "$small" "$big" >/dev/null
huge=$(root huge)
truncate -s 400M "$huge/zeros"
"$tools/make_image.py" "$layout" huge:1 '{}' "$huge" >/dev/null

# --- the registries: 5000 for everybody, 5001 with a password, 5002 stalls
registry() { # registry PORT [AUTH]
  cat >"$SCRATCH/registry-$1.yml" <<YAML
version: 0.1
log: {level: warn, accesslog: {disabled: true}}
storage: {filesystem: {rootdirectory: $SCRATCH/registry-$1}}
http: {addr: "127.0.0.1:$1"}
${2-}
YAML
  docker-registry serve "$SCRATCH/registry-$1.yml" >"$SCRATCH/registry-$1.log" 2>&1 &
}
perl -e 'print "ml:", crypt("secret", "\$2y\$05\$abcdefghijklmnopqrstuu"), "\n"' >"$SCRATCH/htpasswd"
registry 5000
registry 5001 "auth: {htpasswd: {realm: test, path: $SCRATCH/htpasswd}}"
mkdir "$SCRATCH/proxy"
"$tools/stalling_proxy.py" 5002 5000 "$SCRATCH/proxy" &
push() { skopeo copy -q --insecure-policy --dest-tls-verify=false "${@:3}" "oci:$layout:$1" "docker://localhost:$2/$1" >/dev/null; }
for image in bb:1 nginx:latest big:1 huge:1; do eventually 10 push "$image" 5000; done
eventually 10 push bb:1 5001 --dest-creds ml:secret
say "result: images built and pushed in $SECONDS s"

# --- a node whose disk is small
mkdir "$SCRATCH/disk"
mount -t tmpfs -o size=300m disk "$SCRATCH/disk"
DATA=$SCRATCH/disk/data KUBECONFIG=$SCRATCH/disk/data/kubeconfig
up

pod() { # pod NAME IMAGE [CONTAINER-FIELDS [SPEC-FIELDS]]
  kubectl apply -f - >/dev/null <<YAML
{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "$1"}, "spec": {${4-} "restartPolicy": "Never", "terminationGracePeriodSeconds": 5,
 "containers": [{${3-} "name": "main", "image": "$2"}]}}
YAML
}
waits_with() { [ "$(jsonpath "pod/$1" '.status.containerStatuses[0].state.waiting.reason')" = "$2" ]; }
why() { jsonpath "pod/$1" '.status.containerStatuses[0].state.waiting.message'; }
events() { kubectl get events --field-selector "involvedObject.name=$1" -o 'jsonpath={range .items[*]}{.reason}: {.message}{"\n"}{end}'; }

# --- by tag: what the image says is what runs
pod by-tag localhost:5000/bb:1
eventually 20 pod_phase_is by-tag Succeeded
log=$(kubectl logs by-tag)
for line in from-image 'uid=1234(web) gid=1234(web) groups=77(extra)' /work A=image HOME=/home/web HOSTNAME=by-tag; do
  contains "$log" "$line" "log of by-tag"
done
contains "$(events by-tag)" 'Pulling: Pulling image "localhost:5000/bb:1"'
contains "$(events by-tag)" 'Pulled: Successfully pulled image "localhost:5000/bb:1" in '
equals "$(jsonpath pod/by-tag '.status.containerStatuses[0].image')" localhost:5000/bb:1
image_id=$(jsonpath pod/by-tag '.status.containerStatuses[0].imageID')
contains "$image_id" localhost:5000/bb@sha256:

# --- by digest, already present; command and args as in Kubernetes' table; exec is the image's user
pod by-digest "localhost:5000/bb@${image_id#*@}" '"args": ["echo $0 args"],'
eventually 20 pod_phase_is by-digest Succeeded
equals "$(kubectl logs by-digest)" "/bin/sh args"
contains "$(events by-digest)" 'already present on machine'
pod command localhost:5000/bb:1 '"command": ["/bin/sleep", "1000"], "imagePullPolicy": "Never",'
eventually 20 pod_phase_is command Running
equals "$(kubectl exec command -- id -u)" 1234
equals "$(kubectl exec command -- sh -c 'cat /etc/hostname; ls /usr 2>/dev/null || echo nothing of the machine')" \
  $'command\nnothing of the machine'
pod root localhost:5000/bb:1 '"securityContext": {"runAsNonRoot": true, "runAsUser": 0},'
eventually 20 waits_with root CreateContainerConfigError
contains "$(why root)" "container's runAsUser breaks non-root policy"
pod named localhost:5000/bb:1 '"securityContext": {"runAsNonRoot": true},'
eventually 20 waits_with named CreateContainerConfigError
contains "$(why named)" 'image has non-numeric user (web), cannot verify user is non-root'
pod number localhost:5000/bb:1 '"args": ["id -u; id -g"], "securityContext": {"runAsUser": 4321, "runAsGroup": 8765},'
eventually 20 pod_phase_is number Succeeded
equals "$(kubectl logs number)" $'4321\n8765'
kubectl delete pod command root named --wait=false >/dev/null

# --- nginx serves, and ends by the image's stop signal
kubectl run web --image=localhost:5000/nginx >/dev/null
eventually 20 pod_phase_is web Running
address=$(jsonpath pod/web .status.podIP)
eventually 10 curl -sf "http://$address/" -o "$SCRATCH/page"
equals "$(cat "$SCRATCH/page")" 'hello from nginx'

# --- with credentials and without
kubectl create secret docker-registry good --docker-server=localhost:5001 --docker-username=ml --docker-password=secret >/dev/null
kubectl create secret docker-registry bad --docker-server=localhost:5001 --docker-username=ml --docker-password=wrong >/dev/null
pod without localhost:5001/bb:1
pod wrong localhost:5001/bb:1 '' '"imagePullSecrets": [{"name": "bad"}, {"name": "missing"}],'
for name in without wrong; do eventually 20 waits_with $name ImagePullBackOff; done
contains "$(why without)" 'unauthorized: authentication required'
contains "$(why wrong)" 'unauthorized'
contains "$(events wrong)" 'FailedToRetrieveImagePullSecret: Unable to retrieve some image pull secrets (missing)'
pod with localhost:5001/bb:1 '' '"imagePullSecrets": [{"name": "bad"}, {"name": "good"}],'
eventually 20 pod_phase_is with Succeeded
if grep -rqs -e 'ml:secret' -e "$(printf ml:secret | base64)" "$DATA/logs" "$DATA/images/index.json"; then fail "a password is in a file"; fi
equals "$(find "$DATA/images/pulls" -mindepth 1 | wc -l)" 0 "files left by pulls"

# --- what cannot be pulled says why
pod bad-tag localhost:5000/bb:nope
pod bad-digest "localhost:5000/bb@sha256:$(printf '0%.0s' {1..64})"
pod bad-name 'Not A Name'
pod bad-host localhost:9/bb:1
pod never localhost:5000/big:1 '"imagePullPolicy": "Never",'
pod no-space localhost:5000/huge:1
eventually 20 waits_with bad-name InvalidImageName
eventually 20 waits_with never ErrImageNeverPull
for name in bad-tag bad-digest bad-host no-space; do eventually 20 waits_with $name ImagePullBackOff; done
contains "$(why bad-tag)" 'manifest unknown'
contains "$(why bad-digest)" 'manifest unknown'
contains "$(why bad-host)" 'connection refused'
contains "$(why no-space)" 'no space: 40'
contains "$(events bad-tag)" 'Failed: Error: ErrImagePull'
contains "$(events bad-tag)" 'BackOff: Back-off pulling image "localhost:5000/bb:nope"'
equals "$(jsonpath "$(kubectl get nodes -o name)" '.status.conditions[?(@.type=="DiskPressure")].status')" False "disk pressure"
kubectl delete pod bad-tag bad-digest bad-name bad-host never no-space without wrong --wait=false >/dev/null

# --- a registry that never answers: three pulls at a time (kMaxParallelPulls), and the fourth has its turn
python3 -c 'import signal, socket
s = socket.create_server(("127.0.0.1", 5003)); signal.pause()' &
silent=$!
eventually 10 sh -c 'ss -ltn | grep -q 127.0.0.1:5003'
declare -A pulls
for name in a b c d e; do
  "$MUSTER" image pull "localhost:5003/$name" >"$SCRATCH/pull-$name" 2>&1 &
  pulls[$name]=$!
done
asking() { pgrep -ax skopeo | grep -o 'localhost:5003/[a-e]' | cut -d/ -f2 | sort | xargs; }
three_ask() { [ "$(asking | wc -w)" = 3 ]; }
eventually 10 three_ask
first=$(asking) killed=$(asking | cut -c1)
kill -9 "$(pgrep -fx ".*skopeo inspect .*localhost:5003/$killed:latest")"
if wait "${pulls[$killed]}"; then fail "a pull succeeded whose skopeo was killed"; fi
contains "$(cat "$SCRATCH/pull-$killed")" "skopeo was ended by signal 9" "pull $killed"
eventually 10 three_ask
seen=$(printf '%s\n' $first $(asking) | sort -u | xargs)
equals "$(wc -w <<<"$seen")" 4 "images that were asked for, of five"
kill -9 $silent
for name in a b c d e; do
  if wait "${pulls[$name]}"; then fail "a pull from a silent registry succeeded"; fi
  contains "$(cat "$SCRATCH/pull-$name")" "localhost:5003/$name:latest" "pull $name"
done

# --- killed in the middle of a pull: nothing half-done, and layers that are here are not fetched again
pod slow localhost:5002/big:1
eventually 20 test -e "$SCRATCH/proxy/stalled"
kill -9 "$(control_plane_pid)"
eventually 5 sh -c '! pgrep -x skopeo'
touch "$SCRATCH/proxy/go"
layers_here=$(ls "$DATA/images/blobs/sha256")
asked() { grep -o 'sha256:[0-9a-f]*' "$SCRATCH/proxy/blobs" | sort -u; } # for which layers the registry was asked
kept=0
for digest in $(asked); do [[ $layers_here != *"${digest#sha256:}"* ]] || kept=$((kept + 1)); done
[ $kept -ge 1 ] || fail "no layer was whole when the pull was killed: the test proves nothing"
: >"$SCRATCH/proxy/blobs"
up >/dev/null
equals "$(ls "$DATA/images/roots" | grep -c new)" 0 "half-done images"
eventually 20 pod_phase_is web Running
eventually 30 pod_phase_is slow Running
equals "$(jsonpath pod/web '.status.containerStatuses[0].restartCount')" 0 "web's restarts"
contains "$(jsonpath pod/web '.status.containerStatuses[0].imageID')" localhost:5000/nginx@sha256:
for digest in $(asked); do
  [[ $layers_here != *"${digest#sha256:}"* ]] || fail "a layer was fetched again: $digest"
done
say "result: a pull that was killed kept $kept layer(s) and asked for $(asked | wc -l) again"
curl -sf "http://$address/" -o /dev/null || fail "nginx does not serve after the restart"
kubectl delete pod slow --grace-period=0 --force >/dev/null 2>&1
kubectl delete pod web >/dev/null

# --- muster image
equals "$("$MUSTER" image list -o json | jq -r '.images[] | select(.names[] == "localhost:5002/big:1") | .usedBy | length')" 0
"$MUSTER" image list | grep -q '^localhost:5000/nginx:latest  *sha256:' || fail "image list: $("$MUSTER" image list)"
skopeo copy -q --insecure-policy "oci:$layout:bb:1" "docker-archive:$SCRATCH/web.tar:web:2" >/dev/null
contains "$("$MUSTER" image load "$SCRATCH/web.tar")" 'Loaded docker.io/library/web:2'
contains "$("$MUSTER" image load --name mine "$layout:nginx:latest" 2>&1 || true)" 'mine'
cp /bin/ls "$SCRATCH/ls.tar"
truncated=$SCRATCH/truncated.tar
head -c 5000 "$SCRATCH/web.tar" >"$truncated"
load_fails() { if "$MUSTER" image load "$@" 2>&1; then fail "image load $* did not fail"; fi; }
for file in "$SCRATCH/ls.tar" "$truncated"; do
  contains "$(load_fails "$file")" "$file holds no image: expected an archive of docker (docker save NAME > FILE)"
done
contains "$(load_fails "$SCRATCH")" 'is no OCI layout'
contains "$(load_fails "$SCRATCH/nothing.tar")" 'No such file or directory'
skopeo copy -q --insecure-policy "oci:$layout:bb:1" "oci-archive:$SCRATCH/web.oci" >/dev/null
contains "$(load_fails "$SCRATCH/web.oci")" 'has no name: give it one, --name NAME'
pod loaded web:2 '"args": ["exec sleep 1000"], "imagePullPolicy": "Never",'
eventually 20 pod_phase_is loaded Running
contains "$("$MUSTER" image rm web:2 2>&1 || true)" 'is used by pod default/loaded'
kubectl delete pod loaded --grace-period=0 --force >/dev/null 2>&1
eventually 20 "$MUSTER" image rm web:2
contains "$("$MUSTER" image load --name web:3 "$SCRATCH/web.oci")" docker.io/library/web:3
contains "$("$MUSTER" image pull localhost:5000/bb:nope 2>&1 || true)" 'manifest unknown'
contains "$("$MUSTER" image pull localhost:5000/bb:1)" 'Pulled localhost:5000/bb:1'

# --- without the programs the reason says what to install
pod keeper localhost:5000/bb:1 '"args": ["exec sleep 1000"],'
eventually 20 pod_phase_is keeper Running
kill "$(control_plane_pid)"
eventually 10 sh -c "! kill -0 $(control_plane_pid) 2>/dev/null"
index=$DATA/images/index.json
jq '.images[].lastUsed |= "2026-01-01T00:00:00Z"' "$index" >"$SCRATCH/index" && cat "$SCRATCH/index" >"$index" # long ago
PATH=$KUBECTL_DIR:/usr/sbin:/sbin up >/dev/null
pod no-programs localhost:5000/new:1
eventually 20 waits_with no-programs ImagePullBackOff
contains "$(why no-programs)" 'this node has no skopeo and no umoci'
contains "$(why no-programs)" 'apt-get install skopeo umoci'

# --- the disk fills: unused images go before pods
fallocate -l $(($(df --output=avail -B1 "$SCRATCH/disk" | tail -n 1) - (20 << 20))) "$SCRATCH/disk/other" # 30 MiB must stay free
node=$(kubectl get nodes -o name)
node_events() { kubectl get events --field-selector "involvedObject.kind=Node,reason=$1" -o 'jsonpath={.items[*].message}'; }
has() { [[ "$("${@:2}")" == *"$1"* ]]; }
eventually 20 has localhost:5002/big:1 node_events ImageGarbageCollected
eventually 20 has True jsonpath "$node" '.status.conditions[?(@.type=="DiskPressure")].status'
room() { [ "$(df --output=avail -B1 "$SCRATCH/disk" | tail -n 1)" -gt $((30 << 20)) ]; }
eventually 20 room
equals "$(jsonpath pod/keeper .status.phase)" Running "the pod while images could go"
contains "$("$MUSTER" image list -o json | jq -r '.images[].names[]')" localhost:5000/bb:1 "the image that is used"
say "result: pulled by tag and digest, with and without credentials; nginx served; eight kinds of failure said why"
