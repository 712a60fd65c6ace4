/** Takes other users' queries out of what a device reports about itself. */
import { Transform, type TransformCallback } from 'node:stream'

/** Telemetry has lines of about 8 KiB. */
const LINE_CHARACTERS_MAX = 1_048_576

/** Members of the group "cat": command line, names of captures and filter of a running download. */
const QUERY_MEMBER = /("[^"\\]*(?:CmdLine|StreamName|FilterBPF)"\s*:\s*")(?:[^"\\]|\\.)*"/g

/** The same JSON with these members empty. Everything else stays as it is, letter by letter. */
export function withoutQueries(json: string): string {
  return json.replaceAll(QUERY_MEMBER, '$1"')
}

/** Does the same to a stream of JSON lines, also of server-sent events. Fails on a line that is too long to check. */
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
