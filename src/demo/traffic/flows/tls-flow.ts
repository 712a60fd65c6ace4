import type { FlowPacket, FlowPath } from '../flow-packet.ts'
import type { Random } from '../random.ts'
import { TcpConversation } from '../tcp-conversation.ts'

const HANDSHAKE = 22
const CHANGE_CIPHER_SPEC = 20
const APPLICATION_DATA = 23
const CLIENT_HELLO = 1
const SERVER_HELLO = 2
const CIPHER_SUITES = [0x1301, 0x1302, 0x1303, 0xc02b, 0xc02f, 0xc02c, 0xc030]
const X25519 = 0x001d
const TLS_1_2 = 0x0303
const TLS_1_3 = 0x0304
const RECORD_BYTES = 16_384

/**
 * TLS 1.3 as it looks from outside (RFC 8446): readable hellos with the server's name, then records
 * of random bytes in place of ciphertext.
 */
export function tlsFlow(path: FlowPath, random: Random, host: string): FlowPacket[] {
  const tcp = new TcpConversation(path, random)
  const sessionId = random.bytes(32)
  const changeCipher = tlsRecord(CHANGE_CIPHER_SPEC, Buffer.from([1]))
  tcp.open()
  tcp.send('client', tlsRecord(HANDSHAKE, clientHello(random, host, sessionId)))
  tcp.pause(BigInt(random.between(300_000, 5_000_000)))
  const certificate = ciphertext(random, random.between(1800, 4200))
  tcp.send(
    'server',
    Buffer.concat([tlsRecord(HANDSHAKE, serverHello(random, sessionId)), changeCipher, certificate]),
  )
  tcp.send('client', Buffer.concat([changeCipher, ciphertext(random, 58)]))
  const requests = random.between(1, 4)
  for (let i = 0; i < requests; i++) {
    tcp.send('client', ciphertext(random, random.between(90, 900)))
    tcp.pause(BigInt(random.between(500_000, 60_000_000)))
    tcp.send('server', ciphertext(random, Math.round(60 + random.exponential(5_000))))
    tcp.pause(BigInt(Math.round(random.exponential(500_000_000))))
  }
  tcp.send('client', ciphertext(random, 24))
  tcp.close()
  return tcp.packets
}

function clientHello(random: Random, host: string, sessionId: Buffer): Buffer {
  const suites = Buffer.concat(CIPHER_SUITES.map(word))
  const name = Buffer.from(host)
  const extensions = [
    extension(0, withLength(Buffer.concat([Buffer.from([0]), withLength(name)]))),
    extension(10, withLength(Buffer.concat([X25519, 0x0017, 0x0018].map(word)))),
    extension(13, withLength(Buffer.concat([0x0403, 0x0804, 0x0401, 0x0503].map(word)))),
    extension(16, withLength(Buffer.from('\x02h2\x08http/1.1', 'latin1'))),
    extension(43, Buffer.from([4, 0x03, 0x04, 0x03, 0x03])),
    extension(45, Buffer.from([1, 1])),
    extension(51, withLength(Buffer.concat([word(X25519), withLength(random.bytes(32))]))),
  ]
  return handshake(CLIENT_HELLO, [
    word(TLS_1_2),
    random.bytes(32),
    Buffer.from([sessionId.byteLength]),
    sessionId,
    withLength(suites),
    Buffer.from([1, 0]),
    withLength(Buffer.concat(extensions)),
  ])
}

function serverHello(random: Random, sessionId: Buffer): Buffer {
  const extensions = [
    extension(43, word(TLS_1_3)),
    extension(51, Buffer.concat([word(X25519), withLength(random.bytes(32))])),
  ]
  return handshake(SERVER_HELLO, [
    word(TLS_1_2),
    random.bytes(32),
    Buffer.from([sessionId.byteLength]),
    sessionId,
    word(random.pick(CIPHER_SUITES.slice(0, 3))),
    Buffer.from([0]),
    withLength(Buffer.concat(extensions)),
  ])
}

function handshake(type: number, parts: readonly Buffer[]): Buffer {
  const body = Buffer.concat(parts)
  const head = Buffer.alloc(4)
  head.writeUInt32BE(body.byteLength)
  head[0] = type
  return Buffer.concat([head, body])
}

/** Records of random bytes, none larger than TLS allows. */
function ciphertext(random: Random, bytes: number): Buffer {
  const records: Buffer[] = []
  for (let left = bytes; left > 0; left -= RECORD_BYTES) {
    records.push(tlsRecord(APPLICATION_DATA, random.bytes(Math.min(left, RECORD_BYTES))))
  }
  return Buffer.concat(records)
}

function tlsRecord(type: number, body: Buffer): Buffer {
  return Buffer.concat([Buffer.from([type]), word(TLS_1_2), withLength(body)])
}

function extension(type: number, body: Buffer): Buffer {
  return Buffer.concat([word(type), withLength(body)])
}

function withLength(body: Buffer): Buffer {
  return Buffer.concat([word(body.byteLength), body])
}

function word(value: number): Buffer {
  const bytes = Buffer.alloc(2)
  bytes.writeUInt16BE(value)
  return bytes
}
