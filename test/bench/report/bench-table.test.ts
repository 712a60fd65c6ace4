import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { ROWS } from '../rows/rows.ts'
import { documentedRows } from './figure-text.ts'
import { flameGraph } from './flame-graph.ts'
import { foldStacks } from './profile.ts'

test("the documentation has a figure for each row of the bench, in the bench's order", async () => {
  const names = ROWS.map(({ name }) => name)
  assert.equal(new Set(names).size, names.length)
  assert.deepEqual(await documentedRows(), names, '`npm run bench -- all --document` writes the table')
})

test('stacks are folded with the outermost function first', () => {
  const sample = 'node \n\tffff memcpy\n\t1234 scan\n\t99 main\n'
  const stacks = foldStacks(`${sample}\n${sample}\nworker \n\t12 poll\n`)
  assert.deepEqual(
    [...stacks],
    [
      ['node;main;scan;memcpy', 2],
      ['worker;poll', 1],
    ],
  )
})

test('a flame graph has a box for each function above its caller, as wide as its share', () => {
  const stacks = new Map([
    ['main;operator<', 3],
    ['main;scan', 1],
  ])
  const svg = flameGraph('row', stacks)
  const boxes = [...svg.matchAll(/<title>(.*?):.*?<rect x="(\S+)" y="(\S+)" width="(\S+)"/g)]
  assert.deepEqual(
    boxes.map(([, ...cells]) => cells),
    [
      ['row', '0.0', '34', '1200.0'],
      ['main', '0.0', '17', '1200.0'],
      ['operator&lt;', '0.0', '0', '900.0'],
      ['scan', '900.0', '0', '300.0'],
    ],
  )
})

const DIGEST = fileURLToPath(new URL('../inputs/pcap-digest.ts', import.meta.url))

function digestOf(packets: readonly (readonly [ns: number, byte: number])[]): string {
  const header = Buffer.alloc(24)
  header.writeUInt32LE(0xa1b23c4d)
  const records = packets.map(([ns, byte]) => {
    const record = Buffer.alloc(17, byte)
    for (const [at, value] of [0, ns, 1, 1].entries()) record.writeUInt32LE(value, at * 4)
    return record
  })
  const output = execFileSync(process.execPath, [DIGEST], { input: Buffer.concat([header, ...records]) })
  return JSON.stringify(JSON.parse(output.toString()).digest)
}

test('the digest of packets knows contents, times and numbers, and not the order within an instant', () => {
  const digest = digestOf([
    [1, 1],
    [2, 2],
    [2, 3],
  ])
  assert.equal(
    digestOf([
      [1, 1],
      [2, 3],
      [2, 2],
    ]),
    digest,
  )
  assert.notEqual(
    digestOf([
      [2, 2],
      [1, 1],
      [2, 3],
    ]),
    digest,
    'another order of times',
  )
  assert.notEqual(
    digestOf([
      [1, 1],
      [2, 2],
      [2, 4],
    ]),
    digest,
    'another content',
  )
  assert.notEqual(
    digestOf([
      [1, 1],
      [2, 2],
    ]),
    digest,
    'one less',
  )
})
