import { join } from 'node:path'

/**
 * Where things lie in a store:
 *
 *   store.json                      {"format":1}
 *   recorder.lock, recorder.sock    of the running recorder
 *   skipped-run.json                a run of the schedule that was stopped until the next one
 *   clock.json                      what the recorder knows of its clock
 *   events.jsonl, events.1.jsonl    what happened: the newest events, and those before them
 *   aged-out.json                   names of captures that retention has removed
 *   captures/<name>/capture.json    one folder per capture
 *   captures/<name>/cap<port>/00000001.pcap, .idx, .tally and .sieve
 *   captures/.importing-<name>/     an import under way, renamed when complete
 *   captures/.deleting-<name>.../   renamed first, then removed
 */
export interface StorePaths {
  readonly root: string
  readonly format: string
  readonly lock: string
  readonly skippedRun: string
  readonly agedOut: string
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
export const CAPTURE_RECORD_NAME = 'capture.json'
/** Begins the name of a folder that is no complete capture; capture names never begin with a dot. */
export const HIDDEN_PREFIX = '.'
export const IMPORTING_PREFIX = '.importing-'
export const DELETING_PREFIX = '.deleting-'

export function storePaths(root: string): StorePaths {
  return {
    root,
    format: join(root, 'store.json'),
    lock: join(root, 'recorder.lock'),
    skippedRun: join(root, 'skipped-run.json'),
    agedOut: join(root, 'aged-out.json'),
    clock: join(root, 'clock.json'),
    captures: join(root, 'captures'),
    events: { newest: join(root, EVENTS_NAME), older: join(root, 'events.1.jsonl') },
  }
}

/** A segment's path without ending, as the engine takes it. */
export function segmentPath(captureFolder: string, port: number, segment: number): string {
  return join(captureFolder, `cap${port}`, String(segment).padStart(8, '0'))
}
