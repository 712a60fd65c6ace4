import assert from 'node:assert/strict'
import { execFile, execFileSync, spawnSync } from 'node:child_process'
import { cp, mkdir, readdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import {
  type Chunk,
  type Compression,
  Download,
  type DownloadOptions,
  type ImportProgress,
  importCaptureFiles,
  type StreamFiles,
} from '../../native/addon.ts'
import { writeBigCapture } from '../support/big-capture.ts'
import { compileFilter } from '../support/compile-filter.ts'
import { makePacket, makePcap } from '../support/packet-maker.ts'
import { readPcap, recordLines } from '../support/pcap-records.ts'
import { REPOSITORY_ROOT } from '../support/repository-files.ts'
import { SHARED_CAPTURES, WITHOUT_SHARED_CAPTURES } from '../support/shared-captures.ts'
import { tempFolder } from '../support/temp-folder.ts'

const EVERYTHING = {
  beginNs: 0n,
  endNs: 2n ** 63n - 1n,
  timeResolution: 'nsec',
  compression: 'none',
} as const

/** Imports into a new folder below `root` and returns the streams. */
async function importInto(root: string, files: readonly string[]): Promise<StreamFiles[]> {
  const directory = join(root, `capture-${(await readdir(root)).length}`)
  await mkdir(directory)
  const { streams } = await importCaptureFiles({ files, directory })
  return streams.map(({ port, segments }) => ({
    port,
    segments: segments.map(({ number }) => join(directory, `cap${port}`, String(number).padStart(8, '0'))),
  }))
}

async function download(streams: readonly StreamFiles[], options: Partial<DownloadOptions> = {}) {
  await using opened = await Download.open({ streams, ...EVERYTHING, ...options })
  const pieces: Buffer[] = []
  for (let chunk = await opened.next(); chunk; chunk = await opened.next()) {
    pieces.push(Buffer.from(chunk.bytes))
    chunk.release()
  }
  return { body: Buffer.concat(pieces), totals: opened.totals(), firstPiece: pieces[0] }
}

/** tcpdump's view of a file, a text a packet, in order of time as downloads are. */
function tcpdumpTexts(file: string): string[] {
  const output = execFileSync('tcpdump', ['-nn', '-tt', '--nano', '-xx', '-r', file], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
    maxBuffer: 1 << 28,
  })
  const texts = output.split(/^(?=\d+\.\d{9} )/m)
  const timestamp = (text: string): string => text.slice(0, text.indexOf(' '))
  return texts.sort((a, b) => timestamp(a).localeCompare(timestamp(b)))
}

test('gives back real captures as tcpdump reads them', { skip: WITHOUT_SHARED_CAPTURES }, async () => {
  await using root = await tempFolder()
  let compared = 0
  for (const file of SHARED_CAPTURES.filter((path) => path.endsWith('.pcap'))) {
    // The importer normalises this one's fractions of more than a second.
    if (file.includes('timestamp_invalid')) continue
    const copy = join(root.path, 'copy.pcap')
    await writeFile(copy, (await download(await importInto(root.path, [file]))).body)
    assert.deepEqual(tcpdumpTexts(copy), tcpdumpTexts(file), file)
    compared++
  }
  assert.ok(compared >= 15, `${compared} captures`)
})

test('filters real captures as tcpdump does', { skip: WITHOUT_SHARED_CAPTURES }, async () => {
  await using root = await tempFolder()
  let delivered = 0
  for (const file of SHARED_CAPTURES) {
    const streams = await importInto(root.path, [file])
    const whole = await download(streams)
    const wholeFile = join(root.path, 'whole.pcap')
    await writeFile(wholeFile, whole.body)
    const { linkType, snaplen } = readPcap(whole.body)
    for (const expression of [
      'tcp',
      'udp',
      'ip6',
      'greater 200',
      'ip[8] < 64',
      'vlan',
      'not ip',
      'port 4789',
    ]) {
      const compiled = compileFilter(expression, linkType, snaplen)
      // Some link types know no VLAN; tcpdump says the same.
      if (compiled.status !== 0) continue
      const ours = readPcap((await download(streams, { filter: compiled.program })).body)
      const theirs = execFileSync('tcpdump', ['-r', wholeFile, '--nano', '-w', '-', expression], {
        stdio: ['ignore', 'pipe', 'ignore'],
        maxBuffer: 1 << 28,
      })
      assert.deepEqual(
        recordLines(ours.records),
        recordLines(readPcap(theirs).records),
        `${file} ${expression}`,
      )
      delivered += ours.records.length
    }
  }
  assert.ok(delivered > 300, `${delivered} packets passed`)
})

