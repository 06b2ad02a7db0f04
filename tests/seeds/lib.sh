# Shared by tests/seeds/ARTICLE/NN-heading.sh. Each is named after the block of the article that it shows, as is our copy of it
# in examples/seeds, if it has one. Source it; run the tests through tests/netbox/netbox.
EXAMPLE=examples/seeds/$(basename "$(dirname "$0")")/$(basename "$0" .sh).yaml
source "$(dirname "${BASH_SOURCE[0]}")/../live/lib.sh"

# a100 COUNT: this machine has so many, as NVIDIA's stand-in says, joined by NVLinks.
a100() {
  own_dev "$1"
  fake_nvml
  local gpu peer
  for ((gpu = 0; gpu < $1; gpu++)); do
    printf 'gpu GPU-%d\nmodel NVIDIA A100-SXM4-40GB\nmemory 42949672960\n' $gpu
    for ((peer = 0; peer < $1; peer++)); do [ $peer = $gpu ] || printf 'link GPU-%d 12\n' $peer; done
  done | driver
}
# The images of the articles are not here: their pods see this machine's root (docs/adr/0007).
up_machine() { up --images machine "$@"; }
real_node() { kubectl get nodes -l '!muster.dev/simulated' -o 'jsonpath={.items[0].metadata.name}'; }
taint() { kubectl taint node "$(real_node)" "$@"; }

# What the articles ask of CPU and memory, cut down to what every machine has.
fit() { sed -E 's/^( +"?cpu"?: ).*/\1100m/; s/^( +"?memory"?: ).*/\1256Mi/' "$@"; }

has_event() { contains "$(events_of "$1" "$2")" "$3" "events $2 of $1"; }
why_pending() { jsonpath "pod/$1" '.status.conditions[?(@.type=="PodScheduled")].message'; }
waits_for() { contains "$(why_pending "$1")" "$2" "what $1 waits for"; }
node_of() { jsonpath "pod/$1" .spec.nodeName; }
