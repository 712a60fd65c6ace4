/** What a later run needs to continue a partial file: `<name>.part.json` next to it. */

import { readFile, rename, rm, writeFile } from 'node:fs/promises'
import { uptime } from 'node:os'
import { usageFailure } from '../../client-failure.ts'
import type { DownloadTarget } from '../../download-target.ts'
import type { QueryPairs } from '../../gateway-client.ts'
import { diskFailure, PART_ENDING } from '../output/output-file.ts'

export interface AskedDownload extends DownloadTarget {
  /** The address of the gateway. */
  readonly url: string
  /** How a split divides it. */
  readonly split?: string | undefined
}

/** The stored data: the request to continue, and whether that is possible. */
export interface JournalEntry {
  readonly requestId: string
  /** A compressed body has to start over. */
  readonly isCompressed: boolean
  /** How many bytes of the body are durably on disk, even if the machine crashes. */
  readonly syncedBytes: number
}

export interface DownloadJournal {
  readonly entry: JournalEntry | undefined
  /** Whether the machine has been rebooted since: unsynced data may be lost, or contain zeros. */
  readonly isOfEarlierBoot: boolean
  save(entry: JournalEntry): Promise<void>
  remove(): Promise<void>
}

/** Stores nothing: a download into a pipe cannot be continued later. */
export const NO_JOURNAL: DownloadJournal = {
  entry: undefined,
  isOfEarlierBoot: false,
  save: async () => undefined,
  remove: async () => undefined,
}

/**
 * `isForced` ignores what was stored before. Fails with a ClientFailure if the existing part belongs to another
 * download.
 */
export async function openJournal(
  path: string,
  asked: AskedDownload,
  { isForced }: { readonly isForced: boolean },
): Promise<DownloadJournal> {
  const file = journalOf(path)
  const own = JSON.parse(JSON.stringify(asked)) as AskedDownload
  const found = isForced ? undefined : await readJournal(file)
  if (found !== undefined && !isSame(found.asked, own)) {
    throw usageFailure(
      `${path}${PART_ENDING} is the part of another download (${found.asked.path} of ${found.asked.url}); --force starts over`,
    )
  }
  return {
    entry: found,
    isOfEarlierBoot: found !== undefined && Math.abs(found.bootMs - bootMs()) > SAME_BOOT_MS,
    save: async (entry) => {
      const written: Journal = { ...entry, asked: own, bootMs: bootMs() }
      try {
        await writeFile(`${file}.new`, `${JSON.stringify(written, null, 2)}\n`, { mode: 0o600, flush: true })
        await rename(`${file}.new`, file)
      } catch (cause) {
        throw diskFailure(cause, `${path}${PART_ENDING}`)
      }
    },
    remove: () => rm(file, { force: true }),
  }
}

/**
 * The download that a search found in an earlier run, of which there is a part: the same search may find another range
 * now, with more packets.
 */
export async function foundBefore(
  path: string,
  { url, search }: { readonly url: string; readonly search: QueryPairs },
): Promise<DownloadTarget | undefined> {
  const { asked } = (await readJournal(journalOf(path))) ?? {}
  const isOfSearch = asked?.url === url && JSON.stringify(asked.found?.search) === JSON.stringify(search)
  return isOfSearch ? { path: asked.path, query: asked.query, found: asked.found } : undefined
}

function journalOf(path: string): string {
  return `${path}${PART_ENDING}.json`
}

interface Journal extends JournalEntry {
  readonly asked: AskedDownload
  /** When the machine was booted. */
  readonly bootMs: number
}

/** A clock that was set by more than this looks like a reboot, which at worst restarts a download. */
const SAME_BOOT_MS = 60_000

function bootMs(): number {
  return Math.round(Date.now() - uptime() * 1_000)
}

/** Returns undefined if there is none, or an unreadable one: then the part belongs to no known download. */
async function readJournal(file: string): Promise<Journal | undefined> {
  try {
    const found = JSON.parse(await readFile(file, 'utf8')) as Partial<Journal>
    const { asked, requestId, isCompressed = false, syncedBytes = 0, bootMs: startedMs = 0 } = found
    if (asked === undefined || requestId === undefined) return undefined
    return { asked, requestId, isCompressed, syncedBytes, bootMs: startedMs }
  } catch {
    return undefined
  }
}

function isSame(one: AskedDownload, other: AskedDownload): boolean {
  const textOf = ({ url, path, query, split }: AskedDownload) => JSON.stringify([url, path, query, split])
  return textOf(one) === textOf(other)
}