test('standard tools accept every compression', async () => {
  await using root = await tempFolder()
  await writeBigCapture(join(root.path, 'big.pcap'), 12_000)
  const streams = await importInto(root.path, [join(root.path, 'big.pcap')])
  const plain = await download(streams)
  const names: Compression[] = ['fast', 'best', '1', '2', '3', '4', '5', '6', '7', '8', '9']
  for (const compression of [...names, 'zstd', 'zstd_fast', 'zstd_ultra'] as Compression[]) {
    const { body, totals } = await download(streams, { compression })
    const tools = compression.startsWith('zstd')
      ? [['zstd', '-dc']]
      : [
          ['gzip', '-dc'],
          ['pigz', '-dc'],
        ]
    for (const [tool = '', flags = ''] of tools) {
      const unpacked = spawnSync(tool, [flags], { input: body, maxBuffer: 1 << 28 })
      assert.equal(unpacked.status, 0, `${tool} ${compression}: ${unpacked.stderr}`)
      assert.ok(unpacked.stdout.equals(plain.body), `${tool} ${compression}`)
    }
    assert.equal(totals.bytes, BigInt(plain.body.byteLength - 24))
    assert.equal(totals.outputBytes, BigInt(body.byteLength))
  }
})

test('the file header is a piece of its own and comes first', async () => {
  await using root = await tempFolder()
  await writeFile(join(root.path, 'a.pcap'), makePcap([makePacket(5n, 'x')], { linkType: 113, snaplen: 900 }))
  const streams = await importInto(root.path, [join(root.path, 'a.pcap')])
  const { firstPiece, body } = await download(streams, { sliceBytes: 64, timeResolution: 'usec' })
  assert.equal(firstPiece?.byteLength, 24)
  const pcap = readPcap(body)
  assert.deepEqual([pcap.linkType, pcap.snaplen, pcap.nanoseconds], [113, 64, false])
  assert.equal((await download([], { emptyLinkType: 228 })).body.readUInt32LE(20), 228)
})

test('reads ahead of a slow consumer by a bounded amount, in flat memory', async (t) => {
  await using root = await tempFolder()
  const big = await writeBigCapture(join(root.path, 'big.pcap'), 220_000)
  const streams = await importInto(root.path, [join(root.path, 'big.pcap')])
  await using opened = await Download.open({ streams, ...EVERYTHING })
  let received = 0
  let mostAhead = 0
  const rssBefore = process.memoryUsage.rss()
  let rssMost = rssBefore
  const held: Chunk[] = []
  for (let chunk = await opened.next(); chunk; chunk = await opened.next()) {
    received += chunk.bytes.byteLength
    held.push(chunk)
    if (held.length > 2) held.shift()?.release()
    // Time enough for the engine to run as far ahead as it may.
    await new Promise((resolve) => setTimeout(resolve, 3))
    mostAhead = Math.max(mostAhead, Number(opened.totals().readBytes) - received)
    rssMost = Math.max(rssMost, process.memoryUsage.rss())
  }
  for (const chunk of held) chunk.release()
  assert.equal(received, big.bytes)
  const mebibytes = (bytes: number): string => (bytes / 2 ** 20).toFixed(1)
  t.diagnostic(`ahead ${mebibytes(mostAhead)} MiB, RSS grew by ${mebibytes(rssMost - rssBefore)} MiB`)
  assert.ok(mostAhead <= 9 * 2 ** 20, `${mostAhead} bytes ahead`)
  assert.ok(rssMost - rssBefore < 48 * 2 ** 20, `RSS grew by ${rssMost - rssBefore}`)
})

test('a released piece is used again, and releasing it twice does no harm', async () => {
  await using root = await tempFolder()
  const big = await writeBigCapture(join(root.path, 'big.pcap'), 40_000)
  const streams = await importInto(root.path, [join(root.path, 'big.pcap')])
  await using opened = await Download.open({ streams, ...EVERYTHING })
  const memories = new Set<ArrayBufferLike>()
  const digests: number[] = []
  let received = 0
  for (let chunk = await opened.next(); chunk; chunk = await opened.next()) {
    memories.add(chunk.bytes.buffer)
    received += chunk.bytes.byteLength
    digests.push(chunk.bytes[0] ?? 0)
    chunk.release()
    chunk.release()
  }
  assert.equal(received, big.bytes)
  assert.ok(memories.size < digests.length / 2, `${memories.size} slabs for ${digests.length} pieces`)
})

test('close() answers a waiting next() at once', async () => {
  await using root = await tempFolder()
  await writeBigCapture(join(root.path, 'big.pcap'), 40_000)
  const streams = await importInto(root.path, [join(root.path, 'big.pcap')])
  const opened = await Download.open({ streams, ...EVERYTHING, compression: 'zstd_ultra' })
  await opened.next()
  const waiting = opened.next()
  opened.close()
  opened.close()
  await assert.rejects(waiting, { name: 'AbortError' })
  await assert.rejects(opened.next(), { name: 'AbortError' })
})

