/**
 * Capture files for tests that compare with tcpdump, tshark and others: ours, and others if they exist next to the
 * repository. A run prints whether it has these (.ci/run-tests.mjs); no test requires them.
 */
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { REPOSITORY_ROOT } from '../repository-files.ts'
import { madeCaptures } from './made-captures.ts'

const OTHERS = join(REPOSITORY_ROOT, '..', 'shared', 'captures')

/** Paths, ours first. */
export const CAPTURE_FILES: readonly string[] = [...writeOurs(), ...others()]

/** Those with packets of a time that PCAP can store: the others are no captures of a store. */
export const STORABLE_FILES = CAPTURE_FILES.filter((path) => !/empty|2107/.test(basename(path)))

/** The existing files with these names; ours always exist. */
export function capturesNamed(...names: readonly string[]): string[] {
  return CAPTURE_FILES.filter((path) => names.includes(basename(path)))
}

/** Removed when the process ends. */
function writeOurs(): string[] {
  const folder = mkdtempSync(join(tmpdir(), 'capfleet-captures-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  return [...madeCaptures()].map(([name, bytes]) => {
    const path = join(folder, name)
    writeFileSync(path, bytes)
    return path
  })
}

function others(): string[] {
  if (!existsSync(OTHERS)) return []
  const names = readdirSync(OTHERS).filter((name) => /\.(pcap|pcapng)$/.test(name))
  return names.sort().map((name) => join(OTHERS, name))
}
