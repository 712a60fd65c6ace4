/** An appliance in a separate process, as in production. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { REPOSITORY_ROOT } from '../repository-files.ts'

export class ApplianceProcess implements AsyncDisposable {
  readonly url: string
  readonly #child: ChildProcess

  private constructor(url: string, child: ChildProcess) {
    this.url = url
    this.#child = child
  }

  /** Resolves when it is ready. */
  static async start(configPath: string): Promise<ApplianceProcess> {
    const args = [join(REPOSITORY_ROOT, 'src/cli.ts'), 'appliance', '--config', configPath]
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] })
    for await (const line of createInterface({ input: child.stdout as NodeJS.ReadableStream })) {
      const url = /ready (\S+)/.exec(line)?.[1]
      if (url !== undefined) return new ApplianceProcess(url, child)
    }
    throw new Error('the appliance did not start')
  }

  /** Like kill -9. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const ended = once(this.#child, 'exit')
    this.#child.kill('SIGKILL')
    await ended
  }
}
