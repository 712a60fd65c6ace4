/** A device without a network: it answers download targets from a list of packets, and fails on request. */
import { NO_END } from '../../../src/gateway/fetch/proof/device-claims.ts'
import type { Source } from '../../../src/gateway/fetch/stream/source.ts'
import { CapfleetError } from '../../../src/shared/base/error.ts'
import { PCAP_HEADER_BYTES } from '../../../src/shared/pcap/pcap-sizes.ts'
import { inReusedChunks, makePcap } from '../packets/packet-maker.ts'
import type { PcapRecord } from '../packets/pcap-records.ts'

export class MemoryDevice {
  readonly name: string
  /** Requested targets, in order. */
  readonly targets: string[] = []
  /** How many streams are open now. */
  open = 0
  /** Streams being read, or with a chunk that is still in use. */
  reading = 0
  records: readonly PcapRecord[]
  chunkBytes = 50
  /** Whether it declares its packets to be in time order. */
  saysOrder = true
  /** For each stream in turn: the number of bytes after which it breaks off. Missing or undefined: never. */
  diesAfterBytes: (number | undefined)[] = []
  /** Further headers of its answers. */
  claims: Readonly<Record<string, string>> = {}
  /** Opening fails with this. */
  refusal: CapfleetError | undefined

  constructor(name: string, records: readonly PcapRecord[]) {
    this.name = name
    this.records = records
  }

  openSource(target: string): Source {
    const limit = this.diesAfterBytes[this.targets.length]
    this.targets.push(target)
    if (this.refusal !== undefined) throw this.refusal
    this.open++
    let isOpen = true
    const close = () => {
      if (isOpen) this.open--
      isOpen = false
    }
    const answer = this.#answer(target)
    // A merge pulls, so a generator can replace the body.
    const source: Omit<Source, 'body'> & { readonly body: unknown } = {
      device: this.name,
      encoding: 'none',
      headers: {
        'capfleet-request-id': 'of-the-device',
        ...(this.saysOrder ? { 'capfleet-order': 'time' } : {}),
        ...this.claims,
      },
      header: answer.subarray(0, PCAP_HEADER_BYTES),
      body: Object.assign(this.#send(answer, limit), { end: NO_END }),
      [Symbol.dispose]: close,
    }
    return source as Source
  }

  #answer(target: string): Buffer {
    const parameters = new URLSearchParams(target.split('?')[1])
    const bigint = (name: string, fallback: bigint) => BigInt(parameters.get(name) ?? fallback)
    const beginNs = bigint('TSBegin', 0n)
    const endNs = bigint('TSEnd', 2n ** 63n)
    const inRange = this.records.filter(({ ns }) => ns >= beginNs && ns < endNs)
    const firstNs = inRange[0]?.ns ?? 0n
    const lastNs = firstNs + bigint('TSMax', 2n ** 63n)
    const wanted = inRange.filter(({ ns }) => ns < lastNs)
    const whole = makePcap(wanted.slice(0, Number(bigint('MaxPackets', 2n ** 31n))))
    const after = Number(bigint('After', BigInt(PCAP_HEADER_BYTES)))
    return Buffer.concat([whole.subarray(0, PCAP_HEADER_BYTES), whole.subarray(after)])
  }

  async *#send(bytes: Buffer, limit: number | undefined): AsyncGenerator<Buffer, void> {
    this.reading++
    try {
      yield* inReusedChunks(bytes.subarray(0, limit), this.chunkBytes)
      if (limit !== undefined && limit < bytes.byteLength) throw brokenOff(this.name)
    } finally {
      this.reading--
    }
  }
}

export function brokenOff(device: string): CapfleetError {
  return new CapfleetError('device-unreachable', `device ${device} broke off`, {
    members: { devices: [device] },
  })
}
