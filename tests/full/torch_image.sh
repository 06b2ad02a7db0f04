#!/usr/bin/env bash
# Issue 4, shown by 4: Debian's python with torch as an image: built here, pushed to Debian's docker-registry on loopback,
# pulled by tag and digest, and a PyTorchJob of two pods that trains from it, with nothing of the machine's own python.
set -euo pipefail
cd "$(dirname "$0")/../.."
if [ "${1-}" != inside ]; then exec env TMPDIR=/var/tmp tests/netbox/netbox "$PWD/tests/full/torch_image.sh" inside; fi
source tests/live/lib.sh
for program in skopeo umoci docker-registry; do
  command -v "$program" >/dev/null || skip "$program is not installed (tools/install-packages run test)"
done
dpkg-query -W python3-torch >/dev/null 2>&1 || skip "python3-torch is not installed (tools/install-packages example)"

# --- the image: the files of python3-torch and all packages that it needs, without what only people read
begin=$SECONDS
root=$SCRATCH/root layout=$SCRATCH/layout
mkdir -p "$root/usr"
for folder in bin sbin lib lib64; do [ ! -L /$folder ] || { mkdir -p "$root/usr/$folder" && ln -s usr/$folder "$root/$folder"; }; done
closure() { # PACKAGE: it and what it depends on, as far as it is installed
  apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces --no-enhances "$1" |
    sed -n 's/^\([a-z0-9][^ ]*\)$/\1/p' | sort -u
}
mapfile -t packages < <(closure python3-torch | xargs dpkg-query -W -f '${db:Status-Abbrev} ${binary:Package}\n' 2>/dev/null | sed -n 's/^ii  *//p')
[ ${#packages[@]} -gt 50 ] || fail "python3-torch needs only ${packages[*]}?"
dpkg -L "${packages[@]}" | sort -u | grep -vE '^/(usr/share/(doc|man|locale|lintian|info)|usr/include|var|boot)(/|$)' |
  while read -r file; do if [ -f "$file" ] || [ -L "$file" ]; then printf '%s\n' "$file"; fi; done >"$SCRATCH/files"
# Links that update-alternatives made belong to no package: libblas.so.3, for one.
find /usr/bin /usr/lib/*-linux-gnu -maxdepth 1 -type l -lname '/etc/alternatives/*' >>"$SCRATCH/files"
# Debian's packages name /lib where the machine has a link to usr/lib.
tar -C / --no-recursion -cf - -T "$SCRATCH/files" 2>/dev/null | tar -C "$root" --keep-directory-symlink -xf -
cp -a /etc/alternatives "$root/etc/"
mkdir -p "$root/tmp" "$root/work"
cat >"$root/work/train.py" <<'PYTHON'
"""Each rank fits a line to points of its own; gradients are averaged, so that all end with the same model."""
import os
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
torch.manual_seed(dist.get_rank())
x = torch.rand(256, 1)
y = 3 * x + 2
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
for _ in range(300):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(x), y)
    loss.backward()
    optimizer.step()
print(f"rank {dist.get_rank()} of {dist.get_world_size()} torch {torch.__version__} host {os.uname().nodename}")
print(f"slope {model.module.weight.item():.2f} offset {model.module.bias.item():.2f}")
PYTHON
tests/live/images/make_image.py "$layout" torch:1 '{"Entrypoint": ["/usr/bin/python3"], "WorkingDir": "/work", "Env": ["OF=image"]}' "$root" >/dev/null
built=$((SECONDS - begin)) size=$(du -sm "$root" | cut -f 1)
rm -rf "$root"

# --- the registry
cat >"$SCRATCH/registry.yml" <<YAML
version: 0.1
log: {level: warn, accesslog: {disabled: true}}
storage: {filesystem: {rootdirectory: $SCRATCH/registry}}
http: {addr: "127.0.0.1:5000"}
YAML
docker-registry serve "$SCRATCH/registry.yml" >"$SCRATCH/registry.log" 2>&1 &
listens() { grep -q ':1388 ' /proc/net/tcp; } # 5000
eventually 10 listens
begin=$SECONDS
skopeo copy -q --insecure-policy --dest-tls-verify=false "oci:$layout:torch:1" docker://localhost:5000/torch:1
pushed=$((SECONDS - begin))
rm -rf "$layout"

# --- by tag: a job that trains; then by digest, which is here already
up >/dev/null
begin=$SECONDS
kubectl apply -f - >/dev/null <<YAML
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: fit}
spec:
  runPolicy: {cleanPodPolicy: None}
  pytorchReplicaSpecs:
$(for type in Master Worker; do
  printf '    %s: {replicas: 1, restartPolicy: Never, template: {spec: {containers: [{name: pytorch, image: "localhost:5000/torch:1", args: [train.py]}]}}}\n' $type
done)
YAML
ended() { job_is fit Succeeded || job_is fit Failed; }
eventually 300 ended
log=$(kubectl logs fit-master-0; kubectl logs fit-worker-0)
say "$log"
job_is fit Succeeded || fail "the job failed: $(kubectl get pods,events)"
for line in 'rank 0 of 2 torch 1.' 'rank 1 of 2 torch 1.' 'host fit-worker-0'; do contains "$log" "$line" "logs of the job"; done
equals "$(grep -c '^slope 3.00 offset 2.00$' <<<"$log")" 2 "models that fit: $log"
trained=$((SECONDS - begin))
equals "$(kubectl get events -o jsonpath='{range .items[?(@.reason=="Pulled")]}{.message}{"\n"}{end}' | grep -c 'Successfully pulled')" 2 "pods that pulled"
equals "$(find "$DATA/images/roots" -mindepth 1 -maxdepth 1 | wc -l)" 1 "copies of the image for two pods"
digest=$(jsonpath pod/fit-master-0 '.status.containerStatuses[0].imageID')
contains "$digest" localhost:5000/torch@sha256:
kubectl run one --image="$digest" --restart=Never --command -- python3 -c \
  'import os, torch; print(torch.ones(3, 3).mm(torch.eye(3)).sum().item(), os.environ["OF"], os.path.exists("/root/.bashrc"))' >/dev/null
finished() { pod_phase_is one Succeeded || pod_phase_is one Failed; }
eventually 60 finished
equals "$(kubectl logs one)" "9.0 image False" "what the pod of the digest printed"
shows 'already present on machine' kubectl get events --field-selector involvedObject.name=one
say "result: image of $size MiB with torch: built in $built s, pushed in $pushed s, pulled and trained from by two pods in $trained s"
