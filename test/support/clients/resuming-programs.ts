/** Programs that people use to download and resume, as installed here. */

import { execFile, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { CHROMIUM, ConsoleBrowser } from '../console/console-browser.ts'
import { REPOSITORY_ROOT } from '../repository-files.ts'
import { skipWithout } from '../set-up-tools.ts'

export interface ProgramRun {
  readonly url: string
  readonly user: string
  readonly password: string
  /** An empty folder for its files. */
  readonly folder: string
}

export interface ProgramEnd {
  /** Whether the program reports the download as complete. */
  readonly isComplete: boolean
  /** The saved file. */
  readonly file: Buffer
}

export interface ResumingProgram {
  readonly name: string
  /** Why it cannot run here, or false. */
  readonly missing: string | false
  readonly run: (run: ProgramRun) => Promise<ProgramEnd>
}

/** A shell script that gets URL, AUTHORIZATION and FILE in its environment. */
function byShell(name: string, needs: string, script: string): ResumingProgram {
  const isThere = spawnSync('sh', ['-c', needs], { stdio: 'ignore' }).status === 0
  return {
    name,
    missing: skipWithout(isThere, `\`${needs}\` fails: it is not installed`),
    run: async ({ url, user, password, folder }) => {
      const target = new URL(url)
      Object.assign(target, { username: user, password })
      const FILE = join(folder, 'download.pcap')
      const variables = {
        URL: target.href,
        BARE_URL: url,
        AUTHORIZATION: `Basic ${btoa(`${user}:${password}`)}`,
        FILE,
        SCRIPT: join(REPOSITORY_ROOT, 'test/support/clients/resume-by-range.py'),
      }
      const ended = promisify(execFile)('sh', ['-c', script], {
        env: { ...process.env, ...variables },
        cwd: folder,
      })
      const isComplete = await ended.then(
        () => true,
        () => false,
      )
      return { isComplete, file: await readFile(FILE).catch(() => Buffer.alloc(0)) }
    },
  }
}

/** Saves with a browser's download manager, which resumes or starts over as it likes. */
const BY_BROWSER: ResumingProgram = {
  name: 'chromium',
  missing: skipWithout(existsSync(CHROMIUM), `${CHROMIUM} is not installed (apt-get install chromium)`),
  run: async ({ url, user, password }) => {
    await using browser = await ConsoleBrowser.launch(CHROMIUM)
    const file = await browser.save(url, { username: user, password })
    return { isComplete: file !== undefined, file: file ?? Buffer.alloc(0) }
  },
}

const twice = (command: string): string => `${command} || ${command}`

/** Those whose name contains "-c" or "-C" are started again after a failure, with the partial file. */
export const RESUMING_PROGRAMS: readonly ResumingProgram[] = [
  byShell('wget', 'wget --version', 'wget -q -O "$FILE" "$URL"'),
  byShell('wget -c', 'wget --version', twice('wget -q -c --tries=1 -O "$FILE" "$URL"')),
  byShell('curl', 'curl --version', 'curl -sS -o "$FILE" "$URL"'),
  byShell('curl --retry', 'curl --version', 'curl -fsS --retry 2 --retry-all-errors -o "$FILE" "$URL"'),
  byShell('curl -C -', 'curl --version', twice('curl -sS -C - -o "$FILE" "$URL"')),
  byShell('curl -f -C -', 'curl --version', twice('curl -fsS -C - -o "$FILE" "$URL"')),
  byShell(
    'aria2c',
    'aria2c --version',
    'aria2c -q --allow-overwrite=true -d "$(dirname "$FILE")" -o "$(basename "$FILE")" "$URL"',
  ),
  byShell('busybox wget -c', 'busybox wget --help', twice('busybox wget -q -c -O "$FILE" "$URL"')),
  byShell(
    'python urllib',
    'python3 -c "import urllib.request"',
    'python3 "$SCRIPT" urllib "$BARE_URL" "$AUTHORIZATION" "$FILE"',
  ),
  byShell(
    'python requests',
    'python3 -c "import requests"',
    'python3 "$SCRIPT" requests "$BARE_URL" "$AUTHORIZATION" "$FILE"',
  ),
  BY_BROWSER,
]