test('the process exits although downloads are open', async () => {
  await using root = await tempFolder()
  await writeBigCapture(join(root.path, 'big.pcap'), 20_000)
  const streams = await importInto(root.path, [join(root.path, 'big.pcap')])
  const script = join(root.path, 'leave.ts')
  await writeFile(
    script,
    `import { Download } from ${JSON.stringify(join(REPOSITORY_ROOT, 'native/addon.ts'))}
     const options = { streams: ${JSON.stringify(streams)}, beginNs: 0n, endNs: 1n << 62n, timeResolution: 'nsec' }
     const open = [await Download.open({ ...options, compression: 'none' }),
                   await Download.open({ ...options, compression: 'best' })]
     for (const download of open) await download.next()
     if (process.argv[2] === 'waiting') {
       for (const download of open) download.next()
       process.exit(0)
     }`,
  )
  const run = promisify(execFile)
  for (let round = 0; round < 5; round++) {
    for (const manner of ['idle', 'waiting']) {
      await run(process.execPath, [script, manner], { timeout: 20_000 })
    }
  }
})

test('says what is wrong with the arguments', async () => {
  const bad = (options: Partial<DownloadOptions>) => Download.open({ streams: [], ...EVERYTHING, ...options })
  await assert.rejects(bad({ beginNs: -1n }), { code: 'bad-parameter', details: { param: 'beginNs' } })
  await assert.rejects(bad({ endNs: 2n ** 63n }), { code: 'bad-parameter', details: { param: 'endNs' } })
  await assert.rejects(bad({ tsMaxNs: 0n }), { code: 'bad-parameter', details: { param: 'tsMaxNs' } })
  for (const sliceBytes of [0, 12_289, 1.5, Number.NaN]) {
    await assert.rejects(bad({ sliceBytes }), { code: 'bad-parameter', details: { param: 'sliceBytes' } })
  }
  await assert.rejects(bad({ filter: Buffer.alloc(12) }), { code: 'bad-bpf' })
  const lost = { port: 0, segments: ['/nonexistent/00000001'] }
  await assert.rejects(bad({ streams: [lost] }), { code: 'store-unavailable', message: /nonexistent/ })
})

test('refuses streams of several link types', async () => {
  await using root = await tempFolder()
  const streams: StreamFiles[] = []
  for (const linkType of [1, 113]) {
    const file = join(root.path, `${linkType}.pcap`)
    await writeFile(file, makePcap([makePacket(1n, 'x')], { linkType }))
    streams.push(...(await importInto(root.path, [file])))
  }
  await assert.rejects(download(streams), { code: 'mixed-link-type', message: /1 and 113/ })
})

test('an import reports progress, and says so when an input is no capture', async () => {
  await using root = await tempFolder()
  const text = join(root.path, 'notes.txt')
  await writeFile(text, 'these are not packets')
  await assert.rejects(importInto(root.path, [text]), { code: 'bad-capture-file', message: /notes\.txt/ })
  const big = await writeBigCapture(join(root.path, 'big.pcap'), 20_000)
  const seen: ImportProgress[] = []
  await mkdir(join(root.path, 'c'))
  await importCaptureFiles({
    files: [join(root.path, 'big.pcap')],
    directory: join(root.path, 'c'),
    onProgress: (progress) => seen.push(progress),
  })
  assert.deepEqual(seen.at(-1), {
    inputBytes: BigInt(big.bytes),
    totalInputBytes: BigInt(big.bytes),
    packets: 20_000n,
  })
})

test('an aborted import rejects with the reason and leaves nothing', async () => {
  await using root = await tempFolder()
  const file = join(root.path, 'big.pcap')
  await writeBigCapture(file, 60_000)
  const directory = join(root.path, 'c')
  await mkdir(directory)
  const reason = new Error('no longer wanted')
  await assert.rejects(
    importCaptureFiles({ files: Array(20).fill(file), directory, signal: AbortSignal.abort(reason) }),
    reason,
  )
  const abort = new AbortController()
  const onProgress = () => abort.abort(reason)
  await assert.rejects(
    importCaptureFiles({ files: Array(20).fill(file), directory, signal: abort.signal, onProgress }),
    reason,
  )
  assert.deepEqual(await readdir(directory), [])
})

test('without the binary, loading says how to build it', async () => {
  await using root = await tempFolder()
  for (const file of ['native/addon.ts', 'native/engine-binding.ts', 'src/base/error.ts', 'package.json']) {
    await mkdir(dirname(join(root.path, file)), { recursive: true })
    await cp(join(REPOSITORY_ROOT, file), join(root.path, file))
  }
  await assert.rejects(import(join(root.path, 'native/addon.ts')), /build it with: node \.ci\/setup\.mjs/)
})
