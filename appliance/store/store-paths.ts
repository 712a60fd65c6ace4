import { join, relative, sep } from 'node:path'

/**
 * Where things lie in a store (native/FORMAT.md has the bytes):
 *
 *   store.json                      {"format":2}
 *   recorder.lock, recorder.sock, recorder-owner.sock    of the running recorder
 *   skipped-run.json                a run of the schedule that was stopped until the next one
 *   clock.json                      what the recorder knows of its clock
 *   events.jsonl, events.1.jsonl    what happened: the newest events, and those before them
 *   aged-out.json                   names of captures that retention has removed
 *   changes.log                     names of captures whose logs have changed, for readers
 *   reserve/                        space that is given up when the disk is full
 *   captures/<name>/capture.json    the record of a capture; capture.copy.json is the same again
 *   captures/<name>/segments.log    which segments it holds
 *   captures/<name>/cap<port>/00000/00000001.pcap, .idx, .tally and .sieve
 *   captures/<name>/cap<port>/00000000.addresses      addresses of up to 64 segments
 *   captures/<name>/cap<port>/00000001.pcap ...       segments of a store of format 1
 *   captures/.importing-<name>/     an import under way, renamed when complete
 *   captures/.receiving-<id>/       a file that is being sent to be imported
 *   captures/.deleting-<name>.../   renamed first, then removed
 */
export interface StorePaths {
  readonly root: string
  readonly format: string
  readonly lock: string
  readonly skippedRun: string
  readonly agedOut: string
  readonly changes: string
  readonly reserve: string
  readonly clock: string
  readonly captures: string
  readonly events: EventPaths
}

export interface EventPaths {
  readonly newest: string
  readonly older: string
}

export const EVENTS_NAME = 'events.jsonl'
export const SOCKET_NAME = 'recorder.sock'
export const OWNER_SOCKET_NAME = 'recorder-owner.sock'
export const CAPTURE_RECORD_NAME = 'capture.json'
export const RECORD_COPY_NAME = 'capture.copy.json'
export const SEGMENT_LOG_NAME = 'segments.log'
/** Prefix of the names of folders that are not complete captures; capture names never begin with a dot. */
export const HIDDEN_PREFIX = '.'
export const IMPORTING_PREFIX = '.importing-'
export const RECEIVING_PREFIX = '.receiving-'
export const DELETING_PREFIX = '.deleting-'

export function storePaths(root: string): StorePaths {
  return {
    root,
    format: join(root, 'store.json'),
    lock: join(root, 'recorder.lock'),
    skippedRun: join(root, 'skipped-run.json'),
    agedOut: join(root, 'aged-out.json'),
    changes: join(root, 'changes.log'),
    reserve: join(root, 'reserve'),
    clock: join(root, 'clock.json'),
    captures: join(root, 'captures'),
    events: { newest: join(root, EVENTS_NAME), older: join(root, 'events.1.jsonl') },
  }
}

/** The folder of a port's segments. Called for thousands of captures at a time, for which join() takes too long. */
export function portFolder(captureFolder: string, port: number): string {
  return `${captureFolder}/cap${port}`
}

/** Number of segments per subfolder. */
const SEGMENTS_PER_GROUP = 1_000
const PORT_FOLDER = /^cap(\d{1,3})$/
const SEGMENT_FILE = /^(\d{8})\.(?:idx|tally|sieve|pcap)$/

/** The subfolder of a port's folder that contains a segment. */
export function groupName(segment: number): string {
  return String(Math.floor(segment / SEGMENTS_PER_GROUP)).padStart(5, '0')
}

/** Whether this is the name of such a subfolder. */
export function isGroupName(name: string): boolean {
  return /^\d{5}$/.test(name)
}

/**
 * A segment's path without its ending, as the engine expects it. `isFlat`: the store had format 1 when it was written.
 */
export function segmentPath(
  captureFolder: string,
  port: number,
  { number, isFlat }: { readonly number: number; readonly isFlat: boolean },
): string {
  const name = String(number).padStart(8, '0')
  const folder = portFolder(captureFolder, port)
  return isFlat ? join(folder, name) : join(folder, groupName(number), name)
}

/** The port whose folder has this name; undefined = it is not a port's folder. */
export function portOfFolder(name: string): number | undefined {
  const port = Number(PORT_FOLDER.exec(name)?.[1] ?? Number.NaN)
  return port <= 255 ? port : undefined
}

/** The number of the segment that a file belongs to; undefined = it is not a segment's file. */
export function segmentOfFile(name: string): number | undefined {
  const number = SEGMENT_FILE.exec(name)?.[1]
  return number === undefined ? undefined : Number(number)
}

/** Identifies a segment of a capture. */
export interface StoredSegmentPlace {
  /** Full name of the capture. */
  readonly name: string
  readonly port: number
  readonly number: number
}

/** The inverse of segmentPath(); undefined = the path is not a segment's. `captures` is the folder of all captures. */
export function segmentOfPath(captures: string, path: string): StoredSegmentPlace | undefined {
  const [name = '', portName = '', ...rest] = relative(captures, path).split(sep)
  const port = portOfFolder(portName)
  const number = segmentOfFile(`${rest.at(-1)}.pcap`)
  return port === undefined || number === undefined ? undefined : { name, port, number }
}
