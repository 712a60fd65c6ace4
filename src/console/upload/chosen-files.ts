/** Files that the user has chosen, each with the name of its capture and what became of it. */
import { endedName, nameForFile } from '../../shared/query/capture-name-rule.ts'
import { Problem, type Schemas, sendFile } from '../base/ask-gateway.ts'
import { TEXTS } from '../texts.ts'

export interface ChosenFile {
  readonly key: number
  readonly file: File
  /** Name of the capture that it becomes. */
  readonly captureName: string
  /** undefined: it is not being sent. */
  readonly sentBytes: number | undefined
  readonly stored: Stored | undefined
  readonly failure: unknown
}

/** A file that has become a capture of a device. */
export interface Stored extends Readonly<Schemas['CaptureUploaded']> {
  readonly device: string
}

/** The new files after those that are already chosen, each with a name of its own. */
export function withFiles(chosen: readonly ChosenFile[], files: readonly File[]): readonly ChosenFile[] {
  const all = [...chosen]
  for (const file of files) {
    const captureName = unusedName(
      file,
      all.map((other) => other.captureName),
    )
    const key = (all.at(-1)?.key ?? 0) + 1
    all.push({ key, file, captureName, sentBytes: undefined, stored: undefined, failure: undefined })
  }
  return all
}

function unusedName({ name: fileName, lastModified }: File, used: readonly string[]): string {
  const suggested = nameForFile(fileName)
  const name = suggested.isLossy ? endedName(suggested.name, timeDigits(lastModified)) : suggested.name
  for (let count = 1; ; count += 1) {
    const unused = count === 1 ? name : endedName(name, String(count))
    if (!used.includes(unused)) return unused
  }
}

/** "20261102-090100", in UTC. */
function timeDigits(ms: number): string {
  return new Date(ms).toISOString().slice(0, 19).replace(/[-:]/g, '').replace('T', '-')
}

interface SendOptions {
  readonly device: string
  readonly onSent: (bytes: number) => void
  readonly signal: AbortSignal
}

/** Sends one file. Rejects with a Problem, or with the signal's reason. */
export async function sendChosen(
  { file, captureName }: ChosenFile,
  { device, onSent, signal }: SendOptions,
): Promise<Stored> {
  if (file.size === 0)
    throw new Problem({ code: 'bad-capture-file', status: 0, detail: TEXTS.upload.emptyFile })
  const query = new URLSearchParams({ Device: device, StreamName: captureName, FileName: file.name })
  const answer = await sendFile(`v1/captures?${query}`, { file, onSent, signal })
  return { ...(answer as Schemas['CaptureUploaded']), device }
}
