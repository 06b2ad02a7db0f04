import assert from 'node:assert/strict';
import { test } from 'node:test';

import { projectPod } from './pod.ts';
import { assigned, gpuContainer, podObject } from './test_objects.ts';

test('a waiting pod says why', () => {
  const pod = projectPod(
    podObject('p', {
      status: {
        conditions: [
          { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: '0/1 nodes are available' },
        ],
      },
    }),
  );
  assert.equal(pod.state, 'Pending');
  assert.equal(pod.why, '0/1 nodes are available');
  assert.equal(pod.node, '');
  assert.equal(pod.started, 0);
});

test('GPUs, whole and in shares, and which ones', () => {
  const whole = projectPod(
    podObject('p', {
      metadata: { annotations: assigned('main', ['GPU-1', 'GPU-0']) },
      spec: { containers: [gpuContainer(2)] },
    }),
  );
  assert.equal(whole.gpus, 2);
  assert.deepEqual(whole.devices, ['GPU-1', 'GPU-0']);
  const share = projectPod(
    podObject('q', {
      metadata: { annotations: assigned('main', ['GPU-1::3']) },
      spec: { containers: [{ name: 'main', resources: { limits: { 'muster.dev/gpu-milli': '300' } } }] },
    }),
  );
  assert.equal(share.gpus, 0.3);
  assert.deepEqual(share.devices, ['GPU-1']);
});

test('its rank is what its program sees, else its index', () => {
  const labels = {
    'training.kubeflow.org/job-name': 'ddp',
    'training.kubeflow.org/replica-type': 'worker',
    'training.kubeflow.org/replica-index': '2',
  };
  const ranked = projectPod(
    podObject('w', { metadata: { labels }, spec: { containers: [gpuContainer(1, [{ name: 'RANK', value: '3' }])] } }),
  );
  assert.deepEqual([ranked.job, ranked.role, ranked.rank], ['ddp', 'worker', 3]);
  assert.equal(projectPod(podObject('x', { metadata: { labels } })).rank, 2);
  assert.equal(projectPod(podObject('y')).rank, -1);
});

test('states as kubectl shows them', () => {
  const state = (status: object, meta: object = {}): string =>
    projectPod(podObject('p', { status, metadata: meta })).state;
  assert.equal(
    state({
      phase: 'Running',
      containerStatuses: [{ name: 'main', state: { waiting: { reason: 'CrashLoopBackOff' } } }],
    }),
    'CrashLoopBackOff',
  );
  assert.equal(
    state({
      phase: 'Failed',
      containerStatuses: [{ name: 'main', state: { terminated: { exitCode: 137, reason: 'OOMKilled' } } }],
    }),
    'OOMKilled',
  );
  assert.equal(state({ phase: 'Running' }, { deletionTimestamp: '2026-01-01T00:00:00Z' }), 'Terminating');
  assert.equal(state({ phase: 'Failed', reason: 'Evicted' }), 'Evicted');
  assert.equal(state({ phase: 'Succeeded' }), 'Succeeded');
});

test('a failed pod says how it ended', () => {
  const pod = projectPod(
    podObject('p', {
      status: {
        phase: 'Failed',
        startTime: '2026-01-01T00:00:00Z',
        containerStatuses: [
          { name: 'main', restartCount: 2, state: { terminated: { exitCode: 3, finishedAt: '2026-01-01T00:05:00Z' } } },
        ],
      },
    }),
  );
  assert.equal(pod.why, 'Container main exited with 3');
  assert.equal(pod.restarts, 2);
  assert.equal(pod.ended - pod.started, 300_000);
});

test('init containers count as the scheduler counts them', () => {
  const cpu = (amount: string): object => ({ requests: { cpu: amount } });
  const pod = projectPod(
    podObject('p', {
      spec: {
        containers: [{ name: 'a', resources: cpu('1') }],
        initContainers: [
          { name: 'i', resources: cpu('3') },
          { name: 's', restartPolicy: 'Always', resources: cpu('1') },
        ],
      },
    }),
  );
  assert.equal(pod.cpu, 3);
});
