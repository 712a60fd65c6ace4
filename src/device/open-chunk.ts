/** A chunk of HTTP/1.1 that has begun: what must follow it before another one can. */
export interface OpenChunk {
  /** Bytes of the body that it still has to hold. */
  readonly dataBytes: number
  /** What is missing of the line end behind them. */
  readonly lineEnd: string
}

export const NO_OPEN_CHUNK: OpenChunk = { dataBytes: 0, lineEnd: '' }

const CRLF = Buffer.from('\r\n')

/** `data` as the rest of the open chunk and one chunk more, and what is open behind that. */
export function framedAfter(
  open: OpenChunk,
  data: readonly Uint8Array[],
): { readonly framed: readonly Uint8Array[]; readonly open: OpenChunk } {
  const framed: Uint8Array[] = []
  const rest: Uint8Array[] = []
  let { dataBytes } = open
  for (const piece of data) {
    const owed = piece.subarray(0, dataBytes)
    const beyond = piece.subarray(owed.length)
    if (owed.length > 0) framed.push(owed)
    if (beyond.length > 0) rest.push(beyond)
    dataBytes -= owed.length
  }
  // An empty chunk would be the last one.
  if (rest.length === 0) return { framed, open: { dataBytes, lineEnd: open.lineEnd } }
  const restBytes = rest.reduce((sum, piece) => sum + piece.length, 0)
  framed.push(Buffer.from(`${open.lineEnd}${restBytes.toString(16)}\r\n`, 'latin1'), ...rest, CRLF)
  return { framed, open: NO_OPEN_CHUNK }
}
