/** The body of a download from several devices. */
import { BufferPool } from '../../../shared/base/buffer-pool.ts'
import { CapfleetError } from '../../../shared/base/error.ts'
import type { Log } from '../../../shared/base/log.ts'
import {
  bodyEncodingOf,
  type Encoding,
  isCompressed,
  PARTIAL_ELEMENTS,
} from '../../../shared/query/download/query-values.ts'
import { isForeign } from '../../device/device-kind.ts'
import type { DownloadPlan, DownloadStep } from '../../fleet/plan/plan.ts'
import { agreedHeader } from '../../pcap/common-header.ts'
import { type MergedInput, PcapMerge } from '../../pcap/merge.ts'
import type { PcapInput } from '../../pcap/pcap-input.ts'
import { encode } from '../encoding/encode.ts'
import { claimsOfMerge, endOfMerge, readClaims, statusOfEnd } from '../proof/device-claims.ts'
import type { OpenedStreams, ReopenStep } from '../stream/leased-streams.ts'
import type { Body, BodyFacts, BodyResult, DeviceClock, DeviceResult } from './body.ts'
import { isInOrder } from './continue-from.ts'
import { requireKnownClocks } from './known-clocks.ts'
import {
  type CountDamage,
  MergedDevice,
  type MergedDeviceOptions,
  type RetryTimings,
} from './merged-device.ts'
import { type MergedFile, pcapFile } from './merged-file.ts'
import { PcapngFile } from './merged-pcapng.ts'
import { type BodyPlaces, firstTimeStep, PositionLog } from './position.ts'

export interface MergeOptions {
  /** partial: continues without a device that has become unreadable. */
  readonly onError: 'fail' | 'partial'
  /** Subtracts each device's clock offset from its timestamps. */
  readonly align: boolean
}

export interface MergeRequest extends OpenedStreams {
  readonly plan: DownloadPlan
  readonly options: MergeOptions
  readonly reopen: ReopenStep
  readonly countDamage: CountDamage
  readonly clockOf: (device: string) => DeviceClock | undefined
  /** Receives warnings about clocks that are off. */
  readonly log: Pick<Log, 'warn'>
  readonly timings: RetryTimings
  /** Where in a larger body the merged packets begin; 0: they are the whole body. */
  readonly startBytes: number
  /** Ends the merge, even while it waits for a device. */
  readonly signal: AbortSignal
  /** The site of a device, which a file in pcapng names. */
  readonly siteOf: (device: string) => string | undefined
}

const NOTHING = new Uint8Array(0)
const KEPT_BYTES_MAX = 32 * 1024 * 1024
/** Memory of merged chunks. Merges that fail to start, or are never read, leave theirs to the garbage collector. */
export const OUTPUTS = new BufferPool(KEPT_BYTES_MAX)

/**
 * The packets of several devices in time order, compressed here. Fails with mixed-link-type if they are of several link
 * types and one PCAP cannot hold them, with device-protocol if a stream is not a PCAP, with bad-parameter if a clock that Align needs is not known, and
 * with a device's own failure if none could be read.
 */
export async function mergedBody(request: MergeRequest): Promise<Body> {
  const { steps } = request.plan
  const pcapng = pcapngOf(request)
  const devices: readonly MergedDevice[] = steps.map((step) =>
    createDevice(step, request, {
      interfaces: pcapng?.interfaces,
      goesOnWithout: () => canGoOn(devices, request),
    }),
  )
  const outputs = OUTPUTS.take(PcapMerge.outputBytes)
  const opening = devices.map(async (device, index): Promise<[MergedDevice, PcapInput] | undefined> => {
    const source = request.sources[index]
    if (source !== undefined) return [device, await device.open(source)]
    device.giveUp(failureOf(device, request))
    return undefined
  })
  const opened = (await Promise.all(opening)).filter((entry) => entry !== undefined)
  const [first] = devices
  if (opened.length === 0 && first !== undefined) throw failureOf(first, request)
  if (request.options.align)
    requireKnownClocks(
      opened.map(([{ name }]) => name),
      request.clockOf,
    )
  const file =
    pcapng ??
    (await pcapOf(
      opened.map(([, input]) => input),
      request.plan,
    ))
  return new Merged(request, { devices, inputs: new Map(opened), file, outputs })
}

function pcapngOf({ plan, failures, siteOf }: MergeRequest): PcapngFile | undefined {
  if (plan.query.format !== 'pcapng') return undefined
  return new PcapngFile({ plan, siteOf, missing: [...failures.keys()] })
}

async function pcapOf(inputs: readonly PcapInput[], plan: DownloadPlan): Promise<MergedFile> {
  return pcapFile(await agreedHeader(inputs), plan.query, slicedHere(plan))
}

interface MergedParts {
  /** All devices of the merge, in the order of the plan's steps. */
  readonly devices: readonly MergedDevice[]
  /** The inputs of the devices that could be opened, in the devices' order. */
  readonly inputs: ReadonlyMap<MergedDevice, PcapInput>
  readonly file: MergedFile
  readonly outputs: Buffer
}

