/** A capfleet program as a child of this one: started, watched, stopped. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, open, readFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { CapfleetError } from '../shared/base/error.ts'

const CLI = fileURLToPath(new URL('../cli.ts', import.meta.url))

/**
 * Node options: at most 3 x 16 MiB of young generation. On a large machine Node reserves several times as much, and a
 * gateway that reads long lists ends up using it. A running Node cannot change it; the launcher `src/capfleet` sets
 * the same.
 */
export const NODE_OPTIONS: readonly string[] = ['--max-semi-space-size=16']

/** Node cannot set its own limits. `src/capfleet` does the same. */
const WITHOUT_CORE_DUMPS: readonly string[] = ['-c', 'ulimit -c 0; exec "$@"', 'sh']

export interface ChildProgram {
  readonly name: string
  readonly pid: number
  /** The address in its ready line. */
  readonly address: string
  /** Resolves when the process has ended, for whatever reason. */
  readonly ended: Promise<void>
  /** Asks it to end and waits; after `graceMs` it is killed. */
  stop(graceMs: number): Promise<void>
}

/**
 * Starts `capfleet <args>` and waits for its line "capfleet <program> ready <address>". Its own process group keeps
 * Ctrl-C from reaching it before its parent decides the order of stopping; the IPC channel notifies it when the parent
 * dies. stderr goes to `logPath`, which is truncated unless `appends` says that an earlier run has started it.
 */
export async function startChildProgram(
  name: string,
  args: readonly string[],
  { logPath, appends }: { readonly logPath: string; readonly appends: boolean },
): Promise<ChildProgram> {
  await mkdir(dirname(logPath), { recursive: true })
  await using log = await open(logPath, appends ? 'a' : 'w')
  const child = spawn('/bin/sh', [...WITHOUT_CORE_DUMPS, process.execPath, ...NODE_OPTIONS, CLI, ...args], {
    stdio: ['ignore', 'pipe', log.fd, 'ipc'],
    detached: true,
  })
  const ended = once(child, 'exit').then(() => undefined)
  const address = await readyAddress(child)
  if (address === undefined || child.pid === undefined) {
    await ended
    const said = await lastComplaint(logPath)
    const reason = said === undefined ? '' : `: ${said}`
    throw new CapfleetError('internal-error', `${name} did not start${reason}; its log is ${logPath}`)
  }
  return { name, pid: child.pid, address, ended, stop: (graceMs) => stopChild(child, ended, graceMs) }
}

const COMPLAINT_BYTES_MAX = 4_096

/** The line in which a program says why it ended, or undefined. */
async function lastComplaint(logPath: string): Promise<string | undefined> {
  const end = (await readFile(logPath, 'utf8')).slice(-COMPLAINT_BYTES_MAX)
  return [...end.matchAll(/^capfleet: (.+)$/gm)].at(-1)?.[1]
}

/** The address of the ready line, or undefined if stdout ends without one. */
async function readyAddress(child: ChildProcess): Promise<string | undefined> {
  if (child.stdout === null) return undefined
  for await (const line of createInterface({ input: child.stdout })) {
    const match = /^capfleet \S+ ready (\S+)$/.exec(line)
    if (match) return match[1]
  }
  return undefined
}

async function stopChild(child: ChildProcess, ended: Promise<void>, graceMs: number): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const kill = setTimeout(() => child.kill('SIGKILL'), graceMs)
  child.kill('SIGTERM')
  await ended
  clearTimeout(kill)
}
