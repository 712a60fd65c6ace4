/** What others ask of a device, taken out of what the device tells of itself. */
import { Transform, type TransformCallback } from 'node:stream'

/** A line of telemetry has some 8 KiB. */
const LINE_CHARACTERS_MAX = 1_048_576

/** Members of the group "cat": command line, names of captures and filter of a running download. */
const QUERY_MEMBER = /("[^"\\]*(?:CmdLine|StreamName|FilterBPF)"\s*:\s*")((?:[^"\\]|\\.)*)"/g

/**
 * The same JSON in which those members are empty. It is as long as before: its head may have told its length. The text
 * is latin1, a character for each byte.
 */
export function withoutQueries(json: string): string {
  return json.replaceAll(
    QUERY_MEMBER,
    (_all, head: string, value: string) => `${head}"${' '.repeat(value.length)}`,
  )
}

/** The same for a stream of lines of JSON. Fails on a line that is too long to look at. */
export class QueryEmptier extends Transform {
  #rest = ''

  override _transform(bytes: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    const text = this.#rest + bytes.toString('latin1')
    const end = text.lastIndexOf('\n') + 1
    this.#rest = text.slice(end)
    if (this.#rest.length > LINE_CHARACTERS_MAX) done(new Error('a line is too long'))
    else done(null, Buffer.from(withoutQueries(text.slice(0, end)), 'latin1'))
  }

  override _flush(done: TransformCallback): void {
    done(null, Buffer.from(withoutQueries(this.#rest), 'latin1'))
  }
}
