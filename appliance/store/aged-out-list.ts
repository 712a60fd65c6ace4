/**
 * The names of captures that have been removed completely, so that they can be distinguished from names that never
 * existed.
 */
import { open, readFile, rename } from 'node:fs/promises'
import { z } from 'zod'
import { syncPath } from '../../src/shared/base/durable-files.ts'
import { toJson } from './capture-record.ts'
import type { StorePaths } from './store-paths.ts'

const count = z
  .string()
  .regex(/^\d{1,20}$/)
  .transform(BigInt)

const captureSchema = z.object({ name: z.string(), startNs: count, endNs: count })
const listSchema = z.object({ format: z.literal(1), captures: z.array(captureSchema) })

export type AgedOutCapture = z.infer<typeof captureSchema>

/** Some hundred kilobytes: years of daily captures. */
const CAPTURES_MAX = 2_000

/** The captures in the order of their removal; empty if the file is missing or damaged. Fails like reading the file. */
export async function readAgedOut(paths: StorePaths): Promise<readonly AgedOutCapture[]> {
  let text: string
  try {
    text = await readFile(paths.agedOut, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
  try {
    return listSchema.parse(JSON.parse(text)).captures
  } catch {
    // A problem with the names of removed captures must not block access to existing ones.
    return []
  }
}

/**
 * Adds a capture. If the list is full, its two oldest entries are merged into one without a name, so that their time
 * stays known. Only the recorder calls this.
 */
export async function addAgedOut(paths: StorePaths, capture: AgedOutCapture): Promise<void> {
  const others = (await readAgedOut(paths)).filter(({ name }) => name !== capture.name)
  const captures = bounded([...others, capture])
  const next = `${paths.agedOut}.next`
  {
    await using file = await open(next, 'w', 0o640)
    await file.writeFile(`${toJson({ format: 1, captures })}\n`)
    await file.sync()
  }
  await rename(next, paths.agedOut)
  await syncPath(paths.root)
}

function bounded(captures: readonly AgedOutCapture[]): readonly AgedOutCapture[] {
  const [first, second, ...rest] = captures
  if (captures.length <= CAPTURES_MAX || first === undefined || second === undefined) return captures
  const joined = { name: '', startNs: first.startNs, endNs: first.endNs }
  if (second.startNs < joined.startNs) joined.startNs = second.startNs
  if (second.endNs > joined.endNs) joined.endNs = second.endNs
  return [joined, ...rest]
}
