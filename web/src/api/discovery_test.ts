import assert from 'node:assert/strict';
import { test } from 'node:test';

import { inScope } from './cluster.ts';
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

test('a token that is confined to a namespace asks there', () => {
  assert.equal(inScope('/apis/batch/v1/jobs', 'team-a'), '/apis/batch/v1/namespaces/team-a/jobs');
  assert.equal(inScope('/api/v1/pods', 'team-a'), '/api/v1/namespaces/team-a/pods');
  assert.equal(inScope('/api/v1/pods', ''), '/api/v1/pods');
  assert.equal(inScope('', 'team-a'), '');
});
