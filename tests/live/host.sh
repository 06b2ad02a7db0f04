#!/usr/bin/env bash
# The cluster on its machine: muster kubeconfig --merge and --unmerge beside what is there, muster service (its unit, and
# pods that go on when only the main process is ended, as KillMode=process does), muster completion.
source "$(dirname "$0")/lib.sh"
refused() { if "$@" 2>&1; then fail "not refused: $*"; fi; }

say "== kubeconfig"
up
unset KUBECONFIG
merge() { muster kubeconfig --merge --data-dir "$DATA" --name muster "$@"; }
unmerge() { muster kubeconfig --unmerge --data-dir "$DATA" "$@"; }
config=$HOME/.kube/config
merge
equals "$(stat -c %a "$config")" 600 "mode"
equals "$(kubectl config current-context) $(kubectl get --raw /readyz)" "muster ok" "kubectl by ~/.kube/config"
kubectl config set-cluster cloud --server=https://192.0.2.1 >/dev/null
kubectl config set-credentials ada --token=t0ken >/dev/null
kubectl config set-context cloud --cluster=cloud --user=ada >/dev/null
kubectl config use-context cloud >/dev/null
kubectl config set-context muster --namespace=team >/dev/null
merge --no-switch
equals "$(kubectl config current-context)" cloud "with --no-switch"
merge
equals "$(kubectl config current-context)" muster "current context"
equals "$(kubectl config get-contexts -o name | sort | xargs)" "cloud muster" "contexts"
equals "$(kubectl config view -o 'jsonpath={.contexts[?(@.name=="muster")].context.namespace}')" team "namespace"
equals "$(kubectl config view --raw -o 'jsonpath={.users[?(@.name=="ada")].user.token}')" t0ken "another's token"
before=$(cat "$config")
contains "$(merge)" "nothing to change" "the second time"
equals "$(cat "$config")" "$before" "the file, the second time"
mv "$config" "$HOME/real" && ln -s "$HOME/real" "$config"
unmerge
equals "$(kubectl config get-contexts -o name | xargs)" cloud "after --unmerge, through a link"
[ -L "$config" ] || fail "the link is gone"
equals "$(kubectl config current-context)" cloud "current context after --unmerge"
contains "$(refused merge --name cloud)" "has a cluster \"cloud\" at https://192.0.2.1 already" "somebody else's name"
KUBECONFIG=$DATA/kubeconfig:$HOME/mine muster kubeconfig --merge --data-dir "$DATA"
equals "$(kubectl --kubeconfig "$HOME/mine" config current-context)" data "called as the data directory, in \$KUBECONFIG"
merge --into "$HOME/other" && kubectl --kubeconfig "$HOME/other" get --raw /readyz >/dev/null
printf 'clusters: [\n' >"$HOME/broken"
contains "$(refused merge --into "$HOME/broken")" "nothing was changed" "a broken file"
equals "$(cat "$HOME/broken")" "clusters: [" "the broken file"

for words in "doctor extra" "kubeconfig --merge --unmerge" "kubeconfig extra" "--bogus get pods" "help get pods" "help bogus" \
  "down --bogus" "up extra" "-n team"; do
  output=$(refused muster $words)
  equals "$(wc -l <<<"$output")" 1 "lines of: muster $words: $output"
  contains "$output" "See: muster " "muster $words"
done
merge >/dev/null
kubectl config --kubeconfig "$DATA/kubeconfig" set-context --current --namespace=team >/dev/null
kubectl config --kubeconfig "$DATA/kubeconfig" set-context second --cluster=muster --user=muster >/dev/null
mkdir "$SCRATCH/my clusters"
other="$SCRATCH/my clusters/o'ne"
muster down --data-dir "$DATA"
line=$(muster up --detach --data-dir "$other" 2>/dev/null | grep export)
equals "$(eval "$line" && kubectl get --raw /readyz)" ok "the line to paste: $line"
muster kubeconfig --merge --data-dir "$other"
equals "$(kubectl config current-context)" "o'ne" "the second cluster"
muster down --purge --data-dir "$other"
equals "$(kubectl config get-contexts -o name | sort | xargs)" "cloud muster" "contexts after down --purge"
equals "$(kubectl config current-context)" muster "current context after down --purge"
up
own=$(kubectl --kubeconfig "$DATA/kubeconfig" config view -o 'jsonpath={range .contexts[*]}{.name}={.context.namespace} {end}' | xargs -n 1 | sort | xargs)
equals "$own" "muster=team second=" "what users set in the cluster's own kubeconfig, after up"
equals "$(kubectl --kubeconfig "$DATA/kubeconfig" --context second get --raw /readyz)" ok "a context that users added"
kubectl --kubeconfig "$DATA/kubeconfig" config set-context --current --namespace=default >/dev/null

