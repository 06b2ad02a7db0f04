import assert from 'node:assert/strict';
import { test } from 'node:test';

import { parseFigures } from './figures.ts';

test('figures by GPU', () => {
  const figures = parseFigures(`# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).
# TYPE DCGM_FI_DEV_GPU_UTIL gauge
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-a",modelName="H100 {80}"} 87
DCGM_FI_DEV_GPU_UTIL{gpu="1",UUID="GPU-b"} 0
apiserver_request_total{verb="GET"} 12
DCGM_FI_DEV_FB_USED{UUID="GPU-a"} 4096
DCGM_FI_DEV_POWER_USAGE{UUID="GPU-a"} 312.5 1700000000000
DCGM_FI_DEV_XID_ERRORS{UUID="GPU-a"} 79
DCGM_FI_DEV_GPU_TEMP{UUID="GPU-a"} 61`);
  assert.deepEqual(figures.get('GPU-a'), { util: 87, memoryUsed: 4096, temperature: 61, power: 312.5 });
  assert.equal(figures.get('GPU-b')?.util, 0);
  assert.equal(figures.size, 2);
});

test('no figures', () => {
  assert.equal(parseFigures('').size, 0);
  assert.equal(parseFigures('DCGM_FI_DEV_GPU_UTIL{gpu="0"} 3\nDCGM_FI_DEV_GPU_UTIL').size, 0);
});
