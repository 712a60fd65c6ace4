/** The demo fleet as a user starts it, in a temporary home on any free port. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { REPOSITORY_ROOT } from '../repository-files.ts'

export interface DemoFacts {
  readonly gatewayUrl: string
  readonly user: string
  readonly password: string
  readonly token: string
  readonly devices: readonly { name: string; url: string; user: string; password: string; pid: number }[]
}

export interface DemoProcess extends AsyncDisposable {
  readonly home: string
  readonly facts: DemoFacts
  /** Its complete output on stderr, once it has ended. */
  readonly saidAll: Promise<string>
  /** The first line on stderr that matches, as soon as it is printed. Fails if the demo ends without one. */
  said(pattern: RegExp): Promise<string>
  /** Sends a signal and waits for the end; returns the exit code. */
  stop(signal: NodeJS.Signals): Promise<number | null>
}

export async function startDemo(home: string, args: readonly string[] = []): Promise<DemoProcess> {
  const child = spawn('src/capfleet', ['demo', '--port', '0', '--home', home, ...args], {
    cwd: REPOSITORY_ROOT,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const exited = once(child, 'exit')
  const said = new SaidLines(child.stderr)
  for await (const line of createInterface({ input: child.stdout }))
    if (line.startsWith('capfleet ready ')) break
  if (child.exitCode !== null) throw new Error(`the demo did not start: ${await said.all}`)
  const stop = async (signal: NodeJS.Signals): Promise<number | null> => {
    child.kill(signal)
    await Promise.all([exited, said.all])
    return child.exitCode
  }
  const facts = JSON.parse(await readFile(join(home, 'demo.json'), 'utf8')) as DemoFacts
  return {
    home,
    facts,
    saidAll: said.all,
    said: (pattern) => said.find(pattern),
    stop,
    async [Symbol.asyncDispose]() {
      if (child.exitCode === null && child.signalCode === null) await stop('SIGTERM')
    },
  }
}

/** The lines of a stream, for waiting for one of them. */
class SaidLines {
  /** The complete text, at the end. */
  readonly all: Promise<string>
  readonly #lines: string[] = []
  readonly #waiting = new Map<RegExp, PromiseWithResolvers<string>>()

  constructor(stream: Readable) {
    this.all = this.#read(stream)
  }

  find(pattern: RegExp): Promise<string> {
    const found = this.#lines.find((line) => pattern.test(line))
    if (found !== undefined) return Promise.resolve(found)
    const waiting = Promise.withResolvers<string>()
    this.#waiting.set(pattern, waiting)
    return waiting.promise
  }

  async #read(stream: Readable): Promise<string> {
    for await (const line of createInterface({ input: stream })) {
      this.#lines.push(line)
      for (const [pattern, waiting] of this.#waiting) if (pattern.test(line)) waiting.resolve(line)
    }
    const all = this.#lines.join('\n')
    for (const [pattern, waiting] of this.#waiting) waiting.reject(new Error(`no ${pattern} in: ${all}`))
    return all
  }
}

export async function temporaryHome(): Promise<AsyncDisposable & { path: string }> {
  const path = await mkdtemp(join(tmpdir(), 'capfleet-demo-'))
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) }
}

/** Command lines of the running processes that contain `word`, except this process. */
export async function processesNaming(word: string): Promise<string[]> {
  return (await runningNaming(word)).map(({ commandLine }) => commandLine)
}

export interface RunningProcess {
  readonly pid: number
  readonly commandLine: string
}

/** The same with their pids. */
export async function runningNaming(word: string): Promise<RunningProcess[]> {
  const found: RunningProcess[] = []
  for (const pid of await readdir('/proc')) {
    if (!/^\d+$/.test(pid) || Number(pid) === process.pid) continue
    const commandLine = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')
    if (commandLine.includes(word))
      found.push({ pid: Number(pid), commandLine: commandLine.replaceAll('\0', ' ') })
  }
  return found
}
