/**
 * The recorder and the appliance are killed again and again while numbered packets arrive over a dedicated wire.
 *
 *   RECORDER_KILLS=<n>    kills of the recorder (3 in npm test, 200 in the long run)
 *   APPLIANCE_KILLS=<n>   kills of the appliance (3 in npm test, 100 in the long run)
 *   SEED=<n>              repeats the choice of moments
 */
import assert from 'node:assert/strict'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { putUser } from '../../../src/shared/auth/edit-users-file.ts'
import { eventually } from '../../support/eventually.ts'
import { captureWire, WITHOUT_WIRE } from '../../support/network/capture-wire.ts'
import {
  type Flushed,
  flushedBefore,
  lossesIn,
  sentFromNowOn,
} from '../../support/packets/flushed-packets.ts'
import { NumberedSender } from '../../support/packets/numbered-sender.ts'
import { storedNumbers } from '../../support/packets/stored-numbers.ts'
import { pause } from '../../support/pause.ts'
import { ApplianceProcess } from '../../support/processes/appliance-process.ts'
import { RecorderProcess } from '../../support/processes/recorder-process.ts'
import { seededRandom } from '../../support/seeded-random.ts'
import { APPLIANCE_PASSWORD } from '../../support/suite-secrets.ts'
import { tempFolder } from '../../support/temp-folder.ts'
import { TEST_LIMIT_MS } from '../../support/test-limits.ts'

const RECORDER_KILLS = Number(process.env.RECORDER_KILLS ?? 3)
const APPLIANCE_KILLS = Number(process.env.APPLIANCE_KILLS ?? 3)
/** A shared machine may stop a process for long, so the recorder's restart time is judged only in the long run. */
const IS_LONG_RUN = process.env.RECORDER_KILLS !== undefined
const RESUME_LIMIT_MS = 1_000
const PACKETS_PER_TICK = 20
const LONGEST_LIFE_MS = 400

describe('kill -9', {
  skip: WITHOUT_WIRE,
  timeout: TEST_LIMIT_MS + (RECORDER_KILLS + APPLIANCE_KILLS) * 5_000,
}, () => {
  test(`of the recorder, ${RECORDER_KILLS} times: what was flushed is there, once, byte for byte`, async (t) => {
    const random = seededRandom()
    t.diagnostic(`SEED=${random.seed}`)
    await using folder = await tempFolder()
    await using wire = await captureWire()
    await using recorder = await RecorderProcess.start({ wire, folder: folder.path })
    await using sender = await NumberedSender.start(wire, PACKETS_PER_TICK)
    const { name } = await recorder.client.startCapture('kills')
    const promises: Flushed[] = []
    const resumeMs: number[] = []
    for (let kill = 0; kill < RECORDER_KILLS; kill++) {
      promises.push(await killWithinALife(recorder, sender, random.integer(0, LONGEST_LIFE_MS)))
      const killedAtMs = performance.now()
      await recorder.start()
      assert.equal((await recorder.running()).name, name)
      resumeMs.push(performance.now() - killedAtMs)
    }
    promises.push(await stopAfter(recorder, sender))
    t.diagnostic(`back within ${Math.round(Math.max(...resumeMs))} ms, mostly ${median(resumeMs)} ms`)
    if (IS_LONG_RUN) assert.ok(median(resumeMs) < RESUME_LIMIT_MS, `mostly ${median(resumeMs)} ms`)
    assert.deepEqual(await readdir(join(recorder.storePath, 'captures')), [name])
    const stored = await storedNumbers(join(recorder.storePath, 'captures', name))
    const promised = promises.reduce((sum, { from, to }) => sum + to - from, 0)
    t.diagnostic(`${sender.sent} sent, ${promised} flushed before a kill, ${stored.length} stored`)
    assert.ok(promised > RECORDER_KILLS * PACKETS_PER_TICK, 'much was flushed')
    assert.deepEqual(lossesIn(stored, promises), [])
  })

  test('negative control: a packet that is missing, or there twice, or out of order, is seen', async () => {
    const all = Array.from({ length: 100 }, (_, number) => number)
    const promises = [{ from: 10, to: 90 }]
    assert.deepEqual(lossesIn(all, promises), [])
    assert.deepEqual(lossesIn(all.slice(5, 95), promises), [])
    assert.deepEqual(lossesIn(all.toSpliced(50, 1), promises), ['50 was flushed and is not there'])
    assert.deepEqual(lossesIn(all.toSpliced(50, 0, 49), promises), ['49 comes after 49'])
    assert.deepEqual(lossesIn([...all, 3], promises), ['3 comes after 99'])
  })

  test(`of the appliance, ${APPLIANCE_KILLS} times: the capture loses no packet`, async (t) => {
    await using folder = await tempFolder()
    await using wire = await captureWire()
    await putUser(join(folder.path, 'users.yaml'), { name: 'full', role: 'full' }, APPLIANCE_PASSWORD)
    await using recorder = await RecorderProcess.start({ wire, folder: folder.path })
    const { name } = await recorder.client.startCapture('whole')
    await using sender = await NumberedSender.start(wire, PACKETS_PER_TICK)
    for (let kill = 0; kill < APPLIANCE_KILLS; kill++) await killAppliance(recorder.configPath)
    await sender[Symbol.asyncDispose]()
    const stopped = await recorder.client.stopCapture(false)
    const stored = await storedNumbers(join(recorder.storePath, 'captures', name))
    t.diagnostic(`${sender.sent} sent, ${stored.length} stored`)
    assert.equal(stopped.packets, BigInt(stored.length))
    assert.equal(stopped.drops, 0n)
    assert.ok(sender.sent > 0)
    assert.equal(stored.length, sender.sent)
    assert.deepEqual(lossesIn(stored, [{ from: 0, to: stored.length }]), [])
  })
})

/** Lets the recorder flush something, then kills it at a random moment. */
async function killWithinALife(
  recorder: RecorderProcess,
  sender: NumberedSender,
  lifeMs: number,
): Promise<Flushed> {
  const from = await sentFromNowOn(sender)
  await eventually(async () => flushedBefore(sender, (await recorder.running()).counts.flushedNs) > from, {
    message: 'something is flushed',
  })
  await pause(lifeMs, 'it is killed at any moment')
  const { counts } = await recorder.client.captureReport()
  await recorder.end('SIGKILL')
  return { from, to: flushedBefore(sender, counts.flushedNs) }
}

async function stopAfter(recorder: RecorderProcess, sender: NumberedSender): Promise<Flushed> {
  const from = await sentFromNowOn(sender)
  await pause(LONGEST_LIFE_MS, 'it lives as long as one that is killed')
  await sender[Symbol.asyncDispose]()
  await recorder.client.stopCapture(false)
  return { from, to: sender.sent }
}

/** Starts the appliance, and kills it in the middle of a download. */
async function killAppliance(configPath: string): Promise<void> {
  await using appliance = await ApplianceProcess.start(configPath)
  const headers = { authorization: `Basic ${btoa(`full:${APPLIANCE_PASSWORD}`)}` }
  const answer = await fetch(`${appliance.url}/api/v1/pcap/single?StreamName=whole`, { headers })
  assert.equal(answer.status, 200)
  await appliance[Symbol.asyncDispose]()
  await answer.arrayBuffer().catch(() => undefined)
}

function median(values: readonly number[]): number {
  return Math.round(values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0)
}
