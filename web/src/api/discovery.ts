// Which kinds of jobs the server serves, and where.

import { JOB_KINDS, type JobKind } from '../model/job.ts';
import type { Client } from './client.ts';

export interface ServedKind extends JobKind {
  readonly path: string; // "/apis/kubeflow.org/v1/pytorchjobs"
}

export interface Discovery {
  readonly items: readonly {
    readonly metadata?: { readonly name?: string };
    readonly versions?: readonly {
      readonly version: string;
      readonly resources?: readonly { readonly resource: string }[];
    }[];
  }[];
}

const AGGREGATED = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';

export async function discover(client: Client): Promise<Discovery> {
  return client.json<Discovery>('/apis', AGGREGATED);
}

// In the first version of each group that has the kind: servers name the one that they prefer first.
export function servedJobKinds(discovery: Discovery): ServedKind[] {
  const served: ServedKind[] = [];
  for (const kind of JOB_KINDS) {
    const path = pathOf(discovery, kind.group, kind.plural);
    if (path !== '') served.push({ ...kind, path });
  }
  return served;
}

// Where one kind is; '' if it is not served.
export function pathOf(discovery: Discovery, group: string, plural: string): string {
  const served = discovery.items.find((one) => one.metadata?.name === group);
  const version = served?.versions?.find((one) => one.resources?.some((resource) => resource.resource === plural));
  return version === undefined ? '' : `/apis/${group}/${version.version}/${plural}`;
}

export function serves(discovery: Discovery, group: string): boolean {
  return discovery.items.some((one) => one.metadata?.name === group);
}
