// Who has which GPU: nodes and pods put together.

import type { Gpu, NodeRow } from './node.ts';
import type { PodRow } from './pod.ts';

export interface Slot {
  readonly gpu: Gpu;
  readonly pods: readonly PodRow[]; // several share it
}

export interface NodeUse {
  readonly node: NodeRow;
  readonly slots: readonly Slot[];
  readonly pods: number;
  readonly cpu: number; // requested
  readonly memory: number;
  readonly used: number; // GPUs that somebody has
  readonly unhealthy: number;
}

export function nodeUses(nodes: Iterable<NodeRow>, pods: Iterable<PodRow>): NodeUse[] {
  const byNode = new Map<string, PodRow[]>();
  for (const pod of pods) {
    if (pod.node === '' || pod.over) continue;
    const there = byNode.get(pod.node);
    if (there === undefined) byNode.set(pod.node, [pod]);
    else there.push(pod);
  }
  const uses = [...nodes].map((node) => nodeUse(node, byNode.get(node.name) ?? []));
  return uses.sort((a, b) => a.node.name.localeCompare(b.node.name, 'en', { numeric: true }));
}

export function nodeUse(node: NodeRow, pods: readonly PodRow[]): NodeUse {
  const slots = slotsOf(node, pods);
  return {
    node,
    slots,
    pods: pods.length,
    cpu: pods.reduce((all, pod) => all + pod.cpu, 0),
    memory: pods.reduce((all, pod) => all + pod.memory, 0),
    used: slots.filter((slot) => slot.pods.length > 0).length,
    unhealthy: slots.filter((slot) => slot.gpu.unhealthy !== '').length,
  };
}

// By name where the pod says which it has; whoever does not say is given the first that nobody has.
function slotsOf(node: NodeRow, pods: readonly PodRow[]): Slot[] {
  if (node.gpus.length === 0) return [];
  const holders = new Map<string, PodRow[]>(node.gpus.map((gpu) => [gpu.id, []]));
  const unnamed: PodRow[] = [];
  for (const pod of pods) {
    if (pod.gpus === 0) continue;
    const named = pod.devices.filter((id) => holders.has(id));
    for (const id of named) holders.get(id)?.push(pod);
    if (named.length === 0) unnamed.push(pod);
  }
  for (const pod of unnamed) {
    let wanted = Math.ceil(pod.gpus);
    for (const gpu of node.gpus) {
      if (wanted === 0) break;
      const there = holders.get(gpu.id);
      if (there === undefined || there.length > 0 || gpu.unhealthy !== '') continue;
      there.push(pod);
      --wanted;
    }
  }
  return node.gpus.map((gpu) => ({ gpu, pods: holders.get(gpu.id) ?? [] }));
}