class Merged implements Body {
  readonly encoding: Encoding
  readonly facts: BodyFacts
  readonly chunks: AsyncIterable<Uint8Array>
  readonly isParkable = true
  readonly #request: MergeRequest
  readonly #devices: readonly MergedDevice[]
  readonly #merged: readonly MergedDevice[]
  readonly #merge: PcapMerge
  readonly #file: MergedFile
  readonly #outputs: Buffer
  /** The positions so far; undefined for a compressed body, which cannot be continued. */
  readonly #log: PositionLog | undefined
  #isEnded = false
  #isReleased = false
  #bytes = 0
  /** Bytes of the merged packets before compression. */
  #packetsBytes = 0

  constructor(request: MergeRequest, { devices, inputs, file, outputs }: MergedParts) {
    const { plan, sources, startBytes } = request
    this.#request = request
    this.#devices = devices
    this.#outputs = outputs
    this.#merged = [...inputs.keys()]
    this.#file = file
    this.#merge = createMerge(request, [...inputs.values()], { outputs, file })
    const { compression } = plan.query
    this.encoding = bodyEncodingOf(plan.query)
    if (!isCompressed(this.encoding)) this.#log = new PositionLog(startBytes)
    const claims = sources.flatMap((source) => (source === undefined ? [] : readClaims(source.headers)))
    const { beginNs: fromNs, endNs: toNs } = plan.query
    const leftOut = devices.filter((device) => device.error !== undefined)
    this.facts = {
      claims: claimsOfMerge(claims),
      clocks: clocksOf(request),
      missing: leftOut.map(({ name: device }) => ({ device, fromNs, toNs })),
    }
    warnOfSkew(this.facts.clocks, request.log)
    this.chunks = this.#counted(encode(this.#whole(), compression, request.signal))
  }

  /** Merged chunks are whole records; a compressed part ends after an element or inside one. */
  cutMark(): Uint8Array {
    return PARTIAL_ELEMENTS[this.encoding]
  }

