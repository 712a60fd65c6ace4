/** Small data that expands enormously: a valid PCAP of identical packets, compressed. */
import { constants, gzipSync, zstdCompressSync } from 'node:zlib'
import { makePacket, makePcap, makeRecord } from '../support/packets/packet-maker.ts'
import type { Scale } from './attack.ts'

/** Decompressed, in bytes. */
const PIECE_BYTES = 32 << 20
/** 2 GiB, or 128 MiB. */
const PIECES = { full: 64, small: 4 } as const

/** About 380 KB in the full form: each piece is a frame of 6 KB. */
export function zstdBomb(scale: Scale): Buffer {
  const params = { [constants.ZSTD_c_compressionLevel]: 19 }
  return bomb(scale, (bytes) => zstdCompressSync(bytes, { params }))
}

/** A few megabytes: gzip reaches a thousandth at best. */
export function gzipBomb(scale: Scale): Buffer {
  return bomb(scale, (bytes) => gzipSync(bytes, { level: 9 }))
}

function bomb(scale: Scale, compress: (bytes: Buffer) => Buffer): Buffer {
  const record = makeRecord(makePacket(1_700_000_000_000_000_000n, '', 65_000))
  const records = Buffer.concat(Array.from({ length: Math.floor(PIECE_BYTES / record.length) }, () => record))
  const piece = compress(records)
  return Buffer.concat([compress(makePcap([])), ...Array.from({ length: PIECES[scale] }, () => piece)])
}
