import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  type AuditFilter,
  type AuditPlace,
  type ChainEntry,
  readAuditPage,
} from '../../../../src/gateway/audit/read-audit.ts'
import { downloadBy, tempAudit } from '../../../support/access/temp-audit.ts'
import { seededRandom } from '../../../support/seeded-random.ts'

const { signal } = new AbortController()
const isVisible = () => true
const START_MS = Date.UTC(2026, 10, 1, 12)

/** All pages, one after another. */
async function readAll(
  folder: string,
  limit: number,
  filter: AuditFilter = {},
): Promise<readonly ChainEntry[]> {
  const found: ChainEntry[] = []
  let after: AuditPlace | undefined
  do {
    const page = await readAuditPage(folder, { ...filter, limit, after, isVisible, signal })
    assert.ok(page.entries.length <= limit)
    found.push(...page.entries)
    after = page.next
  } while (after !== undefined)
  return found
}

const downloads = (entries: readonly ChainEntry[]) =>
  entries.filter(({ entry }) => entry.event === 'download.begin').map(({ entry }) => entry)

describe('pages of the audit', () => {
  test('have the lines of all chains, the newest first, each once', async (t) => {
    await using audit = await tempAudit()
    const random = seededRandom()
    t.diagnostic(`SEED=${random.seed}`)
    let nowMs = START_MS
    const now = () => new Date(nowMs)
    await using nyc = await audit.open({ fileBytes: 2_000 }, now)
    await using lon = await audit.open({ fileBytes: 12_000, name: 'lon1' }, now)
    await using sgp = await audit.open({ name: 'sgp1' }, now)
    const numbers = Array.from({ length: 150 }, (_, i) => i)
    for (const number of numbers) {
      nowMs += random.pick([0, 1, 1, 400])
      await random.pick([nyc, lon, sgp]).record(downloadBy('ann', { number }))
    }
    for (const limit of [1_000, 7, 1]) {
      const found = await readAll(audit.path, limit)
      assert.equal(new Set(found.map(({ chain, entry }) => `${chain} ${entry.seq}`)).size, found.length)
      assert.deepEqual(
        downloads(found)
          .map(({ number }) => number)
          .sort((a, b) => Number(a) - Number(b)),
        numbers,
      )
      const times = found.map(({ entry }) => Date.parse(entry.at))
      assert.deepEqual(
        times,
        times.toSorted((a, b) => b - a),
      )
    }
  })

  test('lose and repeat nothing when a clock was set back, and when lines are added', async () => {
    await using audit = await tempAudit()
    let nowMs = START_MS
    const now = () => new Date(nowMs)
    await using nyc = await audit.open({}, now)
    await using lon = await audit.open({ name: 'lon1' }, now)
    for (let number = 0; number < 200; number += 1) {
      nowMs += number === 100 ? -30_000 : 500
      await (number % 3 === 0 ? nyc : lon).record(downloadBy('ann', { number }))
    }
    const first = await readAuditPage(audit.path, { limit: 50, isVisible, signal })
    await nyc.record(downloadBy('ann', { number: 1_000 }))
    const found = [...first.entries]
    let { next } = first
    while (next !== undefined) {
      const page = await readAuditPage(audit.path, { limit: 50, after: next, isVisible, signal })
      found.push(...page.entries)
      next = page.next
    }
    const numbers = downloads(found).map(({ number }) => Number(number))
    assert.equal(numbers.length, 200)
    assert.equal(new Set(numbers).size, 200)
  })

  test('have what is asked for', async () => {
    await using audit = await tempAudit()
    let nowMs = START_MS
    await using log = await audit.open({}, () => new Date(nowMs))
    for (let number = 0; number < 100; number += 1) {
      nowMs += 1_000
      const user = number % 2 === 0 ? 'ann' : 'ben'
      await log.record(downloadBy(user, { number, devices: [`device-${number % 5}`] }))
      if (number % 10 === 0) await log.record({ ...downloadBy(user), event: 'login.failed' })
    }
    const count = async (filter: AuditFilter) => (await readAll(audit.path, 30, filter)).length
    assert.equal(await count({ user: 'ann' }), 60)
    assert.equal(await count({ user: 'ANN' }), 0)
    assert.equal(await count({ event: 'login.failed' }), 10)
    assert.equal(await count({ event: 'download' }), 100)
    assert.equal(await count({ event: 'down' }), 0)
    assert.equal(await count({ device: 'device-3', user: 'ben' }), 10)
    assert.equal(await count({ event: 'download', fromMs: START_MS + 11_000, toMs: START_MS + 21_000 }), 10)
  })

  test('end when they have read enough, and continue after that', async () => {
    await using audit = await tempAudit()
    await using log = await audit.open()
    await log.record(downloadBy('rare'))
    await Promise.all(Array.from({ length: 150 }, () => log.record(downloadBy('ann'))))
    const rare = { limit: 10, user: 'rare', isVisible, signal, linesMax: 100 }
    const first = await readAuditPage(audit.path, rare)
    assert.deepEqual(first.entries, [])
    const second = await readAuditPage(audit.path, { ...rare, after: first.next })
    assert.equal(second.entries.length, 1)
    assert.equal(second.next, undefined)
  })

  test('end when no one waits for them', async () => {
    await using audit = await tempAudit()
    await using _log = await audit.open()
    await assert.rejects(
      readAuditPage(audit.path, { limit: 1, isVisible, signal: AbortSignal.abort(new Error('gone')) }),
      {
        message: 'gone',
      },
    )
  })
})
