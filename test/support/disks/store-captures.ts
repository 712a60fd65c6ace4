/** Captures of a store as a recorder writes them and a reader reads them, for tests that need no packets. */
import { mkdir, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { HeldCapture } from '../../../appliance/recorder/writer/held-capture.ts'
import { readCapture } from '../../../appliance/store/read-capture.ts'
import { storePaths } from '../../../appliance/store/store-paths.ts'
import { type StoredCapture, segmentsOf, storedCapture } from '../../../appliance/store/stored-capture.ts'

/** Like the recorder: complete in a hidden folder, then renamed. */
export async function putCapture(root: string, capture: StoredCapture): Promise<void> {
  const { captures } = storePaths(root)
  const hidden = join(captures, `.importing-${capture.name}`)
  await mkdir(hidden, { recursive: true })
  await writeCapture(hidden, capture)
  await rename(hidden, join(captures, capture.name))
}

/** Writes a capture's record and log into a folder that has none. */
export async function writeCapture(folder: string, capture: StoredCapture): Promise<void> {
  const { table, growing, packets, bytes, drops, removed, problems, ...record } = capture
  await HeldCapture.create(folder, record, [...segmentsOf(capture)])
}

/** What a reader finds on the disk; segments being written are not included. */
export async function storedCaptureOf(root: string, name: string): Promise<StoredCapture> {
  const read = await readCapture(join(storePaths(root).captures, name), name, { isWritten: true })
  if (read === undefined) throw new Error(`there is no capture ${name}`)
  return storedCapture(read.record, read.table, read)
}
