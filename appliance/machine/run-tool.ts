import { execFile } from 'node:child_process'
import { access, constants } from 'node:fs/promises'
import { join } from 'node:path'

const OUTPUT_MAX = 1 << 20

/**
 * The output of a program, whatever its exit status, or undefined if it is not installed or was stopped by the signal.
 * Its input is empty and its messages are in English.
 */
export async function runTool(
  program: string,
  options: { readonly args: readonly string[]; readonly signal: AbortSignal },
): Promise<string | undefined> {
  const path = await findTool(program)
  if (path === undefined) return undefined
  const { args, signal } = options
  return await new Promise((resolve) => {
    const child = execFile(
      path,
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

/** Looks first: to start what is not there costs as much as to start it, and sensors try every few seconds. */
async function findTool(program: string): Promise<string | undefined> {
  for (const folder of TOOL_PATH.split(':')) {
    const path = join(folder, program)
    const isThere = await access(path, constants.X_OK).then(
      () => true,
      () => false,
    )
    if (isThere) return path
  }
  return undefined
}
