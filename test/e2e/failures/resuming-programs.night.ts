/**
 * Programs that people download with, each with downloads that are cut: the file is right in the end, byte for byte, or
 * the program reports a failure. The second request gets other data than the first, as with a relative time range.
 *
 *   DOWNLOAD_CUTS=<n>   cuts of each program on each path (2 in npm test, 20 in the long run)
 */
import assert from 'node:assert/strict'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { type ProgramEnd, RESUMING_PROGRAMS } from '../../support/clients/resuming-programs.ts'
import { FakeDevice } from '../../support/devices/fake-device.ts'
import { FLEET_RANGE, fleetPcap } from '../../support/devices/fake-fleet.ts'
import { httpGet } from '../../support/http-get.ts'
import { startTempGateway, type TempGateway } from '../../support/processes/temp-gateway.ts'
import {
  startTempHaproxy,
  startTempNginx,
  type TempProxy,
  WITHOUT_HAPROXY,
  WITHOUT_NGINX,
} from '../../support/processes/temp-proxy.ts'
import { TempRedis } from '../../support/processes/temp-redis.ts'
import { seededRandom } from '../../support/seeded-random.ts'
import { USER_PASSWORD } from '../../support/suite-secrets.ts'
import { tempFolder } from '../../support/temp-folder.ts'
import { TEST_LIMIT_MS } from '../../support/test-limits.ts'

const CUTS = Number(process.env.DOWNLOAD_CUTS ?? 2)
const RANDOM = seededRandom()
const PACKETS = 1_500
const PATH = `/api/v1/pcap/timerange?${FLEET_RANGE}`
/** A download that must not be retried. */
const GONE = { problem: { status: 410, body: { code: 'aged-out', detail: 'they were overwritten' } } }

interface Way {
  readonly name: string
  readonly missing: string | false
  readonly open: (upstream: string) => Promise<TempProxy | undefined>
}

const WAYS: readonly Way[] = [
  { name: 'directly', missing: false, open: async () => undefined },
  { name: 'through nginx', missing: WITHOUT_NGINX, open: startTempNginx },
  {
    name: 'through nginx with HTTP/1.1',
    missing: WITHOUT_NGINX,
    open: (upstream) => startTempNginx(upstream, 'streaming'),
  },
  { name: 'through haproxy', missing: WITHOUT_HAPROXY, open: startTempHaproxy },
]

type Verdict = 'right' | 'failed' | 'silent'

/** Two devices for each program. The first one fails; then both hold other packets than before. */
interface Pair {
  readonly failing: FakeDevice
  readonly other: FakeDevice
  readonly later: readonly [Buffer, Buffer]
}

describe('a download that is cut', { timeout: TEST_LIMIT_MS + CUTS * 240_000 }, () => {
  const parts = new AsyncDisposableStack()
  const pairs: Pair[] = []
  let gateway: TempGateway
  let folder: string

  before(async () => {
    const redis = parts.use(await TempRedis.create())
    folder = parts.use(await tempFolder()).path
    for (const index of RESUMING_PROGRAMS.keys()) {
      const failing = parts.use(await FakeDevice.start(`a${index}`, fleetPcap(0, PACKETS)))
      const other = parts.use(await FakeDevice.start(`b${index}`, fleetPcap(1, PACKETS)))
      pairs.push({ failing, other, later: [fleetPcap(30, PACKETS - 40), fleetPcap(31, PACKETS - 40)] })
    }
    const devices = pairs.flatMap(({ failing, other }) => [failing, other])
    gateway = parts.use(await startTempGateway(devices, redis.url))
  })
  after(() => parts.disposeAsync())

  const pathOf = ({ failing, other }: Pair, isMerge: boolean) =>
    isMerge ? `${PATH}&Device=${failing.name},${other.name}` : `/devices/${failing.name}${PATH}`

  /** The complete bodies: of the first request, and of those after the cut. */
  async function wholeBodies(pair: Pair, path: string): Promise<readonly Buffer[]> {
    const bodies: Buffer[] = []
    for (const later of [true, false]) {
      pair.failing.behaviour = later ? { body: pair.later[0] } : {}
      pair.other.behaviour = later ? { body: pair.later[1] } : {}
      bodies.push((await httpGet(gateway.url + path, { headers: gateway.as.user })).body)
    }
    return bodies
  }

  /** Cuts the next download of the path, and makes later ones return other packets. */
  async function cutNext({ failing, other, later }: Pair, isMerge: boolean): Promise<void> {
    const asked = () => failing.requests.filter(({ url }) => url.includes('/pcap/timerange')).length
    failing.requests.length = 0
    failing.behaviour = { dieAfterBytes: RANDOM.integer(0, fleetPcap(0, PACKETS).length) }
    await failing.until(() => asked() > 0 && failing.readers > 0)
    if (isMerge) {
      // The merge retries.
      failing.behaviour = GONE
      await failing.until(() => asked() > 1)
    }
    failing.behaviour = { body: later[0] }
    other.behaviour = { body: later[1] }
  }

  function verdictOf({ isComplete, file }: ProgramEnd, whole: readonly Buffer[]): Verdict {
    if (!isComplete) return 'failed'
    return whole.some((body) => body.equals(file)) ? 'right' : 'silent'
  }

  for (const { name: way, missing: wayMissing, open } of WAYS) {
    describe(way, { skip: wayMissing, concurrency: true }, () => {
      let proxy: TempProxy | undefined
      before(async () => {
        proxy = await open(gateway.url)
      })
      after(() => proxy?.[Symbol.asyncDispose]())

      for (const [index, program] of RESUMING_PROGRAMS.entries())
        test(`${program.name}: right, or a failure, ${CUTS} times (SEED=${RANDOM.seed})`, {
          skip: program.missing,
        }, async (t) => {
          const pair = pairs[index] as Pair
          const counts: Record<Verdict, number> = { right: 0, failed: 0, silent: 0 }
          for (let cut = 0; cut < CUTS; cut += 1) {
            const isMerge = cut % 2 === 1
            const path = pathOf(pair, isMerge)
            const whole = await wholeBodies(pair, path)
            const place = join(folder, `${way}-${index}-${cut}`.replaceAll(/\W/g, '-'))
            await mkdir(place)
            const [, end] = await Promise.all([
              cutNext(pair, isMerge),
              program.run({
                url: (proxy?.url ?? gateway.url) + path,
                user: 'user',
                password: USER_PASSWORD,
                folder: place,
              }),
            ])
            counts[verdictOf(end, whole)] += 1
          }
          t.diagnostic(`${program.name} | ${way} | ${JSON.stringify(counts)}`)
          assert.equal(counts.silent, 0)
        })
    })
  }
})
