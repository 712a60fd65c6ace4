import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SegmentTable } from '../../../appliance/store/segment-table.ts'
import { entriesOf } from '../../../appliance/store/stored-capture.ts'
import {
  LOG_ENTRY_BYTES,
  type LogEntry,
  LogEntryKind,
  readLogEntry,
  SegmentFlag,
} from '../../../native/segment-entry.ts'
import { seededRandom } from '../../support/seeded-random.ts'

const random = seededRandom()

function segment(number: number, changes: Partial<LogEntry> = {}): LogEntry {
  const minNs = BigInt(number) * 1_000n
  return {
    kind: LogEntryKind.finished,
    port: 0,
    flags: 0,
    number,
    minNs,
    maxNs: minNs + 999n,
    packets: 10n,
    bytes: 1_000n,
    linkType: 1,
    snaplen: 262_144,
    sideBytes: 100,
    checksum: 7,
    ...changes,
  }
}

const removed = (entry: LogEntry): LogEntry => ({ ...entry, kind: LogEntryKind.removed })

/** The expected contents of a table, kept in the simplest way. */
class Model {
  readonly held: LogEntry[] = []
  removed: LogEntry[] = []

  apply(entry: LogEntry): void {
    const index = this.held.findIndex(({ port, number }) => port === entry.port && number === entry.number)
    if (index >= 0) this.held.splice(index, 1)
    if (entry.kind === LogEntryKind.finished) this.held.push(entry)
    else this.removed.push(entry)
    this.held.sort((a, b) => a.port - b.port || a.number - b.number)
  }

  select(port: number, fromNs: bigint, toNs: bigint): readonly LogEntry[] {
    return this.held.filter((one) => one.port === port && one.maxNs >= fromNs && one.minNs < toNs)
  }
}

function parsed(entries: Buffer): readonly LogEntry[] {
  return Array.from({ length: entries.length / LOG_ENTRY_BYTES }, (_, i) =>
    readLogEntry(entries, i * LOG_ENTRY_BYTES),
  )
}

const sum = (entries: readonly LogEntry[], of: (entry: LogEntry) => bigint): bigint =>
  entries.reduce((total, entry) => total + of(entry), 0n)

test('a table is what its log says, whatever comes and goes and however the clock jumps', () => {
  for (let round = 0; round < 60; round++) {
    const table = new SegmentTable()
    const model = new Model()
    const next = [1, 1]
    let clockNs = 1_000_000n
    for (let step = 0; step < 120; step++) {
      const port = random.integer(0, 2 - 1)
      const held = model.held.filter((one) => one.port === port)
      const dice = random.integer(0, 10 - 1)
      let entry: LogEntry
      if (dice < 6 || held.length === 0) {
        if (round % 2 === 1 && random.integer(0, 8 - 1) === 0)
          clockNs -= BigInt(random.integer(0, 50_000 - 1))
        clockNs += BigInt(random.integer(0, 2_000 - 1)) + 1n
        const number = next[port] ?? 1
        next[port] = number + 1
        const flags = random.integer(0, 5 - 1) === 0 ? SegmentFlag.damaged : 0
        entry = segment(number, {
          port,
          minNs: clockNs,
          maxNs: clockNs + BigInt(random.integer(0, 1_500 - 1)),
          flags,
        })
      } else if (dice < 8) entry = removed(held[0] as LogEntry)
      else if (dice === 8) entry = removed(held[random.integer(0, held.length - 1)] as LogEntry)
      else
        entry = {
          ...(held[random.integer(0, held.length - 1)] as LogEntry),
          sideBytes: random.integer(0, 1_000 - 1),
        }
      table.apply(entry)
      model.apply(entry)
      const all = table.ports.flatMap((one) => [...entriesOf(one)])
      assert.deepEqual(all, model.held)
      const fromNs = clockNs - BigInt(random.integer(0, 60_000 - 1))
      const toNs = fromNs + BigInt(random.integer(0, 20_000 - 1))
      for (const which of [0, 1]) {
        const found = table.portOf(which)?.select(fromNs, toNs) ?? Buffer.alloc(0)
        assert.deepEqual(parsed(found), model.select(which, fromNs, toNs))
        const ofPort = model.held.filter((one) => one.port === which)
        const least = ofPort.reduce<bigint | undefined>(
          (a, { minNs }) => (a === undefined || minNs < a ? minNs : a),
          undefined,
        )
        const most = ofPort.reduce<bigint | undefined>(
          (a, { maxNs }) => (a === undefined || maxNs > a ? maxNs : a),
          undefined,
        )
        assert.deepEqual([table.portOf(which)?.minNs, table.portOf(which)?.maxNs], [least, most])
        assert.equal(table.portOf(which)?.lastNumber ?? 0, (next[which] ?? 1) - 1)
      }
    }
    assert.equal(table.segments, model.held.length)
    assert.equal(
      table.packets,
      sum(model.held, ({ packets }) => packets),
    )
    assert.equal(
      table.storedBytes,
      sum(model.held, ({ bytes, sideBytes }) => bytes + BigInt(sideBytes)),
    )
    assert.equal(
      table.damagedSegments,
      model.held.filter(({ flags }) => (flags & SegmentFlag.damaged) !== 0).length,
    )
    assert.equal(
      table.removed?.packets ?? 0n,
      sum(model.removed, ({ packets }) => packets),
    )
  }
})

test('neighbours are found by number, also where the one asked for is not held', () => {
  const table = new SegmentTable()
  for (const number of [2, 3, 7]) table.apply(segment(number))
  const port = table.portOf(0)
  assert.deepEqual(
    [
      port?.after(0)?.number,
      port?.after(3)?.number,
      port?.after(7),
      port?.before(7)?.number,
      port?.before(2),
    ],
    [2, 7, undefined, 3, undefined],
  )
})
