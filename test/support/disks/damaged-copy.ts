/** The content of a store after one damage, compared with the model that it was copied from. */
import assert from 'node:assert/strict'
import { selectStreams } from '../../../appliance/downloads/select-streams.ts'
import type { EventSink } from '../../../appliance/events/event-log.ts'
import { CaptureControl } from '../../../appliance/recorder/capture/capture-control.ts'
import { noPortDriver } from '../../../appliance/recorder/capture/capture-driver.ts'
import { ScheduleClock } from '../../../appliance/recorder/clock/schedule-clock.ts'
import { checkSegment, verifyStore } from '../../../appliance/recorder/verify-store.ts'
import { StoreWriter } from '../../../appliance/recorder/writer/store-writer.ts'
import { CaptureCatalogue } from '../../../appliance/store/capture-catalogue.ts'
import { segmentOfPath, storePaths } from '../../../appliance/store/store-paths.ts'
import { isDamaged, type StoredCapture } from '../../../appliance/store/stored-capture.ts'
import { Download } from '../../../native/addon.ts'
import { takeSuspects } from '../../../native/stored-segments.ts'
import { createLog } from '../../../src/shared/base/log.ts'
import type { PcapRecord } from '../packets/pcap-records.ts'
import { readPcap } from '../packets/pcap-records.ts'
import { type DamageModel, type ModelCapture, textOf } from './damage-model.ts'

const log = createLog('test', 'silent')
const EVERYTHING = { beginNs: 0n, endNs: 2n ** 62n }
const NEVER = new AbortController().signal

/** Results of reading a damaged store, as counts. */
export interface DamageSeen {
  /** Missing packets; each damage that explains them is reported somewhere. */
  readonly lost: number
  /** Blocks that downloads reported as skipped. */
  readonly corruptBlocks: number
  /** Captures with state "damaged" in the list. */
  readonly damagedCaptures: number
  /** Damages reported by the recorder; 0 if none ran. */
  readonly events: number
}

export function catalogueOf(path: string): CaptureCatalogue {
  return new CaptureCatalogue(storePaths(path), log)
}

/**
 * Reads every capture of the store like the appliance, alone and in one range over all. Fails if a packet is invented,
 * changed, out of order or duplicated, if one is missing that `mayLose` does not name, or if any is missing and
 * nothing reports it. `unflushed`: captures whose end may be missing without a report, because it was not flushed. The
 * catalogue is that of an appliance that starts now, or one that has been reading the store.
 */
export async function readDamaged(
  path: string,
  model: DamageModel,
  { mayLose, unflushed }: { readonly mayLose: ReadonlySet<string>; readonly unflushed: boolean },
  catalogue = catalogueOf(path),
): Promise<Omit<DamageSeen, 'events'>> {
  const listed = await catalogue.list()
  const whole = await downloadOf(catalogue, listed)
  const all = model.captures.flatMap(({ packets }) => packets)
  const lostOfAll = missingIn(whole.records, all)
  for (const text of lostOfAll.map(textOf))
    assert.ok(mayLose.has(text), `lost in the range: ${text.slice(48)}`)
  if (lostOfAll.length > 0 && !unflushed) assert.ok(whole.corruptBlocks > 0, 'a loss that no trailer says')
  let [lost, corruptBlocks, damagedCaptures] = [0, 0, 0]
  for (const expected of model.captures) {
    const capture = listed.find(({ name }) => name === expected.name)
    assert.ok(capture, `${expected.name} is not listed`)
    const found = await downloadOf(catalogue, [capture])
    const missing = missingIn(found.records, expected.packets)
    for (const text of missing.map(textOf)) assert.ok(mayLose.has(text), `lost: ${text.slice(48)}`)
    if (missing.length > 0 && !(unflushed && expected.isActive)) {
      assert.ok(found.corruptBlocks > 0, `${expected.name} ends as if it were complete`)
      await checkRangesOf(catalogue, capture, missing)
    }
    lost += missing.length
    corruptBlocks += found.corruptBlocks
    if (isDamaged(capture)) damagedCaptures += 1
  }
  return { lost, corruptBlocks, damagedCaptures }
}

/** A recorder opens the store, resumes the running capture, and ends it. Returns the number of damages it reported. */
export async function recoverDamaged(path: string, bootId: string): Promise<number> {
  await using recorder = await OpenRecorder.open(path, bootId)
  await recorder.stopCapture()
  await recorder.load()
  return recorder.reported
}

/** A recorder in this process, which holds the store until dispose. */
export class OpenRecorder implements AsyncDisposable {
  readonly #writer: StoreWriter
  readonly #captures: string
  #control: CaptureControl | undefined
  #reported = 0

  private constructor(writer: StoreWriter, path: string) {
    this.#writer = writer
    this.#captures = storePaths(path).captures
    writer.watchDamage((_name, problems) => {
      this.#reported += problems.length
    })
  }

