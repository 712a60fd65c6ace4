// An import costs the other captures of a store nothing, unless it is told to evict.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { before, type TestContext, test } from 'node:test'
import { constants, gzipSync, zstdCompressSync } from 'node:zlib'
import { stringify } from 'yaml'
import { RecorderClient } from '../../../appliance/link/recorder-client.ts'
import { startChildProgram } from '../../../src/demo/child-program.ts'
import { mountSmallDisk } from '../../support/disks/small-disk.ts'
import { makePacket, makePcap } from '../../support/packets/packet-maker.ts'
import { REPOSITORY_ROOT } from '../../support/repository-files.ts'

const MEBIBYTE = 1 << 20
const DISK_BYTES = 240 * MEBIBYTE
const MIN_FREE_BYTES = 16 * MEBIBYTE
/** Space for 20 MiB in addition to what is stored. */
const MAX_BYTES = 100 * MEBIBYTE
/** Space for more than the 64 MiB that any file may expand to. */
const ROOMY_BYTES = 190 * MEBIBYTE
const HELD_BYTES = 40 * MEBIBYTE
const PACKET_BYTES = 65_536
/** More than the decoders themselves need: windows, buffers and packets that wait to be sorted. */
const MEMORY_LIMIT_KIB = 400 * 1024
const START_NS = 1_700_000_000_000_000_000n

/** A capture file of packets filled with `byte`, oldest first or oldest last. */
function capture(bytes: number, byte: number, isReversed = false): Buffer {
  const packets = Array.from({ length: Math.floor(bytes / (PACKET_BYTES + 16)) }, (_, i) => {
    const packet = makePacket(START_NS + BigInt(i), '', PACKET_BYTES)
    Buffer.from(packet.captured.buffer).fill(byte)
    return packet
  })
  return makePcap(isReversed ? packets.reverse() : packets)
}

interface Store extends AsyncDisposable {
  readonly path: string
  /** A folder for input files, on another disk. */
  readonly folder: string
  readonly recorder: RecorderClient
  readonly pid: number
}

/** A recorder in its own process, whose store holds the captures `old` and `older`. */
async function nearlyFullStore(t: TestContext, maxBytes = MAX_BYTES): Promise<Store | undefined> {
  const mounted = await mountSmallDisk(DISK_BYTES)
  if (typeof mounted === 'string') {
    t.skip(mounted)
    return undefined
  }
  await using parts = new AsyncDisposableStack()
  const disk = parts.use(mounted)
  const path = join(disk.path, 'store')
  const configPath = join(disk.beside, 'appliance.yaml')
  const config = {
    store: path,
    auth: { users: './users.yaml' },
    imports: { segmentBytes: MEBIBYTE },
    retention: { maxBytes, minFreeBytes: MIN_FREE_BYTES },
  }
  await writeFile(configPath, stringify(config))
  const program = await startChildProgram('recorder', ['recorder', '--config', configPath], {
    logPath: join(disk.beside, 'log'),
    appends: true,
  })
  parts.defer(() => program.stop(10_000))
  const recorder = new RecorderClient(path)
  const file = join(disk.beside, 'held.pcap')
  await writeFile(file, capture(HELD_BYTES, 7))
  for (const name of ['older', 'old']) await recorder.importCapture({ name, files: [file] })
  const owner = parts.move()
  return {
    path,
    folder: disk.beside,
    recorder,
    pid: program.pid,
    [Symbol.asyncDispose]: () => owner.disposeAsync(),
  }
}

function capfleet(...args: readonly string[]): Promise<{ status: number | null; stderr: string }> {
  return new Promise((resolve) => {
    const cli = join(REPOSITORY_ROOT, 'src/cli.ts')
    const child = execFile(process.execPath, [cli, ...args], (_error, _stdout, stderr) =>
      resolve({ status: child.exitCode, stderr }),
    )
  })
}

