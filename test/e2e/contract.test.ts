// The answers of appliance and gateway match their tables: a schema cannot be wrong unnoticed.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { APPLIANCE_ROUTES } from '../../appliance/appliance-routes.ts'
import { routesWith } from '../../src/gateway/routes/routes.ts'
import { type Answer, type Endpoint, parametersOf } from '../../src/shared/contract/endpoint.ts'
import { CAPFLEET_IGNORED, COMMON_ANSWER_HEADERS } from '../../src/shared/contract/headers.ts'
import { errorsOf, PROBLEM } from '../../src/shared/contract/problem.ts'
import { type HttpAnswer, type HttpGetOptions, httpGet, httpOpen } from '../support/http-get.ts'
import { SMALL_FLEET_START_NS, type SmallFleet, startSmallFleet } from '../support/processes/small-fleet.ts'
import { startTempWorker, type TempWorker } from '../support/processes/temp-worker.ts'

/** The smallest set of parameters with which each path succeeds. */
const QUERIES: readonly (readonly [path: RegExp, query: string])[] = [
  [
    /pcap\/timerange$|\/v1\/activity$/,
    `TSBegin=${SMALL_FLEET_START_NS}&TSEnd=${SMALL_FLEET_START_NS + 5_000_000n}`,
  ],
  [
    /\/v1\/seen$/,
    `Address=10.1.2.3&TSBegin=${SMALL_FLEET_START_NS}&TSEnd=${SMALL_FLEET_START_NS + 5_000_000n}`,
  ],
  [/pcap\/single$/, 'StreamName=east-first'],
  [/pcap\/splittime$/, `StreamName=east-first&Start=0&Stop=${SMALL_FLEET_START_NS + 5_000_000n}`],
  [/\/(estimate|count)$/, 'StreamName=east-first'],
  [/\/stream\/s(size|time)$/, 'StreamName=east-first'],
  [/\/system\/telemetry$/, 'Count=1'],
  [/\/pcap\/del$/, 'StreamName=east-second'],
]

const EXPORTED = `TSBegin=${SMALL_FLEET_START_NS}&TSEnd=${SMALL_FLEET_START_NS + 5_000_000n}`
const SCHEDULED = 'Cron=5+*+*+*+*&TSBegin=-1h&TSEnd=now'

const ELSEWHERE = new Set(['/v1/queue/:id', '/', '/assets/:name', '/dissector/:build/:name'])

/** Answers that continue until the client leaves. */
const ENDLESS = /\/(system|v1)\/events$/

function queryOf({ path, method, changes }: Endpoint, program: Program): string {
  if (method === 'POST' && path === '/v1/exports') return EXPORTED
  if (method === 'POST' && path === '/v1/schedules') return SCHEDULED
  const own = QUERIES.find(([form]) => form.test(path))?.[1] ?? ''
  const isLive = /^\/api\/v1\/system\/(events|telemetry)$/.test(path)
  const device = program.isGateway && (isLive || (changes !== undefined && !path.includes('/pcap/del')))
  return [device && !path.startsWith('/devices/') ? 'Device=east' : '', own]
    .filter((part) => part !== '')
    .join('&')
}

interface Program {
  readonly isGateway: boolean
  readonly table: readonly Endpoint[]
  readonly url: string
  /** Credentials of a user who may use every path. */
  readonly headers: Readonly<Record<string, string>>
}

const IS_LONG = process.env.CAPFLEET_LONG === '1'

