import assert from 'node:assert/strict';
import { test } from 'node:test';

import { projectJob } from './job.ts';
import { projectPod } from './pod.ts';
import { waitingUnits } from './queue.ts';
import { gpuContainer, podObject } from './test_objects.ts';

const job = projectJob('PyTorchJob', { metadata: { name: 'ddp', namespace: 'default', uid: 'J' } });
const gang = (name: string, parts: object = {}, created = '2026-01-01T00:00:00Z') =>
  projectPod(
    podObject(name, {
      metadata: {
        creationTimestamp: created,
        annotations: { 'scheduling.k8s.io/group-name': 'ddp' },
        ownerReferences: [{ kind: 'PyTorchJob', name: 'ddp', uid: 'J', controller: true }],
      },
      spec: { containers: [gpuContainer(2)], ...parts },
      status: { conditions: [{ type: 'PodScheduled', status: 'False', message: 'gang ddp: 2 pods need 4 at once' }] },
    }),
  );

test('the pods of a gang wait as one', () => {
  const placed = gang('c', { nodeName: 'n' });
  const alone = projectPod(podObject('alone', { metadata: { creationTimestamp: '2025-12-31T00:00:00Z' } }));
  const over = projectPod(podObject('over', { status: { phase: 'Succeeded' } }));
  const units = waitingUnits([gang('a'), gang('b'), placed, alone, over], new Map([['J', job]]));
  assert.deepEqual(
    units.map((unit) => [unit.kind, unit.name, unit.pods, unit.placed, unit.gpus]),
    [
      ['Pod', 'alone', 1, 0, 0],
      ['PyTorchJob', 'ddp', 2, 1, 4],
    ],
  );
  assert.equal(units[1]?.why, 'gang ddp: 2 pods need 4 at once');
  assert.equal(units[1]?.link, '#/jobs/default/PyTorchJob/ddp');
  assert.equal(units[0]?.link, '#/pods/default/alone');
});

test('nothing waits', () => {
  assert.deepEqual(waitingUnits([gang('a', { nodeName: 'n' })], new Map()), []);
});

test('a job without quota waits before it has pods', () => {
  const owner = { kind: 'PyTorchJob', name: 'ddp', uid: 'J' };
  const held = {
    uid: 'W',
    ns: 'default',
    owner,
    queue: 'team',
    priority: 0,
    created: 1,
    waits: true,
    why: 'no quota',
    pods: 4,
    gpus: 8,
  };
  const [unit, ...others] = waitingUnits([], new Map([['J', job]]), [held, { ...held, uid: 'V', waits: false }]);
  assert.equal(others.length, 0);
  assert.deepEqual(
    [unit?.kind, unit?.name, unit?.pods, unit?.gpus, unit?.why, unit?.queue],
    ['PyTorchJob', 'ddp', 4, 8, 'no quota', 'team'],
  );
  assert.equal(unit?.link, '#/jobs/default/PyTorchJob/ddp');
});

test('a gated pod without quota is told once, with the reason of its queue', () => {
  const pod = projectPod(podObject('gated', { spec: { containers: [gpuContainer(1)] } }));
  const owner = { kind: 'Pod', name: 'gated', uid: pod.uid };
  const held = {
    uid: 'W',
    ns: 'default',
    owner,
    queue: 'team',
    priority: 0,
    created: 1,
    waits: true,
    why: 'no quota',
    pods: 1,
    gpus: 1,
  };
  const units = waitingUnits([pod], new Map(), [held]);
  assert.deepEqual(
    units.map((unit) => [unit.name, unit.why, unit.queue]),
    [['gated', 'no quota', 'team']],
  );
});