/** The content of each file of all captures, by path. */
async function hashes(store: string): Promise<Record<string, string>> {
  const found: Record<string, string> = {}
  for (const entry of await readdir(join(store, 'captures'), { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue
    const path = join(entry.parentPath, entry.name)
    found[path] = createHash('sha256')
      .update(await readFile(path))
      .digest('hex')
  }
  return found
}

/** The peak memory of the process. */
async function peakKib(pid: number): Promise<number> {
  return Number(/VmHWM:\s+(\d+)/.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1])
}

const MANY = 400
/** gzip takes long for more. */
const GZIP_BOMB_BYTES = (process.env.CAPFLEET_LONG === '1' ? 512 : 160) * MEBIBYTE
/** Where the endless block begins that a pcapng consists of. */
const HUGE_BLOCK_BYTES = 36
/** Files of a few kilobytes that expand to hundreds of megabytes and more. */
const bombs: Record<string, Buffer> = {}
before(() => {
  const header = makePcap([])
  // A record of zeros is a packet without bytes at the beginning of 1970.
  const zeros = Buffer.alloc(8 * MEBIBYTE)
  const many = (frame: Buffer, begin: Buffer): Buffer =>
    Buffer.concat([begin, ...Array.from({ length: MANY }, () => frame)])
  const large = Buffer.alloc(512 * MEBIBYTE)
  writeHugeBlock(large)
  bombs['long-blocks.pcapng.zst'] = zstdCompressSync(large)
  large.fill(0, 0, HUGE_BLOCK_BYTES)
  header.copy(large)
  bombs['one-frame.pcap.zst'] = zstdCompressSync(large)
  bombs['long-window.pcap.zst'] = zstdCompressSync(large, {
    params: { [constants.ZSTD_c_windowLog]: 27 },
  })
  bombs['many-frames.pcap.zst'] = many(zstdCompressSync(zeros), zstdCompressSync(header))
  bombs['one-member.pcap.gz'] = gzipSync(large.subarray(0, GZIP_BOMB_BYTES), { level: 9 })
  bombs['many-members.pcap.gz'] = many(gzipSync(zeros, { level: 9 }), gzipSync(header))
})

test('a bomb is refused by name and ratio, and every other capture stays as it was', async (t) => {
  await using store = await nearlyFullStore(t, ROOMY_BYTES)
  if (store === undefined) return
  const held = await hashes(store.path)
  for (const [name, bytes] of Object.entries(bombs)) {
    const file = join(store.folder, name)
    await writeFile(file, bytes)
    await assert.rejects(store.recorder.importCapture({ name: 'bomb', files: [file] }), (error: Error) => {
      assert.match(error.message, new RegExp(`${name} was rejected: .*more than 200 times its size`))
      assert.match(error.message, /decompress it and import the result/)
      assert.equal((error as Error & { code: string }).code, 'bad-capture-file')
      return true
    })
    assert.deepEqual(await hashes(store.path), held, name)
  }
  const peak = await peakKib(store.pid)
  t.diagnostic(`the recorder took ${Math.round(peak / 1024)} MiB at most`)
  assert.ok(peak < MEMORY_LIMIT_KIB, `${peak} KiB`)
})

test('an import without room ends with store-full, and leaves nothing over', async (t) => {
  await using store = await nearlyFullStore(t)
  if (store === undefined) return
  const held = await hashes(store.path)
  const file = join(store.folder, 'large.pcap')
  await writeFile(file, capture(30 * MEBIBYTE, 9))
  await assert.rejects(store.recorder.importCapture({ name: 'large', files: [file] }), {
    code: 'store-full',
    message:
      /^large: .*bytes available.*nothing of it was kept; delete captures, or import .* with --evict, which removes the oldest packets$/,
  })
  assert.deepEqual(await hashes(store.path), held)
  const tail = join(store.folder, 'small.pcap')
  await writeFile(tail, capture(10 * MEBIBYTE, 9))
  await store.recorder.importCapture({ name: 'small', files: [tail] })
  const after = await hashes(store.path)
  for (const [path, hash] of Object.entries(held)) assert.equal(after[path], hash)
})

test('the space an import needs to sort its packets is not taken from captures either', async (t) => {
  await using store = await nearlyFullStore(t, ROOMY_BYTES)
  if (store === undefined) return
  const held = await hashes(store.path)
  const file = join(store.folder, 'reversed.pcap')
  // There is space for the packets, but not for the sort runs beside them.
  await writeFile(file, capture(100 * MEBIBYTE, 9, true))
  await assert.rejects(store.recorder.importCapture({ name: 'reversed', files: [file] }), {
    code: 'store-full',
  })
  assert.deepEqual(await hashes(store.path), held)
})

test('an import that may evict costs the oldest packets, as few as it needs', async (t) => {
  await using store = await nearlyFullStore(t)
  if (store === undefined) return
  const file = join(store.folder, 'large.pcap')
  await writeFile(file, capture(30 * MEBIBYTE, 9))
  const plain = await capfleet('import', file, '--store', store.path)
  assert.deepEqual([plain.status, /store-full/.test(plain.stderr)], [1, true], plain.stderr)
  const evicting = await capfleet('import', file, '--store', store.path, '--evict')
  assert.equal(evicting.status, 0, evicting.stderr)
  const sizeOf = async (name: string): Promise<number> => {
    const folder = join(store.path, 'captures', name, 'cap0', '00000')
    const files = await readdir(folder)
    const sizes = await Promise.all(files.map(async (entry) => (await stat(join(folder, entry))).size))
    return sizes.reduce((sum, size) => sum + size, 0)
  }
  const [older, old, large] = await Promise.all(['older', 'old', 'large'].map(sizeOf))
  assert.ok(older !== undefined && old !== undefined && large !== undefined)
  assert.ok(old > HELD_BYTES - MEBIBYTE && large > 29 * MEBIBYTE)
  assert.ok(older < HELD_BYTES, 'the oldest segments went')
  const total = older + old + large
  assert.ok(total <= MAX_BYTES && total > MAX_BYTES - 2 * MEBIBYTE, `${total} bytes are left`)
})

/** The start of a pcapng: a section, then a block of an unknown type of nearly 4 GiB. */
function writeHugeBlock(section: Buffer): void {
  section.writeUInt32LE(0x0a0d0d0a, 0)
  section.writeUInt32LE(28, 4)
  section.writeUInt32LE(0x1a2b3c4d, 8)
  section.writeUInt16LE(1, 12)
  section.writeUInt32LE(28, 24)
  section.writeUInt32LE(0x0bad, 28)
  section.writeUInt32LE(0xffff_fffc, 32)
}
