import assert from 'node:assert/strict'
import { test } from 'node:test'
import { shownDuration, shownNs, tableText } from '../../../../../src/client/command/common/list-output.ts'

interface Row {
  readonly name: string | null
  readonly bytes: number | null
}

const COLUMNS = [
  { title: 'name', value: ({ name }: Row) => name },
  {
    title: 'bytes',
    value: ({ bytes }: Row) => bytes,
    shown: ({ bytes }: Row) => (bytes === null ? '-' : `${bytes} kB`),
  },
  { title: 'end', value: () => 'x' },
]

test('numbers are right-aligned, everything else left-aligned', () => {
  const rows = [
    { name: 'a', bytes: 5 },
    { name: 'longer', bytes: 1_200 },
    { name: null, bytes: null },
  ]
  assert.equal(
    tableText(rows, COLUMNS),
    ['NAME      BYTES  END', 'a          5 kB  x', 'longer  1200 kB  x', '-             -  x', ''].join('\n'),
  )
})

test('no entry is a line of titles alone', () => {
  assert.equal(tableText([], COLUMNS), 'NAME  BYTES  END\n')
})

test('what a device calls its things moves no cursor', () => {
  assert.ok(!tableText([{ name: 'a\u001b[2J\nb\u009b', bytes: 1 }], COLUMNS).includes('\u001b'))
  assert.match(tableText([{ name: 'a\u001b[2J\nb', bytes: 1 }], COLUMNS), /^a\?\[2J\?b /m)
})

test('times and durations are short', () => {
  assert.equal(shownNs('1793610000123456789'), '2026-11-02 09:00:00Z')
  assert.deepEqual([shownNs('0'), shownNs(null)], ['-', '-'])
  assert.deepEqual([400, 90_000, 600_000, 7_200_001].map(shownDuration), ['1 s', '90 s', '10 min', '2 h'])
})
