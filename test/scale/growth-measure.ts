/** What a store costs the two programs of an appliance, each a real process. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { get } from 'node:http'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { GrownStore } from './growth-store.ts'

export interface GrowthFound {
  /** From the start of the process until it has resumed its capture, or, without a capture, until it answers. */
  readonly recorderReadyMs: number
  /** Share of one processor, over ten seconds without any work. */
  readonly idlePercent: number
  readonly firstListMs: number
  readonly listMs: number
  readonly oneSecondMs: number
  readonly wholeFirstByteMs: number
  readonly removalsPerSecond: number
  readonly applianceMiB: number
  readonly recorderMiB: number
}

const USER = 'growth'
const PASSWORD = 'growth-of-stores'
const IDLE_MS = 10_000
const REMOVALS_MS = 5_000
const POLL_MS = 20
const ROUNDS = 5

export async function measureGrowth(root: string, store: GrownStore): Promise<GrowthFound> {
  const home = dirname(store.path)
  const capfleet = join(root, 'src', 'capfleet')
  const config = join(home, 'appliance.yaml')
  const settings = {
    deviceName: 'growth',
    listen: { port: 0 },
    store: store.path,
    auth: { users: join(home, 'users.yaml') },
    retention: { minFreeBytes: 0 },
  }
  await writeFile(config, JSON.stringify(settings))
  execFileSync(capfleet, ['user', 'add', USER, '--file', join(home, 'users.yaml'), '--role', 'full'], {
    input: `${PASSWORD}\n`,
  })
  const recorder = start(capfleet, ['recorder', '--config', config])
  const recorderReadyMs = await ready(recorder, store)
  const appliance = start(capfleet, ['appliance', '--config', config])
  try {
    const url = await urlOf(appliance)
    const ask = (path: string) => timeToFirstByte(`${url}${path}`)
    const firstListMs = await ask('/stream/list?Limit=100')
    const listMs = await least(() => ask('/stream/list?Limit=100'))
    const { beginNs, endNs } = store
    const middleNs = beginNs + (endNs - beginNs) / 2n
    const range = (fromNs: bigint, toNs: bigint) =>
      `/api/v1/pcap/timerange?TSBegin=${fromNs}&TSEnd=${toNs}&TSUnit=nanos`
    const oneSecondMs = await least(() => ask(range(middleNs, middleNs + 1_000_000_000n)))
    const wholeFirstByteMs = await least(() => ask(range(beginNs, endNs)))
    const before = await processorMs(recorder)
    await delay(IDLE_MS)
    const idlePercent = (100 * ((await processorMs(recorder)) - before)) / IDLE_MS
    const memory = [await residentMiB(appliance), await residentMiB(recorder)]
    const removalsPerSecond = await removals(capfleet, { config, settings, recorder, store })
    return {
      recorderReadyMs: Math.round(recorderReadyMs),
      idlePercent: round(idlePercent),
      firstListMs: round(firstListMs),
      listMs: round(listMs),
      oneSecondMs: round(oneSecondMs),
      wholeFirstByteMs: round(wholeFirstByteMs),
      removalsPerSecond: round(removalsPerSecond),
      applianceMiB: Math.round(memory[0] ?? 0),
      recorderMiB: Math.round(memory[1] ?? 0),
    }
  } finally {
    await end(appliance)
    await end(recorder)
  }
}

interface Started {
  readonly process: ChildProcess
  readonly startedMs: number
  readonly lines: string[]
}

function start(command: string, args: readonly string[]): Started {
  const startedMs = performance.now()
  const process = spawn(command, args, { stdio: ['ignore', 'ignore', 'pipe'] })
  const lines: string[] = []
  process.stderr?.setEncoding('utf8').on('data', (text: string) => lines.push(...text.split('\n')))
  return { process, startedMs, lines }
}

/** The event of the resumed capture, or of the start if there is none to resume. */
async function ready(started: Started, store: GrownStore): Promise<number> {
  const kind = store.state === 'active' ? 'capture-resumed' : 'recorder-started'
  for (;;) {
    const events = await readFile(join(store.path, 'events.jsonl'), 'utf8').catch(() => '')
    if (events.includes(`"${kind}"`)) return performance.now() - started.startedMs
    await whileItRuns(started)
  }
}

async function urlOf(started: Started): Promise<string> {
  for (;;) {
    const url = /http:\/\/127\.0\.0\.1:\d+/.exec(started.lines.join('\n'))?.[0]
    if (url !== undefined) return url
    await whileItRuns(started)
  }
}

/** Waits a little. Fails with the output of a program that ended meanwhile. */
async function whileItRuns({ process: { exitCode, signalCode }, lines }: Started): Promise<void> {
  if (exitCode !== null || signalCode !== null) throw new Error(`a program ended early:\n${lines.join('\n')}`)
  await delay(POLL_MS)
}

async function timeToFirstByte(url: string): Promise<number> {
  const startedMs = performance.now()
  const request = get(url, { auth: `${USER}:${PASSWORD}` })
  const [response] = await once(request, 'response')
  if (response.statusCode !== 200) throw new Error(`${url}: ${response.statusCode}`)
  await once(response, 'data')
  const tookMs = performance.now() - startedMs
  response.destroy()
  return tookMs
}

async function least(measure: () => Promise<number>): Promise<number> {
  let best = Number.POSITIVE_INFINITY
  for (let round = 0; round < ROUNDS; round++) best = Math.min(best, await measure())
  return best
}

/** How many segments are removed in a few seconds, once the store may hold only half of its size. */
async function removals(
  capfleet: string,
  parts: {
    readonly config: string
    readonly settings: Record<string, unknown>
    readonly recorder: Started
    readonly store: GrownStore
  },
): Promise<number> {
  const { config, settings, recorder, store } = parts
  await end(recorder)
  await writeFile(config, JSON.stringify({ ...settings, retention: { minFreeBytes: 0, maxBytes: 10_000 } }))
  const again = start(capfleet, ['recorder', '--config', config])
  try {
    const removed = async (): Promise<number> => {
      const [newest, older] = await Promise.all(
        ['events.jsonl', 'events.1.jsonl'].map((name) =>
          readFile(join(store.path, name), 'utf8').catch(() => ''),
        ),
      )
      return `${older}${newest}`.split('"segment-removed"').length - 1
    }
    let begunMs = 0
    for (const limitMs = performance.now() + 60_000; ; ) {
      if ((await removed()) > 0) {
        begunMs = performance.now()
        break
      }
      if (performance.now() > limitMs) return 0
      await delay(POLL_MS)
    }
    await delay(REMOVALS_MS)
    return ((await removed()) * 1_000) / (performance.now() - begunMs)
  } finally {
    await end(again)
  }
}

async function processorMs({ process: { pid } }: Started): Promise<number> {
  const fields = (await readFile(`/proc/${pid}/stat`, 'utf8')).split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) * 10
}

async function residentMiB({ process: { pid } }: Started): Promise<number> {
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1_024
}

async function end({ process }: Started): Promise<void> {
  if (process.exitCode !== null || process.signalCode !== null) return
  process.kill('SIGTERM')
  const timer = setTimeout(() => process.kill('SIGKILL'), 20_000)
  await once(process, 'exit')
  clearTimeout(timer)
}

function round(value: number): number {
  return Math.round(value * 10) / 10
}
