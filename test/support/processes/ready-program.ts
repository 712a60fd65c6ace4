/** A command that runs until it is told to end, as a user starts it in a shell. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

export interface ReadyProgram extends AsyncDisposable {
  /** From its line "ready": where it listens. */
  readonly address: string
}

/** Resolves when the program prints that it is ready; disposing it sends SIGTERM, and waits. */
export async function startReady(command: string, cwd: string): Promise<ReadyProgram> {
  const child = spawn('bash', ['--norc', '-c', `exec ${command}`], {
    cwd,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const stop = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const exit = once(child, 'exit')
    child.kill('SIGTERM')
    await exit
  }
  for await (const line of createInterface({ input: child.stdout })) {
    const address = /ready (\S+)/.exec(line)?.[1]
    if (address !== undefined) return { address, [Symbol.asyncDispose]: stop }
  }
  throw new Error(`${command} did not start`)
}
