// For tests: objects as the API gives them.

import type { Node, Pod } from './kubernetes.ts';

type Parts<T> = { [K in keyof T]?: T[K] extends object | undefined ? Parts<NonNullable<T[K]>> : T[K] };

let uids = 0;

export function podObject(name: string, parts: Parts<Pod> = {}): Pod {
  return {
    metadata: {
      name,
      namespace: 'default',
      uid: `uid-${++uids}`,
      creationTimestamp: '2026-01-01T00:00:00Z',
      ...parts.metadata,
    },
    spec: { containers: [{ name: 'main' }], ...parts.spec },
    status: { phase: 'Pending', ...parts.status },
  } as unknown as Pod;
}

export function gpuContainer(gpus: number, env: { name: string; value: string }[] = []): object {
  return { name: 'main', env, resources: { limits: { 'nvidia.com/gpu': String(gpus) } } };
}

export function nodeObject(name: string, gpus: string[], parts: Parts<Node> = {}): Node {
  const devices = JSON.stringify({
    'nvidia.com/gpu': gpus.map((id, index) => ({ id, index, model: 'H100', memory: 80 * 2 ** 30 })),
  });
  return {
    metadata: {
      name,
      uid: `uid-${++uids}`,
      annotations: gpus.length === 0 ? {} : { 'muster.dev/devices': devices },
      ...parts.metadata,
    },
    spec: { ...parts.spec },
    status: {
      allocatable: { cpu: '8', memory: '64Gi' },
      conditions: [{ type: 'Ready', status: 'True' }],
      ...parts.status,
    },
  } as unknown as Node;
}

export function assigned(container: string, ids: string[]): Record<string, string> {
  return { 'muster.dev/assigned-devices': JSON.stringify({ [container]: { 'nvidia.com/gpu': ids } }) };
}
