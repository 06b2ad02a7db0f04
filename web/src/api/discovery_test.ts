import assert from 'node:assert/strict';
import { test } from 'node:test';

import { servedJobKinds, serves } from './discovery.ts';

const group = (name: string, ...versions: [string, string[]][]) => ({
  metadata: { name },
  versions: versions.map(([version, plurals]) => ({ version, resources: plurals.map((resource) => ({ resource })) })),
});

test('kinds are shown in the first version that has them', () => {
  const discovery = {
    items: [
      group('kubeflow.org', ['v2beta1', ['mpijobs']], ['v1', ['pytorchjobs', 'mpijobs']]),
      group('batch', ['v1', ['jobs', 'cronjobs']]),
    ],
  };
  assert.deepEqual(
    servedJobKinds(discovery).map((one) => [one.kind, one.path]),
    [
      ['PyTorchJob', '/apis/kubeflow.org/v1/pytorchjobs'],
      ['MPIJob', '/apis/kubeflow.org/v2beta1/mpijobs'],
      ['Job', '/apis/batch/v1/jobs'],
    ],
  );
  assert.equal(serves(discovery, 'batch'), true);
  assert.equal(serves(discovery, 'ray.io'), false);
});
