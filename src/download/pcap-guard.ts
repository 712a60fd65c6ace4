import { deviceProtocol } from '../device/device-failure.ts'
import { RecordBoundary } from '../pcap/record-boundary.ts'
import type { BodyGuard } from './body-guard.ts'

/** A PCAP is whole when it ends behind a record. */
export class PcapGuard implements BodyGuard {
  readonly takesTime = false
  readonly #device: string
  readonly #boundary: RecordBoundary

  constructor(device: string) {
    this.#device = device
    this.#boundary = new RecordBoundary(`device ${device}`)
  }

  get mayBeWhole(): boolean {
    return this.#boundary.atBoundary
  }

  feed(pieces: readonly Buffer[]): undefined {
    this.#boundary.feed(pieces)
  }

  async finish(): Promise<void> {
    if (!this.#boundary.atBoundary) throw deviceProtocol(this.#device, 'ended its stream inside a record')
  }

  [Symbol.dispose](): void {}
}
