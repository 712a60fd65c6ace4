/** A capfleet program as a user starts it, and its address. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { open, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { NODE_OPTIONS } from '../../src/demo/child-program.ts'
import { REPOSITORY_ROOT } from '../support/repository-files.ts'

export interface OurProgramOptions {
  /** The arguments of "capfleet". */
  readonly args: readonly string[]
  readonly logPath: string
  /** Limit of file descriptors; default: that of this process. */
  readonly descriptors?: number | undefined
}

const STOP_LIMIT_MS = 5_000

export class OurProgram implements AsyncDisposable {
  readonly url: string
  readonly pid: number
  readonly #child: ChildProcess

  private constructor(url: string, child: ChildProcess) {
    this.url = url
    this.pid = child.pid ?? 0
    this.#child = child
  }

  /** Resolves when it is ready; fails with the end of its log. */
  static async start({ args, logPath, descriptors }: OurProgramOptions): Promise<OurProgram> {
    await using log = await open(logPath, 'a')
    const command = [process.execPath, ...NODE_OPTIONS, join(REPOSITORY_ROOT, 'src/cli.ts'), ...args]
    const [program = '', ...rest] =
      descriptors === undefined ? command : ['prlimit', `--nofile=${descriptors}`, ...command]
    const child = spawn(program, rest, { stdio: ['ignore', 'pipe', log.fd, 'ipc'] })
    if (child.stdout === null) throw new Error('a piped stdout is there')
    for await (const line of createInterface({ input: child.stdout })) {
      const url = /^capfleet \S+ ready (\S+)$/.exec(line)?.[1]
      if (url !== undefined) return new OurProgram(url, child)
    }
    throw new Error(`capfleet ${args[0]} did not start: ${(await readFile(logPath, 'utf8')).slice(-2_000)}`)
  }

  /** Like kill -9. */
  async kill(): Promise<void> {
    await this.#end('SIGKILL')
  }

  /** Orderly, so that its own children end too. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#end('SIGTERM')
  }

  async #end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    const child = this.#child
    if (child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    const kill = setTimeout(() => child.kill('SIGKILL'), STOP_LIMIT_MS)
    child.kill(signal)
    await ended
    clearTimeout(kill)
  }
}
