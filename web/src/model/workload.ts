// Workloads of Kueue: jobs that are held back until all their pods have quota.

import type { Owner } from './pod.ts';
import { type AnyObject, conditionsOf, controllerOf, count, list, record, text, timeOf } from './kubernetes.ts';
import { quantity } from './quantity.ts';

export interface WorkloadRow {
  readonly uid: string;
  readonly ns: string;
  readonly owner: Owner | undefined; // the job that it stands for
  readonly queue: string;
  readonly priority: number;
  readonly created: number;
  readonly waits: boolean;
  readonly why: string;
  readonly pods: number;
  readonly gpus: number;
}

export function projectWorkload(object: AnyObject): WorkloadRow {
  const spec = record(object.spec);
  const conditions = conditionsOf(object);
  const holds = (type: string): boolean => conditions.some((one) => one.type === type && one.status === 'True');
  const owner = controllerOf(object.metadata);
  const sets = list(spec['podSets']).map(record);
  return {
    uid: object.metadata.uid,
    ns: object.metadata.namespace ?? '',
    owner: owner === undefined ? undefined : { kind: owner.kind, name: owner.name, uid: owner.uid },
    queue: text(spec['queueName']),
    priority: count(spec['priority']),
    created: timeOf(object.metadata.creationTimestamp),
    waits: !holds('QuotaReserved') && !holds('Finished'),
    why: conditions.find((one) => one.type === 'QuotaReserved')?.message ?? '',
    pods: sets.reduce((all, set) => all + count(set['count']), 0),
    gpus: sets.reduce((all, set) => all + count(set['count']) * gpusOf(set['template']), 0),
  };
}

function gpusOf(template: unknown): number {
  let gpus = 0;
  for (const container of list(record(record(template)['spec'])['containers'])) {
    const resources = record(record(container)['resources']);
    const amounts = { ...record(resources['limits']), ...record(resources['requests']) };
    gpus += quantity(amounts['nvidia.com/gpu'] as string | number | undefined);
    gpus += quantity(amounts['muster.dev/gpu-milli'] as string | number | undefined) / 1000;
  }
  return gpus;
}
