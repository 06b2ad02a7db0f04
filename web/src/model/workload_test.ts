import assert from 'node:assert/strict';
import { test } from 'node:test';

import { projectWorkload } from './workload.ts';

const template = { spec: { containers: [{ name: 'main', resources: { limits: { 'nvidia.com/gpu': '2' } } }] } };
const workload = (conditions: object[]) =>
  projectWorkload({
    metadata: {
      name: 'pytorchjob-ddp-1',
      namespace: 'team',
      uid: 'W',
      ownerReferences: [{ kind: 'PyTorchJob', name: 'ddp', uid: 'J', controller: true }],
    },
    spec: {
      queueName: 'team',
      priority: 7,
      podSets: [
        { name: 'master', count: 1, template },
        { name: 'worker', count: 3, template },
      ],
    },
    status: { conditions },
  });

test('a job that has no quota yet', () => {
  const message = "couldn't assign flavors to pod set worker: 2 more needed";
  const waits = workload([{ type: 'QuotaReserved', status: 'False', reason: 'Pending', message }]);
  assert.deepEqual(
    [waits.waits, waits.why, waits.pods, waits.gpus, waits.queue, waits.owner?.uid],
    [true, message, 4, 8, 'team', 'J'],
  );
  assert.equal(workload([]).waits, true);
});

test('a job that has quota, or is over', () => {
  assert.equal(workload([{ type: 'QuotaReserved', status: 'True' }]).waits, false);
  assert.equal(
    workload([
      { type: 'QuotaReserved', status: 'False' },
      { type: 'Finished', status: 'True' },
    ]).waits,
    false,
  );
});
