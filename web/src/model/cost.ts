// GPU-hours of the pods that the cluster knows: from the start of each to its end, or to now. Pods that were deleted are
// not in it.

import type { Figures } from './figures.ts';
import type { PodRow } from './pod.ts';

export interface Spender {
  readonly key: string;
  readonly ns: string;
  readonly name: string; // of the job, or the pod; '' for a whole namespace
  readonly kind: string;
  readonly pods: number;
  readonly gpus: number; // held at the moment
  readonly gpuHours: number;
  readonly idleGpus: number; // held, and measured to do nothing
  readonly measured: number; // held, and measured at all
}

export const IDLE_PERCENT = 5;
const HOUR = 3600 * 1000;

export type Grouping = 'namespace' | 'job';

// The most GPU-hours first.
export function spenders(
  pods: Iterable<PodRow>,
  figures: ReadonlyMap<string, Figures>,
  now: number,
  by: Grouping,
): Spender[] {
  const out = new Map<string, { -readonly [K in keyof Spender]: Spender[K] }>();
  for (const pod of pods) {
    if (pod.gpus === 0 || pod.started === 0) continue;
    const name = by === 'namespace' ? '' : pod.job || pod.owner?.name || pod.name;
    const key = `${pod.ns}/${name}`;
    let one = out.get(key);
    if (one === undefined) {
      const kind = by === 'namespace' ? 'Namespace' : (pod.owner?.kind ?? 'Pod');
      out.set(key, (one = { key, ns: pod.ns, name, kind, pods: 0, gpus: 0, gpuHours: 0, idleGpus: 0, measured: 0 }));
    }
    ++one.pods;
    one.gpuHours += (pod.gpus * Math.max(0, (pod.over ? pod.ended : now) - pod.started)) / HOUR;
    if (pod.over) continue;
    one.gpus += pod.gpus;
    const share = pod.devices.length === 0 ? 0 : pod.gpus / pod.devices.length;
    for (const device of pod.devices) {
      const util = figures.get(device)?.util;
      if (util === undefined) continue;
      one.measured += share;
      if (util < IDLE_PERCENT) one.idleGpus += share;
    }
  }
  return [...out.values()].sort((a, b) => b.gpuHours - a.gpuHours || a.key.localeCompare(b.key));
}
