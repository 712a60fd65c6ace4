/** Where a download goes, with what an earlier run has left there. */
import { type AskedDownload, type DownloadJournal, NO_JOURNAL, openJournal } from './download-journal.ts'
import { type DownloadOutput, exists, OutputFile } from './output-file.ts'
import { OutputPipe } from './output-pipe.ts'
import { SplitFiles, splitBytes } from './split-files.ts'
import { usageFailure } from './usage-failure.ts'

export interface DownloadPlace extends AsyncDisposable {
  readonly output: DownloadOutput
  readonly journal: DownloadJournal
}

export interface PlaceOptions {
  readonly split: string | undefined
  /** Replaces what is there. */
  readonly isForced: boolean
}

/** `path` undefined: standard output. Fails with a ClientFailure when something else is there. */
export async function openPlace(
  path: string | undefined,
  asked: AskedDownload,
  { split, isForced }: PlaceOptions,
): Promise<DownloadPlace> {
  if (path === undefined) return placeOf(pipeOutput(), NO_JOURNAL)
  const bytesMax = split === undefined ? undefined : splitBytes(split)
  const isThere = await (bytesMax === undefined ? exists(path) : SplitFiles.areThere(path))
  if (isThere && !isForced) throw usageFailure(`${path} is there already; --force replaces it`)
  const journal = await openJournal(path, { ...asked, split }, { isForced })
  if (bytesMax === undefined) return placeOf(await OutputFile.open(path), journal)
  if (asked.query.some(([name, value]) => name === 'Compression' && value !== 'none')) {
    throw usageFailure(
      '--split cuts at packets, which a compressed file does not show; leave out --compression',
    )
  }
  return placeOf(await SplitFiles.open(path, bytesMax), journal)
}

function pipeOutput(): OutputPipe {
  if (process.stdout.isTTY)
    throw usageFailure('a capture file is nothing for a terminal; pipe it: ... -o - | tcpdump -nr -')
  return new OutputPipe()
}

function placeOf(output: DownloadOutput, journal: DownloadJournal): DownloadPlace {
  return { output, journal, [Symbol.asyncDispose]: () => output[Symbol.asyncDispose]() }
}
