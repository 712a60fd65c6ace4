// Every header and parameter that is parsed is filled with characters that slow parsers down, between a valid beginning
// and end. No request may cost more than a moment of processor time.
import assert from 'node:assert/strict'
import { request } from 'node:http'
import { after, before, describe, test } from 'node:test'
import { parseHeaderLines, parseResponseHead } from '../../../src/gateway/device/response-head.ts'
import { readClaims } from '../../../src/gateway/fetch/proof/device-claims.ts'
import { ROUTES } from '../../../src/gateway/routes/routes.ts'
import { parametersOf } from '../../../src/shared/contract/endpoint.ts'
import { LIMITED_HEADERS } from '../../../src/shared/http/header-limits.ts'
import { parseIgnoredNames } from '../../../src/shared/query/ignored-names.ts'
import {
  SMALL_FLEET_START_NS,
  type SmallFleet,
  startSmallFleet,
} from '../../support/processes/small-fleet.ts'

/** Nearly as much as fits into the head of a request. */
const FILL_LENGTH = 60_000
/** The maximum length of parameters and headers without their own limit. */
const ALLOWED_LENGTH = 4_000
const FILLS = [' ', '\t', '/', ',', ';', '=', '-', '.', '"', '(', '*', ':', '0', 'a', '\\', '[']
/**
 * Processor time of this process, best of three tries. A quadratic expression takes seconds for FILL_LENGTH; everything
 * else in the process (gateway, appliances, this test) takes a few milliseconds.
 */
const CPU_MAX_MS = 300
const TRIES = 3

const RANGE = `TSBegin=${SMALL_FLEET_START_NS}&TSEnd=${SMALL_FLEET_START_NS + 1_000_000n}`

/** Values with FILL in the middle; all other headers consist of FILL alone. */
const HEADER_FORMS: Readonly<Record<string, string>> = {
  traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-FILL',
  tracestate: 'a=bFILLc',
  authorization: 'Basic YTpiFILL=',
  cookie: 'a=FILLb; capfleet-session=FILL.a',
  range: 'bytes=0FILL-1',
  accept: 'text/htmlFILLb;q=1',
  'accept-encoding': 'gzip;q=1FILL, identity',
  'if-none-match': '"aFILLb", *',
  origin: 'http://aFILLb',
  referer: 'http://a/FILLb',
  te: 'trailersFILLb',
  'x-forwarded-for': '192.0.2.1FILL, 192.0.2.2',
}

/** Paths that read headers beyond those that every request reads. */
const HEADER_PATHS: Readonly<Record<string, string>> = {
  accept: '/',
  'accept-encoding': '/',
  'capfleet-device': '/stream/list',
  'if-none-match': '/',
  te: `/devices/east/api/v1/pcap/timerange?${RANGE}`,
}

function filled(form: string, fill: string, length: number): string {
  return form.replaceAll('FILL', () => fill.repeat(length))
}

/** The smallest processor time of a few tries, in milliseconds. */
async function cpuOf(act: () => unknown): Promise<number> {
  let least = Number.POSITIVE_INFINITY
  for (let turn = 0; turn < TRIES && least > CPU_MAX_MS; turn += 1) {
    const before = process.cpuUsage()
    await act()
    const { user, system } = process.cpuUsage(before)
    least = Math.min(least, (user + system) / 1_000)
  }
  return least
}

/** The status of the answer; the body is not read. */
function statusOf(url: URL, path: string, headers: Readonly<Record<string, string>>): Promise<number> {
  const answered = Promise.withResolvers<number>()
  const { hostname: host, port } = url
  const asked = request({ host, port, path, headers, agent: false }, (answer) => {
    answered.resolve(answer.statusCode ?? 0)
    answer.destroy()
  })
  asked.on('error', answered.reject).end()
  return answered.promise
}