describe('the contract', () => {
  let fleet: SmallFleet
  let worker: TempWorker
  const programs: Program[] = []
  /** The id of a download through the gateway. */
  let requestId = ''
  /** The id of an export that ended well. */
  let exportId = ''
  let scheduleId = ''

  before(async () => {
    fleet = await startSmallFleet()
    worker = await startTempWorker(fleet.gateway)
    const [appliance] = fleet.appliances
    assert.ok(appliance)
    const basic = `Basic ${btoa(appliance.credentials('full'))}`
    programs.push(
      { isGateway: false, table: APPLIANCE_ROUTES, url: appliance.url, headers: { authorization: basic } },
      { isGateway: true, table: routesWith([]), url: fleet.gateway.url, headers: fleet.gateway.as.admin },
    )
    const { headers } = await httpGet(`${fleet.gateway.url}/api/v1/pcap/single?StreamName=east-first`, {
      headers: fleet.gateway.as.admin,
    })
    requestId = String(headers['capfleet-request-id'])
    const as = { headers: fleet.gateway.as.admin }
    const ordered = await httpGet(`${fleet.gateway.url}/v1/exports?${EXPORTED}`, { ...as, method: 'POST' })
    exportId = String(ordered.json().id)
    const kept = await httpGet(`${fleet.gateway.url}/v1/schedules?${SCHEDULED}`, { ...as, method: 'POST' })
    scheduleId = String(kept.json().id)
    // The events of an export end with the export.
    await httpGet(`${fleet.gateway.url}/v1/exports/${exportId}/events`, as)
  })
  after(async () => {
    await worker[Symbol.asyncDispose]()
    await fleet[Symbol.asyncDispose]()
  })

  const pathOf = ({ path }: Endpoint): string => {
    const ids = { '/v1/exports/:id': exportId, '/v1/schedules/:id': scheduleId }
    const [, id = requestId] = Object.entries(ids).find(([start]) => path.startsWith(start)) ?? []
    return path.replace(':device', 'east').replace(':id', id)
  }

  /**
   * Rows that a plain request can reach. Not among them: a place in the queue, which is gone before it could be
   * requested (waiting.test.ts covers it); and the page, which is for browsers and has built file names and types
   * (page-handlers.test.ts covers it).
   */
  const askable = ({ table }: Program): readonly Endpoint[] =>
    table.filter(({ path }) => !path.includes('{*path}') && !ELSEWHERE.has(path))

  async function ask(program: Program, row: Endpoint, more = ''): Promise<HttpAnswer> {
    const query = [queryOf(row, program), more].filter((part) => part !== '').join('&')
    const options = { method: row.method, headers: { ...program.headers, te: 'trailers' } }
    return await wholeOf(`${program.url}${pathOf(row)}?${query}`, options)
  }

  async function wholeOf(url: string, options: HttpGetOptions): Promise<HttpAnswer> {
    if (!ENDLESS.test(new URL(url).pathname)) return await httpGet(url, options)
    using opened = await httpOpen(url, options)
    const { statusCode: status = 0, headers } = opened.response
    if (status !== 200) return await httpGet(url, options)
    return { status, headers, trailers: {}, body: Buffer.alloc(0), json: () => ({}) }
  }

  test('every path answers as its row says, to the last member', async () => {
    let answers = 0
    for (const program of programs) {
      // Changes come last, because they remove what the other requests need.
      const rows = askable(program).toSorted(
        (a, b) => Number(a.changes !== undefined) - Number(b.changes !== undefined),
      )
      for (const row of rows) {
        const answer = await ask(program, row)
        const name = `${row.method} ${row.path} of the ${program.isGateway ? 'gateway' : 'appliance'}`
        if (answer.status >= 400) {
          assert.notEqual(row.changes, undefined, `${name}: ${answer.body.toString()}`)
          checkProblem(row, answer, name)
          continue
        }
        checkAnswer(row, answer, name)
        answers += 1
      }
    }
    assert.ok(answers > 60, `${answers} answers`)
  })

  test('lists as CSV, the time as JSON', async () => {
    for (const program of programs) {
      for (const row of program.table.filter(({ path }) => path.endsWith('/stream/list')))
        checkAnswer(row, await ask(program, row, 'Format=csv'), row.path)
      for (const row of program.table.filter(({ path }) => path === '/api/v1/system/time_current')) {
        const headers = { ...program.headers, accept: 'application/json' }
        checkAnswer(row, await httpGet(program.url + row.path, { headers }), row.path)
      }
    }
  })

  test('every parameter of a row is one of its path, and no other', async () => {
    for (const program of programs) {
      const lists = new Set<string>()
      for (const row of askable(program).filter(
        ({ parameters, changes }) => parameters && changes === undefined,
      )) {
        const name = `${row.path} of the ${program.isGateway ? 'gateway' : 'appliance'}`
        const given = new Set([...new URLSearchParams(queryOf(row, program)).keys(), 'Strict'])
        // An estimate has the headers of the download that it is for.
        const others = parametersOf(row).filter(
          (parameter) =>
            !given.has(parameter.name) && (parameter.kinds === undefined || row.context?.kind !== undefined),
        )
        const list = parametersOf(row)
          .map((parameter) => parameter.name)
          .join()
        // Rows with the same list read it with the same code; at night each of them is asked for all.
        const asked = lists.has(list) && !IS_LONG ? [others.at(0), others.at(-1)] : others
        lists.add(list)
        for (const parameter of asked.filter((one) => one !== undefined)) {
          const answer = await ask(program, row, `Strict=1&${parameter.name}=`)
          const detail = answer.status === 400 ? String(answer.json().detail) : ''
          assert.doesNotMatch(detail, /is not a parameter of this path/, `${parameter.name} at ${name}`)
        }
        // Requests to several devices return the error of each device.
        const refused = await ask(program, row, 'Strict=1&NoSuchParameter=1')
        assert.equal(refused.status, 400, name)
        assert.equal(refused.json().code, 'bad-parameter', name)
        checkProblem(row, refused, name)
      }
    }
  })

  test('each path has the access rights of its row', async () => {
    for (const program of programs) {
      for (const row of askable(program)) {
        const answer = await wholeOf(`${program.url}${pathOf(row)}?${queryOf(row, program)}`, {
          method: row.method,
        })
        // By default a device answers system reads to everyone, the gateway only to users.
        const isOpen =
          ['anyone', 'metrics'].includes(row.scope) || (row.scope === 'system' && !program.isGateway)
        assert.equal(answer.status === 401, !isOpen, `${row.method} ${row.path}: ${answer.status}`)
        if (!isOpen) checkProblem(row, answer, row.path)
      }
    }
  })
})

