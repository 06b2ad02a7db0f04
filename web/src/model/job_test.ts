import assert from 'node:assert/strict';
import { test } from 'node:test';

import { podsByJob, projectJob, viewJob } from './job.ts';
import { projectPod } from './pod.ts';
import { gpuContainer, podObject } from './test_objects.ts';

const condition = (type: string, message = ''): object => ({
  type,
  status: 'True',
  message,
  lastTransitionTime: '2026-01-01T00:10:00Z',
});
const object = (spec: object, status: object = {}, meta: object = {}) => ({
  metadata: { name: 'j', namespace: 'default', uid: 'J', creationTimestamp: '2026-01-01T00:00:00Z', ...meta },
  spec,
  status,
});

test('phases of training jobs', () => {
  const phase = (...types: string[]): string =>
    projectJob('PyTorchJob', object({}, { conditions: types.map((type) => condition(type)) })).phase;
  assert.equal(phase('Created'), 'Waiting');
  assert.equal(phase('Created', 'Running'), 'Running');
  assert.equal(phase('Created', 'Restarting'), 'Restarting');
  assert.equal(phase('Created', 'Succeeded'), 'Succeeded');
  assert.equal(phase('Created', 'Failed'), 'Failed');
  assert.equal(phase('Created', 'Suspended'), 'Suspended');
  assert.equal(phase(), 'Waiting');
});

test('phases of Jobs, JobSets, Ray and serving', () => {
  assert.equal(projectJob('Job', object({}, { active: 2 })).phase, 'Running');
  assert.equal(projectJob('Job', object({}, { conditions: [condition('Complete')] })).phase, 'Succeeded');
  assert.equal(
    projectJob('JobSet', object({}, { conditions: [condition('Completed')] })).ended,
    Date.parse('2026-01-01T00:10:00Z'),
  );
  assert.equal(projectJob('RayJob', object({}, { jobStatus: 'RUNNING' })).phase, 'Running');
  assert.equal(projectJob('RayJob', object({}, { jobStatus: 'FAILED', message: 'no' })).why, 'no');
  assert.equal(projectJob('RayCluster', object({}, { state: 'ready' })).phase, 'Running');
  const unready = { type: 'Ready', status: 'False', message: 'the predictor is not ready' };
  assert.equal(projectJob('InferenceService', object({}, { conditions: [unready] })).why, 'the predictor is not ready');
});

test('how many pods a job wants', () => {
  const wanted = (kind: string, spec: object): number => projectJob(kind, object(spec)).wanted;
  assert.equal(wanted('PyTorchJob', { pytorchReplicaSpecs: { Master: {}, Worker: { replicas: 3 } } }), 4);
  assert.equal(wanted('Job', { parallelism: 4, completions: 2 }), 2);
  assert.equal(wanted('Job', { parallelism: 4 }), 4);
  assert.equal(
    wanted('JobSet', {
      replicatedJobs: [{ replicas: 2, template: { spec: { parallelism: 3 } } }, { template: { spec: {} } }],
    }),
    7,
  );
  assert.equal(wanted('RayJob', { rayClusterSpec: { headGroupSpec: {}, workerGroupSpecs: [{ replicas: 2 }] } }), 3);
  assert.equal(wanted('InferenceService', {}), 0);
});

const member = (name: string, parts: object, labels: object = {}) =>
  projectPod(
    podObject(name, {
      metadata: {
        labels: labels as Record<string, string>,
        ownerReferences: [{ kind: 'PyTorchJob', name: 'j', uid: 'J', controller: true }],
      },
      spec: { containers: [gpuContainer(1)] },
      ...parts,
    }),
  );

test('a job of which nothing has a place waits, and says why', () => {
  const job = projectJob('PyTorchJob', object({}, { conditions: [condition('Created', 'PyTorchJob j is created.')] }));
  const waits = member('a', {
    status: { conditions: [{ type: 'PodScheduled', status: 'False', message: 'no GPUs' }] },
  });
  const view = viewJob(job, [waits]);
  assert.deepEqual([view.phase, view.why, view.gpus, view.gpusWanted], ['Waiting', 'no GPUs', 0, 1]);
});

test('leaders come first, then the ranks', () => {
  const job = projectJob('PyTorchJob', object({}));
  const role = (type: string, index: string): object => ({
    'training.kubeflow.org/replica-type': type,
    'training.kubeflow.org/replica-index': index,
  });
  const pods = [
    member('w10', {}, role('worker', '10')),
    member('w2', {}, role('worker', '2')),
    member('m', {}, role('master', '0')),
  ];
  assert.deepEqual(
    viewJob(job, pods).pods.map((pod) => pod.name),
    ['m', 'w2', 'w10'],
  );
});

test('a job whose pods do not come to run is not called running', () => {
  const job = projectJob('PyTorchJob', object({}, { conditions: [condition('Running')] }));
  const loops = projectPod(
    podObject('a', {
      spec: { nodeName: 'n' },
      status: {
        phase: 'Running',
        containerStatuses: [
          { name: 'main', state: { waiting: { reason: 'CrashLoopBackOff', message: 'back-off 10s' } } },
        ],
      },
    }),
  );
  const view = viewJob(job, [loops]);
  assert.deepEqual([view.phase, view.why, view.running], ['CrashLoopBackOff', 'Container main: back-off 10s', 0]);
});

test('pods belong to their job, to the job above it, or to the one that their labels name', () => {
  const set = projectJob('JobSet', object({}, {}, { uid: 'S', name: 's' }));
  const part = projectJob(
    'Job',
    object(
      {},
      {},
      { uid: 'P', name: 's-part', ownerReferences: [{ kind: 'JobSet', name: 's', uid: 'S', controller: true }] },
    ),
  );
  const service = projectJob('InferenceService', object({}, {}, { uid: 'I', name: 'llm' }));
  const owned = projectPod(
    podObject('a', { metadata: { ownerReferences: [{ kind: 'Job', name: 's-part', uid: 'P', controller: true }] } }),
  );
  const labelled = projectPod(
    podObject('b', {
      metadata: {
        labels: { 'serving.kserve.io/inferenceservice': 'llm' },
        ownerReferences: [{ kind: 'ReplicaSet', name: 'r', uid: 'R', controller: true }],
      },
    }),
  );
  const other = projectPod(
    podObject('c', { metadata: { namespace: 'elsewhere', labels: { 'serving.kserve.io/inferenceservice': 'llm' } } }),
  );
  const names = (uid: string): string[] | undefined =>
    podsByJob([set, part, service], [owned, labelled, other])
      .get(uid)
      ?.map((pod) => pod.name);
  assert.deepEqual([names('P'), names('S'), names('I')], [['a'], ['a'], ['b']]);
});
