import { enableCompileCache, flushCompileCache } from 'node:module'
import { fileURLToPath } from 'node:url'

/** Not in a folder for temporary files: anyone able to write there could make us run other code. */
const FOLDER = fileURLToPath(new URL('../../../node_modules/.cache/capfleet', import.meta.url))

/**
 * Modules loaded from now on reuse the code compiled by an earlier start of the program, which halves the start-up
 * time after a crash. Has no effect without write permission.
 */
export function useCompileCache(): void {
  enableCompileCache(FOLDER)
}

/** Stores what has been compiled for the next start; a program that is killed could not. */
export function keepCompiled(): void {
  flushCompileCache()
}