function checkAnswer(row: Endpoint, answer: HttpAnswer, name: string): void {
  const said = row.answers.find(({ status = 200 }) => status === answer.status)
  assert.ok(said, `${name} answered ${answer.status}`)
  if (Object.keys(said.bodies).length === 0) {
    assert.deepEqual([answer.body.length, answer.headers['content-type']], [0, undefined], name)
    checkHeaders(said, answer, name)
    return
  }
  const [mediaType = ''] = (answer.headers['content-type'] ?? '').split(';')
  const body = said.bodies[mediaType]
  assert.ok(body !== undefined, `${name} answered ${mediaType}`)
  checkHeaders(said, answer, name)
  assert.equal(typeof body === 'object', mediaType === 'application/json', `${name} has a schema`)
  if (typeof body === 'string') return
  const json = answer.json()
  const { error, data } = body.safeParse(json)
  assert.equal(error, undefined, `${name}: ${error?.message}`)
  // A schema leaves out unknown members.
  assert.deepEqual(data, json, name)
}

function checkHeaders({ headers = [], trailers = [] }: Answer, answer: HttpAnswer, name: string): void {
  const known = (rows: readonly { readonly name: string }[]) => rows.map((row) => row.name.toLowerCase())
  const ours = (given: object) => Object.keys(given).filter((header) => header.startsWith('capfleet-'))
  const saidHeaders = known([...headers, ...COMMON_ANSWER_HEADERS, CAPFLEET_IGNORED])
  assert.deepEqual(
    ours(answer.headers).filter((header) => !saidHeaders.includes(header)),
    [],
    name,
  )
  assert.deepEqual(
    ours(answer.trailers).filter((trailer) => !known(trailers).includes(trailer)),
    [],
    name,
  )
}

function checkProblem(row: Endpoint, answer: HttpAnswer, name: string): void {
  assert.match(answer.headers['content-type'] ?? '', /^application\/problem\+json/, name)
  const { code, status } = PROBLEM.parse(answer.json())
  assert.equal(status, answer.status, name)
  assert.ok(errorsOf(row).includes(code), `${name} answered ${code}`)
}
