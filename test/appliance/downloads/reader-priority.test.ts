// The appliance and the processes that it starts run below the recorder in priority: every thread, for CPU and I/O.
import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { getPriority } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { stringify } from 'yaml'
import { httpGet } from '../../support/http-get.ts'
import { makePacket, makePcap } from '../../support/packets/packet-maker.ts'
import { startTempAppliance } from '../../support/processes/temp-appliance.ts'

const CLI = fileURLToPath(new URL('../../../src/cli.ts', import.meta.url))
const SCHED_BATCH = 3

interface ThreadPriority {
  readonly nice: number
  readonly policy: number
  /** The priority as ionice prints it. */
  readonly io: string
}

/** undefined for a thread that has ended meanwhile. */
async function priorityOf(thread: string): Promise<ThreadPriority | undefined> {
  const text = await readFile(`/proc/${thread}/stat`, 'utf8').catch(() => undefined)
  if (text === undefined) return undefined
  // Fields starting at the third; the second, the name, may contain anything.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  const io = await promisify(execFile)('ionice', ['-p', thread]).catch(() => undefined)
  return io && { nice: Number(fields[16]), policy: Number(fields[38]), io: io.stdout.trim() }
}

/** Runs the program over the store of an existing appliance, downloads, and reads the priorities. */
async function prioritiesOf(readers: 'low' | 'normal'): Promise<ThreadPriority[]> {
  await using here = await startTempAppliance()
  const file = join(here.folder, 'a.pcap')
  await writeFile(file, makePcap([makePacket(1_000n, 'a', 60)]))
  await here.importFiles('a', file)
  const config = join(here.folder, 'appliance.yaml')
  const settings = {
    listen: { port: 0 },
    store: here.storePath,
    auth: { users: join(here.folder, 'users.yaml') },
  }
  await writeFile(config, stringify({ ...settings, logLevel: 'silent', priority: { readers } }))
  const child = spawn(process.execPath, [CLI, 'appliance', '--config', config], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  try {
    const [line = ''] = await Array.fromAsync(firstOf(createInterface({ input: child.stdout })))
    const url = /ready (\S+)$/.exec(line)?.[1] ?? ''
    // The engine starts its own threads with a download, the compilers theirs with a filter.
    const query = '/api/v1/pcap/single?StreamName=a&FilterBPF=tcp&Compression=zstd'
    assert.equal((await httpGet(url + query, { user: here.credentials('user') })).status, 200)
    const threads = await readdir(`/proc/${child.pid}/task`)
    const priorities = (await Promise.all(threads.map(priorityOf))).filter((one) => one !== undefined)
    assert.ok(priorities.length > 5)
    return priorities
  } finally {
    child.kill('SIGKILL')
  }
}

async function* firstOf(lines: AsyncIterable<string>): AsyncGenerator<string> {
  for await (const line of lines) {
    yield line
    return
  }
}

test('every thread of an appliance has nice 10, SCHED_BATCH and the lowest best-effort I/O', async () => {
  for (const thread of await prioritiesOf('low')) {
    assert.deepEqual(thread, {
      nice: Math.max(10, getPriority()),
      policy: SCHED_BATCH,
      io: 'best-effort: prio 7',
    })
  }
})

test('priority.readers: normal leaves it alone', async () => {
  for (const { nice, policy, io } of await prioritiesOf('normal')) {
    assert.deepEqual([nice, policy], [getPriority(), 0])
    assert.notEqual(io, 'best-effort: prio 7')
  }
})
