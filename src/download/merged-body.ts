import { BufferPool } from '../base/buffer-pool.ts'
import { CapfleetError } from '../base/error.ts'
import type { DownloadStep } from '../fleet/plan.ts'
import { agreedHeader } from '../pcap/agreed-header.ts'
import { PcapMerge } from '../pcap/merge.ts'
import { formatPcapHeader, PCAP_HEADER_BYTES, type PcapHeader } from '../pcap/pcap-header.ts'
import type { PcapInput } from '../pcap/pcap-input.ts'
import { type Encoding, encodingOf, PARTIAL_ELEMENTS } from '../query/query-values.ts'
import { agedOutHeader } from './aged-out-header.ts'
import { alignmentOf, skewHeader, warnOfSkew } from './clock-skew.ts'
import type { DeviceReport } from './download-report.ts'
import { encode } from './encode.ts'
import type { DeviceClock, MergedBody, MergeRequest, ReopenStep } from './merge-request.ts'
import { MergedDevice } from './merged-device.ts'
import { mergedReport } from './merged-report.ts'
import { mergedTrailers } from './passed-trailers.ts'

const KEPT_BYTES_MAX = 32 * 1024 * 1024
/** Memory of merged chunks. Of merges that cannot begin, and of those that nobody reads, it is left to the collector. */
export const OUTPUTS = new BufferPool(KEPT_BYTES_MAX)

/**
 * The body of a download from several devices: their packets in the order of time, compressed here.
 * Fails with mixed-link-type when one PCAP cannot hold them, device-protocol when a stream is no
 * PCAP, and with a device's own failure when there is none that could be read.
 */
export async function mergedBody(request: MergeRequest): Promise<MergedBody> {
  const { steps } = request.plan
  const devices: readonly MergedDevice[] = steps.map((step) =>
    createDevice(step, request, () => canGoOn(devices, request)),
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
  const header = await agreedHeader(opened.map(([, input]) => input))
  return new Merged(request, { devices, inputs: new Map(opened), header, outputs })
}

interface MergedParts {
  /** One per step of the plan. */
  readonly devices: readonly MergedDevice[]
  /** Of the devices that could be opened, in their order. */
  readonly inputs: ReadonlyMap<MergedDevice, PcapInput>
  readonly header: PcapHeader
  readonly outputs: Buffer
}

class Merged implements MergedBody {
  readonly encoding: Encoding
  readonly chunks: AsyncIterable<Uint8Array>
  readonly #request: MergeRequest
  readonly #devices: readonly MergedDevice[]
  readonly #merged: readonly MergedDevice[]
  readonly #merge: PcapMerge
  readonly #outputs: Buffer
  #isEnded = false
  #isReleased = false
  #bytes = 0

  constructor(request: MergeRequest, { devices, inputs, header, outputs }: MergedParts) {
    this.#request = request
    this.#devices = devices
    this.#outputs = outputs
    this.#merged = [...inputs.keys()]
    this.#merge = createMerge(request, [...inputs.values()], outputs)
    const { compression } = request.plan.query
    this.encoding = encodingOf(compression)
    if (request.log !== undefined) warnOfSkew(this.#clocks(), request.log)
    this.chunks = this.#counted(encode(withHeader(header, this.#merge), compression, request.signal))
  }

  /** Merged chunks are whole records; a compressed part ends behind an element or inside one. */
  cutMark(): Uint8Array {
    return PARTIAL_ELEMENTS[this.encoding]
  }

  trailers(): Readonly<Record<string, string>> {
    const { packets, nextNs } = this.#merge.totals
    const isDedup = this.#request.options.dedupNs !== undefined
    return {
      ...mergedTrailers(
        this.#merged.map((device) => device.trailers),
        { nextNs },
      ),
      'Capfleet-Packets': String(packets),
      'Capfleet-Bytes': String(this.#bytes),
      ...(isDedup ? { 'Capfleet-Duplicates': String(this.duplicates) } : {}),
    }
  }

  get duplicates(): bigint {
    return BigInt(this.#merge.totals.inputs.reduce((sum, input) => sum + input.duplicates, 0))
  }

  report(): readonly DeviceReport[] {
    const { inputs } = this.#merge.totals
    return this.#devices.map((device) =>
      mergedReport({
        device,
        totals: inputs[this.#merged.indexOf(device)],
        clock: this.#request.clockOf?.(device.name),
        query: this.#request.plan.query,
      }),
    )
  }

  head(): Readonly<Record<string, string>> {
    return { ...skewHeader(this.#clocks()), ...agedOutHeader(this.#request.sources) }
  }

  park(): void {
    for (const device of this.#merged) device.park()
  }

  unpark(reopen: ReopenStep): void {
    for (const device of this.#merged) device.unpark(reopen)
  }

  release(): void {
    this.#isReleased = true
    if (this.#isEnded) OUTPUTS.give(this.#outputs)
  }

  #clocks(): ReadonlyMap<string, DeviceClock> {
    const { clockOf } = this.#request
    const clocks = this.#devices.map(({ name }) => [name, clockOf?.(name)] as const)
    return new Map(clocks.filter((entry): entry is [string, DeviceClock] => entry[1] !== undefined))
  }

  async *#counted(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void> {
    try {
      for await (const chunk of chunks) {
        this.#bytes += chunk.byteLength
        yield chunk
      }
    } finally {
      this.#isEnded = true
      if (this.#isReleased) OUTPUTS.give(this.#outputs)
    }
  }
}

function createDevice(step: DownloadStep, request: MergeRequest, goesOnWithout: () => boolean): MergedDevice {
  const { plan, options, clockOf, reopen, signal, timings } = request
  const alignNs = options.align ? alignmentOf(clockOf?.(step.device), plan.query.timeResolution) : undefined
  return new MergedDevice({ step, query: plan.query, reopen, signal, alignNs, goesOnWithout, timings })
}

/** With OnError=partial the merge goes on as long as there is a device to go on with. */
function canGoOn(devices: readonly MergedDevice[], { options }: MergeRequest): boolean {
  return options.onError === 'partial' && devices.some((device) => device.error === undefined)
}

function failureOf({ name }: MergedDevice, { failures }: MergeRequest): CapfleetError {
  const failure = failures?.get(name)
  if (failure !== undefined) return failure
  return new CapfleetError('device-unreachable', `device ${name} could not be opened`, {
    members: { devices: [name] },
  })
}

/** A limit holds for the whole, so that it is applied here, whatever the devices have done. */
function createMerge(
  { plan, options, signal }: MergeRequest,
  inputs: readonly PcapInput[],
  outputs: Buffer,
): PcapMerge {
  const { tsMaxNs, maxPackets, maxBytes } = plan.query
  return new PcapMerge(inputs, {
    signal,
    tsMaxNs,
    maxPackets,
    maxBytes: maxBytes === undefined ? undefined : maxBytes - BigInt(PCAP_HEADER_BYTES),
    dedupNs: options.dedupNs,
    outputs,
  })
}

async function* withHeader(header: PcapHeader, merge: PcapMerge): AsyncGenerator<Uint8Array> {
  try {
    yield formatPcapHeader(header)
    yield* merge.chunks()
  } finally {
    await merge.close()
  }
}
