import assert from 'node:assert/strict'
import { readFile, unlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, beforeEach, describe, test } from 'node:test'
import type { AuditFile } from '../../../../src/gateway/audit/audit-files.ts'
import { listChains } from '../../../../src/gateway/audit/audit-files.ts'
import { type AuditProblem, verifyAudit } from '../../../../src/gateway/audit/verify-audit.ts'
import { downloadBy, type TempAudit, tempAudit } from '../../../support/access/temp-audit.ts'
import { seededRandom } from '../../../support/seeded-random.ts'

const FLIPS = process.env.CAPFLEET_LONG === '1' ? 20_000 : 200
const CHAIN = 'nyc1.gateway'

describe('what was done to an audit is found', () => {
  let audit: TempAudit
  let files: readonly AuditFile[] = []
  let originals: readonly Buffer[] = []

  before(async () => {
    audit = await tempAudit()
    await using log = await audit.open({ fileBytes: 4_000 })
    for (let i = 0; i < 60; i += 1) await log.record(downloadBy(`user ${i}`, { packets: i * 1_000 }))
  })
  after(() => audit[Symbol.asyncDispose]())
  beforeEach(async () => {
    if (files.length === 0) {
      files = (await listChains(audit.path)).get(CHAIN) ?? []
      originals = await Promise.all(files.map(({ path }) => readFile(path)))
    }
    await restore()
    assert.ok(files.length > 3)
  })

  const restore = () => Promise.all(files.map(({ path }, index) => writeFile(path, originals[index] ?? '')))
  const nameOf = (index: number) => `${CHAIN}.0000000${index + 1}.jsonl`
  const linesOf = (index: number) => originals[index]?.toString().split('\n').slice(0, -1) ?? []
  const putLines = (index: number, lines: readonly string[]) =>
    writeFile(files[index]?.path ?? '', `${lines.join('\n')}\n`)
  const problems = async (): Promise<readonly AuditProblem[]> => {
    const { chains, isWhole } = await verifyAudit(audit.path)
    const found = chains.flatMap((chain) => chain.problems)
    assert.equal(isWhole, found.length === 0)
    return found
  }
  const brief = async () =>
    (await problems()).map(({ kind, file, line, offset }) => ({ kind, file, line, offset }))

  test('nothing, when nothing was', async () => {
    let total = 0
    const { chains, isWhole } = await verifyAudit(audit.path, {
      onProgress: (done, all) => {
        total = all
        assert.ok(done <= all)
      },
    })
    assert.ok(isWhole)
    assert.equal(
      total,
      originals.reduce((sum, { length }) => sum + length, 0),
    )
    const [chain] = chains
    assert.equal(chain?.lines, 62)
    assert.deepEqual(chain?.end, { seq: 62, hash: JSON.parse(linesOf(files.length - 1).at(-1) ?? '').hash })
  })

  test(`each of ${FLIPS} flipped bits, with the line that it is in`, async (t) => {
    const random = seededRandom()
    t.diagnostic(`SEED=${random.seed}`)
    for (let flip = 0; flip < FLIPS; flip += 1) {
      const index = random.integer(0, files.length - 1)
      const original = originals[index] ?? Buffer.alloc(0)
      const at = random.integer(0, original.length - 1)
      const changed = Buffer.from(original)
      changed[at] = (changed[at] ?? 0) ^ (1 << random.integer(0, 7))
      await writeFile(files[index]?.path ?? '', changed)
      const [first] = await problems()
      const where = `byte ${at} of ${nameOf(index)}: ${original[at]} -> ${changed[at]}`
      assert.equal(first?.kind, 'altered', where)
      assert.equal(first?.file, nameOf(index), where)
      const begin = original.lastIndexOf('\n', Math.max(0, at - 1)) + 1
      assert.equal(first?.offset, at === 0 ? 0 : begin, where)
      const line = original.subarray(0, begin).toString('latin1').split('\n').length
      assert.equal(first?.line, line, where)
      await writeFile(files[index]?.path ?? '', original)
    }
  })

  test('a line that was removed', async () => {
    const lines = linesOf(1)
    await putLines(1, lines.toSpliced(2, 1))
    const offset = `${lines.slice(0, 2).join('\n')}\n`.length
    assert.deepEqual(await brief(), [{ kind: 'missing', file: nameOf(1), line: 3, offset }])
  })

  test('lines that were removed at the end of a file', async () => {
    await putLines(1, linesOf(1).slice(0, -2))
    assert.deepEqual(await brief(), [{ kind: 'missing', file: nameOf(2), line: 1, offset: 0 }])
    assert.match((await problems())[0]?.says ?? '', /^2 lines/)
  })

  test('a file that was removed', async () => {
    await unlink(files[1]?.path ?? '')
    assert.deepEqual(await brief(), [{ kind: 'missing', file: nameOf(2), line: 1, offset: 0 }])
    assert.match((await problems())[0]?.says ?? '', /^1 file /)
  })

  test('but the oldest ones may be gone', async () => {
    await unlink(files[0]?.path ?? '')
    await unlink(files[1]?.path ?? '')
    const { chains, isWhole } = await verifyAudit(audit.path)
    assert.ok(isWhole)
    assert.equal(chains[0]?.firstFile, 3)
  })

  test('lines in another order', async () => {
    const lines = linesOf(1)
    const [a = '', b = ''] = lines.slice(2, 4)
    await putLines(1, lines.toSpliced(2, 2, b, a))
    assert.deepEqual(
      (await problems()).map(({ kind, line }) => [kind, line]),
      [
        ['missing', 3],
        ['misplaced', 4],
      ],
    )
  })

  test('a repeated line', async () => {
    const lines = linesOf(1)
    await putLines(1, lines.toSpliced(3, 0, lines[2] ?? ''))
    assert.deepEqual(
      (await problems()).map(({ kind, line }) => [kind, line]),
      [['misplaced', 4]],
    )
  })

  test('a line with a valid hash of its own, by the line after it', async () => {
    await using other = await tempAudit()
    await using log = await other.open()
    for (let i = 0; i < 20; i += 1) await log.record(downloadBy('nobody'))
    const forged = await readFile(join(other.path, nameOf(0)), 'utf8')
    const lines = linesOf(0)
    await putLines(0, lines.with(2, forged.split('\n')[2] ?? ''))
    assert.deepEqual(
      (await problems()).map(({ kind, line }) => [kind, line]),
      [
        ['replaced', 3],
        ['replaced', 4],
      ],
    )
  })

  test('an end that was cut off, by a recorded head of the chain', async () => {
    const last = files.length - 1
    const { seq, hash } = JSON.parse(linesOf(last).at(-1) ?? '')
    const expected = new Map([[CHAIN, { seq, hash }]])
    assert.ok((await verifyAudit(audit.path, { expected })).isWhole)
    await putLines(last, linesOf(last).slice(0, -1))
    assert.ok((await verifyAudit(audit.path)).isWhole, 'nobody else can know')
    const { chains } = await verifyAudit(audit.path, { expected })
    assert.deepEqual(
      chains[0]?.problems.map(({ kind, says }) => [kind, says]),
      [['cut-off', `the chain had a line ${seq}, but now ends with line ${seq - 1}`]],
    )
  })

  test('a chain of which nothing is left, by a recorded head of the chain', async () => {
    const expected = new Map([['lon1.gateway', { seq: 3, hash: 'a'.repeat(64) }]])
    const { isWhole } = await verifyAudit(audit.path, { expected })
    assert.equal(isWhole, false)
  })

  test('a line of garbage that has no end', async () => {
    await writeFile(files[2]?.path ?? '', Buffer.alloc(3 << 20, 'x'))
    const found = await problems()
    assert.ok(found.length < 10)
    assert.deepEqual([found[0]?.kind, found[0]?.file, found[0]?.offset], ['altered', nameOf(2), 0])
  })
})