describe('texts of 60 kB in requests', () => {
  let fleet: SmallFleet

  before(async () => {
    fleet = await startSmallFleet()
  })
  after(() => fleet[Symbol.asyncDispose]())

  const programs = (): readonly (readonly [name: string, url: URL, authorization: string])[] => {
    const [appliance] = fleet.appliances
    return [
      ['gateway', new URL(fleet.gateway.url), fleet.gateway.as.full.authorization],
      ['appliance', new URL(appliance?.url ?? ''), `Basic ${btoa(appliance?.credentials('full') ?? '')}`],
    ]
  }

  const slowOnes = async (
    asked: Iterable<readonly [what: string, path: string, headers: Readonly<Record<string, string>>]>,
  ): Promise<{ readonly slow: readonly string[]; readonly requests: number }> => {
    const slow: string[] = []
    let requests = 0
    for (const [what, path, headers] of asked) {
      for (const [program, url, authorization] of programs()) {
        requests += 1
        const ms = await cpuOf(() => statusOf(url, path, { authorization, ...headers }))
        if (ms > CPU_MAX_MS) slow.push(`${program} ${what}: ${Math.round(ms)} ms`)
      }
    }
    return { slow, requests }
  }

  test('cost a moment in each header', async (t) => {
    const names = [...LIMITED_HEADERS, 'traceparent', 'tracestate'].filter(
      (name) => name !== 'transfer-encoding' && name !== 'host',
    )
    const asked = names.flatMap((name) =>
      FILLS.flatMap((fill) =>
        [ALLOWED_LENGTH, FILL_LENGTH].map((length) => {
          const form = HEADER_FORMS[name] ?? 'aFILLb'
          const copies = form.split('FILL').length - 1
          const value = filled(form, fill, Math.floor(length / copies) - 200)
          const headers = { ...(name === 'tracestate' ? { traceparent: TRACEPARENT } : {}), [name]: value }
          return [`${name} ${JSON.stringify(fill)}`, HEADER_PATHS[name] ?? '/livez', headers] as const
        }),
      ),
    )
    const { slow, requests } = await slowOnes(asked)
    t.diagnostic(`${requests} requests, ${names.length} headers`)
    assert.deepEqual(slow, [])
  })

  test('cost a moment in each parameter', async (t) => {
    const places = new Map<string, string>()
    for (const route of ROUTES) {
      const path = route.path.replace(':device', 'east')
      if (route.method !== 'GET' || route.changes !== undefined || /[:{]/.test(path)) continue
      for (const { name } of parametersOf(route)) if (!places.has(name)) places.set(name, path)
    }
    assert.ok(places.size > 40, String(places.size))
    const asked = [...places].flatMap(([name, path]) =>
      FILLS.flatMap((fill) =>
        [ALLOWED_LENGTH, FILL_LENGTH].map((length) => {
          const value = encodeURIComponent(fill).repeat(
            Math.floor(length / encodeURIComponent(fill).length) - 200,
          )
          const range = path.includes('timerange') && !RANGE.includes(`${name}=`) ? `&${RANGE}` : ''
          return [`${name} ${JSON.stringify(fill)}`, `${path}?${name}=1${value}b${range}`, {}] as const
        }),
      ),
    )
    const { slow, requests } = await slowOnes(asked)
    t.diagnostic(`${requests} requests, ${places.size} parameters`)
    assert.deepEqual(slow, [])
  })
})

const TRACEPARENT = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
/** The maximum size of a device's head. */
const HEAD_LENGTH = 16_000

test('texts of 16 kB in the head of a device cost a moment', async () => {
  const names = [
    'a',
    'Trailer',
    'Connection',
    'Content-Disposition',
    'Capfleet-Ignored',
    'Capfleet-Time-Zone',
  ]
  for (const name of names) {
    for (const fill of FILLS) {
      for (const end of ['', '\x01', 'b']) {
        const text = `HTTP/1.1 200 OK\r\n${name}:${fill.repeat(HEAD_LENGTH)}${end}`
        const ms = await cpuOf(() => {
          for (let turn = 0; turn < 10; turn += 1) readHead(text)
        })
        assert.ok(ms <= CPU_MAX_MS, `${name} ${JSON.stringify(fill + end)}: ${ms} ms`)
      }
    }
  }
})

function readHead(text: string): void {
  try {
    parseHeaderLines(text, text.indexOf('\n') + 1)
    const { headers } = parseResponseHead(text)
    readClaims(headers)
    parseIgnoredNames(headers['capfleet-ignored'])
  } catch {
    // Rejected: that must not take long either.
  }
}
