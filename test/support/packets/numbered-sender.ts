import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { eventually } from '../eventually.ts'
import { type CaptureWire, inNamespace } from '../network/capture-wire.ts'

const PROGRAM = fileURLToPath(new URL('numbered-sender-program.ts', import.meta.url))

interface Mark {
  /** All packets below this number had been sent at that time. */
  readonly sent: number
  readonly atNs: string
}

/** Sends numbered packets over a wire, starting at 0, until dispose. */
export class NumberedSender implements AsyncDisposable {
  readonly #child: ChildProcess
  readonly #marks: Mark[] = []

  private constructor(child: ChildProcess) {
    this.#child = child
    child.on('message', (mark) => void this.#marks.push(mark as Mark))
  }

  static async start(wire: CaptureWire, packetsPerTick: number): Promise<NumberedSender> {
    const [program, args] = inNamespace(wire.sender, [
      process.execPath,
      PROGRAM,
      wire.address,
      String(packetsPerTick),
    ])
    const child = spawn(program, args, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
    const sender = new NumberedSender(child)
    await eventually(() => sender.sent > 0, { message: 'the sender sends' })
    return sender
  }

  /** The number of packets sent, at least. */
  get sent(): number {
    return this.#marks.at(-1)?.sent ?? 0
  }

  /** All packets below this number had been sent when the clock showed `ns`. */
  sentBefore(ns: bigint): number {
    return this.#marks.findLast(({ atNs }) => BigInt(atNs) <= ns)?.sent ?? 0
  }

  /** Ends after a whole batch that the sender has reported: `sent` is then exact. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null) return
    const ended = [once(this.#child, 'disconnect'), once(this.#child, 'exit')]
    this.#child.send('end')
    await Promise.all(ended)
  }
}
