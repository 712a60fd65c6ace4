// A block that a repair has marked stays excluded until the next repair, even if its bytes are right again by then.
// That repair brings it back, also in a segment without other blocks.
import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { flipBytes } from '../../support/disks/flip-bytes.ts'
import { makePacket, makePcap } from '../../support/packets/packet-maker.ts'
import { startTempAppliance, type TempAppliance } from '../../support/processes/temp-appliance.ts'

const START_NS = 1_795_000_000_000_000_000n
const ENTRY_BYTES = 64

/** Raw IP, which has no sieves that could prove a block. */
const pcapOf = (packets: number) =>
  makePcap(
    Array.from({ length: packets }, (_, i) => makePacket(START_NS + BigInt(i) * 1_000_000n, `${i}`, 1_008)),
    { linkType: 101 },
  )

for (const [what, packets] of [
  ['of one block', 20],
  ['of several blocks', 1_000],
] as const)
  describe(`a capture ${what}`, () => {
    const whole = pcapOf(packets)
    let appliance: TempAppliance
    let segment: string
    let blocks: readonly { readonly offset: number; readonly packets: number }[]
    before(async () => {
      appliance = await startTempAppliance()
      const file = join(appliance.folder, 'some.pcap')
      await writeFile(file, whole)
      await appliance.importFiles('some', file)
      segment = join(appliance.storePath, 'captures/some/cap0/00000/00000001')
      const index = await readFile(`${segment}.idx`)
      blocks = Array.from({ length: index.length / ENTRY_BYTES - 1 }, (_, i) => {
        const at = (i + 1) * ENTRY_BYTES
        return { offset: Number(index.readBigUInt64LE(at)), packets: index.readUInt32LE(at + 28) }
      })
    })
    after(() => appliance?.[Symbol.asyncDispose]())

    const repair = async () =>
      (await appliance.recorder.verify(true, {})).findings.map(({ kind, packets: lost }) => [kind, lost])
    const download = async () => {
      const { body, trailers } = await appliance.get('/pcap/single?StreamName=some')
      return [
        body.length,
        trailers['capfleet-complete'],
        trailers['capfleet-packets'],
        trailers['capfleet-corrupt-blocks'],
      ]
    }
    const state = async () => {
      const { List } = (await appliance.get('/stream/list')).json() as { List: { State: string }[] }
      return List[0]?.State
    }
    const WHOLE = [whole.length, '1', String(packets), '0']

    for (const [how, chosen] of [
      ['its first block is', (all: typeof blocks) => all.slice(0, 1)],
      ['all blocks are', (all: typeof blocks) => all],
    ] as const)
      test(`of which ${how} marked`, async () => {
        const damaged = chosen(blocks)
        const places = damaged.map(({ offset }) => offset + 40)
        await flipBytes(`${segment}.pcap`, ...places)
        assert.deepEqual(
          await repair(),
          damaged.map((block) => ['block-damaged', BigInt(block.packets)]),
        )
        const lost = damaged.reduce((sum, block) => sum + block.packets, 0)
        const rest = packets - lost
        const less = [24 + rest * (16 + 1_008), '0', String(rest), String(damaged.length)]
        assert.deepEqual(await download(), less)
        await flipBytes(`${segment}.pcap`, ...places)
        assert.deepEqual(await download(), less, 'a mark holds until a repair takes it away')
        assert.equal(await state(), 'damaged')
        const back = (await repair()).filter(([kind]) => kind === 'block-readable')
        assert.deepEqual(
          back,
          damaged.map((block) => ['block-readable', BigInt(block.packets)]),
        )
        assert.deepEqual([await download(), await state(), await repair()], [WHOLE, 'closed', []])
      })

    test('whose entry is lost after it was marked is not trusted without proof', async () => {
      const first = blocks[0]
      assert.ok(first)
      await flipBytes(`${segment}.pcap`, first.offset + 40)
      await repair()
      const less = await download()
      assert.equal(less[1], '0')
      await flipBytes(`${segment}.idx`, ...[8, 20, 30, 33, 41, 57].map((at) => ENTRY_BYTES + at))
      await flipBytes(`${segment}.tally`, 3)
      assert.deepEqual(await download(), less)
      await repair()
      assert.deepEqual([await download(), await state()], [less, 'damaged'])
    })
  })