  /** Resumes the capture that was being recorded. */
  static async open(path: string, bootId: string): Promise<OpenRecorder> {
    await using parts = new AsyncDisposableStack()
    const writer = parts.use(await StoreWriter.open(path))
    const recorder = new OpenRecorder(writer, path)
    const events: EventSink = {
      append: (kind) => {
        if (kind === 'capture-damaged') recorder.#reported += 1
      },
    }
    recorder.#control = await CaptureControl.open(writer, {
      driver: noPortDriver,
      schedule: await ScheduleClock.open({ rows: [], nowNs: () => 0n, store: writer }),
      timeZone: 'UTC',
      nowNs: () => 1_800_000_000_000_000_000n,
      bootId,
      events,
      log,
      onSegmentFinished: () => undefined,
      checkRoom: () => undefined,
      clockHold: () => '',
    })
    parts.move()
    return recorder
  }

  /** Number of damages reported so far. */
  get reported(): number {
    return this.#reported
  }

  load(): Promise<void> {
    return this.#writer.load()
  }

  async stopCapture(): Promise<void> {
    const control = this.#control
    this.#control = undefined
    if (control === undefined) return
    if (control.name !== '') await control.stop(false, NEVER)
    await control[Symbol.asyncDispose]()
  }

  /** Checks the segments in which downloads of this process found damage, as an appliance requests it. */
  async checkWhatWasMet(): Promise<void> {
    for (const suspect of takeSuspects()) {
      const place = segmentOfPath(this.#captures, suspect)
      if (place !== undefined) await checkSegment(this.#writer, place, {})
    }
  }

  /** Same as `capfleet store verify --repair`. */
  async repair(): Promise<void> {
    await verifyStore(this.#writer, { repair: true }, { onProgress: () => undefined })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#control?.[Symbol.asyncDispose]()
    await this.#writer[Symbol.asyncDispose]()
  }
}

/**
 * A recorder that starts with nothing to record checks the damage that downloads found. Returns the number of damages
 * it reported.
 */
export async function checkWhatWasMet(path: string, bootId: string): Promise<number> {
  await using recorder = await OpenRecorder.open(path, bootId)
  await recorder.load()
  const before = recorder.reported
  await recorder.checkWhatWasMet()
  return recorder.reported - before
}

/** A recorder that starts with nothing to record repairs the store like `capfleet store verify --repair`. */
export async function repairStore(path: string, bootId: string): Promise<void> {
  await using recorder = await OpenRecorder.open(path, bootId)
  await recorder.repair()
}

interface Downloaded {
  readonly records: readonly PcapRecord[]
  readonly corruptBlocks: number
}

/** Ranges that begin or end at lost packets, or contain no other time, are incomplete as well, and must report it. */
async function checkRangesOf(
  catalogue: CaptureCatalogue,
  capture: StoredCapture,
  missing: readonly PcapRecord[],
): Promise<void> {
  for (const { ns } of [missing[0], missing[missing.length >> 1], missing.at(-1)] as readonly PcapRecord[]) {
    for (const range of [
      { beginNs: ns, endNs: ns + 1n },
      { beginNs: ns, endNs: EVERYTHING.endNs },
      { beginNs: 0n, endNs: ns + 1n },
    ]) {
      const { corruptBlocks } = await downloadOf(catalogue, [capture], range)
      assert.ok(
        corruptBlocks > 0,
        `${capture.name} from ${range.beginNs} to ${range.endNs} is short without a word`,
      )
    }
  }
}

async function downloadOf(
  catalogue: CaptureCatalogue,
  captures: readonly StoredCapture[],
  range: { readonly beginNs: bigint; readonly endNs: bigint } = EVERYTHING,
): Promise<Downloaded> {
  const query = { ...range, timeSource: 'nic', frameFilter: [] } as const
  const { streams } = selectStreams(captures, { query, folderOf: (capture) => catalogue.folderOf(capture) })
  await using download = await Download.open({
    streams,
    ...range,
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

/** The expected packets that are missing. Fails if what was read is anything but the rest, in order. */
function missingIn(got: readonly PcapRecord[], expected: ModelCapture['packets']): readonly PcapRecord[] {
  const missing: PcapRecord[] = []
  let next = 0
  for (const packet of got) {
    while (next < expected.length && !areSame(expected[next], packet)) {
      missing.push(expected[next] as PcapRecord)
      next += 1
    }
    assert.ok(next < expected.length, `invented, changed or out of order: ${textOf(packet).slice(48)}`)
    next += 1
  }
  return [...missing, ...expected.slice(next)]
}

function areSame(a: PcapRecord | undefined, b: PcapRecord): boolean {
  return a !== undefined && a.ns === b.ns && a.captured.equals(b.captured)
}
