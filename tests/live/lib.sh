# Shared by tests/live/*.sh: one cluster in a scratch directory, and assertions that say what they saw.
# Source it; run the tests through tests/netbox/netbox (own network and PID namespaces, loopback only).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
ROOT=$PWD
MUSTER=${MUSTER:-$ROOT/build/release/muster}
KUBECTL_DIR=$ROOT/build/tools/kubectl-32
SCRATCH=$(mktemp -d "${TMPDIR:-/tmp}/muster-live-XXXXXX")
DATA=$SCRATCH/data
export KUBECONFIG=$DATA/kubeconfig HOME=$SCRATCH/home
export PATH=$KUBECTL_DIR:$(dirname "$MUSTER"):$PATH
mkdir -p "$HOME"

say() { printf '%s\n' "$*"; }
fail() { printf 'FAIL: %s\n' "$*" >&2; exit 1; }
skip() { printf 'skipped: %s\n' "$*"; exit 77; }

finish() {
  local status=$?
  trap - EXIT
  if [ $status != 0 ] && [ $status != 77 ] && [ -f "$DATA/logs/muster.log" ]; then
    say "--- last lines of muster.log"
    tail -n 40 "$DATA/logs/muster.log"
    cat "$DATA/logs/outside.log" 2>/dev/null || true
  fi
  "$MUSTER" down --purge --data-dir "$DATA" >/dev/null 2>&1 || say "note: down failed"
  if mountpoint -q "$SCRATCH/disk"; then umount -l "$SCRATCH/disk"; fi # tests with a disk of their own
  rm -rf "$SCRATCH"
  exit $status
}
trap finish EXIT

up() { "$MUSTER" up --detach --data-dir "$DATA" "$@"; }
control_plane_pid() { cat "$DATA/run/muster.pid"; }

# eventually SECONDS COMMAND...: until it succeeds; fails with its last output. A busy machine has half a minute at least.
# Who has waited long looks less often: each look is a kubectl, which takes the processor from the others.
eventually() {
  local limit=$(($1 < 30 ? 30 : $1)) output=
  local start=$SECONDS
  shift
  while ! output=$("$@" 2>&1); do
    local waited=$((SECONDS - start))
    [ $waited -lt $limit ] || fail "not within $limit s: $* -> $output"
    if [ $waited -lt 10 ]; then pause 0.$((waited < 1 ? 1 : waited)); else pause 1; fi
  done
}
pause() { read -rt "$1" <> <(:) || true; } # pause SECONDS

# shows TEXT COMMAND...: until TEXT is in what it prints: events, conditions, logs, which are written after what they tell of.
shows() { eventually 60 prints "$@"; }
prints() { contains "$("${@:2}")" "$1" "what \`${*:2}\` prints"; }

# events_of NAME [REASON]: the messages of an object's events.
events_of() { kubectl get events -A --field-selector "involvedObject.name=$1${2:+,reason=$2}" -o 'jsonpath={.items[*].message}'; }

equals() { [ "$1" = "$2" ] || fail "${3:-value}: expected '$2', got '$1'"; }
contains() { [[ "$1" == *"$2"* ]] || fail "${3:-text}: expected to find '$2' in: $1"; }

# jsonpath OBJECT PATH: one field through stock kubectl.
jsonpath() { kubectl get "$1" -o "jsonpath={$2}"; }
job_condition() { # job_condition NAME TYPE: True, False or nothing
  kubectl get pytorchjob "$1" -o "jsonpath={.status.conditions[?(@.type==\"$2\")].status}"
}
job_is() { [ "$(job_condition "$1" "$2")" = True ]; }
pod_phase_is() { [ "$(jsonpath "pod/$1" .status.phase)" = "$2" ]; }

# A /dev of our own with stand-ins for what NVIDIA's driver would have made: own_dev GPUS.
own_dev() {
  mount -t tmpfs -o mode=755 dev /dev
  device() { mknod -m 666 "/dev/$1" c "$2" "$3"; }
  device null 1 3; device zero 1 5; device full 1 7; device random 1 8; device urandom 1 9; device tty 5 0
  local name
  for name in $(seq -f 'nvidia%.0f' 0 $(($1 - 1))) nvidiactl nvidia-uvm; do device "$name" 1 3; done
  mkdir /dev/shm /dev/pts && mount -t tmpfs shm /dev/shm && mount -t devpts devpts /dev/pts
  ln -s /proc/self/fd /dev/fd
}
# The library that stands in for NVIDIA's; what it reports is a text in $MUSTER_FAKE_NVML (tests/fake_nvml).
fake_nvml() { export MUSTER_FAKE_NVML=$SCRATCH/nvml MUSTER_NVML_LIBRARY=$(dirname "$MUSTER")/tests/fake_nvml/libfake-nvml.so; }
driver() { cat >"$MUSTER_FAKE_NVML.new" && mv "$MUSTER_FAKE_NVML.new" "$MUSTER_FAKE_NVML"; } # read at any moment: never half of it
