/** The ways in which a device can misbehave, by name, as bytes on a raw connection. */
import { gzipSync, zstdCompressSync } from 'node:zlib'
import type { HonestFile, HostileCompression } from './hostile-case.ts'
import { chunkOf, type HostileWire } from './hostile-wire.ts'

export interface HostileScene {
  readonly wire: HostileWire
  readonly file: HonestFile
  /** Position in the file as a fraction, 0 <= cut < 1. */
  readonly cut: number
  readonly compression: HostileCompression
  /** URL of a device that behaves. */
  readonly elsewhere: string
}

type Act = (scene: HostileScene) => Promise<void>

const TYPE = 'Content-Type: application/vnd.tcpdump.pcap'
const CLOSE = 'Connection: close'
const CHUNKED = [TYPE, CLOSE, 'Transfer-Encoding: chunked']
const ANNOUNCED = [...CHUNKED, 'Trailer: Capfleet-Complete, Capfleet-Packets']
const COMPLETE = '0\r\nCapfleet-Complete: 1\r\nCapfleet-Packets: 7\r\n\r\n'
const FLOOD_BYTES = 4 << 20
const BOMB_BYTES = 256 << 20

/**
 * In all of these the client must not see a clean end: the file is incomplete, or the device did not confirm its end
 * although it promised to.
 */
const INCOMPLETE = {
  'polite short end, nothing announced': async (scene) => {
    await scene.wire.head(CHUNKED)
    await scene.wire.chunks(partOf(scene))
    await scene.wire.send('0\r\n\r\n')
    scene.wire.end()
  },
  'polite short end, completion announced': async (scene) => {
    await scene.wire.head(ANNOUNCED)
    await scene.wire.chunks(anyPartOf(scene))
    await scene.wire.send('0\r\n\r\n')
    scene.wire.end()
  },
  'polite short end, completion denied': async (scene) => {
    await scene.wire.head(ANNOUNCED)
    await scene.wire.chunks(anyPartOf(scene))
    await scene.wire.send('0\r\nCapfleet-Complete: 0\r\n\r\n')
    scene.wire.end()
  },
  'Content-Length too long': async (scene) => {
    await scene.wire.head([TYPE, CLOSE, `Content-Length: ${scene.file.bytes.length}`])
    await scene.wire.send(anyPartOf(scene))
    scene.wire.end()
  },
  'Content-Length too short': async (scene) => {
    await scene.wire.head([TYPE, CLOSE, `Content-Length: ${partOf(scene).length}`])
    await scene.wire.send(scene.file.bytes)
    scene.wire.end()
  },
  'Content-Length and chunks': async (scene) => {
    await scene.wire.head([...CHUNKED, `Content-Length: ${partOf(scene).length}`])
    await scene.wire.chunks(scene.file.bytes)
    await scene.wire.send('0\r\n\r\n')
    scene.wire.end()
  },
  'no framing, cut': async (scene) => {
    await scene.wire.head([TYPE, CLOSE])
    await scene.wire.send(partOf(scene))
    scene.wire.end()
  },
  'cut in a chunk header': async (scene) => {
    await scene.wire.head(CHUNKED)
    await scene.wire.chunks(anyPartOf(scene))
    await scene.wire.send('1f')
    scene.wire.end()
  },
  'cut in chunk data': async (scene) => {
    const part = anyPartOf(scene)
    await scene.wire.head(CHUNKED)
    await scene.wire.send(chunkOf(scene.file.bytes).subarray(0, part.length + 5))
    scene.wire.end()
  },
  'cut after chunk data': async (scene) => {
    await scene.wire.head(CHUNKED)
    const chunk = chunkOf(anyPartOf(scene))
    await scene.wire.send(chunk.subarray(0, chunk.length - (scene.cut < 0.5 ? 1 : 2)))
    scene.wire.end()
  },
  'cut in the trailer': async (scene) => {
    await scene.wire.head(ANNOUNCED)
    await scene.wire.chunks(scene.file.bytes)
    await scene.wire.send(COMPLETE.slice(0, Math.floor(scene.cut * COMPLETE.length)))
    scene.wire.end()
  },
  'bad chunk size': async (scene) => {
    await scene.wire.head(CHUNKED)
    await scene.wire.chunks(anyPartOf(scene))
    const bad = ['zz', '-5', '0x1f', 'ffffffffffffffffff', '1 f', ''][Math.floor(scene.cut * 6)]
    await scene.wire.send(`${bad}\r\n${'x'.repeat(40)}\r\n0\r\n\r\n`)
    scene.wire.end()
  },
  'endless chunk extension': async (scene) => {
    await scene.wire.head(CHUNKED)
    await scene.wire.chunks(anyPartOf(scene))
    await scene.wire.send('10;x=')
    await scene.wire.flood('endless', FLOOD_BYTES)
  },
  'header flood': async (scene) => {
    await scene.wire.head([
      ...ANNOUNCED,
      ...Array.from({ length: 1_000 }, (_, n) => `X-${n}: ${'x'.repeat(93)}`),
    ])
    await scene.wire.chunks(scene.file.bytes)
    await scene.wire.send(COMPLETE)
    scene.wire.end()
  },
  'informational flood': (scene) => scene.wire.flood('HTTP/1.1 102 Processing\r\n\r\n', FLOOD_BYTES),
  'trailers bomb': async (scene) => {
    await scene.wire.head(ANNOUNCED)
    await scene.wire.chunks(scene.file.bytes)
    await scene.wire.send('0\r\n')
    await scene.wire.flood(`X-Trailer: ${'x'.repeat(100)}\r\n`, FLOOD_BYTES)
  },
  redirect: async (scene) => {
    await scene.wire.head([CLOSE, `Location: ${scene.elsewhere}`, 'Content-Length: 0'], '302 Found')
    scene.wire.end()
  },
  hang: async (scene) => {
    await scene.wire.head(scene.cut < 0.5 ? CHUNKED : ANNOUNCED)
    await scene.wire.chunks(anyPartOf(scene))
  },
  reset: async (scene) => {
    await scene.wire.head(scene.cut < 0.5 ? CHUNKED : ANNOUNCED)
    await scene.wire.chunks(anyPartOf(scene))
    await scene.wire.reset()
  },
} as const satisfies Record<string, Act>

