// The product as a user meets it: the demo started by its command, with curl and tcpdump as clients.
import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { mayCapture } from '../../src/demo/live-traffic.ts'
import { eventually } from '../support/eventually.ts'
import { makePacket, makePcap } from '../support/packets/packet-maker.ts'
import {
  type DemoProcess,
  processesNaming,
  runningNaming,
  startDemo,
  temporaryHome,
} from '../support/processes/demo-process.ts'
import { shellPipeline } from '../support/processes/shell-pipeline.ts'

/** The range of the generated traffic: 2026-11-02T09:00:00Z and the next five minutes. */
const BEGIN_S = 1_793_610_000
const MINUTES = 5
const WITHOUT_CAPTURE =
  (await mayCapture()) || process.env.CI === 'true' ? false : 'capturing needs CAP_NET_RAW'

describe('the demo fleet', () => {
  let home: Awaited<ReturnType<typeof temporaryHome>>
  let demo: DemoProcess
  let curl: string

  const start = async (): Promise<void> => {
    demo = await startDemo(home.path)
    curl = `curl -sS -f -u ${demo.facts.user}:${demo.facts.password}`
  }
  before(async () => {
    home = await temporaryHome()
    await start()
  })
  after(async () => {
    await demo[Symbol.asyncDispose]()
    await home[Symbol.asyncDispose]()
  })

  test('gives the time-ordered merge of three devices from one URL', async () => {
    const range = `TSBegin=${BEGIN_S}&TSEnd=${BEGIN_S + 60}&TSUnit=sec`
    const merged = await shellPipeline(
      `${curl} "${demo.facts.gatewayUrl}/api/v1/pcap/timerange?${range}" | tcpdump -nr - -tt 2>/dev/null | cut -d' ' -f1`,
    )
    assert.deepEqual(merged.codes, [0, 0, 0])
    const times = merged.stdout.trim().split('\n')
    assert.ok(times.length >= 60_000, `${times.length} packets`)
    assert.deepEqual(times, times.toSorted(), 'in time order')
    const single = demo.facts.devices.map(
      ({ url, user, password }) =>
        `curl -sSf -u ${user}:${password} "${url}/api/v1/pcap/timerange?${range}" | tcpdump -nr - -tt 2>/dev/null | wc -l`,
    )
    const counts = await Promise.all(single.map((script) => shellPipeline(script)))
    for (const { stdout } of counts) assert.ok(Number(stdout) >= 18_000)
    assert.equal(
      times.length,
      counts.reduce((sum, { stdout }) => sum + Number(stdout), 0),
    )
  })

  test('no program can leave its memory on the disk', async () => {
    const running = await runningNaming(home.path)
    // Demo, gateway, its Redis, worker, three recorders and three appliances.
    assert.ok(running.length >= 10, `${running.map(({ commandLine }) => commandLine)}`)
    for (const { pid, commandLine } of running) {
      const limits = await readFile(`/proc/${pid}/limits`, 'utf8')
      assert.match(limits, /^Max core file size +0 +0 /m, commandLine)
    }
  })

  test('has a token that works, in demo.json and as a header for curl', async () => {
    const { gatewayUrl, token } = demo.facts
    for (const header of [`Authorization: Bearer ${token}`, `@${join(home.path, 'bearer')}`]) {
      const { codes, stdout } = await shellPipeline(`curl -sSf -H "${header}" "${gatewayUrl}/v1/devices"`)
      assert.deepEqual(codes, [0])
      assert.equal(JSON.parse(stdout).devices.length, 3)
    }
  })

  test("gives one device's capture, filtered and compressed", async () => {
    const url = `${demo.facts.gatewayUrl}/devices/nyc1/api/v1/pcap/single?StreamName=demo&Compression=zstd`
    const filtered = await shellPipeline(
      `${curl} "${url}&FilterBPF=tcp+port+443" | zstd -dc | tcpdump -nr - 2>/dev/null | wc -l`,
    )
    const oracle = await shellPipeline(
      `${curl} "${url}" | zstd -dc | tcpdump -nr - tcp port 443 2>/dev/null | wc -l`,
    )
    assert.deepEqual(
      [filtered.codes, oracle.codes],
      [
        [0, 0, 0, 0],
        [0, 0, 0, 0],
      ],
    )
    assert.ok(Number(filtered.stdout) > 1000)
    assert.equal(filtered.stdout, oracle.stdout)
  })

  test('prints lines that work as they are, and no password is on any command line', async () => {
    const line = await demo.said(/^ {2}curl .*timerange/)
    assert.match(line, /--netrc-file /)
    const { codes } = await shellPipeline(`${line.trim()} >/dev/null 2>&1`)
    assert.deepEqual(codes, [0, 0])
    const passwords = [demo.facts, ...demo.facts.devices].map(({ password }) => password)
    const printed = [await demo.said(/stream\/list/), await demo.said(/pcap\/single/), line]
    const running = await processesNaming(home.path)
    assert.ok(running.length >= 6)
    for (const password of passwords) {
      assert.deepEqual(
        [...printed, ...running].filter((command) => command.includes(password)),
        [],
      )
    }
  })

  test('captures live beside what is stored, and says what happens', { skip: WITHOUT_CAPTURE }, async () => {
    const device = `${demo.facts.gatewayUrl}/devices/nyc1`
    const ask = async (path: string): Promise<Record<string, unknown>> =>
      JSON.parse((await shellPipeline(`${curl} "${device}${path}"`)).stdout)
    await eventually(async () => Number((await ask('/sysmaster/capture_status')).CapturePacket) > 100, {
      message: 'packets are captured',
    })
    const { StreamName, CaptureDrop } = await ask('/sysmaster/capture_status')
    assert.match(String(StreamName), /^live_\d{8}_\d{4}/)
    assert.equal(CaptureDrop, 0)
    const { CapturePacket } = await ask('/sysmaster/capture_stop')
    // The query selects only the demo's own packets, so that traffic of its readers is not among them.
    const single = `${curl} "${device}/api/v1/pcap/single?StreamName=${StreamName}"`
    const own = await shellPipeline(
      `${single} | tcpdump -nAr - 2>/dev/null | grep -c ' of the capfleet demo '`,
    )
    assert.equal(Number(own.stdout), Number(CapturePacket))
    const all = await shellPipeline(`${single} | tcpdump -nr - 2>/dev/null | wc -l`)
    assert.equal(Number(all.stdout), Number(CapturePacket))
    const events = await shellPipeline(
      `${curl} -m 3 "${device}/api/v1/system/events?LastEventID=0" 2>/dev/null | grep ^event:`,
    )
    assert.match(
      events.stdout,
      /^event: recorder-started\n(event: .*\n)*event: capture-started\nevent: capture-stopped\n/,
    )
  })

  test('a device that is killed in a merge breaks the download, and the next one names it', async () => {
    const url = `${demo.facts.gatewayUrl}/api/v1/pcap/timerange?TSBegin=${BEGIN_S}&TSEnd=${BEGIN_S + MINUTES * 60}&TSUnit=sec`
    const victim = demo.facts.devices[1]
    assert.ok(victim)
    // tcpdump's first line of output shows that the stream runs; then the device dies.
    const cut = await shellPipeline(
      `${curl} --limit-rate 20M "${url}" | tcpdump -nr - 2>/dev/null | { read -r line; kill -KILL ${victim.pid}; cat >/dev/null; }`,
    )
    assert.notEqual(cut.codes[0], 0, 'curl')
    assert.equal(cut.codes[1], 1, 'tcpdump')
    const startedMs = performance.now()
    const next = await fetch(url, {
      headers: { authorization: `Basic ${btoa(`${demo.facts.user}:${demo.facts.password}`)}` },
    })
    assert.equal(next.status, 502)
    const problem = (await next.json()) as { code: string; detail: string; devices: string[] }
    assert.equal(problem.code, 'device-unreachable')
    assert.deepEqual(problem.devices, [victim.name])
    assert.match(problem.detail, new RegExp(victim.name))
    assert.ok(performance.now() - startedMs < 15_000)
  })

  test('of 11 files to import the third is invalid: it is named, the others are served, status 1 at the end', async () => {
    await using files = await temporaryHome()
    await using others = await temporaryHome()
    const paths = Array.from({ length: 11 }, (_, i) => join(files.path, `f${i + 1}.pcap`))
    for (const [i, path] of paths.entries()) {
      const packet = makePacket(BigInt(i + 1) * 1_000_000_000n, `packet ${i + 1}`, 60)
      await writeFile(path, i === 2 ? 'this is no capture file' : makePcap([packet]))
    }
    await using own = await startDemo(others.path, ['--import', ...paths])
    await own.said(/^import: .*\/f3\.pcap is neither PCAP nor pcapng/)
    const { facts } = own
    const merged = await shellPipeline(
      `curl -sSf --netrc-file ${own.home}/netrc "${facts.gatewayUrl}/api/v1/pcap/timerange?TSBegin=0&TSEnd=600&TSUnit=sec" | tcpdump -nr - -tt 2>/dev/null | wc -l`,
    )
    assert.deepEqual([merged.codes, Number(merged.stdout)], [[0, 0, 0], 10])
    const counts = await Promise.all(
      facts.devices.map(async ({ url, user, password }) => {
        const headers = { authorization: `Basic ${btoa(`${user}:${password}`)}` }
        const answer = await fetch(`${url}/stream/list`, { headers })
        const { List } = (await answer.json()) as { List: { Path: string }[] }
        return List.filter(({ Path }) => /^f\d+$/.test(Path)).length
      }),
    )
    assert.deepEqual(counts, [4, 4, 2], 'spread over the devices')
    assert.equal(await own.stop('SIGINT'), 1)
  })

  test('Ctrl-C leaves no process running; a second start finds its captures, and leaves none when it is killed', async () => {
    assert.ok((await processesNaming(home.path)).length >= 6)
    assert.equal(await demo.stop('SIGINT'), 0, await demo.saidAll)
    assert.match(await demo.saidAll, /generating traffic for nyc1/)
    assert.deepEqual(await processesNaming(home.path), [])
    await start()
    await demo.stop('SIGKILL')
    assert.doesNotMatch(await demo.saidAll, /generating traffic/)
    // They are not child processes, so no event reports their end.
    await eventually(async () => (await processesNaming(home.path)).length === 0, {
      message: 'no process is left',
    })
  })
})
