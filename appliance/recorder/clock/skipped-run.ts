/** The run of the schedule that was stopped by command, so that a restarted recorder does not start it again. */
import { open, readFile, rename } from 'node:fs/promises'
import { z } from 'zod'
import { syncPath } from '../../../src/shared/base/durable-files.ts'
import type { StorePaths } from '../../store/store-paths.ts'

const skippedRunSchema = z.object({
  /** Name of the schedule's row. */
  name: z.string(),
  /** [startMs, untilMs), epoch milliseconds: the row does not run in this interval. */
  startMs: z.number(),
  untilMs: z.number(),
})
export type SkippedRun = z.infer<typeof skippedRunSchema>

/** Returns undefined if there is none, or an unreadable one: the schedule then applies. */
export async function readSkippedRun(paths: StorePaths): Promise<SkippedRun | undefined> {
  try {
    return skippedRunSchema.parse(JSON.parse(await readFile(paths.skippedRun, 'utf8')))
  } catch {
    return undefined
  }
}

export async function writeSkippedRun(paths: StorePaths, run: SkippedRun): Promise<void> {
  const fresh = `${paths.skippedRun}.new`
  {
    await using file = await open(fresh, 'w', 0o640)
    await file.writeFile(`${JSON.stringify(run)}\n`)
    await file.sync()
  }
  await rename(fresh, paths.skippedRun)
  await syncPath(paths.root)
}
