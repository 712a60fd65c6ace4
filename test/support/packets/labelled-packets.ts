/** Captures whose packets say in their bytes which device and port saw them. */
import { makePacket } from './packet-maker.ts'
import { makePcapng, type PortRecord } from './pcapng-maker.ts'

export interface LabelledOptions {
  readonly device: string
  readonly ports: number
  readonly packets: number
  readonly startNs: bigint
  readonly stepNs: bigint
  readonly linkType?: number | undefined
  /** Captured bytes of the packet with this number. */
  readonly bytesOf: (packet: number) => number
}

/** The ports take turns, and each packet comes `stepNs` after the previous one. */
export function labelledCapture(options: LabelledOptions): Buffer {
  const { device, ports, packets, startNs, stepNs, linkType, bytesOf } = options
  const records = Array.from({ length: packets }, (_, packet): PortRecord => {
    const port = packet % ports
    const label = `${LABEL_BEGIN}${device}:cap${port}${LABEL_END}${packet}`
    const bytes = Math.max(label.length, bytesOf(packet))
    return { ...makePacket(startNs + BigInt(packet) * stepNs, label, bytes), port }
  })
  return makePcapng(ports, records, linkType)
}

const LABEL_BEGIN = 'seen by '
const LABEL_END = ', packet '

/** The device and port of a packet, as an interface is named: `nyc1:cap0`. */
export function labelOf(captured: Buffer): string {
  const text = captured.toString('latin1')
  const begin = LABEL_BEGIN.length
  return text.slice(begin, text.indexOf(LABEL_END, begin))
}
