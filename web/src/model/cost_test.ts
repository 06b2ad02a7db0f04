import assert from 'node:assert/strict';
import { test } from 'node:test';

import { spenders } from './cost.ts';
import type { Figures } from './figures.ts';
import { projectPod } from './pod.ts';
import { assigned, gpuContainer, podObject } from './test_objects.ts';

const NOW = Date.parse('2026-01-01T10:00:00Z');
const runs = projectPod(
  podObject('a', {
    metadata: { namespace: 'red', annotations: assigned('main', ['G0', 'G1']), labels: { 'job-name': 'train' } },
    spec: { containers: [gpuContainer(2)] },
    status: { phase: 'Running', startTime: '2026-01-01T00:00:00Z' },
  }),
);
const ended = projectPod(
  podObject('b', {
    metadata: { namespace: 'red' },
    spec: { containers: [gpuContainer(1)] },
    status: {
      phase: 'Succeeded',
      startTime: '2026-01-01T00:00:00Z',
      containerStatuses: [{ name: 'main', state: { terminated: { exitCode: 0, finishedAt: '2026-01-01T03:00:00Z' } } }],
    },
  }),
);
const figures = new Map<string, Figures>([
  ['G0', { util: 0, memoryUsed: 0, temperature: 0, power: 0 }],
  ['G1', { util: 95, memoryUsed: 0, temperature: 0, power: 0 }],
]);

test('GPU-hours by namespace and by job', () => {
  assert.deepEqual(
    spenders([runs, ended], figures, NOW, 'namespace').map((one) => [
      one.ns,
      one.gpuHours,
      one.gpus,
      one.idleGpus,
      one.pods,
    ]),
    [['red', 23, 2, 1, 2]],
  );
  assert.deepEqual(
    spenders([runs, ended], figures, NOW, 'job').map((one) => [one.name, one.gpuHours, one.gpus]),
    [
      ['train', 20, 2],
      ['b', 3, 0],
    ],
  );
});

test('what has not begun, or has no GPU, costs nothing', () => {
  const waits = projectPod(podObject('w', { spec: { containers: [gpuContainer(1)] } }));
  const cpu = projectPod(podObject('c', { status: { phase: 'Running', startTime: '2026-01-01T00:00:00Z' } }));
  assert.deepEqual(spenders([waits, cpu], figures, NOW, 'namespace'), []);
});
