/** Captures for exports: packets of some devices, with equal times and partly equal content. */
import { writeFile } from 'node:fs/promises'
import { type MadePcapOptions, makePcap } from '../packets/packet-maker.ts'
import type { PcapRecord } from '../packets/pcap-records.ts'
import { seededRandom } from '../seeded-random.ts'

export const EXPORT_BEGIN_NS = 1_790_000_000_000_000_000n
export const EXPORT_SECONDS = 60
export const EXPORT_END_NS = EXPORT_BEGIN_NS + BigInt(EXPORT_SECONDS) * 1_000_000_000n

const LENGTH_MIN = 60
const LENGTH_MAX = 1_514
/** Every n-th packet appears on all devices, each a bit later than on the previous one. */
const SHARED_EVERY = 10
const SHARED_LATER_NS = 500n
/** Every n-th packet is at the start of a second, where all devices have one. */
const EVEN_EVERY = 97

/** About `bytes` of packets, spread over the whole time. Each device uses its own seed. */
export function exportPackets(device: number, bytes: number): PcapRecord[] {
  const random = seededRandom(1_000 + device)
  const shared = seededRandom(7)
  const packets = Math.ceil(bytes / ((LENGTH_MIN + LENGTH_MAX) / 2 + 16))
  const stepNs = (BigInt(EXPORT_SECONDS) * 1_000_000_000n) / BigInt(packets)
  const records: PcapRecord[] = []
  for (let index = 0; index < packets; index += 1) {
    const isShared = index % SHARED_EVERY === 0
    const source = isShared ? shared : random
    const captured = Buffer.alloc(source.integer(LENGTH_MIN, LENGTH_MAX), source.integer(0, 255))
    captured.writeUInt32LE(index, 14)
    if (!isShared) captured.writeUInt8(device, 18)
    const atNs = EXPORT_BEGIN_NS + BigInt(index) * stepNs
    const laterNs = isShared
      ? SHARED_LATER_NS * BigInt(device)
      : BigInt(random.integer(0, Number(stepNs) - 2_000))
    const ns = index % EVEN_EVERY === 0 ? atNs - (atNs % 1_000_000_000n) : atNs + laterNs
    records.push({ ns, originalLength: captured.length, captured })
  }
  return records.sort((a, b) => (a.ns < b.ns ? -1 : a.ns > b.ns ? 1 : 0))
}

export async function writeExportCapture(
  path: string,
  { device, bytes, ...options }: MadePcapOptions & { readonly device: number; readonly bytes: number },
): Promise<void> {
  await writeFile(path, makePcap(exportPackets(device, bytes), options))
}
