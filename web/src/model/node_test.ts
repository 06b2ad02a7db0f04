import assert from 'node:assert/strict';
import { test } from 'node:test';

import { projectNode } from './node.ts';
import { nodeObject } from './test_objects.ts';

test('a node says which GPUs it has', () => {
  const node = projectNode(nodeObject('a', ['GPU-0', 'GPU-1']));
  assert.deepEqual(
    node.gpus.map((gpu) => [gpu.id, gpu.index, gpu.model]),
    [
      ['GPU-0', 0, 'H100'],
      ['GPU-1', 1, 'H100'],
    ],
  );
  assert.equal(node.model, 'H100');
  assert.equal(node.ready, true);
  assert.equal(node.memory, 64 * 2 ** 30);
});

test('shares of one GPU are one GPU', () => {
  const devices = JSON.stringify({
    'nvidia.com/gpu.shared': [
      { id: 'GPU-a::0', index: 0 },
      { id: 'GPU-a::1', index: 1 },
      { id: 'GPU-b::0', index: 2, unhealthy: 'XID 79' },
    ],
  });
  const node = projectNode(nodeObject('a', [], { metadata: { annotations: { 'muster.dev/devices': devices } } }));
  assert.deepEqual(
    node.gpus.map((gpu) => [gpu.id, gpu.unhealthy]),
    [
      ['GPU-a', ''],
      ['GPU-b', 'XID 79'],
    ],
  );
});

test('a node of another Kubernetes only counts them', () => {
  const node = projectNode(
    nodeObject('b', [], {
      status: { capacity: { 'nvidia.com/gpu': '4' } },
      metadata: { labels: { 'nvidia.com/gpu.product': 'A100' } },
    }),
  );
  assert.deepEqual(
    node.gpus.map((gpu) => gpu.id),
    ['b/0', 'b/1', 'b/2', 'b/3'],
  );
  assert.equal(node.model, 'A100');
});

test('an annotation that is no JSON is no GPU', () => {
  assert.deepEqual(
    projectNode(nodeObject('c', [], { metadata: { annotations: { 'muster.dev/devices': '{' } } })).gpus,
    [],
  );
});

test('why a node is not ready', () => {
  const lost = projectNode(
    nodeObject('d', [], {
      status: { conditions: [{ type: 'Ready', status: 'Unknown', message: 'Kubelet stopped posting node status.' }] },
    }),
  );
  assert.equal(lost.ready, false);
  assert.equal(lost.trouble, 'Kubelet stopped posting node status.');
  assert.equal(
    projectNode(nodeObject('e', [], { status: { conditions: [] } })).trouble,
    'The node has not reported yet',
  );
});
