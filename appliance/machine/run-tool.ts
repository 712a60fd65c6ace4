import { execFile } from 'node:child_process'
import { access, constants } from 'node:fs/promises'
import { join } from 'node:path'

const OUTPUT_MAX = 1 << 20

/** Daemons are started with a short PATH; these programs are in the administrators' folders. */
const TOOL_FOLDERS = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin']

/**
 * The output of a program, whatever its exit status, or undefined if it is not installed or was stopped by the signal.
 * Its input is empty and its messages are in English.
 */
export async function runTool(
  program: string,
  options: { readonly args: readonly string[]; readonly signal: AbortSignal },
): Promise<string | undefined> {
  const { args, signal } = options
  const path = await findTool(program)
  if (path === undefined) return undefined
  return await new Promise((resolve) => {
    const env = { PATH: TOOL_FOLDERS.join(':'), LC_ALL: 'C' }
    const child = execFile(
      path,
      [...args],
      { signal, killSignal: 'SIGKILL', maxBuffer: OUTPUT_MAX, env },
      (error, stdout) => {
        const isAbsent = error !== null && typeof error.code !== 'number'
        resolve(isAbsent ? undefined : stdout)
      },
    )
    child.stdin?.end()
  })
}

/** Starting a program that is not there costs a copy of this process, again and again. */
async function findTool(program: string): Promise<string | undefined> {
  for (const folder of TOOL_FOLDERS) {
    const path = join(folder, program)
    const isThere = await access(path, constants.X_OK).then(
      () => true,
      () => false,
    )
    if (isThere) return path
  }
  return undefined
}
