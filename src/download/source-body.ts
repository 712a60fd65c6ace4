/** The body of one device's answer, checked while it is read. */
import { deviceProtocol } from '../device/device-failure.ts'
import type { BodyRead, DeviceStream } from '../device/device-stream.ts'
import { PCAP_HEADER_BYTES } from '../pcap/pcap-header.ts'
import { type Encoding, PARTIAL_ELEMENTS } from '../query/query-values.ts'
import type { BodyGuard } from './body-guard.ts'
import { CompressedGuard } from './compressed-guard.ts'
import { PcapGuard } from './pcap-guard.ts'
import { UNCHECKED_BODY } from './unchecked-body.ts'

const NOTHING = new Uint8Array(0)

export interface SourceBodyOptions {
  readonly device: string
  readonly encoding: Encoding
  /** Parts that were read already. */
  readonly first: readonly BodyRead[]
  /** Follow the records even where the device vouches for its end, so that cutMark() is exact. */
  readonly isRelayed: boolean
}

export class SourceBody implements Disposable {
  readonly #stream: DeviceStream
  readonly #device: string
  readonly #encoding: Encoding
  readonly #announcesCompletion: boolean
  readonly #guard: BodyGuard
  readonly #first: BodyRead[]

  constructor(stream: DeviceStream, options: SourceBodyOptions) {
    this.#stream = stream
    this.#device = options.device
    this.#encoding = options.encoding
    this.#first = [...options.first]
    this.#announcesCompletion = announcesCompletion(stream)
    this.#guard = this.#chooseGuard(options.isRelayed)
  }

  /**
   * The next part; undefined when the body is whole. Fails with device-unreachable, device-timeout,
   * device-protocol or the signal's reason. REQUIRES: parts are released in time (device-stream.ts).
   */
  async next(): Promise<BodyRead | undefined> {
    const arrived = this.take()
    if (arrived !== undefined) return arrived
    const read = this.#first.shift() ?? (await this.#stream.next())
    if (read === undefined) {
      await this.#confirmEnd()
      return undefined
    }
    try {
      await this.#guard.feed(read.data)
    } catch (error) {
      read.release()
      throw error
    }
    return read
  }

  /** The next part when it is here already; undefined: ask next(). Fails as next() does. */
  take(): BodyRead | undefined {
    if (this.#guard.takesTime) return undefined
    const read = this.#first.shift() ?? this.#stream.take()
    if (read !== undefined) this.#judge(read)
    return read
  }

  /**
   * Hands every part to `sink` as it comes; resolves when the body is whole. Fails as next() does, and
   * with what the sink throws. Not together with next().
   */
  async pour(sink: (read: BodyRead) => void): Promise<void> {
    if (this.#guard.takesTime) {
      for (let read = await this.next(); read !== undefined; read = await this.next()) sink(read)
      return
    }
    const pass = (read: BodyRead): void => {
      this.#judge(read)
      sink(read)
    }
    for (let read = this.#first.shift(); read !== undefined; read = this.#first.shift()) pass(read)
    await this.#stream.pour(pass)
    await this.#confirmEnd()
  }

  /**
   * Bytes that, put after all data so far, leave the format inside an element, so that a cut is
   * seen in the file itself. Empty when it is inside one already.
   */
  cutMark(): Uint8Array {
    return this.#guard.mayBeWhole ? PARTIAL_ELEMENTS[this.#encoding] : NOTHING
  }

  [Symbol.dispose](): void {
    this.#stream[Symbol.dispose]()
    this.#guard[Symbol.dispose]()
    for (const read of this.#first.splice(0)) read.release()
  }

  /** REQUIRES: the guard takes no time. */
  #judge(read: BodyRead): void {
    try {
      void this.#guard.feed(read.data)
    } catch (error) {
      read.release()
      throw error
    }
  }

  async #confirmEnd(): Promise<void> {
    if (this.#announcesCompletion && this.#stream.trailers['capfleet-complete'] !== '1') {
      throw deviceProtocol(
        this.#device,
        'ended its stream without the completion trailer: the stream was cut',
      )
    }
    await this.#guard.finish()
    if (!this.#announcesCompletion) await this.#stream.confirmEnd()
  }

  #chooseGuard(isRelayed: boolean): BodyGuard {
    if (this.#encoding === 'none' && (isRelayed || !this.#announcesCompletion))
      return new PcapGuard(this.#device)
    if (this.#encoding === 'none' || this.#announcesCompletion) return UNCHECKED_BODY
    return new CompressedGuard(this.#device, this.#encoding)
  }
}

/** Our appliance ends a whole stream with a trailer; a proxy in between may lose the announcement. */
function announcesCompletion({ head }: DeviceStream): boolean {
  const names = (head.headers.trailer ?? '').toLowerCase().split(/[\t ]*,[\t ]*/)
  return names.includes('capfleet-complete')
}

/** Reads until there are enough bytes to tell what the stream is, or it has ended. */
export async function readFirst(stream: DeviceStream): Promise<{ head: Buffer; first: readonly BodyRead[] }> {
  const first: BodyRead[] = []
  let head: Buffer = Buffer.alloc(0)
  while (head.length < PCAP_HEADER_BYTES) {
    const read = await stream.next()
    if (read === undefined) break
    const bytes = read.data.reduce((sum, piece) => sum + piece.length, 0)
    head = Buffer.concat([head, ...read.data], Math.min(head.length + bytes, PCAP_HEADER_BYTES))
    if (bytes >= PCAP_HEADER_BYTES) first.push(read)
    else {
      // Many tiny parts must not hold the buffers that the next ones need.
      first.push({
        data: [Buffer.concat(read.data)],
        framed: read.framed.map((piece) => Buffer.from(piece)),
        open: read.open,
        release: () => undefined,
      })
      read.release()
    }
  }
  return { head, first }
}
