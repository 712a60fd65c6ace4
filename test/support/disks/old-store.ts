/** Converts a store to what a capfleet of format 1 would have written. */
import { readdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { toJson } from '../../../appliance/store/capture-record.ts'
import {
  CAPTURE_RECORD_NAME,
  isGroupName,
  portFolder,
  portOfFolder,
  RECORD_COPY_NAME,
  SEGMENT_LOG_NAME,
  storePaths,
} from '../../../appliance/store/store-paths.ts'
import { entriesOf, type StoredCapture } from '../../../appliance/store/stored-capture.ts'
import { storedCaptureOf } from './store-captures.ts'

/** REQUIRES: no program has the store open, and nothing was removed from it. */
export async function makeOld(path: string): Promise<void> {
  const { captures, format, changes } = storePaths(path)
  for (const name of await readdir(captures)) {
    const folder = join(captures, name)
    const record = legacyText(await storedCaptureOf(path, name))
    for (const file of [RECORD_COPY_NAME, SEGMENT_LOG_NAME]) await rm(join(folder, file))
    await writeFile(join(folder, CAPTURE_RECORD_NAME), record)
    await flatten(folder)
  }
  await writeFile(format, '{"format":1}\n')
  await rm(changes, { force: true })
}

function legacyText(capture: StoredCapture): string {
  const { table, growing, problems, drops, removed, ...record } = capture
  const streams = table.ports.map((port) => ({
    port: port.port,
    linkType: port.oldest?.linkType,
    snaplen: port.oldest?.snaplen,
    segments: Array.from(entriesOf(port), ({ number, minNs, maxNs, packets, bytes }) => ({
      number,
      minNs,
      maxNs,
      packets,
      bytes,
    })),
  }))
  return `${toJson({ format: 1, ...record, drops, streams })}\n`
}

async function flatten(folder: string): Promise<void> {
  for (const port of (await readdir(folder)).flatMap((name) => portOfFolder(name) ?? [])) {
    const into = portFolder(folder, port)
    for (const group of (await readdir(into)).filter(isGroupName)) {
      for (const file of await readdir(join(into, group)))
        await rename(join(into, group, file), join(into, file))
      await rm(join(into, group), { recursive: true })
    }
  }
}
