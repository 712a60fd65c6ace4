import assert from 'node:assert/strict'
import { execFile, execFileSync, spawnSync } from 'node:child_process'
import { cp, mkdir, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { segmentsOf, streamOf } from '../../appliance/store/stored-capture.ts'
import {
  type Chunk,
  countPackets,
  Download,
  hasMachineCode,
  listBlocks,
  lookBackNs,
  regexCompilerPath,
} from '../../native/addon.ts'
import { COMPRESSION_LEVELS, type Compression } from '../../native/compression.ts'
import type { DownloadOptions, StreamFiles } from '../../native/download-options.ts'
import { writeBigCapture } from '../support/packets/big-capture.ts'
import { STORABLE_FILES } from '../support/packets/capture-files.ts'
import { captureRecord } from '../support/packets/capture-records.ts'
import { importStreams, segmentPathsOf } from '../support/packets/import-streams.ts'
import { makePacket, makePcap } from '../support/packets/packet-maker.ts'
import { readPcap, recordLines } from '../support/packets/pcap-records.ts'
import { makePcapng } from '../support/packets/pcapng-maker.ts'
import { pause } from '../support/pause.ts'
import { compileFilter } from '../support/processes/compile-filter.ts'
import { REPOSITORY_ROOT } from '../support/repository-files.ts'
import { tempFolder } from '../support/temp-folder.ts'
import { WAIT_LIMIT_MS } from '../support/test-limits.ts'

const EVERYTHING = {
  beginNs: 0n,
  endNs: 2n ** 63n - 1n,
  timeResolution: 'nsec',
  compression: 'none',
} as const

async function download(streams: readonly StreamFiles[], options: Partial<DownloadOptions> = {}) {
  await using opened = await Download.open({ streams, ...EVERYTHING, ...options })
  const pieces: Buffer[] = []
  for (let chunk = await opened.next(); chunk; chunk = await opened.next()) {
    pieces.push(Buffer.from(chunk.bytes))
    chunk.release()
  }
  return { body: Buffer.concat(pieces), totals: opened.totals(), firstPiece: pieces[0] }
}

/** tcpdump's view of a file: one text per packet, in order of time as in downloads. */
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

test('gives back captures as tcpdump reads them', async () => {
  await using root = await tempFolder()
  let compared = 0
  for (const file of STORABLE_FILES.filter((path) => path.endsWith('.pcap'))) {
    // The importer normalises fractions of more than a second, which this file has.
    if (file.includes('timestamp_invalid')) continue
    const copy = join(root.path, 'copy.pcap')
    await writeFile(copy, (await download(await importStreams(root.path, [file]))).body)
    assert.deepEqual(tcpdumpTexts(copy), tcpdumpTexts(file), file)
    compared++
  }
  assert.ok(compared >= 15, `${compared} captures`)
})

test('filters captures as tcpdump does', async () => {
  await using root = await tempFolder()
  const expressions = ['tcp', 'udp', 'ip6', 'greater 200', 'ip[8] < 64', 'vlan', 'not ip', 'port 4789']
  let delivered = 0
  for (const [index, file] of STORABLE_FILES.entries()) {
    const streams = await importStreams(root.path, [file])
    const whole = await download(streams)
    const wholeFile = join(root.path, 'whole.pcap')
    await writeFile(wholeFile, whole.body)
    const { linkType, snaplen } = readPcap(whole.body)
    // Half of them for each file, in turn: filter-compiler.test.ts has many more.
    for (const expression of expressions.filter((_, at) => at % 2 === index % 2)) {
      const compiled = compileFilter(expression, linkType, snaplen)
      // Some link types do not support VLANs; tcpdump says the same.
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
  assert.ok(delivered > 150, `${delivered} packets passed`)
})

test('standard tools accept every compression', async () => {
  await using root = await tempFolder()
  await writeBigCapture(join(root.path, 'big.pcap'), 12_000)
  const streams = await importStreams(root.path, [join(root.path, 'big.pcap')])
  const plain = await download(streams)
  for (const compression of Object.keys(COMPRESSION_LEVELS) as Compression[]) {
    if (compression === 'none') continue
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

test('the file header is a separate chunk and comes first', async () => {
  await using root = await tempFolder()
  await writeFile(join(root.path, 'a.pcap'), makePcap([makePacket(5n, 'x')], { linkType: 113, snaplen: 900 }))
  const streams = await importStreams(root.path, [join(root.path, 'a.pcap')])
  const { firstPiece, body } = await download(streams, { sliceBytes: 64, timeResolution: 'usec' })
  assert.equal(firstPiece?.byteLength, 24)
  const pcap = readPcap(body)
  assert.deepEqual([pcap.linkType, pcap.snaplen, pcap.nanoseconds], [113, 64, false])
  assert.equal((await download([], { emptyLinkType: 228 })).body.readUInt32LE(20), 228)
})

test('reads ahead of a slow consumer by a bounded amount, in flat memory', async (t) => {
  await using root = await tempFolder()
  const big = await writeBigCapture(join(root.path, 'big.pcap'), 220_000)
  const streams = await importStreams(root.path, [join(root.path, 'big.pcap')])
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
    // Enough time for the engine to run as far ahead as it may.
    await pause(3, 'the engine runs as far ahead as it may')
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
  const streams = await importStreams(root.path, [join(root.path, 'big.pcap')])
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
  const streams = await importStreams(root.path, [join(root.path, 'big.pcap')])
  const opened = await Download.open({ streams, ...EVERYTHING, compression: 'zstd_ultra' })
  await opened.next()
  const waiting = opened.next()
  opened.close()
  opened.close()
  await assert.rejects(waiting, { name: 'AbortError' })
  await assert.rejects(opened.next(), { name: 'AbortError' })
})

test('an opening stops when its signal says so', async () => {
  await using root = await tempFolder()
  await writeBigCapture(join(root.path, 'big.pcap'), 100)
  const streams = await importStreams(root.path, [join(root.path, 'big.pcap')])
  const reason = new Error('no longer wanted')
  await assert.rejects(Download.open({ streams, ...EVERYTHING }, AbortSignal.abort(reason)), reason)
  const abort = new AbortController()
  const opening = Download.open({ streams, ...EVERYTHING }, abort.signal)
  abort.abort(reason)
  await assert.rejects(opening, reason)
})

test('a closed download reports its totals, takes its chunks back and returns no more', async () => {
  await using root = await tempFolder()
  await writeBigCapture(join(root.path, 'big.pcap'), 3_000)
  const streams = await importStreams(root.path, [join(root.path, 'big.pcap')])
  for (const closesFirst of [false, true]) {
    const opened = await Download.open({ streams, ...EVERYTHING })
    const header = await opened.next()
    const chunk = await opened.next()
    assert.ok(header && chunk)
    const { packets } = opened.totals()
    assert.ok(packets > 0n)
    if (closesFirst) opened.close()
    header.release()
    assert.equal(opened.totals().packets, packets)
    chunk.release()
    opened.close()
    assert.equal(opened.totals().packets, packets)
    assert.equal(opened.linkType, 1)
    await assert.rejects(opened.next(), { name: 'AbortError' })
    chunk.release()
    opened.close()
  }
})

test('the process exits although downloads are open', async () => {
  await using root = await tempFolder()
  await writeBigCapture(join(root.path, 'big.pcap'), 20_000)
  const streams = await importStreams(root.path, [join(root.path, 'big.pcap')])
  const written = streams.map(
    ({ port, folder, segments }) =>
      `{ port: ${port}, folder: ${JSON.stringify(folder)}, segments: Buffer.from('${Buffer.from(segments).toString('hex')}', 'hex') }`,
  )
  const script = join(root.path, 'leave.ts')
  await writeFile(
    script,
    `import { Download } from ${JSON.stringify(join(REPOSITORY_ROOT, 'native/addon.ts'))}
     const options = { streams: [${written}], beginNs: 0n, endNs: 1n << 62n, timeResolution: 'nsec' }
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
      await run(process.execPath, [script, manner], { timeout: WAIT_LIMIT_MS })
    }
  }
})

/** A pcapng with two ports of ten packets each, one per microsecond; texts "p0 n0", "p1 n0", ... */
async function importTwoPorts(root: string): Promise<StreamFiles[]> {
  const packets = Array.from({ length: 20 }, (_, index) => ({
    port: index % 2,
    ...makePacket(START_NS + BigInt(index) * 1000n, `p${index % 2} n${Math.floor(index / 2)}`, 60),
  }))
  await writeFile(join(root, 'two.pcapng'), makePcapng(2, packets))
  return await importStreams(root, [join(root, 'two.pcapng')])
}

const START_NS = 1_795_000_000_000_000_000n

const textsOf = (body: Buffer): string[] =>
  readPcap(body).records.map(({ captured }) => Buffer.from(captured).toString('latin1').slice(0, 5))

test('a frame filter selects by capture port', async () => {
  await using root = await tempFolder()
  const streams = await importTwoPorts(root.path)
  const port = (op: '==' | '!=', ...values: number[]) => [{ field: 'capture.port', op, values } as const]
  const { body } = await download(streams, { frameFilter: port('==', 1, 7) })
  assert.deepEqual(
    textsOf(body),
    Array.from({ length: 10 }, (_, n) => `p1 n${n}`),
  )
  const other = await download(streams, { frameFilter: [...port('!=', 1), ...port('!=', 3)] })
  assert.deepEqual(
    textsOf(other.body),
    Array.from({ length: 10 }, (_, n) => `p0 n${n}`),
  )
  assert.equal(other.totals.readPackets, 20n)
})

test('a regular expression selects by the bytes of a packet', async () => {
  await using root = await tempFolder()
  const streams = await importTwoPorts(root.path)
  const { stdout } = spawnSync(regexCompilerPath, { input: 'p1 n[37]' })
  const { body } = await download(streams, { regex: stdout })
  assert.deepEqual(textsOf(body), ['p1 n3', 'p1 n7'])
  const both = await download(streams, {
    regex: stdout,
    filter: compileFilter('ether[4] = 0x37').program, // the digit 7
  })
  assert.deepEqual(textsOf(both.body), ['p1 n7'])
})

test('maxPackets and maxBytes end a download between packets and report where to continue', async () => {
  await using root = await tempFolder()
  const streams = await importTwoPorts(root.path)
  const whole = await download(streams)
  assert.equal(whole.totals.truncated, false)
  assert.equal(whole.totals.nextNs, undefined)
  for (const limit of [{ maxPackets: 7n }, { maxBytes: 24n + 7n * 76n + 75n }]) {
    const first = await download(streams, limit)
    assert.equal(first.totals.packets, 7n)
    assert.equal(first.totals.truncated, true)
    assert.equal(first.totals.nextNs, START_NS + 7000n)
    const rest = await download(streams, { beginNs: first.totals.nextNs ?? 0n })
    assert.deepEqual(Buffer.concat([first.body, rest.body.subarray(24)]), whole.body)
  }
})

test('a vendor time source rewrites the timestamps that it finds and counts the others', async () => {
  await using root = await tempFolder()
  const vendorNs = START_NS + 1_234n
  const stamped = Buffer.alloc(80)
  stamped.writeUInt32BE(Number(vendorNs / 1_000_000_000n), 80 - 12)
  stamped.writeUInt32BE(Number(vendorNs % 1_000_000_000n), 80 - 8)
  const packets = [
    makePacket(START_NS, 'plain', 60),
    { ns: START_NS + 5_000n, originalLength: 80, captured: stamped },
  ]
  await writeFile(join(root.path, 'a.pcap'), makePcap(packets))
  const streams = await importStreams(root.path, [join(root.path, 'a.pcap')])
  const { body, totals } = await download(streams, { timeSource: 'vendorA7130' })
  assert.deepEqual(
    readPcap(body).records.map(({ ns, originalLength }) => [ns, originalLength]),
    [
      [START_NS, 60],
      [vendorNs, 80],
    ],
  )
  assert.equal(totals.vendorTimeFallbacks, 1n)
  assert.equal(totals.latePackets, 0n)
})

test('the distance at which a source address stops being a time can be set', async () => {
  await using root = await tempFolder()
  const captured = Buffer.alloc(60)
  captured.writeUInt16BE(Number((START_NS / 1_000_000_000n + 90n) % 65_536n), 6)
  await writeFile(join(root.path, 'a.pcap'), makePcap([{ ns: START_NS, originalLength: 60, captured }]))
  const streams = await importStreams(root.path, [join(root.path, 'a.pcap')])
  const firstNs = async (options: Partial<DownloadOptions>) =>
    (await download(streams, { timeSource: 'vendorA7280_mac48', ...options })).totals.firstNs
  assert.equal(await firstNs({}), START_NS, 'more than 60 s away')
  assert.equal(await firstNs({ mac48LimitNs: 100_000_000_000n }), START_NS + 90_000_000_000n)
})

test('filters run as machine code where there is a translator for the processor', () => {
  assert.equal(hasMachineCode(), process.arch === 'x64')
})

test('says how far before a range a time source must read', () => {
  assert.equal(lookBackNs('nic'), 0n)
  assert.equal(lookBackNs('vendorB3550'), 0n)
  assert.equal(lookBackNs('vendorA7150_insert'), 30_000_000_000n)
  assert.equal(lookBackNs('vendorB_erspan3'), 'whole-capture')
})

test('counts packets between boundaries as downloads deliver them', async () => {
  await using root = await tempFolder()
  const big = await writeBigCapture(join(root.path, 'big.pcap'), 3_000)
  const streams = await importStreams(root.path, [join(root.path, 'big.pcap')])
  const boundariesNs = [0n, 3n, 700_000_001n, 1_500_000_000n, 9_000_000_000n].map((ns) => big.startNs + ns)
  const counts = await countPackets({ streams, boundariesNs })
  assert.deepEqual(
    counts.map(({ packets }) => packets),
    [1n, 700n, 799n, 1_500n],
  )
  for (const [index, { packets, bytes }] of counts.entries()) {
    const { totals } = await download(streams, {
      beginNs: boundariesNs[index] ?? 0n,
      endNs: boundariesNs[index + 1] ?? 0n,
    })
    assert.deepEqual([totals.packets, totals.bytes], [packets, bytes])
  }
  assert.deepEqual(await countPackets({ streams, boundariesNs: [] }), [])
})

test('lists blocks by time without reading packets', async () => {
  await using root = await tempFolder()
  const big = await writeBigCapture(join(root.path, 'big.pcap'), 3_000)
  const streams = await importStreams(root.path, [join(root.path, 'big.pcap')])
  for (const path of streams.flatMap(segmentPathsOf)) await rm(`${path}.pcap`)
  const { minNs, maxNs, packets, bytes } = await listBlocks({ streams })
  assert.ok(minNs.length > 5)
  assert.equal(minNs[0], big.startNs)
  assert.equal(maxNs.at(-1), big.startNs + 2_999_000_000n)
  assert.equal(
    packets.reduce((sum, count) => sum + count, 0),
    3_000,
  )
  assert.equal(
    bytes.reduce((sum, count) => sum + count, 0),
    big.bytes - 24,
  )
  assert.ok(minNs.every((ns, index) => index === 0 || ns > (maxNs[index - 1] ?? 0n)))
})

test('counting stops when its signal says so, and says what is wrong', async () => {
  await using root = await tempFolder()
  await writeBigCapture(join(root.path, 'big.pcap'), 20_000)
  const streams = await importStreams(root.path, [join(root.path, 'big.pcap')])
  const reason = new Error('no longer wanted')
  const boundariesNs = [0n, 1n]
  await assert.rejects(countPackets({ streams, boundariesNs, signal: AbortSignal.abort(reason) }), reason)
  const abort = new AbortController()
  const every = Array.from({ length: 20_000 }, (_, index) => START_NS + BigInt(index) * 1_000_000n)
  const counting = countPackets({ streams, boundariesNs: every, signal: abort.signal })
  abort.abort(reason)
  await assert.rejects(counting, reason)
  await assert.rejects(countPackets({ streams, boundariesNs: [5n, 4n] }), {
    code: 'bad-parameter',
    details: { param: 'boundariesNs' },
  })
  const lost = [lostStream()]
  await assert.rejects(countPackets({ streams: lost, boundariesNs }), { code: 'aged-out' })
  await assert.rejects(listBlocks({ streams: lost }), { code: 'aged-out' })
})

/** A segment whose files do not exist. */
function lostStream(): StreamFiles {
  const [segment] = segmentsOf(captureRecord('lost'))
  return streamOf('/nonexistent', segment ?? assert.fail('a segment'))
}

test('says what is wrong with the arguments', async () => {
  const bad = (options: Partial<DownloadOptions>) => Download.open({ streams: [], ...EVERYTHING, ...options })
  await assert.rejects(bad({ beginNs: -1n }), { code: 'bad-parameter', details: { param: 'beginNs' } })
  await assert.rejects(bad({ endNs: 2n ** 63n }), { code: 'bad-parameter', details: { param: 'endNs' } })
  await assert.rejects(bad({ afterBytes: -1n }), {
    code: 'bad-parameter',
    details: { param: 'afterBytes' },
  })
  await assert.rejects(bad({ tsMaxNs: 0n }), { code: 'bad-parameter', details: { param: 'tsMaxNs' } })
  for (const sliceBytes of [0, 12_289, 1.5, Number.NaN]) {
    await assert.rejects(bad({ sliceBytes }), { code: 'bad-parameter', details: { param: 'sliceBytes' } })
  }
  await assert.rejects(bad({ filter: Buffer.alloc(12) }), { code: 'bad-bpf' })
  await assert.rejects(bad({ regex: Buffer.alloc(12) }), { code: 'bad-regex' })
  await assert.rejects(bad({ maxBytes: 23n }), { code: 'bad-parameter', details: { param: 'maxBytes' } })
  await assert.rejects(bad({ maxPackets: 0n }), { code: 'bad-parameter', details: { param: 'maxPackets' } })
  for (const values of [[], [-1], [2 ** 32], [1.5]]) {
    await assert.rejects(bad({ frameFilter: [{ field: 'capture.port', op: '==', values }] }), {
      code: 'bad-parameter',
      details: { param: 'frameFilter' },
    })
  }
  await assert.rejects(bad({ streams: [lostStream()] }), { code: 'aged-out', message: /nonexistent/ })
})

test('refuses streams of several link types', async () => {
  await using root = await tempFolder()
  const streams: StreamFiles[] = []
  for (const linkType of [1, 113]) {
    const file = join(root.path, `${linkType}.pcap`)
    await writeFile(file, makePcap([makePacket(1n, 'x')], { linkType }))
    streams.push(...(await importStreams(root.path, [file])))
  }
  await assert.rejects(download(streams), { code: 'mixed-link-type', message: /1 and 113/ })
})

test('without the binary, loading says how to build it', async () => {
  await using root = await tempFolder()
  for (const file of [
    'native/addon.ts',
    'native/download-options.ts',
    'native/compression.ts',
    'native/dedup-keys.ts',
    'native/load-addon.ts',
    'src/shared/base/error.ts',
    'src/shared/pcap/pcap-sizes.ts',
    'package.json',
  ]) {
    await mkdir(dirname(join(root.path, file)), { recursive: true })
    await cp(join(REPOSITORY_ROOT, file), join(root.path, file))
  }
  await assert.rejects(import(join(root.path, 'native/addon.ts')), /build it with: node \.ci\/setup\.mjs/)
})
