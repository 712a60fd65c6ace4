/**
 * Runs command lines of capfleet one after another, each with its own arguments, environment, folder, input and output:
 * loading the modules again takes most of the time of a process. Reads requests and writes answers as lines of JSON.
 */
import { globalAgent as httpAgent } from 'node:http'
import { globalAgent as httpsAgent } from 'node:https'
import { createInterface } from 'node:readline'
import { Readable, Writable } from 'node:stream'
import { runCapfleet } from '../../../src/capfleet-commands.ts'
import { pause } from '../pause.ts'
import { REPOSITORY_ROOT } from '../repository-files.ts'
import type { HostedEnd, HostedRun } from './client-host.ts'

const POLL_MS = 5

/** Thrown by process.exit(), which does not return. */
class Exit extends Error {}

/** An output that is kept until the command ends. */
class Kept extends Writable {
  isOpen = true
  readonly #pieces: Buffer[] = []

  get bytes(): Buffer {
    return Buffer.concat(this.#pieces)
  }

  override _write(piece: Buffer, _encoding: string, done: () => void): void {
    if (this.isOpen) this.#pieces.push(piece)
    done()
  }
}

const [requests, answers] = [createInterface({ input: process.stdin }), process.stdout]
process.on('uncaughtException', (error) => {
  if (!(error instanceof Exit)) throw error
})

for await (const line of requests) {
  const end = await runOnce(JSON.parse(line) as HostedRun)
  answers.write(`${JSON.stringify(end)}\n`)
}

async function runOnce({ args, environment, cwd, input }: HostedRun): Promise<HostedEnd> {
  const [stdout, stderr] = [new Kept(), new Kept()]
  const stdin = Readable.from(input === '' ? [] : [Buffer.from(input)])
  for (const name of Object.keys(process.env)) delete process.env[name]
  Object.assign(process.env, environment)
  process.chdir(cwd)
  process.argv = [process.execPath, `${REPOSITORY_ROOT}src/cli.ts`, ...args]
  process.exitCode = undefined
  for (const [name, value] of Object.entries({ stdin, stdout, stderr }))
    Object.defineProperty(process, name, { value, configurable: true })
  const exited = Promise.withResolvers<number>()
  process.exit = (status) => {
    exited.resolve(Number(status ?? process.exitCode ?? 0))
    for (const output of [stdout, stderr]) output.isOpen = false
    throw new Exit()
  }
  const resourcesBefore = process.getActiveResourcesInfo().length
  const returned = runCapfleet().then(async () => {
    // A process ends when nothing keeps it: a command that leaves something open would not end.
    while (process.getActiveResourcesInfo().length > resourcesBefore) await pause(POLL_MS, 'nothing tells')
    return Number(process.exitCode ?? 0)
  })
  const status = await Promise.race([exited.promise, returned])
  for (const output of [stdout, stderr]) output.isOpen = false
  // What ends with a process.
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.removeAllListeners(name)
  for (const agent of [httpAgent, httpsAgent]) agent.destroy()
  stdin.destroy()
  process.exitCode = undefined
  // A disk can be unmounted that no process is in.
  process.chdir('/')
  return { status, stdout: stdout.bytes.toString('base64'), stderr: stderr.bytes.toString() }
}
