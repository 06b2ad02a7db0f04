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
"$tools/make_image.py" "$layout" big:1 '{"Entrypoint": ["/bin/sleep"], "Cmd": ["1000"]}' "$busybox" "$big" >/dev/null
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