/**
 * Here a clean end is right if the client has exactly what the device sent: a relay does not look into compressed
 * bytes. A merge must look, and refuse.
 */
const DECEPTIVE = {
  bomb: async ({ wire, compression }) => {
    await wire.head(ANNOUNCED)
    await wire.chunks(bombOf(compression))
    await wire.send(COMPLETE)
    wire.end()
  },
  'garbage record length': async (scene) => {
    await scene.wire.head(ANNOUNCED)
    await scene.wire.chunks(garbageOf(scene))
    await scene.wire.send(COMPLETE)
    scene.wire.end()
  },
} as const satisfies Record<string, Act>

/** Here the file is whole, but has something added that does not belong to it. */
const WHOLE = {
  polite: async (scene) => {
    await sendWhole(scene)
    scene.wire.end()
  },
  'second response': async (scene) => {
    await sendWhole(scene)
    await scene.wire.send('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nextra')
    scene.wire.end()
  },
  'informational answers first': async (scene) => {
    for (let count = 0; count < 3; count += 1)
      await scene.wire.send('HTTP/1.1 103 Early Hints\r\nX: y\r\n\r\n')
    await sendWhole(scene)
    scene.wire.end()
  },
} as const satisfies Record<string, Act>

export const HOSTILE_ACTS: Readonly<Record<string, Act>> = { ...INCOMPLETE, ...DECEPTIVE, ...WHOLE }
export const HOSTILE_NAMES: readonly string[] = Object.keys(HOSTILE_ACTS)

/** What a client of a relay may have after a clean end: nothing, the file, or these bytes. */
export function deceptiveBytes(name: string, scene: Omit<HostileScene, 'wire'>): Buffer | undefined {
  if (name === 'bomb') return bombOf(scene.compression)
  return name === 'garbage record length' && scene.compression !== 'none' ? garbageOf(scene) : undefined
}

export function isIncomplete(name: string): boolean {
  return name in INCOMPLETE
}

/** Like one of our own devices. */
async function sendWhole({ wire, file }: HostileScene): Promise<void> {
  await wire.head(ANNOUNCED)
  await wire.chunks(file.bytes)
  await wire.send(COMPLETE)
}

/** Up to the cut, moved away from positions where a shorter file would be whole. */
function partOf({ file, cut }: Omit<HostileScene, 'wire'>): Buffer {
  let at = Math.floor(cut * file.bytes.length)
  while (file.boundaries.has(at)) at += 1
  return file.bytes.subarray(0, Math.min(at, file.bytes.length - 1))
}

/** Up to the cut, wherever it is: the framing shows that this is not all. Often ends with a whole record. */
function anyPartOf({ file, cut }: Omit<HostileScene, 'wire'>): Buffer {
  const at = Math.floor(cut * file.bytes.length)
  const boundary = [...file.boundaries].findLast((offset) => offset <= at) ?? 0
  return file.bytes.subarray(0, Math.floor(cut * 1_000) % 3 === 0 ? boundary : at)
}

/** Building them takes seconds, during which no device of this process would answer. */
export function makeBombs(): void {
  for (const compression of ['none', 'fast', 'zstd', 'best'] as const) bombOf(compression)
}

const bombs = new Map<string, Buffer>()

/** A quarter of a gigabyte of zeros, small on the wire; uncompressed, zeros are empty records. */
function bombOf(compression: HostileCompression): Buffer {
  const known = bombs.get(compression)
  if (known !== undefined) return known
  const zeros = Buffer.alloc(BOMB_BYTES)
  const bomb = compression === 'zstd' ? zstdCompressSync(zeros) : gzipSync(zeros, { level: 1 })
  bombs.set(compression, bomb)
  return bomb
}

/** In an uncompressed file one record claims an impossible length; in a compressed one bits are flipped. */
function garbageOf({ file, cut, compression }: Omit<HostileScene, 'wire'>): Buffer {
  const bytes = Buffer.from(file.bytes)
  if (compression !== 'none') {
    const at = Math.floor(bytes.length * (0.2 + cut * 0.6))
    bytes[at] = (bytes[at] ?? 0) ^ 0xff
    return bytes
  }
  const starts = [...file.boundaries].filter((offset) => offset >= 24 && offset < bytes.length)
  const start = starts[Math.floor(cut * starts.length)] ?? 24
  bytes.writeUInt32LE(cut < 0.5 ? 0xffff_ffff : 262_145, start + 8)
  return bytes
}
