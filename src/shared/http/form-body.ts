/**
 * Parameters in the body of a POST request, as a form sends them, for queries that are too long for an address. The
 * body becomes part of the query string, so that everything else reads one place.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { CapfleetError, clientGone } from '../base/error.ts'
import { askForBody, hasBody } from './request-body.ts'

/** A list of 10,000 addresses with every separator escaped, and room for comments. */
export const FORM_BYTES_MAX = 2_097_152

export const FORM_TYPE = 'application/x-www-form-urlencoded'
export const TEXT_TYPE = 'text/plain'

interface FormContext {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  readonly state: { hasForm?: boolean }
  querystring: string
}

/** The only parameter that the type of a body may have. */
const CHARSET = /^\s*(charset\s*=\s*"?utf-8"?\s*)?$/i

/**
 * `textName`: the parameter that a plain text is; absent: only forms are accepted. Fails with bad-parameter, before
 * reading a body that is too long, or with draining if the client leaves.
 */
export async function takeForm(ctx: FormContext, textName?: string): Promise<void> {
  const { headers } = ctx.req
  if (!hasBody(ctx)) return
  const { 'content-length': length = '0' } = headers
  const [type = '', charset = ''] = (headers['content-type'] ?? '').split(';', 2)
  const mediaType = CHARSET.test(charset) ? type.trim().toLowerCase() : ''
  const isText = textName !== undefined && mediaType === TEXT_TYPE
  if (!(isText || mediaType === FORM_TYPE) || headers['content-encoding'] !== undefined)
    throw new CapfleetError(
      'bad-parameter',
      `a body must be an uncompressed form (${FORM_TYPE}, in UTF-8) with the parameters${textName === undefined ? '' : `, or a text (${TEXT_TYPE}) with ${textName}`}`,
    )
  if (Number(length) > FORM_BYTES_MAX) throw tooLong()
  askForBody(ctx)
  const body = await readAll(ctx.req)
  const form = isText ? `${textName}=${encodeURIComponent(body.toString('utf8'))}` : addressText(body)
  ctx.state.hasForm = true
  ctx.querystring = [ctx.querystring, form].filter((text) => text !== '').join('&')
  // What comes later must not expect a body.
  for (const name of ['content-length', 'transfer-encoding', 'content-type']) delete headers[name]
}

async function readAll(req: IncomingMessage): Promise<Buffer> {
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
  return Buffer.concat(pieces)
}

/** What people leave as it is in a form: it has escapes for everything else that is not printable ASCII. */
const UNESCAPED: ReadonlySet<number> = new Set(Buffer.from(' #\t\n\r'))
const ESCAPE_BYTES = 3
const HEXADECIMAL = Buffer.from('0123456789ABCDEF')
const PERCENT = 0x25
const FIRST_PRINTABLE = 0x20
const LAST_PRINTABLE = 0x7e

/** The form as it may be in an address. Byte by byte: a form of nothing but spaces must not cost more than another. */
function addressText(form: Buffer): string {
  const text = Buffer.allocUnsafe(form.length * ESCAPE_BYTES)
  let end = 0
  form.forEach((byte, at) => {
    if (UNESCAPED.has(byte)) {
      text[end++] = PERCENT
      text[end++] = HEXADECIMAL[byte >> 4] ?? 0
      text[end++] = HEXADECIMAL[byte & 0xf] ?? 0
    } else if (byte >= FIRST_PRINTABLE && byte <= LAST_PRINTABLE) text[end++] = byte
    else throw notEscaped(at)
  })
  return text.toString('latin1', 0, end)
}

function notEscaped(position: number): CapfleetError {
  return new CapfleetError(
    'bad-parameter',
    `the form has a byte at ${position} that must be percent-encoded; curl does that with --data-urlencode`,
  )
}

function tooLong(): CapfleetError {
  return new CapfleetError(
    'bad-parameter',
    `the body is longer than ${FORM_BYTES_MAX} bytes; send fewer addresses`,
  )
}