  result(): BodyResult {
    const { packets, nextNs, inputs } = this.#merge.totals
    const ends = this.#merged.map((device) => device.end)
    const isDedup = this.#request.plan.query.dedupNs !== undefined
    const duplicates = inputs.reduce((sum, input) => sum + input.duplicates, 0)
    const latePackets = BigInt(this.#tooLate(inputs))
    return {
      ...endOfMerge(ends, {
        packets: BigInt(packets),
        nextNs,
        latePackets,
        duplicates: isDedup ? BigInt(duplicates) : undefined,
      }),
      bytes: BigInt(this.#bytes),
      perDevice: this.#perDevice(inputs),
    }
  }

  places(): BodyPlaces | undefined {
    return this.#log?.places(this.encoding === 'none' ? this.#file.head : NOTHING)
  }

  park(): void {
    for (const device of this.#merged) device.park()
  }

  unpark(reopen: ReopenStep): void {
    for (const device of this.#merged) device.unpark(reopen)
  }

  [Symbol.dispose](): void {
    this.#isReleased = true
    if (this.#isEnded) OUTPUTS.give(this.#outputs)
  }

  /** Number of packets from devices sorted here that arrived too late for the sort window. */
  #tooLate(inputs: readonly MergedInput[]): number {
    const isSorted = (index: number) => this.#merged[index]?.sortWindow !== undefined
    return inputs.reduce((sum, { outOfOrder }, index) => sum + (isSorted(index) ? outOfOrder : 0), 0)
  }

  #perDevice(inputs: readonly MergedInput[]): readonly DeviceResult[] {
    return this.#devices.map((device) => {
      const totals = inputs[this.#merged.indexOf(device)]
      const { error, doubt, isOrdered, retries, end } = device
      const reported = error ?? doubt
      return {
        device: device.name,
        status: error === undefined ? statusOfEnd(end) : 'missing',
        packets: BigInt(totals?.packets ?? 0),
        bytes: BigInt(totals?.bytes ?? 0),
        firstNs: totals?.firstNs,
        lastNs: totals?.lastNs,
        corruptBlocks: end.corruptBlocks,
        retries,
        outOfOrder: totals?.outOfOrder ?? 0,
        isOrdered,
        stalledMs: totals?.stalledMs ?? 0,
        clock: this.#request.clockOf(device.name),
        missing: error === undefined ? undefined : this.#missingOf(device, totals?.lastNs),
        error: reported === undefined ? undefined : { code: reported.code, detail: reported.message },
      }
    })
  }

  /** Packets at the last timestamp may be missing too, as well as any that would have come late. */
  #missingOf({ sortWindow }: MergedDevice, lastNs: bigint | undefined): NonNullable<DeviceResult['missing']> {
    const { beginNs, endNs: toNs } = this.#request.plan.query
    const fromNs = (lastNs ?? beginNs) - (sortWindow?.ns ?? 0n)
    return { fromNs: fromNs < beginNs ? beginNs : fromNs, toNs }
  }

  async *#whole(): AsyncGenerator<Uint8Array> {
    try {
      yield this.#file.head
      for await (const chunk of this.#merge.chunks()) {
        this.#packetsBytes += chunk.byteLength
        yield chunk
      }
      await Promise.all(this.#merged.map((device) => device.checkEarlier()))
      const closing = this.#file.closing?.(this.result(), this.#packetsBytes)
      if (closing !== undefined) yield closing
    } finally {
      await this.#merge.close()
    }
  }

  async *#counted(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void> {
    const { startBytes } = this.#request
    try {
      for await (const chunk of chunks) {
        const isHeader = this.#bytes === 0
        if (!isHeader) this.#follow(chunk)
        // A merge that continues another one has a header of its own, which is not part of the larger body.
        else if (startBytes === 0) this.#log?.add(chunk)
        this.#bytes += chunk.byteLength
        yield chunk
      }
    } finally {
      this.#isEnded = true
      if (this.#isReleased) OUTPUTS.give(this.#outputs)
    }
  }

  #follow(chunk: Uint8Array): void {
    const log = this.#log
    // In pcapng later blocks depend on earlier ones, so a position only serves to compare the bytes.
    if (log?.isDue && this.encoding === 'pcapng') log.mark(chunk, { offset: 0, fromNs: null })
    else if (log?.isDue && isOrderedByTime(this.#request)) {
      const step = firstTimeStep(chunk, this.#file.resolution)
      const { inputs } = this.#merge.totals
      if (step !== undefined && this.#perDevice(inputs).every(isInOrder))
        log.mark(chunk, { offset: step.offset, fromNs: step.ns })
    }
    log?.add(chunk)
  }
}

/** Whether the rest of the body is exactly what the devices have from some time on. */
function isOrderedByTime({ plan: { query }, options }: MergeRequest): boolean {
  const { kind, timeSource, maxBytes, maxPackets, tsMaxNs, dedupNs } = query
  const isLimited = maxBytes !== undefined || maxPackets !== undefined || tsMaxNs !== undefined
  const isPlain = dedupNs === undefined && !options.align
  return kind === 'timerange' && timeSource === 'nic' && isPlain && !isLimited
}

/** The clock error above which the order of packets of different devices means little. */
const SKEW_WARN_NS = 1_000_000n

/** Logs the devices whose clocks are known to be off by more than a millisecond. */
function warnOfSkew(clocks: BodyFacts['clocks'], log: Pick<Log, 'warn'>): void {
  for (const [device, { offsetNs, errorNs }] of clocks) {
    const surelyNs = (offsetNs < 0n ? -offsetNs : offsetNs) - errorNs
    if (surelyNs > SKEW_WARN_NS)
      log.warn('merge.clock-skew', { device, offsetNs: String(offsetNs), errorNs: String(errorNs) })
  }
}

/** The known clocks of the devices. */
export function clocksOf({ plan, clockOf }: Pick<MergeRequest, 'plan' | 'clockOf'>): BodyFacts['clocks'] {
  return new Map(
    plan.steps.flatMap(({ device }) => {
      const clock = clockOf(device)
      return clock === undefined ? [] : [[device, clock] as const]
    }),
  )
}

function createDevice(
  step: DownloadStep,
  request: MergeRequest,
  merge: Pick<MergedDeviceOptions, 'interfaces' | 'goesOnWithout'>,
): MergedDevice {
  const { options, clockOf } = request
  const alignNs = options.align ? clockOf(step.device)?.offsetNs : undefined
  return new MergedDevice({ ...request, step, alignNs, ...merge })
}

/** With OnError=partial the merge continues while there is a device left. */
function canGoOn(devices: readonly MergedDevice[], { options }: MergeRequest): boolean {
  return options.onError === 'partial' && devices.some((device) => device.error === undefined)
}

function failureOf({ name }: MergedDevice, { failures }: MergeRequest): CapfleetError {
  const failure = failures.get(name)
  if (failure !== undefined) return failure
  return new CapfleetError('device-unreachable', `device ${name} could not be opened`, {
    members: { devices: [name] },
  })
}

/** capfleet devices slice packets themselves. There is no way to tell whether a third-party device does. */
function slicedHere({ steps, query }: DownloadPlan): number | undefined {
  return steps.some(({ deviceKind }) => isForeign(deviceKind)) ? query.sliceBytes : undefined
}

/** A limit applies to the whole, so it is applied here, whatever the devices have done. */
function createMerge(
  { plan, signal }: MergeRequest,
  inputs: readonly PcapInput[],
  { outputs, file }: Pick<MergedParts, 'outputs' | 'file'>,
): PcapMerge {
  const { tsMaxNs, maxPackets, dedupNs, dedupBy } = plan.query
  return new PcapMerge(inputs, {
    signal,
    tsMaxNs,
    sliceBytes: slicedHere(plan),
    maxPackets,
    maxBytes: file.packetsBytesMax,
    dedupNs,
    dedupBy,
    outputs,
    toMicroseconds: file.resolution === 'usec',
    interfaces: file.interfaces,
  })
}
