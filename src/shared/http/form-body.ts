/**
 * Parameters in the body of a POST request, as a form sends them, for queries that are too long for an address. The
 * body becomes part of the query string, so that everything else reads one place.
 */
import type { IncomingMessage } from 'node:http'
import { CapfleetError, clientGone } from '../base/error.ts'

/** A list of 10,000 addresses with every separator escaped, and room for comments. */
export const FORM_BYTES_MAX = 2_097_152

export const FORM_TYPE = 'application/x-www-form-urlencoded'

interface FormContext {
  readonly req: IncomingMessage
  querystring: string
}

/** Fails with bad-parameter, before reading a body that is too long, or with draining if the client leaves. */
export async function takeForm(ctx: FormContext): Promise<void> {
  const { headers } = ctx.req
  const { 'content-length': length = '0', 'transfer-encoding': coding } = headers
  if (length === '0' && coding === undefined) return
  const [type = ''] = (headers['content-type'] ?? '').split(';', 1)
  if (type.trim().toLowerCase() !== FORM_TYPE || headers['content-encoding'] !== undefined)
    throw new CapfleetError(
      'bad-parameter',
      `a body must be an uncompressed form (${FORM_TYPE}) with the parameters`,
    )
  if (Number(length) > FORM_BYTES_MAX) throw tooLong()
  const form = addressText(await readAll(ctx.req))
  ctx.querystring = [ctx.querystring, form].filter((text) => text !== '').join('&')
  // What comes later must not expect a body.
  for (const name of ['content-length', 'transfer-encoding', 'content-type']) delete headers[name]
}

async function readAll(req: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = []
  let bytes = 0
  try {
    for await (const piece of req as AsyncIterable<Buffer>) {
      bytes += piece.length
      if (bytes > FORM_BYTES_MAX) throw tooLong()
      pieces.push(piece)
    }
  } catch (cause) {
    throw cause instanceof CapfleetError ? cause : clientGone()
  }
  return Buffer.concat(pieces).toString('utf8')
}

/** With everything escaped that has a meaning in an address or may not be in one. */
function addressText(form: string): string {
  return form.replaceAll(/[^\x21\x22\x24-\x7e]/gu, (character) => encodeURIComponent(character))
}

function tooLong(): CapfleetError {
  return new CapfleetError(
    'bad-parameter',
    `the body is longer than ${FORM_BYTES_MAX} bytes; send fewer addresses`,
  )
}
