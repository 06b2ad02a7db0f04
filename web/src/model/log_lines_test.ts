import assert from 'node:assert/strict';
import { test } from 'node:test';

import { LineBuffer } from './log_lines.ts';

const texts = (buffer: LineBuffer): string[] => buffer.lines.map((line) => line.text);

test('pieces become lines', () => {
  const buffer = new LineBuffer();
  buffer.add('a', '', 0, 'one\ntw');
  buffer.add('a', '', 0, 'o\nthree');
  assert.deepEqual(texts(buffer), ['one', 'two']);
  buffer.finish('a');
  assert.deepEqual(texts(buffer), ['one', 'two', 'three']);
});

test('several logs are one, by their times', () => {
  const buffer = new LineBuffer();
  buffer.add('a', 'r0', 0, '2026-01-01T00:00:01Z a1\n2026-01-01T00:00:03.5Z a2\n');
  buffer.add('b', 'r1', 1, '2026-01-01T00:00:01.2Z b1\n2026-01-01T00:00:03.45Z b2\n');
  buffer.settle();
  assert.deepEqual(
    buffer.lines.map((line) => [line.label, line.text]),
    [
      ['r0', 'a1'],
      ['r1', 'b1'],
      ['r1', 'b2'],
      ['r0', 'a2'],
    ],
  );
});

test('a log that is read again begins where it was', () => {
  const buffer = new LineBuffer();
  assert.equal(buffer.resume('a'), '');
  buffer.add('a', '', 0, '2026-01-01T00:00:01Z one\n2026-01-01T00:00:02Z two\n2026-01-01T00:00:02.5Z thr');
  assert.equal(buffer.resume('a'), '2026-01-01T00:00:02');
  buffer.add('a', '', 0, '2026-01-01T00:00:02Z two\n2026-01-01T00:00:02.5Z three\n');
  assert.deepEqual(texts(buffer), ['one', 'two', 'three']);
});

test('colours go, and of a progress bar the last state stays', () => {
  const buffer = new LineBuffer();
  buffer.add('a', '', 0, '\u001b[31mred\u001b[0m\n10%\r50%\r100%\r\n');
  assert.deepEqual(texts(buffer), ['red', '100%']);
});

test('there is a limit on lines and on each of them', () => {
  const buffer = new LineBuffer();
  buffer.add('a', '', 0, `${'x'.repeat(10_000)}\n`);
  assert.equal(buffer.lines[0]?.text.length, 4002);
  for (let i = 0; i < 20; ++i) buffer.add('a', '', 0, 'y\n'.repeat(1000));
  assert.ok(buffer.lines.length <= 11_000);
});
