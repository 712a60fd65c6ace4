// Live capture on real interfaces: a veth pair, a sender of raw packets, and tcpdump as the oracle.
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import {
  LiveCapture,
  type LiveCaptureOptions,
  type LivePort,
  type LivePortCounts,
  type LiveStream,
  recoverStream,
  SIZE_CLASSES,
} from '../../native/live-capture.ts'
import { eventually } from '../support/eventually.ts'
import { inNetworkNamespace, makeVethPair, runCommand } from '../support/network/network-namespace.ts'
import { makePcap } from '../support/packets/packet-maker.ts'
import { sendPackets } from '../support/packets/packet-sender.ts'
import { type PcapRecord, readPcap, recordLines } from '../support/packets/pcap-records.ts'
import { compileFilter } from '../support/processes/compile-filter.ts'
import { tempFolder } from '../support/temp-folder.ts'

const OVERRUNS = Number(process.env.OVERRUNS ?? 3)

const SCHED_OTHER = 0
const SCHED_FIFO = 1
const SIGTERM_BIT = 1n << 14n

const ADDRESSES = '02000000000102000000000f'

/** A packet with these bytes after its addresses, padded to a length. */
function frame(behindAddresses: string, length: number, filling: number): PcapRecord {
  const captured = Buffer.alloc(length, filling)
  Buffer.from(ADDRESSES + behindAddresses, 'hex').copy(captured)
  return { ns: 1n, originalLength: length, captured }
}

/** Plain, VLAN, QinQ of both kinds, priority tag; smallest, usual and jumbo. */
const KINDS = ['0800', '81000064ABCD', '88a8006481000065ABCD', '8100006481000065ABCD', '8100E000ABCD']
const LENGTHS = [60, 64, 128, 1514, 9014]
const MIXED = KINDS.flatMap((kind, i) => LENGTHS.map((length, j) => frame(kind, length, i * 16 + j)))

function optionsFor(interfaceName: string, port: Partial<LivePort> = {}): LiveCaptureOptions {
  const defaults = { port: 0, threads: 1, ringBytes: 2 ** 23, snaplen: 262_144, isPromiscuous: true }
  return {
    ports: [{ ...defaults, interfaceName, ...port }],
    segmentBytes: 2 ** 30,
    syncIntervalMs: 100,
    queueBytes: 2 ** 24,
  }
}

/** Packets of port 0, in stored order. */
async function storedRecords(folder: string): Promise<PcapRecord[]> {
  const port = join(folder, 'cap0')
  if (!existsSync(port)) return []
  const names = (await readdir(port, { recursive: true })).filter((name) => name.endsWith('.pcap')).sort()
  const files = await Promise.all(names.map((name) => readFile(join(port, name))))
  return files.flatMap((bytes) => readPcap(bytes).records)
}

function onlyPort(capture: LiveCapture): LivePortCounts {
  const [counts, ...others] = capture.counts().ports
  assert.ok(counts && others.length === 0)
  return counts
}

function assertAccountedFor(counts: LivePortCounts): void {
  const { seenPackets, storedPackets, filteredPackets, ringDrops, diskDrops, pendingPackets } = counts
  assert.equal(seenPackets, storedPackets + filteredPackets + ringDrops + diskDrops + pendingPackets)
}

function packetsIn(streams: readonly LiveStream[]): bigint {
  return streams.flatMap(({ segments }) => segments).reduce((sum, { packets }) => sum + packets, 0n)
}

async function fileOf(folder: string, records: readonly PcapRecord[]): Promise<string> {
  const path = join(folder, 'sent.pcap')
  await writeFile(path, makePcap(records))
  return path
}

/** tcpdump on an interface until it has this many packets. */
async function beginTcpdump(interfaceName: string, file: string, packets: number) {
  const args = ['-i', interfaceName, '-w', file, '-U', '-c', String(packets), '-s', '0', '-B', '16384']
  const tcpdump = spawn('tcpdump', [...args, '--nano', '-Z', 'root'], { stdio: ['ignore', 'ignore', 'pipe'] })
  const ended = once(tcpdump, 'exit')
  await once(tcpdump.stderr, 'data') // "listening on ..."
  return { ended }
}

interface ThreadState {
  readonly nice: number
  readonly policy: number
  readonly blocksSigterm: boolean
}

