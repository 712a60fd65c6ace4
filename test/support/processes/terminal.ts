/** Runs a command with a terminal as its standard streams, like for a person. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'

export interface TerminalEnd {
  readonly status: number | null
  /** Everything displayed, including control characters. */
  readonly shown: string
}

/** Each of `answers` is typed when its prompt has appeared. */
export async function onTerminal(
  command: string,
  answers: readonly (readonly [prompt: string, answer: string])[],
  environment: Readonly<Record<string, string>>,
): Promise<TerminalEnd> {
  const child = spawn('script', ['-qec', command, '/dev/null'], {
    env: { PATH: process.env.PATH, TERM: 'xterm', ...environment },
  })
  let shown = ''
  let answered = 0
  let from = 0
  child.stdout.on('data', (text: Buffer) => {
    shown += text.toString()
    const [prompt, answer] = answers[answered] ?? []
    const at = prompt === undefined ? -1 : shown.indexOf(prompt, from)
    if (at < 0) return
    from = at + 1
    answered += 1
    // After the prompt, the terminal's echo is turned off.
    setTimeout(() => child.stdin.write(`${answer}\r`), 300)
  })
  await once(child, 'close')
  return { status: child.exitCode, shown }
}
