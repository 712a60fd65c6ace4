/**
 * changes.log: which captures the recorder has changed, for readers that cache what they have read. Without it each
 * request would have to check the log of every capture. It is a hint, written after the change and never synced: if the
 * journal was restarted, its readers check every capture once; while it is missing or unreadable, at each request.
 */
import { readFile, stat } from 'node:fs/promises'
import { isTemporary } from './temporary-errors.ts'

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

/** What has happened since `position`. Fails only with temporary errors. */
export async function readChanges(path: string, position: JournalPosition | undefined): Promise<JournalNews> {
  try {
    return await readNews(path, position)
  } catch (error) {
    if (isTemporary(error)) throw error
    return { position: undefined, changed: 'unknown' }
  }
}

async function readNews(path: string, position: JournalPosition | undefined): Promise<JournalNews> {
  const { ino, size, mtimeNs } = await stat(path, { bigint: true })
  const stamp = `${ino} ${size} ${mtimeNs}`
  if (position?.stamp === stamp) return { position, changed: NONE }
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
