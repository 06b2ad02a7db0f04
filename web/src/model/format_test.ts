import assert from 'node:assert/strict';
import { test } from 'node:test';

import { bytes, duration, hours, percent, plural, short } from './format.ts';

test('durations have two units at most', () => {
  const minute = 60_000,
    hour = 60 * minute,
    day = 24 * hour;
  for (const [span, text] of [
    [-5, '0s'],
    [59_999, '59s'],
    [minute, '1m'],
    [3 * minute + 20_000, '3m 20s'],
    [10 * minute + 20_000, '10m'],
    [5 * hour + 12 * minute, '5h 12m'],
    [day, '1d'],
    [3 * day + 4 * hour, '3d 4h'],
    [40 * day + hour, '40d'],
  ] as const)
    assert.equal(duration(span), text);
});

test('amounts are short', () => {
  assert.equal(bytes(448 * 2 ** 20), '448 MiB');
  assert.equal(bytes(23.5 * 2 ** 30), '23.5 GiB');
  assert.equal(bytes(0), '0 B');
  assert.equal(short(0.30000000000000004), '0.3');
  assert.equal(short(12345), '12,345');
  assert.equal(percent(0.294), '29 %');
  assert.equal(plural(1, 'GPU'), '1 GPU');
  assert.equal(plural(2000, 'GPU'), '2,000 GPUs');
});

test('a little of a GPU-hour is not nothing', () => {
  assert.deepEqual([0, 0.002, 0.0367, 9.5, 1234.5].map(hours), ['0', '< 0.01', '0.04', '9.50', '1,235']);
});
