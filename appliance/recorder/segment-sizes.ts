import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { CaptureRecord } from '../store/capture-record.ts'
import { segmentPath } from '../store/store-paths.ts'

const ENDINGS = ['.pcap', '.idx', '.tally', '.sieve'] as const

/** What segments take of the disk, with index, tally and sieves. Sizes of finished ones are remembered. */
export class SegmentSizes {
  readonly #folderOf: (capture: CaptureRecord) => string
  #known = new Map<string, bigint>()

  constructor(folderOf: (capture: CaptureRecord) => string) {
    this.#folderOf = folderOf
  }

  async of(path: string): Promise<bigint> {
    const sizes = await Promise.all(ENDINGS.map((ending) => sizeOf(`${path}${ending}`)))
    return sizes.reduce((sum, size) => sum + size, 0n)
  }

  /** A finished segment has got other files: it is looked at again. Not while total() runs. */
  forget(path: string): void {
    this.#known.delete(path)
  }

  /** All segments of these captures; those that `finished` names too are looked at once only. */
  async total(captures: readonly CaptureRecord[], finished: readonly CaptureRecord[]): Promise<bigint> {
    const remembered = new Set(finished.flatMap((capture) => this.#pathsOf(capture)))
    const known = new Map<string, bigint>()
    let total = 0n
    for (const path of captures.flatMap((capture) => this.#pathsOf(capture))) {
      const bytes = this.#known.get(path) ?? (await this.of(path))
      if (remembered.has(path)) known.set(path, bytes)
      total += bytes
    }
    this.#known = known
    return total
  }

  #pathsOf(capture: CaptureRecord): readonly string[] {
    const folder = this.#folderOf(capture)
    return capture.streams.flatMap(({ port, segments }) =>
      segments.map(({ number }) => segmentPath(join(folder), port, number)),
    )
  }
}

/** 0 for a file that is not there. */
async function sizeOf(path: string): Promise<bigint> {
  try {
    return (await stat(path, { bigint: true })).size
  } catch {
    return 0n
  }
}
