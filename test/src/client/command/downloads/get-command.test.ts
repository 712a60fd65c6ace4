// `capfleet get`: the contents of the file in the end, and the exit status.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { hostname, uptime } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { mountSmallDisk } from '../../../../support/disks/small-disk.ts'
import { eventually } from '../../../../support/eventually.ts'
import { httpOpen } from '../../../../support/http-get.ts'
import { writeBigCapture } from '../../../../support/packets/big-capture.ts'
import { pcapngBlocks, readPcapng } from '../../../../support/packets/pcapng-reader.ts'
import {
  gatewayEnvironment,
  hostedClient,
  type TempClient,
} from '../../../../support/processes/client-process.ts'
import { shellPipeline } from '../../../../support/processes/shell-pipeline.ts'
import {
  SMALL_FLEET_START_NS,
  type SmallFleet,
  startSmallFleet,
} from '../../../../support/processes/small-fleet.ts'
import { REPOSITORY_ROOT } from '../../../../support/repository-files.ts'
import { USER_PASSWORD } from '../../../../support/suite-secrets.ts'

const BIG_PACKETS = 20_000
const RANGE = [
  '--begin',
  String(SMALL_FLEET_START_NS),
  '--end',
  String(SMALL_FLEET_START_NS + 1_000_000_000n),
]
/** As the gateway is asked for them. */
const RANGE_PAIRS = [
  ['TSBegin', RANGE[1]],
  ['TSEnd', RANGE[3]],
]

