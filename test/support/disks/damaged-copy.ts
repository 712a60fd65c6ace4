/** What a store holds after one damage, compared with the model that it is a copy of. */
import assert from 'node:assert/strict'
import { selectStreams } from '../../../appliance/downloads/select-streams.ts'
import type { EventSink } from '../../../appliance/events/event-log.ts'
import { CaptureControl } from '../../../appliance/recorder/capture-control.ts'
import { noPortDriver } from '../../../appliance/recorder/capture-driver.ts'
import { ScheduleClock } from '../../../appliance/recorder/schedule-clock.ts'
import { StoreWriter } from '../../../appliance/recorder/store-writer.ts'
import { checkSegment } from '../../../appliance/recorder/verify-store.ts'
import { CaptureCatalogue } from '../../../appliance/store/capture-catalogue.ts'
import { segmentOfPath, storePaths } from '../../../appliance/store/store-paths.ts'
import { isDamaged, type StoredCapture } from '../../../appliance/store/stored-capture.ts'
import { Download } from '../../../native/addon.ts'
import { takeSuspects } from '../../../native/stored-segments.ts'
import { createLog } from '../../../src/base/log.ts'
import type { PcapRecord } from '../packets/pcap-records.ts'
import { readPcap } from '../packets/pcap-records.ts'
import { type DamageModel, type ModelCapture, textOf } from './damage-model.ts'

const log = createLog('test', 'silent')
const EVERYTHING = { beginNs: 0n, endNs: 2n ** 62n }
const NEVER = new AbortController().signal

/** What came out of a damaged store, in counts. */
export interface DamageSeen {
  /** Packets that are missing; each damage that explains them is said somewhere. */
  readonly lost: number
  /** Blocks that downloads counted as left out. */
  readonly corruptBlocks: number
  /** Captures in state "damaged" of the list. */
  readonly damagedCaptures: number
  /** Damages that the recorder reported; 0 where none ran. */
  readonly events: number
}

/**
 * Reads every capture of the store as the appliance does, alone and in one range over all. Fails when a packet is
 * invented, changed, out of order or twice, when one is missing that `mayLose` does not name, or when any is missing and
 * nothing says so. `unflushed`: captures of which the end may be missing without a word, because it was not flushed.
 */
export async function readDamaged(
  path: string,
  model: DamageModel,
  { mayLose, unflushed }: { readonly mayLose: ReadonlySet<string>; readonly unflushed: boolean },
): Promise<Omit<DamageSeen, 'events'>> {
  const catalogue = new CaptureCatalogue(storePaths(path), log)
  const listed = await catalogue.list()
  const whole = await downloadOf(catalogue, listed)
  const all = model.captures.flatMap(({ packets }) => packets)
  const lostOfAll = missingIn(whole.records, all)
  for (const text of lostOfAll) assert.ok(mayLose.has(text), `lost in the range: ${text.slice(48)}`)
  if (lostOfAll.length > 0 && !unflushed) assert.ok(whole.corruptBlocks > 0, 'a loss that no trailer says')
  let [lost, corruptBlocks, damagedCaptures] = [0, 0, 0]
  for (const expected of model.captures) {
    const capture = listed.find(({ name }) => name === expected.name)
    assert.ok(capture, `${expected.name} is not listed`)
    const found = await downloadOf(catalogue, [capture])
    const missing = missingIn(found.records, expected.packets)
    for (const text of missing) assert.ok(mayLose.has(text), `lost: ${text.slice(48)}`)
    if (missing.length > 0 && !(unflushed && expected.isActive)) {
      assert.ok(found.corruptBlocks > 0, `${expected.name} ends as if it were complete`)
    }
    lost += missing.length
    corruptBlocks += found.corruptBlocks
    if (isDamaged(capture)) damagedCaptures += 1
  }
  return { lost, corruptBlocks, damagedCaptures }
}

/** A recorder takes the store up, resumes what was being recorded, and ends it. Returns how many damages it reported. */
export async function recoverDamaged(path: string, bootId: string): Promise<number> {
  let reported = 0
  const events: EventSink = {
    append: (kind) => {
      if (kind === 'capture-damaged') reported += 1
    },
  }
  await using writer = await StoreWriter.open(path)
  writer.watchDamage((_name, problems) => {
    reported += problems.length
  })
  const schedule = await ScheduleClock.open({ rows: [], nowNs: () => 0n, store: writer })
  const control = await CaptureControl.open(writer, {
    driver: noPortDriver,
    schedule,
    timeZone: 'UTC',
    nowNs: () => 1_800_000_000_000_000_000n,
    bootId,
    events,
    log,
    onSegmentFinished: () => undefined,
    checkRoom: () => undefined,
    clockHold: () => '',
  })
  if (control.name !== '') await control.stop(false, NEVER)
  await control[Symbol.asyncDispose]()
  await writer.load()
  return reported
}

/**
 * A recorder checks the segments in which downloads of this process met damage, as an appliance asks it to. Returns how many
 * damages it reported.
 */
export async function checkWhatWasMet(path: string): Promise<number> {
  let reported = 0
  await using writer = await StoreWriter.open(path)
  await writer.load()
  writer.watchDamage((_name, problems) => {
    reported += problems.length
  })
  const { captures } = storePaths(path)
  for (const suspect of takeSuspects()) {
    const place = segmentOfPath(captures, suspect)
    if (place !== undefined) await checkSegment(writer, place, {})
  }
  return reported
}

interface Downloaded {
  readonly records: readonly PcapRecord[]
  readonly corruptBlocks: number
}

async function downloadOf(
  catalogue: CaptureCatalogue,
  captures: readonly StoredCapture[],
): Promise<Downloaded> {
  const query = { ...EVERYTHING, timeSource: 'nic', frameFilter: [] } as const
  const { streams } = selectStreams(captures, { query, folderOf: (capture) => catalogue.folderOf(capture) })
  await using download = await Download.open({
    streams,
    ...EVERYTHING,
    timeResolution: 'nsec',
    compression: 'none',
  })
  const parts: Buffer[] = []
  for (let chunk = await download.next(); chunk !== undefined; chunk = await download.next()) {
    parts.push(Buffer.from(chunk.bytes))
    chunk.release()
  }
  const { records } = readPcap(Buffer.concat(parts))
  return { records, corruptBlocks: Number(download.totals().corruptBlocks) }
}

/** Texts of the expected packets that are missing. Fails when what came is anything else but the rest, in its order. */
function missingIn(got: readonly PcapRecord[], expected: ModelCapture['packets']): readonly string[] {
  const missing: string[] = []
  let next = 0
  for (const packet of got) {
    while (next < expected.length && !areSame(expected[next], packet)) {
      missing.push(textOf(expected[next] as PcapRecord))
      next += 1
    }
    assert.ok(next < expected.length, `invented, changed or out of order: ${textOf(packet).slice(48)}`)
    next += 1
  }
  return [...missing, ...expected.slice(next).map(textOf)]
}

function areSame(a: PcapRecord | undefined, b: PcapRecord): boolean {
  return a !== undefined && a.ns === b.ns && a.captured.equals(b.captured)
}
