import assert from 'node:assert/strict';
import { test } from 'node:test';

import { parseRoute } from './route.ts';

test('where an address leads', () => {
  assert.deepEqual(parseRoute(''), { page: 'nodes' });
  assert.deepEqual(parseRoute('#/nodes/a%2Fb'), { page: 'node', name: 'a/b' });
  assert.deepEqual(parseRoute('#/jobs'), { page: 'jobs' });
  assert.deepEqual(parseRoute('#/jobs/team/PyTorchJob/ddp'), {
    page: 'job',
    ns: 'team',
    kind: 'PyTorchJob',
    name: 'ddp',
  });
  assert.deepEqual(parseRoute('#/pods/default/x'), { page: 'pod', ns: 'default', name: 'x' });
  assert.deepEqual(parseRoute('#/nonsense'), { page: 'nodes' });
  assert.deepEqual(parseRoute('#/nodes/%'), { page: 'nodes' });
});
