import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const FOLDER = fileURLToPath(new URL('../../../../shared/captures', import.meta.url))

/** Paths of the real captures beside the repository; empty where they are absent. */
export const SHARED_CAPTURES: readonly string[] = existsSync(FOLDER)
  ? readdirSync(FOLDER)
      .filter((name) => /\.(pcap|pcapng)$/.test(name))
      .sort()
      .map((name) => join(FOLDER, name))
  : []

/** For a test's `skip`: a sentence when the captures are absent, else false. */
export const WITHOUT_SHARED_CAPTURES: string | false =
  SHARED_CAPTURES.length === 0 ? 'the folder ../shared/captures is absent' : false
