// What the page keeps of a Node.

import { type Node, timeOf } from './kubernetes.ts';
import { quantity } from './quantity.ts';

const GPU = 'nvidia.com/gpu';
const SHARED_GPU = 'nvidia.com/gpu.shared';
const DEVICES = 'muster.dev/devices';

export interface Gpu {
  readonly id: string;
  readonly index: number;
  readonly model: string;
  readonly memory: number; // bytes, 0: not known
  readonly unhealthy: string; // why no pod may get it, '': it is fine
}

export interface NodeRow {
  readonly uid: string;
  readonly name: string;
  readonly created: number;
  readonly ready: boolean;
  readonly trouble: string; // one sentence about why it is not ready, '' if it is
  readonly cordoned: boolean;
  readonly gpus: readonly Gpu[];
  readonly model: string; // of its GPUs
  readonly cpu: number; // cores that pods may have
  readonly memory: number; // bytes
  readonly taints: readonly string[];
  readonly version: string;
}

export function projectNode(node: Node): NodeRow {
  const ready = node.status?.conditions?.find((one) => one.type === 'Ready');
  const gpus = gpusOf(node);
  return {
    uid: node.metadata.uid,
    name: node.metadata.name,
    created: timeOf(node.metadata.creationTimestamp),
    ready: ready?.status === 'True',
    trouble: ready?.status === 'True' ? '' : ready?.message || ready?.reason || 'The node has not reported yet',
    cordoned: node.spec?.unschedulable === true,
    gpus,
    model: gpus[0]?.model ?? '',
    cpu: quantity(node.status?.allocatable?.['cpu']),
    memory: quantity(node.status?.allocatable?.['memory']),
    taints: (node.spec?.taints ?? []).map((t) => `${t.key}${t.value ? `=${t.value}` : ''}:${t.effect}`),
    version: node.status?.nodeInfo?.kubeletVersion ?? '',
  };
}

// Those that the node describes; where none are described (another Kubernetes) so many without a name as it offers.
function gpusOf(node: Node): Gpu[] {
  const described = describedGpus(node.metadata.annotations?.[DEVICES]);
  if (described.length > 0) return described;
  const capacity = quantity(node.status?.capacity?.[GPU] ?? node.status?.allocatable?.[GPU]);
  const labels = node.metadata.labels ?? {};
  const memory = quantity(labels['nvidia.com/gpu.memory']) * 2 ** 20;
  return Array.from({ length: Math.min(capacity, 128) }, (_, index) => ({
    id: `${node.metadata.name}/${index}`,
    index,
    model: labels['nvidia.com/gpu.product'] ?? '',
    memory,
    unhealthy: '',
  }));
}

function describedGpus(annotation: string | undefined): Gpu[] {
  if (annotation === undefined) return [];
  let lists: Record<string, Record<string, unknown>[]>;
  try {
    lists = JSON.parse(annotation) as typeof lists;
  } catch {
    return [];
  }
  const gpus = new Map<string, Gpu>();
  for (const device of [...(lists[GPU] ?? []), ...(lists[SHARED_GPU] ?? [])]) {
    const id = gpuOf(String(device['id'] ?? ''));
    if (id === '' || gpus.has(id)) continue; // another share of the same one
    gpus.set(id, {
      id,
      index: Number(device['index'] ?? gpus.size),
      model: String(device['model'] ?? ''),
      memory: Number(device['memory'] ?? 0),
      unhealthy: String(device['unhealthy'] ?? ''),
    });
  }
  return [...gpus.values()].sort((a, b) => a.index - b.index);
}

// "GPU-a::2" is a share of GPU-a.
export function gpuOf(id: string): string {
  const at = id.indexOf('::');
  return at < 0 ? id : id.slice(0, at);
}
