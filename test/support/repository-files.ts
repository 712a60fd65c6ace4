import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The repository's root folder, with a final slash. */
export const REPOSITORY_ROOT = fileURLToPath(new URL('../../', import.meta.url))

/** Paths, relative to the root, of every file that git tracks or would track. */
export function repositoryFiles(): string[] {
  const listed = execFileSync(
    'git',
    ['ls-files', '--cached', '--others', '--exclude-standard', '--deduplicate'],
    {
      cwd: REPOSITORY_ROOT,
      encoding: 'utf8',
    },
  )
  return listed.split('\n').filter((path) => path !== '' && existsSync(join(REPOSITORY_ROOT, path)))
}
