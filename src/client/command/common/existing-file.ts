import type { Stats } from 'node:fs'
import { stat } from 'node:fs/promises'
import { usageFailure } from '../../client-failure.ts'

/** Fails with a ClientFailure if the file does not exist, otherwise with the system's error. */
export async function statOf(path: string): Promise<Stats> {
  try {
    return await stat(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    throw usageFailure(`the file ${path} does not exist`)
  }
}