say "== completion"
export KUBECONFIG=$DATA/kubeconfig
kubectl create namespace team >/dev/null
kubectl create configmap alpha -n team >/dev/null
complete_words() { # complete_words WORDS...: what the last one may become
  bash -c 'source <(muster completion bash); COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _muster
    printf "%s\n" "${COMPREPLY[@]}" | sort | xargs' muster "$@"
}
lines=("muster ser" "muster service un" "muster top g" "muster image lo" "muster up --imag" "muster up --images ma"
  "muster get --fie" "muster get -o js" "muster get pytorch" "muster get -n te" "muster help compl")
words=(service uninstall gpus load --images machine --field-selector json pytorchjobs team completion)
shells=bash
for i in "${!lines[@]}"; do
  equals "$(complete_words ${lines[i]})" "${words[i]}" "bash: ${lines[i]}"
done
if command -v fish >/dev/null; then
  for i in "${!lines[@]}"; do
    equals "$(fish -c 'muster completion fish | source; complete -C"$argv"' "${lines[i]}" | cut -f1)" "${words[i]}" "fish: ${lines[i]}"
  done
  shells+=", fish"
fi
if command -v zsh >/dev/null; then
  equals "$(tests/live/host/type-in-zsh "${lines[@]}")" "$(for i in "${!lines[@]}"; do echo "${lines[i]% *} ${words[i]}"; done)" zsh
  shells+=", zsh"
fi
equals "$(complete_words muster get -n team configmaps al)" alpha "a name in a namespace"
equals "$(complete_words muster get configmaps al)" "" "a name in another namespace"
equals "$(complete_words muster describe namespace/te)" namespace/team "TYPE/NAME"
mkdir "$SCRATCH/slow"
printf '#!/bin/sh\nif [ "$1" = completion ]; then exec %s "$@"; fi\nexec sleep 100\n' "$MUSTER" >"$SCRATCH/slow/muster"
chmod +x "$SCRATCH/slow/muster"
start=$SECONDS
equals "$(PATH=$SCRATCH/slow:$PATH complete_words muster get pods x)" "" "names of a server that hangs"
[ $((SECONDS - start)) -lt 20 ] || fail "completion hung for $((SECONDS - start)) s"

say "== service"
root=$SCRATCH/root
unit=$root/etc/systemd/system/muster.service
muster service install --root "$root" -- --data-dir "$DATA" --pod-max-pids 500
if command -v systemd-analyze >/dev/null; then
  systemd-analyze verify --man=no "$unit" 2>&1 | grep -F muster.service && fail "systemd-analyze has objections"
fi
equals "$(muster service install --print -- --data-dir "$DATA" --pod-max-pids 500)" "$(cat "$unit")" "--print"
contains "$(cat "$unit")" "KillMode=process"
contains "$(refused muster service install -- --no-such-flag)" "no-such-flag" "options are those of up"
[ -d /run/systemd/system ] || contains "$(refused muster service install)" "does not run systemd" "without systemd"
muster down --data-dir "$DATA"
# What systemd starts, and ends when the service is restarted: the main process.
command=$(sed -n 's/^ExecStart=//p' "$unit")
serve() {
  eval "exec $command" >"$SCRATCH/service.log" 2>&1 &
  main=$!
  eventually 20 kubectl get --raw /readyz
}
serve
kubectl run lasting --image=none --restart=Never --command -- sh -c 'echo $$ started; sleep 1000' >/dev/null
eventually 20 pod_phase_is lasting Running
started=$(jsonpath pod/lasting '.status.containerStatuses[0].state.running.startedAt')
id=$(jsonpath pod/lasting '.status.containerStatuses[0].containerID')
kill -TERM $main
wait $main || true
serve
eventually 20 pod_phase_is lasting Running
equals "$(jsonpath pod/lasting '.status.containerStatuses[0].state.running.startedAt') $(jsonpath pod/lasting \
  '.status.containerStatuses[0].containerID') $(jsonpath pod/lasting '.status.containerStatuses[0].restartCount')" \
  "$started $id 0" "the pod after a restart of the service"
logged() { muster logs lasting >"$SCRATCH/lasting.log"; } # the node finds its pods a moment after the server answers
eventually 20 logged
equals "$(grep -c started "$SCRATCH/lasting.log")" 1 "starts of the container"
kill -TERM $main
wait $main || true
muster service uninstall --root "$root"
[ ! -e "$unit" ] || fail "$unit is still there"
contains "$(muster service uninstall --root "$root")" "nothing to do" "uninstall twice"
say "result: kubeconfig merged and taken away again, completion in $shells, pods survive a restart of the service"
