import type { Random } from '../../../src/demo/traffic/random.ts'

const POOL_BYTES = 1_048_576
const WORDS =
  'order quote venue price volume client status filled open cancelled reject timeout account latency'.split(
    ' ',
  )

/** 1 MiB from which payloads of a kind are cut: as compressible as such traffic is. */
export function payloadPool(random: Random, kind: string): Buffer {
  if (kind === 'tls') return random.bytes(POOL_BYTES)
  const pieces: Buffer[] = []
  for (let bytes = 0; bytes < POOL_BYTES; ) {
    const piece = makePiece(random, kind)
    pieces.push(piece)
    bytes += piece.byteLength
  }
  return Buffer.concat(pieces).subarray(0, POOL_BYTES)
}

function makePiece(random: Random, kind: string): Buffer {
  switch (kind) {
    case 'http':
      return Buffer.from(
        `HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nX-Request-Id: ${random.bytes(8).toString('hex')}\r\n\r\n` +
          `<p>${words(random, 60)}</p>\r\n`,
      )
    case 'json':
      return Buffer.from(
        `${JSON.stringify({ time: random.uint32(), level: 'info', message: words(random, 6), id: random.bytes(6).toString('hex') })}\n`,
      )
    case 'market':
      return marketMessage(random)
    case 'dns':
      return Buffer.from(
        `\x03www\x07${random.pick(WORDS).padEnd(7, 'x')}\x07example\x00\x00\x01\x00\x01`,
        'latin1',
      )
    default:
      return Buffer.concat([random.bytes(32), Buffer.alloc(96, random.below(256))])
  }
}

function marketMessage(random: Random): Buffer {
  const message = Buffer.alloc(36)
  message.write('A')
  message.writeUInt32BE(random.uint32(), 8)
  message.writeUInt32BE(random.between(1, 50) * 100, 20)
  message.write(random.pick(WORDS).toUpperCase().slice(0, 6).padEnd(8), 24)
  message.writeUInt32BE(random.between(10_000, 999_999), 32)
  return message
}

function words(random: Random, count: number): string {
  return Array.from({ length: count }, () => random.pick(WORDS)).join(' ')
}
