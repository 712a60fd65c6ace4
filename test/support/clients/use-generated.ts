/** Uses the types that openapi-typescript has made, as test/e2e/generated-clients.test.ts says, and prints what it saw. */
import { createWriteStream } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { ReadableStream as Body } from 'node:stream/web'
import { setTimeout as delay } from 'node:timers/promises'
import createClient from 'openapi-fetch'
import type { components, paths } from '../../../src/console/api-types.ts'

const { GATEWAY = '', GATEWAY_USER, GATEWAY_PASSWORD, FOLDER = '', BEGIN = '', END = '' } = process.env
const range = { TSBegin: BEGIN, TSEnd: END }

function client(authorization: string) {
  return createClient<paths>({ baseUrl: GATEWAY, headers: { authorization } })
}

function answered<Data>({ data, error }: { data?: Data; error?: unknown }): Data {
  if (data === undefined) throw new Error(JSON.stringify(error))
  return data
}

async function save(body: unknown, name: string): Promise<void> {
  await pipeline(Readable.fromWeb(body as Body), createWriteStream(join(FOLDER, name)))
}

const byUser = client(`Basic ${btoa(`${GATEWAY_USER}:${GATEWAY_PASSWORD}`)}`)
const wanted = { Scopes: 'device:read,capture:download', Lifetime: '1h' }
const { token, scopes } = answered(await byUser.POST('/v1/tokens', { params: { query: wanted } }))
const byToken = client(`Bearer ${token}`)

const list = answered(await byToken.GET('/stream/list'))
// It may be CSV, with Format=csv.
if (typeof list === 'string') throw new Error(list)
const captures = list.List.map(({ StreamName }) => StreamName).sort()
const { packets } = answered(await byToken.GET('/v1/estimate', { params: { query: range } }))
const download = await byToken.GET('/api/v1/pcap/timerange', { params: { query: range }, parseAs: 'stream' })
await save(answered(download), 'download.pcap')
const wrong = { ...range, FilterBPF: 'tcp prot 80' }
const { error: problem } = await byToken.GET('/v1/estimate', { params: { query: wrong } })

let shown: components['schemas']['Export'] = answered(
  await byUser.POST('/v1/exports', { params: { query: range } }),
)
const path = { id: shown.id }
while (shown.endedAt === null) {
  await delay(100)
  shown = answered(await byUser.GET('/v1/exports/{id}', { params: { path } }))
}
const file = await byUser.GET('/v1/exports/{id}/file', { params: { path }, parseAs: 'stream' })
await save(answered(file), 'export.pcap')
process.stdout.write(
  JSON.stringify({ captures, packets, export: shown.state, scopes, problem: problem?.code }),
)
