import { readFile } from 'node:fs/promises'

/** The text of a small file of /proc or /sys without surrounding whitespace, or undefined if it does not exist. */
export async function readText(path: string, signal: AbortSignal): Promise<string | undefined> {
  try {
    return (await readFile(path, { encoding: 'utf8', signal })).trim()
  } catch {
    signal.throwIfAborted()
    return undefined
  }
}

/** A number in such a file, or undefined. */
export async function readNumber(path: string, signal: AbortSignal): Promise<number | undefined> {
  const text = await readText(path, signal)
  const value = text === undefined || text === '' ? Number.NaN : Number(text)
  return Number.isFinite(value) ? value : undefined
}

/** Where the kernel's files about the machine are. Tests use other folders. */
export interface MachineRoots {
  readonly proc: string
  readonly sys: string
}

export const MACHINE_ROOTS: MachineRoots = { proc: '/proc', sys: '/sys' }
