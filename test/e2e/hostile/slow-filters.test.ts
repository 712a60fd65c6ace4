// One user who constantly has slow filters compiled takes nothing away from another user, neither at an appliance nor
// through a gateway that uses one name at the appliance for both.
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { type HttpAnswer, httpGet } from '../../support/http-get.ts'
import { makePacket, makePcap } from '../../support/packets/packet-maker.ts'
import { pause } from '../../support/pause.ts'
import { startTempAppliance, type TempAppliance } from '../../support/processes/temp-appliance.ts'
import { startTempGateway, type TempGateway } from '../../support/processes/temp-gateway.ts'
import { TempRedis } from '../../support/processes/temp-redis.ts'

/** At any time; a device has two or three compilers. */
const SLOW_AT_ONCE = 40
/** Requests of the other user, one after another, half of them with a new filter. */
const DOWNLOADS = process.env.CAPFLEET_LONG === '1' ? 24 : 6

/** Filters that are all different, and that take their compilers a second or all their time. */
function slowFilter(index: number): string {
  const hosts = (count: number) =>
    `host ${Array.from({ length: count }, (_, i) => `10.${index & 255}.${i >> 8}.${i & 255}`).join(' or ')}`
  if (index % 4 === 0) return `FilterBPF=${encodeURIComponent(hosts(180))}`
  if (index % 4 < 3) return `FilterBPF=${encodeURIComponent(hosts(800 + (index >> 8)))}`
  const words = Array.from({ length: 200 }, (_, i) => (i * 7919 + index).toString(16)).join('|')
  return `FilterRE=${encodeURIComponent(`(?i)((${words.slice(0, 900)}){2,90}x)+`)}`
}

/** Sends slow filters until `signal` aborts; every request is answered, and no answer is a server error. */
async function attack(ask: (query: string) => Promise<HttpAnswer>, signal: AbortSignal): Promise<string[]> {
  const codes: string[] = []
  let asked = 0
  const attacker = async (): Promise<void> => {
    while (!signal.aborted) {
      const answer = await ask(slowFilter(asked++))
      codes.push(answer.status === 200 ? 'downloaded' : String(answer.json().code))
      // A client that is rejected at once need not retry a thousand times per second.
      if (answer.status === 503) await pause(50, 'the compiler is busy, a client tries again')
    }
  }
  await Promise.all(Array.from({ length: SLOW_AT_ONCE }, attacker))
  return codes
}

/** How filters end that used all of a compiler's time. */
const COMPILED = ['downloaded', 'bad-bpf', 'bad-regex']

async function downloadsBeside(
  ask: (query: string) => Promise<HttpAnswer>,
  askSlow: (query: string) => Promise<HttpAnswer>,
): Promise<void> {
  const over = new AbortController()
  const attacked = attack(askSlow, over.signal)
  try {
    for (let i = 0; i < DOWNLOADS; i++) {
      const answer = await ask(i % 2 === 0 ? 'rand=1' : `FilterBPF=tcp+port+${1_000 + i}+or+greater+1`)
      assert.equal(answer.status, 200, `download ${i}: ${answer.body.toString('utf8', 0, 400)}`)
      assert.equal(answer.body.length, whole.length)
    }
  } finally {
    over.abort()
    await attacked.catch(() => undefined)
  }
  const codes = Map.groupBy(await attacked, (code) => code)
  const seen = [...codes].map(([code, { length }]) => `${code}: ${length}`).join(', ')
  // On a busy machine, no filter may get enough processor time to be proved too complex.
  const compiled = COMPILED.some((code) => codes.has(code))
  assert.ok(compiled && codes.has('compiler-busy'), `the attack was none: ${seen}`)
  for (const code of codes.keys()) {
    assert.ok([...COMPILED, 'compiler-busy'].includes(code), seen)
  }
}

const packets = Array.from({ length: 50 }, (_, i) =>
  makePacket(1_790_000_000_000_000_000n + BigInt(i), `${i}`, 100),
)
const whole = makePcap(packets)

describe('slow filters of one user', () => {
  let redis: TempRedis
  let appliance: TempAppliance
  let gateway: TempGateway

  before(async () => {
    redis = await TempRedis.create()
    appliance = await startTempAppliance()
    const path = join(appliance.folder, 'a.pcap')
    await writeFile(path, whole)
    await appliance.importFiles('a', path)
    const password = appliance.credentials('full').split(':')[1] ?? ''
    const config = { name: 'd0', url: appliance.url, user: 'full', password: { env: 'FAKE_DEVICE_PASSWORD' } }
    gateway = await startTempGateway([{ password, config }], redis.url)
  })
  after(async () => {
    await gateway[Symbol.asyncDispose]()
    await appliance[Symbol.asyncDispose]()
    await redis[Symbol.asyncDispose]()
  })

  test('leave the downloads of another alone on an appliance', async () => {
    const askAs = (role: 'user' | 'full') => (query: string) =>
      httpGet(`${appliance.url}/api/v1/pcap/single?StreamName=a&Wait=30&${query}`, {
        user: appliance.credentials(role),
      })
    await downloadsBeside(askAs('full'), askAs('user'))
  })

  test('leave the downloads of another alone through a gateway', async () => {
    const askAs = (role: 'user' | 'full') => (query: string) =>
      httpGet(`${gateway.url}/devices/d0/api/v1/pcap/single?StreamName=a&${query}`, {
        headers: gateway.as[role],
      })
    await downloadsBeside(askAs('full'), askAs('user'))
  })
})
