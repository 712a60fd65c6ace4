/**
 * The cost of authentication: requests for the same answer by a token and by a password, compared with requests that
 * need no authentication, at one gateway with one process, in turn. Then the verification alone: of a token that is
 * seen for the first time, by the kind of its key, and of one that was seen before.
 */
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { openTempTokens } from '../../support/access/temp-tokens.ts'
import { callerNamed } from '../../support/access/test-caller.ts'
import { startFakeFleet } from '../../support/devices/fake-fleet.ts'
import { httpGet } from '../../support/http-get.ts'
import { GATEWAY_AUTHORIZATION, GatewayProcess } from '../../support/processes/gateway-process.ts'
import { settleFresh, TempRedis } from '../../support/processes/temp-redis.ts'
import { tempFolder } from '../../support/temp-folder.ts'
import { shellOutput } from '../report/measure-command.ts'
import { printCells } from '../report/print-cells.ts'
import { shellLine } from '../sides/contenders.ts'
import { cpuSeconds } from '../sides/proxy-world.ts'

const ROUNDS = 5
const SECONDS = 3
const CONNECTIONS = 32
const WARM_UP_ROUNDS = 2
const FIRST_TIMES = 2_000
const WIDTHS = [34, 14, 18]

interface Side {
  readonly name: string
  readonly path: string
  readonly authorization: string | undefined
}

interface Figures {
  readonly perSecond: number
  /** Processor time of the gateway for one request. */
  readonly cpuMicros: number
}

/** Prints the figures and leaves nothing behind. */
export async function printTokenFigures(signal: AbortSignal): Promise<void> {
  await printRequests(signal)
  for (const [kind, file, bytes] of KEYS) await printVerification(kind, file, bytes)
}

async function printRequests(signal: AbortSignal): Promise<void> {
  await using parts = new AsyncDisposableStack()
  const gateway = await startGateway(parts)
  const issued = await httpGet(`${gateway.url}/v1/tokens`, {
    method: 'POST',
    headers: { authorization: GATEWAY_AUTHORIZATION },
  })
  const sides: readonly Side[] = [
    { name: 'GET /v1/devices, token', path: '/v1/devices', authorization: `Bearer ${issued.json().token}` },
    { name: 'GET /v1/devices, password', path: '/v1/devices', authorization: GATEWAY_AUTHORIZATION },
    { name: 'GET /readyz, nobody', path: '/readyz', authorization: undefined },
    {
      name: 'GET /readyz, nobody, token sent',
      path: '/readyz',
      authorization: `Bearer ${issued.json().token}`,
    },
  ]
  const rounds: (readonly Figures[])[] = []
  for (let round = -WARM_UP_ROUNDS; round < ROUNDS; round += 1) {
    const figures: Figures[] = []
    for (const side of sides) figures.push(await measure(gateway, side))
    if (round >= 0) rounds.push(figures)
    signal.throwIfAborted()
  }
  printCells(['', 'requests/s', 'us of processor'], WIDTHS)
  for (const [index, { name }] of sides.entries()) {
    const of = (figure: keyof Figures) => median(rounds.map((figures) => figures[index]?.[figure] ?? 0))
    printCells([name, of('perSecond').toFixed(0), of('cpuMicros').toFixed(1)], WIDTHS)
  }
}

async function startGateway(parts: AsyncDisposableStack): Promise<GatewayProcess> {
  const redis = parts.use(await TempRedis.create())
  const [device] = await startFakeFleet(10, ['d0'])
  if (device === undefined) throw new Error('a device was asked for')
  parts.use(device)
  const folder = parts.use(await tempFolder()).path
  const config = { redis: { url: redis.url }, devices: [device.config], logLevel: 'warn' }
  await settleFresh(redis.url, 'capfleet')
  const environment = { FAKE_DEVICE_PASSWORD: device.password }
  return parts.use(await GatewayProcess.start({ folder, name: 'gateway', config, environment }))
}

async function measure({ url, pid }: GatewayProcess, { path, authorization }: Side): Promise<Figures> {
  const header = authorization === undefined ? [] : ['-H', `authorization: ${authorization}`]
  const before = cpuSeconds(pid)
  const output = await shellOutput(
    shellLine(['wrk', '-t1', `-c${CONNECTIONS}`, `-d${SECONDS}s`, ...header, url + path]),
  )
  const made = Number(/(\d+) requests in/.exec(output)?.[1])
  if (!(made > 0) || /Non-2xx/.test(output)) throw new Error(`wrk says: ${output}`)
  return { perSecond: made / SECONDS, cpuMicros: ((cpuSeconds(pid) - before) / made) * 1e6 }
}

const pem = ({ privateKey }: ReturnType<typeof ecKey>) => privateKey.export({ type: 'pkcs8', format: 'pem' })
const ecKey = (namedCurve: string) => generateKeyPairSync('ec', { namedCurve })
const KEYS: readonly (readonly [kind: string, file: string, bytes: string | Buffer])[] = [
  ['ES256', 'a.pem', pem(ecKey('prime256v1'))],
  ['ES384', 'a.pem', pem(ecKey('secp384r1'))],
  ['RS256', 'a.pem', pem(generateKeyPairSync('rsa', { modulusLength: 2_048 }))],
  ['HS256', 'a.secret', randomBytes(32)],
]

async function printVerification(kind: string, file: string, bytes: string | Buffer): Promise<void> {
  await using tokens = await openTempTokens((folder) => writeFile(join(folder, file), bytes))
  const caller = callerNamed('ann')
  const wanted = { lifetimeS: undefined, scopes: undefined, bounds: {}, note: undefined }
  const all: string[] = []
  for (let round = 0; round < FIRST_TIMES / 1_000; round += 1) {
    // A user has at most a thousand tokens.
    const name = round === 0 ? caller : callerNamed('admin')
    for (let made = 0; made < 1_000; made += 1)
      all.push((await tokens.handling.own.issue(name, wanted)).token)
  }
  const took = async () => {
    const beganMs = performance.now()
    for (const token of all) await tokens.verifier.verify(token)
    return ((performance.now() - beganMs) / all.length) * 1_000
  }
  const first = await took()
  let again = Number.POSITIVE_INFINITY
  for (let round = 0; round < ROUNDS; round += 1) again = Math.min(again, await took())
  printCells([`${kind}, first time`, '', first.toFixed(1)], WIDTHS)
  printCells([`${kind}, again`, '', again.toFixed(1)], WIDTHS)
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0
}
