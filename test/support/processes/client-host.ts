/** A process that runs command lines of capfleet one after another: client-host-program.ts. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { NODE_OPTIONS } from '../../../src/demo/child-program.ts'
import { REPOSITORY_ROOT } from '../repository-files.ts'

export interface HostedRun {
  readonly args: readonly string[]
  /** All of it. */
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly cwd: string
  readonly input: string
}

export interface HostedEnd {
  readonly status: number
  /** As base64. */
  readonly stdout: string
  readonly stderr: string
}

export class ClientHost implements Disposable {
  readonly #child: ChildProcess
  readonly #answers: AsyncIterator<string>
  readonly #ended: Promise<undefined>
  #said = ''

  constructor() {
    const program = `${REPOSITORY_ROOT}test/support/processes/client-host-program.ts`
    const child = spawn(process.execPath, [...NODE_OPTIONS, program], { stdio: 'pipe' })
    child.stderr.on('data', (text: Buffer) => {
      this.#said += text.toString()
    })
    this.#answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
    child.stdin.on('error', () => undefined)
    this.#ended = once(child, 'close').then(() => undefined)
    this.#child = child
  }

  /** REQUIRES: no other command line is running in it. */
  async run(run: HostedRun): Promise<HostedEnd> {
    this.#child.stdin?.write(`${JSON.stringify(run)}\n`)
    const answer = await Promise.race([this.#answers.next(), this.#ended])
    if (answer !== undefined && !answer.done) return JSON.parse(answer.value) as HostedEnd
    await this.#ended
    throw new Error(`capfleet ${run.args.join(' ')} ended its process: ${this.#said}`)
  }

  [Symbol.dispose](): void {
    this.#child.kill('SIGKILL')
    for (const stream of this.#child.stdio) stream?.destroy()
  }
}
