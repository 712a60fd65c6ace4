import { execFile } from 'node:child_process'

const OUTPUT_MAX = 1 << 20

/**
 * The output of a program, whatever its exit status, or undefined if it is not installed or was stopped by the signal.
 * Its input is empty and its messages are in English.
 */
export function runTool(
  program: string,
  options: { readonly args: readonly string[]; readonly signal: AbortSignal },
): Promise<string | undefined> {
  const { args, signal } = options
  return new Promise((resolve) => {
    const child = execFile(
      program,
      [...args],
      { signal, killSignal: 'SIGKILL', maxBuffer: OUTPUT_MAX, env: { PATH: TOOL_PATH, LC_ALL: 'C' } },
      (error, stdout) => {
        const isAbsent = error !== null && typeof error.code !== 'number'
        resolve(isAbsent ? undefined : stdout)
      },
    )
    child.stdin?.end()
  })
}

/** Daemons are started with a short PATH; these programs are in the administrators' folders. */
const TOOL_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
