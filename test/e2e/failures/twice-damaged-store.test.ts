/**
 * A byte of packets changes, and so does something beside them that would tell: index, tally, sieve or log of the same
 * segment. What then comes out, before and after a recorder has taken the store up, and after a repair: no packet that was
 * not written, and no loss that nothing reports.
 *
 *   STORE_PAIRS   how many pairs of damages; `npm run flips -- 10000` sets it
 */
import assert from 'node:assert/strict'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, extname, join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { copyModel, type DamageModel, makeDamageModel } from '../../support/disks/damage-model.ts'
import {
  checkWhatWasMet,
  readDamaged,
  recoverDamaged,
  repairStore,
} from '../../support/disks/damaged-copy.ts'
import { seededRandom } from '../../support/seeded-random.ts'
import { tempFolder } from '../../support/temp-folder.ts'
import { TEST_LIMIT_MS } from '../../support/test-limits.ts'

const PAIRS = Number(process.env.STORE_PAIRS ?? 12)
const BOOT_IDS = ['this-boot', 'another-boot'] as const
/** Where the first record of a segment and the first entry of its index begin. */
const PCAP_HEADER_BYTES = 24

/** `npm test` always tries the same pairs; the long run others each time. */
const random = process.env.STORE_PAIRS === undefined ? seededRandom(3_601_080_888) : seededRandom()

interface Damage {
  readonly file: string
  readonly from: number
  readonly to: number
  readonly isZero: boolean
}

describe('a store that is damaged twice in one segment', {
  timeout: TEST_LIMIT_MS + PAIRS * 4_000,
}, () => {
  let model: DamageModel
  let home: Awaited<ReturnType<typeof tempFolder>>
  before(async () => {
    home = await tempFolder()
    model = await makeDamageModel(home.path, BOOT_IDS[0])
  })
  after(() => home[Symbol.asyncDispose]())

  test(`returns nothing that was not written, ${PAIRS} times (SEED=${random.seed})`, async (t) => {
    const seen = { lost: 0, told: 0 }
    for (let round = 0; round < PAIRS; round++) {
      const damages = await twoDamages(model)
      const bootId = random.pick(BOOT_IDS)
      const path = join(home.path, `twice-${round}`)
      await copyModel(model, path)
      for (const damage of damages) await applyDamage(path, damage)
      try {
        const mayLose = new Set(damages.flatMap(({ file, from, to }) => [...model.mayLose(file, from, to)]))
        await readDamaged(path, model, { mayLose, unflushed: true })
        await recoverDamaged(path, bootId)
        const recovered = await readDamaged(path, model, { mayLose, unflushed: false })
        await checkWhatWasMet(path, bootId)
        const met = await readDamaged(path, model, { mayLose, unflushed: false })
        assert.ok(met.lost === 0 || met.damagedCaptures > 0, 'a loss that the list does not tell')
        await repairStore(path, bootId)
        const repaired = await readDamaged(path, model, { mayLose, unflushed: false })
        assert.ok(repaired.lost <= recovered.lost, 'a repair that loses packets')
        seen.lost += repaired.lost
        seen.told += repaired.damagedCaptures
      } catch (error) {
        throw new Error(`SEED=${random.seed} round ${round}: ${bootId}, ${JSON.stringify(damages)}`, {
          cause: error,
        })
      }
      await rm(path, { recursive: true })
    }
    t.diagnostic(JSON.stringify(seen))
  })
})

/** Some bytes of a segment's packets, and more of what describes them. */
async function twoDamages(model: DamageModel): Promise<readonly [Damage, Damage]> {
  const packets = random.pick(model.files.filter((file) => extname(file) === '.pcap'))
  const segment = packets.slice(0, -'.pcap'.length)
  const capture = dirname(dirname(dirname(packets)))
  const beside = ['.idx', '.idx', '.idx', '.tally', '.sieve'].map((ending) => `${segment}${ending}`)
  const besideFile = random.pick([...beside, join(capture, 'segments.log')])
  const besideBytes = (await readFile(join(model.path, besideFile))).length
  const from = random.integer(0, Math.max(0, besideBytes - 1))
  const length = random.pick([2, random.integer(2, 64), random.integer(2, 200), besideBytes])
  const record = random.pick([...model.offsetsOf(packets), PCAP_HEADER_BYTES]) + random.integer(0, 15)
  const { length: packetBytes } = await readFile(join(model.path, packets))
  const at = random.pick([record, random.integer(0, packetBytes - 1)])
  return [
    { file: besideFile, from, to: Math.min(besideBytes, from + length), isZero: random.pick([true, false]) },
    { file: packets, from: at, to: at + 1, isZero: false },
  ]
}

async function applyDamage(root: string, { file, from, to, isZero }: Damage): Promise<void> {
  const bytes = await readFile(join(root, file))
  for (let at = from; at < to; at++) bytes.writeUInt8(isZero ? 0 : bytes.readUInt8(at) ^ 0x5a, at)
  await writeFile(join(root, file), bytes)
}