/** The kernel's data for each thread of this process. */
async function threadStates(): Promise<ThreadState[]> {
  const threads = await readdir('/proc/self/task')
  return await Promise.all(
    threads.map(async (thread) => {
      const text = await readFile(`/proc/self/task/${thread}/stat`, 'utf8')
      // Fields starting at the third; the second, the name, may contain anything.
      const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
      const [, blocked = ''] =
        /^SigBlk:\s*(\S+)/m.exec(await readFile(`/proc/self/task/${thread}/status`, 'utf8')) ?? []
      const blocksSigterm = (BigInt(`0x${blocked}`) & SIGTERM_BIT) !== 0n
      return { nice: Number(fields[16]), policy: Number(fields[38]), blocksSigterm }
    }),
  )
}

inNetworkNamespace(fileURLToPath(import.meta.url), () => {
  test('capture threads take precedence over everything, and writer threads over ordinary programs', async (t) => {
    const [mayBeRealTime, mayBePreferred] = [
      ['chrt', '-f', '1', 'true'],
      ['nice', '-n', '-20', 'sh', '-c', 'test "$(nice)" = -20'],
    ].map(([command = '', ...args]) => spawnSync(command, args).status === 0)
    if (!mayBePreferred && process.env.CI !== 'true')
      return t.skip('no thread may be preferred here (CAP_SYS_NICE)')
    // Some kernels do not give containers real-time scheduling.
    const first = mayBeRealTime ? `${SCHED_FIFO}:0` : `${SCHED_OTHER}:-20`
    const { far } = await makeVethPair()
    const capture = await LiveCapture.open(optionsFor(far, { threads: 2 }))
    // Each thread sets its own priority when it begins.
    await eventually(
      async () => {
        const states = await threadStates()
        const preferred = states.filter(({ nice, policy }) => nice < 0 || policy !== SCHED_OTHER)
        const words = preferred.map(({ nice, policy }) => `${policy}:${nice}`).sort()
        const isSo = words.join(' ') === `${SCHED_OTHER}:-20 ${first} ${first}`
        // Signals must be handled by the program's own thread.
        if (isSo) assert.ok(preferred.every(({ blocksSigterm }) => blocksSigterm))
        return isSo
      },
      { message: `two threads ${first} and one of nice -20` },
    )
    capture.close()
  })

  test('stores the very bytes that tcpdump stores, tags and lengths included', async () => {
    await using root = await tempFolder()
    const { near, far } = await makeVethPair()
    const sent = await fileOf(root.path, MIXED)
    const capture = await LiveCapture.open(optionsFor(far))
    await capture.start(root.path)
    const tcpdump = await beginTcpdump(far, join(root.path, 'tcpdump.pcap'), MIXED.length)
    await sendPackets(near, sent)
    await tcpdump.ended
    const streams = await capture.stop()
    const contents = (records: readonly PcapRecord[]) =>
      recordLines(records.map((one) => ({ ...one, ns: 0n })))
    const stored = await storedRecords(root.path)
    assert.deepEqual(
      contents(stored),
      contents(readPcap(await readFile(join(root.path, 'tcpdump.pcap'))).records),
    )
    assert.deepEqual(contents(stored), contents(MIXED))
    assert.equal(packetsIn(streams), BigInt(MIXED.length))
    const counts = onlyPort(capture)
    assertAccountedFor(counts)
    assert.equal(counts.lastPacketNs, stored.at(-1)?.ns)
    assert.equal(counts.seenBytes, BigInt(MIXED.reduce((sum, one) => sum + one.originalLength, 0)))
    const sizes = Object.fromEntries(SIZE_CLASSES.map((name, i) => [name, counts.sizeClasses[i]]))
    assert.equal(sizes['64'], 5n)
    assert.equal(sizes['65_127'], 5n)
    assert.equal(sizes['128_255'], 5n)
    assert.equal(sizes['1024_1518'], 5n)
    assert.equal(sizes['1024_2047'], 5n, 'the two classes overlap, as their names say')
    assert.equal(sizes['8192_9216'], 5n)
    capture.close()
  })

  test('cuts packets at the snaplen and keeps those that the filter accepts', async () => {
    await using root = await tempFolder()
    const { near, far } = await makeVethPair()
    const { program } = compileFilter('vlan 100 and vlan 101')
    const capture = await LiveCapture.open(optionsFor(far, { snaplen: 90, filter: program }))
    await capture.start(root.path)
    await sendPackets(near, await fileOf(root.path, MIXED))
    await capture.stop()
    const expected = MIXED.filter((one) => one.captured.includes(Buffer.from('81000065', 'hex')))
    assert.deepEqual(
      (await storedRecords(root.path)).map(({ captured, originalLength }) => [
        captured.length,
        originalLength,
      ]),
      expected.map(({ originalLength }) => [Math.min(90, originalLength), originalLength]),
    )
    const counts = onlyPort(capture)
    assert.equal(counts.filteredPackets, BigInt(MIXED.length - expected.length))
    assertAccountedFor(counts)
    capture.close()
  })

  test('shares the packets of a port among threads and stores each once', async () => {
    await using root = await tempFolder()
    const { near, far } = await makeVethPair()
    const packets = Array.from({ length: 500 }, (_, i) => {
      const packet = frame(`08004500002e0000000040110000${'0a0000010a0000'}02`, 60, 0)
      packet.captured.writeUInt16BE(1000 + i, 34)
      return packet
    })
    const capture = await LiveCapture.open(optionsFor(far, { threads: 2 }))
    await capture.start(root.path)
    await sendPackets(near, await fileOf(root.path, packets), { rounds: 20 })
    await capture.stop()
    const times = new Map<number, number>()
    for (const { captured } of await storedRecords(root.path)) {
      const port = captured.readUInt16BE(34)
      times.set(port, (times.get(port) ?? 0) + 1)
    }
    assert.equal(times.size, 500)
    assert.deepEqual(new Set(times.values()), new Set([20]))
    assertAccountedFor(onlyPort(capture))
    capture.close()
  })

  test(`accounts for every packet of ${OVERRUNS} overruns: sent = stored + dropped`, async (t) => {
    await using root = await tempFolder()
    const { near, far } = await makeVethPair()
    const sent = await fileOf(root.path, Array(1000).fill(frame('0800', 1514, 1)))
    const capture = await LiveCapture.open({
      ...optionsFor(far, { ringBytes: 2 ** 21 }),
      queueBytes: 2 ** 20,
      syncIntervalMs: 1000,
    })
    for (let round = 0; round < OVERRUNS; round++) {
      const folder = join(root.path, String(round))
      await mkdir(folder)
      await capture.start(folder)
      const offered = await sendPackets(near, sent, { rounds: 60, receiver: far })
      const streams = await capture.stop()
      const counts = onlyPort(capture)
      const dropped = counts.ringDrops + counts.diskDrops
      t.diagnostic(`offered ${offered}, stored ${counts.storedPackets}, dropped ${dropped}`)
      assert.ok(dropped > 0n, 'the overrun was forced')
      assert.equal(counts.storedPackets + dropped, offered)
      assert.equal(packetsIn(streams), counts.storedPackets)
      assert.equal(BigInt((await storedRecords(folder)).length), counts.storedPackets)
      assertAccountedFor(counts)
    }
    capture.close()
  })

  test('continues when the interface was down, and when it was removed and came back', async () => {
    await using root = await tempFolder()
    const { near, far } = await makeVethPair()
    const sent = await fileOf(root.path, MIXED)
    const capture = await LiveCapture.open(optionsFor(far))
    await capture.start(root.path)
    await sendPackets(near, sent)
    await runCommand('ip', 'link', 'set', far, 'down')
    await eventually(() => !onlyPort(capture).isUp, { message: 'the port is down' })
    await runCommand('ip', 'link', 'set', far, 'up')
    await eventually(() => onlyPort(capture).isUp, { message: 'the port is up' })
    await sendPackets(near, sent)
    await eventually(() => onlyPort(capture).storedPackets === BigInt(2 * MIXED.length), {
      message: 'both are stored',
    })
    await runCommand('ip', 'link', 'del', far)
    await runCommand('ip', 'link', 'add', near, 'type', 'veth', 'peer', 'name', far)
    for (const name of [near, far]) {
      await runCommand('sysctl', '-qw', `net.ipv6.conf.${name}.disable_ipv6=1`)
      await runCommand('ip', 'link', 'set', name, 'mtu', '9000', 'up')
    }
    await eventually(
      async () => {
        await sendPackets(near, sent)
        return onlyPort(capture).seenPackets > BigInt(2 * MIXED.length)
      },
      { message: 'packets of the new interface are seen' },
    )
    await capture.stop()
    assertAccountedFor(onlyPort(capture))
    capture.close()
  })

  test('counts what a full disk cannot take, and continues when there is room again', async () => {
    await using root = await tempFolder()
    await runCommand('mount', '-t', 'tmpfs', '-o', 'size=3m', 'none', root.path)
    const { near, far } = await makeVethPair()
    await using files = await tempFolder()
    const sent = await fileOf(files.path, Array(1000).fill(frame('0800', 1000, 1)))
    const filler = join(root.path, 'filler')
    await writeFile(filler, Buffer.alloc(2 ** 21))
    const capture = await LiveCapture.open({ ...optionsFor(far), queueBytes: 2 ** 20 })
    await capture.start(root.path)
    const offered = await sendPackets(near, sent, { rounds: 20, receiver: far })
    await eventually(() => capture.counts().diskErrors > 1n, { message: 'the disk is full' })
    assert.match(capture.counts().diskMessage, /No space left/)
    await runCommand('mount', '-o', 'remount,size=64m', root.path)
    await eventually(() => onlyPort(capture).pendingPackets === 0n, { message: 'all written' })
    await capture.stop()
    const counts = onlyPort(capture)
    assert.ok(counts.diskDrops > 0n)
    assert.equal(counts.storedPackets + counts.ringDrops + counts.diskDrops, offered)
    assert.equal(BigInt((await storedRecords(root.path)).length), counts.storedPackets)
    capture.close()
    await runCommand('umount', root.path)
  })

  test('a killed capture is whole again after recovery, and continues after it', async () => {
    await using root = await tempFolder()
    const { near, far } = await makeVethPair()
    const sent = await fileOf(root.path, MIXED)
    const capture = await LiveCapture.open(optionsFor(far))
    await capture.start(root.path)
    await sendPackets(near, sent)
    await eventually(() => onlyPort(capture).storedPackets === BigInt(MIXED.length), {
      message: 'all is safe',
    })
    // As after kill -9: the segment is not finished.
    capture.close()
    const recovered = await recoverStream({ folder: root.path, port: 0, isSameBoot: true })
    assert.equal(recovered.stream?.segments[0]?.packets, BigInt(MIXED.length))
    const next = await LiveCapture.open(optionsFor(far))
    await next.start(root.path)
    await sendPackets(near, sent)
    const streams = await next.stop()
    assert.deepEqual(
      streams[0]?.segments.map(({ number }) => number),
      [2],
    )
    assert.equal((await storedRecords(root.path)).length, 2 * MIXED.length)
    next.close()
  })

  test('says which interface cannot be captured and why', async () => {
    await assert.rejects(LiveCapture.open(optionsFor('nosuch0')), {
      code: 'capture-unavailable',
      message: /there is no interface nosuch0/,
    })
    await runCommand('ip', 'tuntap', 'add', 'dev', 'ip0', 'mode', 'tun')
    await assert.rejects(LiveCapture.open(optionsFor('ip0')), {
      code: 'capture-unavailable',
      message: /only Ethernet/,
    })
  })

  test('says how to give the recorder the privilege that it lacks', async () => {
    const { far } = await makeVethPair()
    const module = fileURLToPath(new URL('../../native/live-capture.ts', import.meta.url))
    const script = `
      const { LiveCapture } = await import(${JSON.stringify(module)})
      await LiveCapture.open(${JSON.stringify(optionsFor(far))}).catch((error) => {
        process.stdout.write(error.code + ' ' + error.message)
      })`
    const args = ['--bounding-set=-net_raw', '--inh-caps=-net_raw', process.execPath, '--input-type=module']
    const { stdout } = spawnSync('setpriv', [...args, '-e', script], { encoding: 'utf8' })
    assert.match(stdout, /^capture-unavailable .*does not have CAP_NET_RAW.* setcap cap_net_raw\+ep \S+node/)
  })
})

test('refuses options that make no sense, by name', async () => {
  const cases: [Partial<LiveCaptureOptions>, Partial<LivePort>, RegExp][] = [
    [{ segmentBytes: 0 }, {}, /segmentBytes/],
    [{ syncIntervalMs: 0.5 }, {}, /syncIntervalMs/],
    [{ queueBytes: 1000 }, {}, /queueBytes/],
    [{}, { port: 8 }, /port/],
    [{}, { snaplen: 262_145 }, /snaplen/],
    [{}, { threads: 0 }, /threads/],
  ]
  for (const [options, port, message] of cases) {
    await assert.rejects(LiveCapture.open({ ...optionsFor('lo', port), ...options }), {
      code: 'bad-parameter',
      message,
    })
  }
})
