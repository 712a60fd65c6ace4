/** The destination of a download, with what an earlier run has left there. */
import { usageFailure } from '../../client-failure.ts'
import {
  type DownloadOutput,
  OutputFile,
  PART_ENDING,
  refuseThere,
  refuseWithoutFolder,
} from '../output/output-file.ts'
import { OutputPipe } from '../output/output-pipe.ts'
import { lockPart } from '../output/part-lock.ts'
import { SplitFiles, splitBytes } from '../output/split-files.ts'
import { type AskedDownload, type DownloadJournal, NO_JOURNAL, openJournal } from './download-journal.ts'

export interface DownloadPlace extends AsyncDisposable {
  readonly output: DownloadOutput
  readonly journal: DownloadJournal
}

export interface PlaceOptions {
  readonly split: string | undefined
  /** Replaces existing files. */
  readonly isForced: boolean
}

/** `path` undefined: standard output. Fails with a ClientFailure if something else is there. */
export async function openPlace(
  path: string | undefined,
  asked: AskedDownload,
  { split, isForced }: PlaceOptions,
): Promise<DownloadPlace> {
  if (path === undefined)
    return { output: pipeOutput(), journal: NO_JOURNAL, [Symbol.asyncDispose]: async () => undefined }
  const bytesMax = split === undefined ? undefined : splitBytes(split)
  if (bytesMax === undefined) await refuseThere(path, isForced)
  else await refuseSplit(path, isForced)
  if (bytesMax !== undefined) refuseUnsplittable(asked)
  await using opening = new AsyncDisposableStack()
  opening.use(await lockPart(`${path}${PART_ENDING}`))
  const journal = await openJournal(path, { ...asked, split }, { isForced })
  const open = bytesMax === undefined ? OutputFile.open(path) : SplitFiles.open(path, bytesMax)
  const output = opening.use(await open)
  const owned = opening.move()
  return { output, journal, [Symbol.asyncDispose]: () => owned.disposeAsync() }
}

async function refuseSplit(path: string, isForced: boolean): Promise<void> {
  await refuseWithoutFolder(path)
  if (!isForced && (await SplitFiles.areThere(path)))
    throw usageFailure(`${path} already exists; --force replaces it`)
}

function pipeOutput(): OutputPipe {
  if (process.stdout.isTTY)
    throw usageFailure('a capture file cannot be shown on a terminal; pipe it: ... -o - | tcpdump -nr -')
  return new OutputPipe()
}

function refuseUnsplittable({ query }: AskedDownload): void {
  const isAsked = (name: string, other: string) => query.some((pair) => pair[0] === name && pair[1] !== other)
  const split = '--split splits between packets, which is not possible in'
  if (isAsked('Compression', 'none'))
    throw usageFailure(`${split} a compressed file; leave out --compression`)
  if (isAsked('Format', 'pcap')) throw usageFailure(`${split} pcapng; leave out --format`)
}
