/**
 * changes.log: which captures the recorder has changed, for readers that cache what they have read. Without it each
 * request would have to check the log of every capture. It is a hint, written after the change and never synced: if the
 * journal is missing or restarted, its readers check every capture once.
 */
import { readFile, stat } from 'node:fs/promises'

/** A reader's position in the journal. */
export interface JournalPosition {
  /** The first line of the file: it changes with each start of a recorder, and when the file has become too long. */
  readonly generation: string
  readonly length: number
  /** The file's size and times when it was read: as long as they are the same, nothing has been written. */
  readonly stamp: string
}

export interface JournalNews {
  readonly position: JournalPosition | undefined
  /** Names of captures that have changed since; 'unknown': any may have. */
  readonly changed: ReadonlySet<string> | 'unknown'
}

/** What has happened since `position`. Fails like reading the file, unless it is missing. */
export async function readChanges(path: string, position: JournalPosition | undefined): Promise<JournalNews> {
  const stamp = await stampOf(path)
  if (position?.stamp === stamp) return { position, changed: NONE }
  // Old recorders write no journal; changes show only in the folder of all captures.
  if (stamp === MISSING) return { position: { generation: '', length: 0, stamp }, changed: 'unknown' }
  const text = await readFile(path, 'utf8')
  // On a full disk the recorder can only leave it empty, again and again.
  if (text === '') return { position: undefined, changed: 'unknown' }
  const generation = text.slice(0, text.indexOf('\n') + 1)
  // A line that is being written is read once it is complete.
  const length = text.lastIndexOf('\n') + 1
  const found = { generation, length, stamp }
  if (position === undefined || position.generation !== generation || position.length > length) {
    return { position: found, changed: 'unknown' }
  }
  const lines = text.slice(position.length, length).split('\n')
  return { position: found, changed: new Set(lines.filter((line) => line !== '')) }
}

const NONE: ReadonlySet<string> = new Set()
const MISSING = 'missing'

async function stampOf(path: string): Promise<string> {
  try {
    const { ino, size, mtimeNs } = await stat(path, { bigint: true })
    return `${ino} ${size} ${mtimeNs}`
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return MISSING
    throw error
  }
}
