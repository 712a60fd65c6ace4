/** How a hostile device handles one download, and what an honest client may get from it. */
import { constants, gzipSync, zstdCompressSync } from 'node:zlib'
import { simulatedCapture, simulatedMerge } from '../devices/simulated-capture.ts'

export type HostileCompression = 'none' | 'fast' | 'zstd' | 'best'

/** Packets of a capture; the larger size exceeds every buffer of the gateway. */
export const HOSTILE_SIZES = [40, 1_500] as const

/** A file as an honest device would send it. */
export interface HonestFile {
  readonly bytes: Buffer
  /** Offsets at which a prefix of the file is also a whole file; a cut there cannot be detected. */
  readonly boundaries: ReadonlySet<number>
}

const FORMATS: Readonly<Record<HostileCompression, (bytes: Buffer) => Buffer>> = {
  none: (bytes) => bytes,
  fast: (bytes) => gzipSync(bytes, { level: 1 }),
  best: (bytes) => gzipSync(bytes, { level: 9 }),
  zstd: (bytes) => zstdCompressSync(bytes, { params: { [constants.ZSTD_c_checksumFlag]: 1 } }),
}

const files = new Map<string, HonestFile>()

/** A device's packets from `beginNs` on. Compressed files have two members or frames, as for two slices. */
export function honestFile(
  index: number,
  packets: number,
  options: { readonly compression: HostileCompression; readonly beginNs: bigint },
): HonestFile {
  const key = `${index}/${packets}/${options.compression}/${options.beginNs}`
  const known = files.get(key)
  if (known !== undefined) return known
  const { header, records } = simulatedCapture(index, packets)
  const chosen = [header, ...records.filter(({ ns }) => ns >= options.beginNs).map(({ bytes }) => bytes)]
  const file = options.compression === 'none' ? plainFile(chosen) : packedFile(chosen, options.compression)
  files.set(key, file)
  return file
}

/** The bytes of a merge of the devices 0 to `devices` - 1. */
export function honestMerge(devices: number, packets: number): Buffer {
  const key = `merge ${devices}/${packets}`
  const known = files.get(key)
  if (known !== undefined) return known.bytes
  const bytes = simulatedMerge(
    Array.from({ length: devices }, (_, index) => index),
    packets,
  )
  files.set(key, { bytes, boundaries: new Set() })
  return bytes
}

function plainFile(elements: readonly Buffer[]): HonestFile {
  const boundaries = new Set<number>([0])
  let offset = 0
  for (const { length } of elements) {
    offset += length
    boundaries.add(offset)
  }
  return { bytes: Buffer.concat(elements), boundaries }
}

function packedFile(elements: readonly Buffer[], compression: HostileCompression): HonestFile {
  const pack = FORMATS[compression]
  const half = Math.ceil(elements.length / 2)
  const first = pack(Buffer.concat(elements.slice(0, half)))
  const second = pack(Buffer.concat(elements.slice(half)))
  return { bytes: Buffer.concat([first, second]), boundaries: new Set([0, first.length]) }
}
