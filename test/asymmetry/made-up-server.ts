/**
 * A server with a fault at the path of each of a few attacks, all of which the harness must find. It runs as a program,
 * with the honest user's Authorization header as its argument. It answers that user at once, and everyone at all other
 * paths.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

const DOWNLOAD = Buffer.alloc(1 << 20, 'x')
const BURNT_MS = 150
const HELD_BYTES = 8 << 20
const HELD_MAX = 32
const STALLED_MS = 2_000

const held: Buffer[] = []
let hasStalled = false
let refusesUntilMs = 0

/** Uses this much processor time, whatever its share of a processor. */
function busyFor(cpuMs: number): void {
  const before = process.cpuUsage()
  const spentMs = (): number => {
    const { user, system } = process.cpuUsage(before)
    return (user + system) / 1_000
  }
  while (spentMs() < cpuMs);
}

/** The faults, by path. */
const FAULTS: Readonly<Record<string, () => void>> = {
  '/api/v1/pcap/estimate': () => busyFor(BURNT_MS),
  '/stream/stime': () => {
    if (held.length < HELD_MAX) held.push(Buffer.alloc(HELD_BYTES, 'x'))
  },
  '/api/v1/system/status': () => {
    if (!hasStalled) busyFor(STALLED_MS)
    hasStalled = true
  },
  '/metrics': () => {
    refusesUntilMs = performance.now() + 500
  },
  '/stream/list': () => process.exit(),
}

const honestSecret = secretOf(process.argv[2])

/** The honest user spells the scheme in many ways. */
function secretOf(authorization = ''): string | undefined {
  return authorization.split(/ +/)[1]
}

const server = createServer((req, res) => {
  const path = req.url?.split('?', 1)[0] ?? ''
  if (secretOf(req.headers.authorization) !== honestSecret) FAULTS[path]?.()
  if (performance.now() < refusesUntilMs) res.statusCode = 503
  if (path.endsWith('/events')) res.write('an event\n')
  else res.end(path.endsWith('/timerange') ? DOWNLOAD : 'an answer\n')
})
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))
process.once('disconnect', () => process.exit())