describe('capfleet get', () => {
  const parts = new AsyncDisposableStack()
  let fleet: SmallFleet
  let client: TempClient

  before(async () => {
    fleet = parts.use(await startSmallFleet())
    client = parts.use(await hostedClient())
    const [east] = fleet.appliances
    assert.ok(east !== undefined)
    const path = join(east.folder, 'big.pcap')
    await writeBigCapture(path, BIG_PACKETS)
    await east.importFiles('big', path)
  })
  after(() => parts.disposeAsync())

  const environment = () => gatewayEnvironment(fleet.gateway.url, 'user', USER_PASSWORD)
  const run = (args: readonly string[], cwd?: string) =>
    client.run(['get', ...args], { environment: environment(), ...(cwd === undefined ? {} : { cwd }) })
  const folder = async (name: string) => {
    const path = join(client.folder, name)
    await mkdir(path)
    return path
  }
  const bodyOf = async (path: string) => {
    const answer = await fetch(fleet.gateway.url + path, { headers: fleet.gateway.as.user })
    return Buffer.from(await answer.arrayBuffer())
  }

  test('gives a capture the name that the gateway gives it, and its hash', async () => {
    const cwd = await folder('named')
    const { status, stderr, stdout } = await run(['east-first'], cwd)
    assert.equal(status, 0, stderr)
    assert.equal(stdout.length, 0)
    const body = await bodyOf('/api/v1/pcap/single?StreamName=east-first')
    assert.ok((await readFile(join(cwd, 'east-first.pcap'))).equals(body))
    assert.deepEqual(await readdir(cwd), ['east-first.pcap'])
    const sha256 = createHash('sha256').update(body).digest('hex')
    assert.match(
      stderr,
      new RegExp(`^east-first\\.pcap: complete, ${body.length} bytes, sha256 ${sha256}$`, 'm'),
    )
  })

  test('takes parts of a capture, filters and compression, as the gateway does', async () => {
    const cwd = await folder('asked')
    const start = SMALL_FLEET_START_NS + 3_000_000n
    const part = ['--start', String(start), '--stop', String(start + 2_000_000n)]
    assert.equal((await run(['east-first', ...part, '-o', 'part.pcap'], cwd)).status, 0)
    const asked = `/api/v1/pcap/splittime?StreamName=east-first&Start=${start}&Stop=${start + 2_000_000n}`
    assert.ok((await readFile(join(cwd, 'part.pcap'))).equals(await bodyOf(asked)))
    const small = await run([...RANGE, '--compression', 'zstd', '--slice', '64', '--device', 'west'], cwd)
    assert.equal(small.status, 0, small.stderr)
    assert.ok((await readdir(cwd)).some((name) => /^west_[\dTZ.]+-[\dTZ.]+\.pcap\.zst$/.test(name)))
  })

  test('saves pcapng of one device or several, and refuses to split it', async () => {
    const cwd = await folder('pcapng')
    const saved = await run(['east-first', '--format', 'pcapng'], cwd)
    assert.equal(saved.status, 0, saved.stderr)
    const body = await bodyOf('/api/v1/pcap/single?StreamName=east-first&Format=pcapng')
    assert.ok((await readFile(join(cwd, 'east-first.pcapng'))).equals(body))
    const { interfaces, packets } = readPcapng(body)
    assert.deepEqual([interfaces.map(({ name }) => name), packets.length], [['east:cap0'], 20])
    const split = await run(['east-first', '--format', 'pcapng', '--split', '1MiB', '-o', 'a.pcapng'], cwd)
    assert.equal(split.status, 2)
    assert.match(split.stderr, /leave out --format/)
    const several = await run([...RANGE, '--format', 'pcapng', '-o', 'all.pcapng'], cwd)
    assert.equal(several.status, 0, several.stderr)
    const all = readPcapng(await readFile(join(cwd, 'all.pcapng')))
    assert.deepEqual(all.interfaces.map(({ name }) => name).toSorted(), ['east:cap0', 'west:cap0'])
    assert.deepEqual((await readdir(cwd)).toSorted(), ['all.pcapng', 'east-first.pcapng'])
  })

  test('replaces no existing file unless asked to', async () => {
    const cwd = await folder('there')
    await writeFile(join(cwd, 'a.pcap'), 'mine')
    const refused = await run(['east-first', '-o', 'a.pcap'], cwd)
    assert.equal(refused.status, 2)
    assert.match(refused.stderr, /already exists; --force replaces it/)
    assert.equal(await readFile(join(cwd, 'a.pcap'), 'utf8'), 'mine')
    assert.equal((await run(['east-first', '-o', 'a.pcap', '--force'], cwd)).status, 0)
    assert.deepEqual(await readdir(cwd), ['a.pcap'])
  })

  test('leaves nothing in the folder when the download is refused', async () => {
    const cwd = await folder('refused')
    for (const args of [['no-such-capture'], ['east-first', '--bpf', 'no filter']]) {
      assert.notEqual((await run([...args, '-o', 'a.pcap'], cwd)).status, 0)
      assert.deepEqual(await readdir(cwd), [])
    }
  })

  test('replaces nothing but regular files, whether asked to or not', async () => {
    const cwd = await folder('special')
    await mkdir(join(cwd, 'folder'))
    assert.equal(spawnSync('mkfifo', [join(cwd, 'pipe')]).status, 0)
    for (const [name, said] of [
      ['pipe', /pipe is not a file; -o - writes to standard output/],
      ['folder', /folder is a folder; name a file in it/],
    ] as const) {
      for (const force of [[], ['--force']]) {
        const { status, stderr } = await run(['east-first', '-o', name, ...force], cwd)
        assert.equal(status, 2)
        assert.match(stderr, said)
      }
    }
    assert.ok((await stat(join(cwd, 'pipe'))).isFIFO())
    assert.deepEqual((await readdir(cwd)).sort(), ['folder', 'pipe'])
  })

  test('says in how many files a download that was split is', async () => {
    const cwd = await folder('split')
    const { status, stderr } = await run(['big', '--split', '1MB', '-o', 'a.pcap'], cwd)
    assert.equal(status, 0, stderr)
    const files = (await readdir(cwd)).length
    assert.ok(files > 1)
    assert.match(
      stderr,
      new RegExp(
        `^a-0001\\.pcap: complete, \\d+ bytes in ${files} files, sha256 of all together [0-9a-f]{64}$`,
        'm',
      ),
    )
  })

  test('7: a limit that leaves packets out, whose file is kept', async () => {
    const cwd = await folder('limited')
    const { status, stderr } = await run([...RANGE, '--max-packets', '3', '-o', 'a.pcap'], cwd)
    assert.equal(status, 7)
    assert.match(stderr, /a limit ended the download; the next packet is at 1790000000000000000 ns/)
    assert.deepEqual(await readdir(cwd), ['a.pcap'])
  })

  test('goes down a pipe, whose reader may leave', async () => {
    const get = `${process.execPath} ${REPOSITORY_ROOT}src/cli.ts get`
    const variables = environment()
    const read = await shellPipeline(
      `${get} east-first -o - | tcpdump -nr - -w - 2>/dev/null | wc -c`,
      variables,
    )
    assert.equal(read.stdout.trim(), '1944')
    const left = await shellPipeline(`${get} big -q -o - | head -c 100 | wc -c`, variables)
    assert.deepEqual([left.stdout.trim(), left.codes], ['100', [7, 0, 0]])
    assert.equal(left.stderr.replace(/codes: .*\n/, ''), '')
  })

  test('8: a full disk; the part stays, and with room the same command continues', async (t) => {
    const disk = await mountSmallDisk(8_000_000)
    if (typeof disk === 'string') return t.skip(disk)
    await using _mounted = disk
    await writeFile(join(disk.path, 'other'), Buffer.alloc(2_000_000))
    const full = await run(['big', '-o', 'big.pcap', '--slice', '300'], disk.path)
    assert.equal(full.status, 8, full.stderr)
    assert.match(
      full.stderr,
      /big\.pcap\.part has \d\.\d\d MiB; run the same command to resume\ncapfleet: .* has no space left .*free some space/,
    )
    // No room even for the record of the download.
    await writeFile(join(disk.path, 'rest'), Buffer.alloc(8_000_000)).catch(() => undefined)
    const none = await run(['east-first', '-o', 'first.pcap'], disk.path)
    assert.equal(none.status, 8, none.stderr)
    assert.match(none.stderr, /^capfleet: .*free some space.* \[disk-full\]$/m)
    await rm(join(disk.path, 'rest'))
    await writeFile(join(disk.path, 'other'), '')
    const again = await run(['big', '-o', 'big.pcap', '--slice', '300'], disk.path)
    assert.equal(again.status, 0, again.stderr)
    const body = await bodyOf('/api/v1/pcap/single?StreamName=big&Slice=300')
    assert.ok((await readFile(join(disk.path, 'big.pcap'))).equals(body))
  })

  test('5: no stream became free in time; meanwhile the place in the queue is shown', async () => {
    await using held = new AsyncDisposableStack()
    for (let stream = 0; stream < 4; stream += 1) {
      const path = '/devices/east/api/v1/pcap/single?StreamName=big'
      const open = await httpOpen(fleet.gateway.url + path, { headers: fleet.gateway.as.full })
      held.defer(() => open[Symbol.dispose]())
    }
    const { status, stderr } = await run(['east-first', '-o', 'late.pcap', '--wait', '3'])
    assert.equal(status, 5, stderr)
    assert.match(stderr, /waiting for east at position 1 in the queue/)
    assert.match(stderr, /wait longer with --wait \[queue-timeout\]/)
    const run2 = client.start(['get', 'east-first', '-o', 'late.pcap', '--wait', '60'], {
      environment: environment(),
    })
    await eventually(() => run2.said().includes('at position 1'), { message: 'its place' })
    await held.disposeAsync()
    const ended = await run2.ended
    assert.equal(ended.status, 0, ended.stderr)
  })

  test('7: cancelled in the queue, it is not tried again', async () => {
    await using held = new AsyncDisposableStack()
    for (let stream = 0; stream < 4; stream += 1) {
      const path = '/devices/east/api/v1/pcap/single?StreamName=big'
      const open = await httpOpen(fleet.gateway.url + path, { headers: fleet.gateway.as.full })
      held.defer(() => open[Symbol.dispose]())
    }
    const waiting = client.start(['get', 'east-first', '-o', 'cancelled.pcap', '--wait', '60'], {
      environment: environment(),
    })
    await eventually(() => waiting.said().includes('at position 1'), { message: 'its place' })
    const admin = { environment: gatewayEnvironment(fleet.gateway.url, 'admin', USER_PASSWORD) }
    const { stdout } = await client.run(['queue', '-o', 'csv'], admin)
    const row = stdout
      .toString()
      .split('\n')
      .find((line) => line.includes(',waiting,'))
    const cancelled = await client.run(['queue', 'cancel', row?.split(',')[0] ?? ''], admin)
    assert.equal(cancelled.status, 0, cancelled.stderr)
    assert.match(cancelled.stderr, /^request \S+ of user: was waiting$/m)
    const ended = await waiting.ended
    assert.equal(ended.status, 7, ended.stderr)
    assert.match(ended.stderr, /admin cancelled the request in the queue \[download-cancelled\]$/m)
  })

  test('7: cancelled while it streams, it keeps what has arrived and does not resume by itself', async () => {
    const cwd = await folder('cut')
    const body = await bodyOf('/api/v1/pcap/single?StreamName=east-first')
    const id = '6f1c1d1e-0000-4000-8000-000000000000'
    const error = { code: 'download-cancelled', detail: 'admin cancelled the request in the queue' }
    const downloads: ServerResponse[] = []
    const gateway = createServer((req, res) => {
      const { url = '' } = req
      if (url.startsWith('/v1/requests/'))
        return void res.end(JSON.stringify({ id, status: 'failed', error }))
      if (!url.startsWith('/api/')) return void res.writeHead(404).end()
      downloads.push(res)
      res.writeHead(200, { 'content-type': 'application/vnd.tcpdump.pcap', 'capfleet-request-id': id })
      res.write(body.subarray(0, body.length / 2))
    })
    gateway.listen(0, '127.0.0.1')
    await once(gateway, 'listening')
    const url = `http://127.0.0.1:${(gateway.address() as AddressInfo).port}`
    const running = client.start(['get', 'east-first', '-o', 'cut.pcap'], {
      environment: gatewayEnvironment(url, 'user', USER_PASSWORD),
      cwd,
    })
    const part = join(cwd, 'cut.pcap.part')
    await eventually(async () => ((await stat(part).catch(() => undefined))?.size ?? 0) > 0, {
      message: 'packets have arrived',
    })
    downloads[0]?.socket?.end()
    const ended = await running.ended
    gateway.close()
    assert.equal(ended.status, 7, ended.stderr)
    assert.match(ended.stderr, /admin cancelled the request in the queue \[download-cancelled\]$/m)
    assert.match(ended.stderr, /cut\.pcap\.part has .*; run the same command to resume$/m)
    assert.equal(downloads.length, 1)
    assert.ok((await stat(part)).size > 0)
  })

  test('with a token that is good for downloads alone gives the same, verified', async () => {
    const cwd = await folder('by-token')
    const byToken = { CAPFLEET_URL: fleet.gateway.url, CAPFLEET_TOKEN: await tokenOf('capture:download') }
    const ended = await client.run(['get', 'east-first'], { environment: byToken, cwd })
    assert.equal(ended.status, 0, ended.stderr)
    assert.match(ended.stderr, /sha256 [0-9a-f]{64}/)
    const body = await bodyOf('/api/v1/pcap/single?StreamName=east-first')
    assert.ok((await readFile(join(cwd, 'east-first.pcap'))).equals(body))
  })

  test('with a token shows the place in the queue, too', async () => {
    const token = await tokenOf('capture:download,queue:read')
    await using held = new AsyncDisposableStack()
    for (let stream = 0; stream < 4; stream += 1) {
      const path = '/devices/east/api/v1/pcap/single?StreamName=big'
      const open = await httpOpen(fleet.gateway.url + path, { headers: fleet.gateway.as.full })
      held.defer(() => open[Symbol.dispose]())
    }
    const waiting = client.start(['get', 'east-first', '-o', 'by-token.pcap', '--wait', '60'], {
      environment: { CAPFLEET_URL: fleet.gateway.url, CAPFLEET_TOKEN: token },
    })
    await eventually(() => waiting.said().includes('at position 1'), { message: 'its place' })
    await held.disposeAsync()
    assert.equal((await waiting.ended).status, 0)
  })

  const tokenOf = async (scopes: string): Promise<string> => {
    const answer = await fetch(`${fleet.gateway.url}/v1/tokens?Scopes=${scopes}`, {
      method: 'POST',
      headers: fleet.gateway.as.user,
    })
    return ((await answer.json()) as { readonly token: string }).token
  }

  test('a part of another download is not gone on with', async () => {
    const cwd = await folder('other')
    await writeFile(join(cwd, 'a.pcap.part'), 'x')
    const asked = { url: 'http://elsewhere/', path: '/api/v1/pcap/single', query: [] }
    await writeFile(
      join(cwd, 'a.pcap.part.json'),
      JSON.stringify({ asked, requestId: 'x', isCompressed: false }),
    )
    const refused = await run(['east-first', '-o', 'a.pcap'], cwd)
    assert.equal(refused.status, 2)
    assert.match(refused.stderr, /is the part of another download/)
    assert.equal((await run(['east-first', '-o', 'a.pcap', '--force'], cwd)).status, 0)
    assert.deepEqual(await readdir(cwd), ['a.pcap'])
  })

  describe('a part', () => {
    const journalOf = (more: object) => ({
      asked: {
        url: `${fleet.gateway.url}/`,
        path: '/api/v1/pcap/single',
        query: [['StreamName', 'east-first']],
      },
      isCompressed: false,
      syncedBytes: 0,
      ...more,
    })
    /** The receipt of the part that this gateway knows. */
    const partOf = async (cwd: string, content: (body: Buffer) => Buffer, more: object = {}) => {
      const url = `${fleet.gateway.url}/api/v1/pcap/single?StreamName=east-first`
      const answer = await fetch(url, { headers: fleet.gateway.as.user })
      const body = Buffer.from(await answer.arrayBuffer())
      const requestId = answer.headers.get('capfleet-request-id')
      await writeFile(join(cwd, 'a.pcap.part'), content(body))
      await writeFile(join(cwd, 'a.pcap.part.json'), JSON.stringify(journalOf({ requestId, ...more })))
      return body
    }
    const thisBootMs = Date.now() - uptime() * 1_000

    test('is continued after its last whole packet', async () => {
      const cwd = await folder('unfinished')
      const body = await partOf(cwd, (whole) => whole.subarray(0, 1_000), { bootMs: thisBootMs })
      const { status, stderr } = await run(['east-first', '-o', 'a.pcap'], cwd)
      assert.equal(status, 0, stderr)
      assert.match(stderr, /resuming after the 984 bytes/)
      assert.ok((await readFile(join(cwd, 'a.pcap'))).equals(body))
    })

    test('of pcapng is continued after its last whole block', async () => {
      for (const [name, words, asked] of [
        ['one', ['east-first'], { path: '/api/v1/pcap/single', query: [['StreamName', 'east-first']] }],
        ['several', RANGE, { path: '/api/v1/pcap/timerange', query: RANGE_PAIRS }],
      ] as const) {
        const query = [...asked.query, ['Format', 'pcapng']]
        const url = `${fleet.gateway.url}${asked.path}?${new URLSearchParams(query as [string, string][])}`
        const answer = await fetch(url, { headers: fleet.gateway.as.user })
        const body = Buffer.from(await answer.arrayBuffer())
        const requestId = answer.headers.get('capfleet-request-id')
        const ends = [0, ...pcapngBlocks(body).map(({ end }) => end)]
        const lastEnd = ends.at(-2) ?? 0
        for (const bytes of [10, 40, (ends[4] ?? 0) + 9, ends[5] ?? 0, lastEnd, body.length - 3]) {
          const cwd = await folder(`pcapng-${name}-${bytes}`)
          await writeFile(join(cwd, 'a.pcapng.part'), body.subarray(0, bytes))
          const entry = { asked: { url: `${fleet.gateway.url}/`, path: asked.path, query }, requestId }
          await writeFile(
            join(cwd, 'a.pcapng.part.json'),
            JSON.stringify(journalOf({ ...entry, bootMs: thisBootMs })),
          )
          const { status, stderr } = await run([...words, '--format', 'pcapng', '-o', 'a.pcapng'], cwd)
          assert.equal(status, 0, stderr)
          const whole = ends.findLast((end) => end <= bytes) ?? 0
          assert.equal(stderr.includes(`resuming after the ${whole} bytes`), whole > 0, stderr)
          assert.ok((await readFile(join(cwd, 'a.pcapng'))).equals(body), `${name} at ${bytes}`)
        }
      }
    })

    test('is trusted as far as it was synced when the machine has started since', async () => {
      for (const [name, synced] of [
        ['lost', 0],
        ['synced', 504],
      ] as const) {
        const cwd = await folder(name)
        // As some file systems leave a file after a power failure: it has its length, but not its bytes.
        const zeroed = (whole: Buffer) => Buffer.concat([whole.subarray(0, 504), Buffer.alloc(480)])
        const body = await partOf(cwd, zeroed, { bootMs: thisBootMs - 3_600_000, syncedBytes: synced })
        const { status, stderr } = await run(['east-first', '-o', 'a.pcap'], cwd)
        assert.equal(status, 0, stderr)
        assert.equal(stderr.includes('resuming after the 504 bytes'), synced > 0)
        assert.ok((await readFile(join(cwd, 'a.pcap'))).equals(body))
      }
    })

    test('that is not a capture file starts over', async () => {
      const cwd = await folder('damaged')
      const body = await partOf(cwd, () => Buffer.alloc(1_000, 0xee), { bootMs: thisBootMs })
      const { status, stderr } = await run(['east-first', '-o', 'a.pcap'], cwd)
      assert.equal(status, 0, stderr)
      assert.match(stderr, /is damaged: starting over/)
      assert.ok((await readFile(join(cwd, 'a.pcap'))).equals(body))
    })
  })

  test('two at once do not write to one part; that of a killed one is taken over', async () => {
    const cwd = await folder('twice')
    await writeFile(join(cwd, 'a.pcap.part.lock'), `${process.pid} ${hostname()}`)
    const refused = await run(['east-first', '-o', 'a.pcap'], cwd)
    assert.equal(refused.status, 2)
    assert.match(refused.stderr, new RegExp(`another capfleet \\(process ${process.pid} on `))
    const dead = spawnSync('true')
    await writeFile(join(cwd, 'a.pcap.part.lock'), `${dead.pid} ${hostname()}`)
    assert.equal((await run(['east-first', '-o', 'a.pcap'], cwd)).status, 0)
    assert.deepEqual(await readdir(cwd), ['a.pcap'])
  })

  test('what the gateway ignores is reported', async () => {
    const cwd = await folder('ignored')
    const { status, stderr } = await run(['east-first', '--unit', 'sec', '-o', 'a.pcap'], cwd)
    assert.equal(status, 0, stderr)
    assert.match(stderr, /^a\.pcap: the gateway ignores TSUnit$/m)
  })

  test('a missing folder is reported in one line', async () => {
    const { status, stderr } = await run(['east-first', '-o', 'nowhere/a.pcap'])
    assert.equal(status, 2)
    assert.match(stderr, /^capfleet: the folder \S*\/nowhere does not exist; create it, or name another.*\n$/)
  })

  test('a part whose receipt is gone starts over', async () => {
    const cwd = await folder('forgotten')
    const body = await bodyOf('/api/v1/pcap/single?StreamName=east-first')
    await writeFile(join(cwd, 'a.pcap.part'), body.subarray(0, 1_000))
    const asked = {
      url: `${fleet.gateway.url}/`,
      path: '/api/v1/pcap/single',
      query: [['StreamName', 'east-first']],
    }
    const requestId = '00000000-0000-0000-0000-000000000000'
    await writeFile(
      join(cwd, 'a.pcap.part.json'),
      JSON.stringify({ asked, requestId, bootMs: Date.now() - uptime() * 1_000 }),
    )
    const { status, stderr } = await run(['east-first', '-o', 'a.pcap'], cwd)
    assert.equal(status, 0, stderr)
    assert.match(stderr, /no longer has a receipt for the partial file: starting over/)
    assert.ok((await readFile(join(cwd, 'a.pcap'))).equals(body))
  })
})
