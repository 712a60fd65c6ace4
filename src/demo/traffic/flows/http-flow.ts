import type { FlowPacket, FlowPath } from '../flow-packet.ts'
import type { Random } from '../random.ts'
import { TcpConversation } from '../tcp-conversation.ts'

const AGENTS = [
  'curl/8.5.0',
  'Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0',
  'orders-client/3.2',
]
const PAGES = ['/', '/index.html', '/status', '/reports/daily', '/docs/handbook.html', '/news', '/contact']
const CALLS = ['/api/v2/orders', '/api/v2/quotes', '/api/v2/positions', '/healthz', '/api/v2/accounts/1042']
const WORDS =
  'the daily report lists all orders that were filled before noon and shows price volume venue and client for each of them please check open positions against limits before trading starts again'.split(
    ' ',
  )

/** One to six requests over one connection, bodies in plain text. */
export function httpFlow(path: FlowPath, random: Random, host: string): FlowPacket[] {
  const tcp = new TcpConversation(path, random)
  const agent = random.pick(AGENTS)
  tcp.open()
  const requests = random.between(1, 6)
  for (let i = 0; i < requests; i++) {
    const wantsJson = random.chance(0.5)
    tcp.send('client', request(random, { host, agent, wantsJson }))
    tcp.pause(BigInt(random.between(200_000, 40_000_000)))
    tcp.send('server', response(random, wantsJson))
    tcp.pause(BigInt(Math.round(random.exponential(300_000_000))))
  }
  tcp.close()
  return tcp.packets
}

function request(
  random: Random,
  { host, agent, wantsJson }: { host: string; agent: string; wantsJson: boolean },
): Buffer {
  const target = wantsJson ? `${random.pick(CALLS)}?page=${random.between(1, 40)}` : random.pick(PAGES)
  const accept = wantsJson ? 'application/json' : 'text/html'
  return Buffer.from(
    `GET ${target} HTTP/1.1\r\nHost: ${host}\r\nUser-Agent: ${agent}\r\nAccept: ${accept}\r\n` +
      `X-Request-Id: ${random.bytes(8).toString('hex')}\r\nConnection: keep-alive\r\n\r\n`,
  )
}

function response(random: Random, asJson: boolean): Buffer {
  const isFound = random.chance(0.94)
  const status = isFound ? '200 OK' : '404 Not Found'
  const body = Buffer.from(asJson ? jsonBody(random, isFound) : htmlBody(random, isFound))
  const head =
    `HTTP/1.1 ${status}\r\nServer: nginx\r\nContent-Type: ${asJson ? 'application/json' : 'text/html; charset=utf-8'}\r\n` +
    `Content-Length: ${body.byteLength}\r\nCache-Control: no-store\r\n\r\n`
  return Buffer.concat([Buffer.from(head), body])
}

function jsonBody(random: Random, isFound: boolean): string {
  if (!isFound) return '{"error":"not found"}\n'
  const rows = Array.from({ length: random.between(1, 30) }, () => ({
    id: random.uint32(),
    symbol: random.pick(['ACME', 'GLOBEX', 'INITECH', 'HOOLI', 'UMBRL']),
    side: random.pick(['buy', 'sell']),
    quantity: random.between(1, 500) * 100,
    price: random.between(1000, 99_999) / 100,
  }))
  return `${JSON.stringify({ rows })}\n`
}

function htmlBody(random: Random, isFound: boolean): string {
  const title = isFound ? sentence(random) : 'Not found'
  const paragraphs = Array.from({ length: isFound ? random.between(1, 12) : 1 }, () => {
    const sentences = Array.from({ length: random.between(2, 5) }, () => sentence(random))
    return `<p>${sentences.join(' ')}</p>`
  })
  return `<!doctype html>\n<html lang="en"><head><title>${title}</title></head>\n<body>\n${paragraphs.join('\n')}\n</body></html>\n`
}

function sentence(random: Random): string {
  const text = Array.from({ length: random.between(5, 14) }, () => random.pick(WORDS)).join(' ')
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`
}
