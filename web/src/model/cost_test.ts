import assert from 'node:assert/strict';
import { test } from 'node:test';

import { type Grouping, spenders } from './cost.ts';
import type { Figures } from './figures.ts';
import { pastOf, projectLedger } from './ledger.ts';
import { projectPod } from './pod.ts';
import { assigned, gpuContainer, podObject } from './test_objects.ts';

const at = (hour: number): number => Date.parse('2026-01-02T00:00:00Z') + hour * 3600_000;
const owner = { kind: 'PyTorchJob', name: 'train', uid: 'J', controller: true };
const runs = projectPod(
  podObject('a', {
    metadata: { namespace: 'red', annotations: assigned('main', ['G0', 'G1']), ownerReferences: [owner] },
    spec: { containers: [gpuContainer(2)] },
    status: { phase: 'Running', startTime: '2026-01-02T00:00:00Z' },
  }),
);
const ended = projectPod(
  podObject('b', {
    metadata: { namespace: 'red' },
    spec: { containers: [gpuContainer(1)] },
    status: {
      phase: 'Succeeded',
      startTime: '2026-01-02T00:00:00Z',
      containerStatuses: [{ name: 'main', state: { terminated: { exitCode: 0, finishedAt: '2026-01-02T03:00:00Z' } } }],
    },
  }),
);
const figure = (util: number): Figures => ({ util, memoryUsed: 0, temperature: 0, power: 0 });
const figures = new Map<string, Figures>([
  ['G0', figure(0)],
  ['G1', figure(95)],
]);
const ledger = (name: string, from: number, to: number, gpuMilliSeconds: number, workload = 'pytorchjob/train') =>
  projectLedger({
    metadata: { name, uid: name },
    spec: {
      pods: [
        {
          namespace: 'red',
          workload,
          from: new Date(from).toISOString(),
          to: new Date(to).toISOString(),
          pods: 1,
          gpuMilliSeconds: { H100: gpuMilliSeconds },
        },
      ],
    },
  });
const question = (by: Grouping, since = at(-100)) => ({ by, since, now: at(10) });

test('GPU-hours by namespace and by job', () => {
  const rows = spenders([runs, ended], [], figures, question('namespace'));
  assert.deepEqual(
    rows.map((one) => [one.ns, one.gpuHours, one.gpus, one.idleGpus, one.pods]),
    [['red', 23, 2, 1, 2]],
  );
  assert.deepEqual(
    spenders([runs, ended], [], figures, question('job')).map((one) => [one.kind, one.name, one.gpuHours, one.gpus]),
    [
      ['pytorchjob', 'train', 20, 2],
      ['pod', 'b', 3, 0],
    ],
  );
});

test('pods that are gone count as they were written down', () => {
  const past = pastOf([ledger('b-20260102-01-x', at(1), at(2), 3600_000)]);
  assert.deepEqual(
    spenders([runs], past, figures, question('job')).map((one) => [one.name, one.gpuHours, one.pods, one.gpus]),
    [['train', 21, 2, 2]],
  );
});

test('only what lies within the time that is asked about', () => {
  const past = pastOf([ledger('h-20260101-00', at(7), at(9), 7200_000)]);
  const rows = spenders([runs, ended], past, figures, question('namespace', at(8)));
  assert.deepEqual(
    rows.map((one) => [one.gpuHours, one.pods]),
    [[5, 2]],
    'two GPUs for two hours, and half of what is gone',
  );
});

test('an hour stands for its batches, a day for its hours', () => {
  const all = [
    ledger('b-20260102-01-x', 0, 1, 1000),
    ledger('b-20260102-02-x', 0, 1, 2000),
    ledger('h-20260102-01', 0, 1, 4000),
    ledger('h-20260103-05', 0, 1, 8000),
    ledger('b-20260104-00-x', 0, 1, 16000),
    ledger('d-20260103', 0, 1, 32000),
    projectLedger({ metadata: { name: 'seen', uid: 'seen' }, spec: { seenUntil: 'x' } }),
  ];
  const sum = pastOf(all).reduce((hours, one) => hours + one.gpuHours * 3600, 0);
  assert.equal(sum, 2 + 4 + 16 + 32);
});

test('what has not begun, or has no GPU, costs nothing', () => {
  const waits = projectPod(podObject('w', { spec: { containers: [gpuContainer(1)] } }));
  const cpu = projectPod(podObject('c', { status: { phase: 'Running', startTime: '2026-01-01T00:00:00Z' } }));
  assert.deepEqual(spenders([waits, cpu], [], figures, question('namespace')), []);
});
