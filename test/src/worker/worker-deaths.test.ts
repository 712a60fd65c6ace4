// Which job runs isolated after worker deaths, and which one is given up, with jobs in the form of BullMQ.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { WriteJob } from '../../../src/gateway/export/export-jobs.ts'
import { Later } from '../../../src/gateway/export/export-parts.ts'
import { beginWork, isPoison, isSuspect } from '../../../src/worker/worker-deaths.ts'

/** The fields of a job that count deaths. */
function someJob() {
  const job = {
    data: { exportId: 'x' } as WriteJob,
    stalledCounter: 0,
    updateData: async (data: WriteJob) => {
      job.data = data
    },
  }
  return job
}

type SomeJob = ReturnType<typeof someJob>

/** The job begins, and its worker dies; returns whether the job had begun in an isolated process. */
async function dies(job: SomeJob, marker: string, isAtWork: boolean): Promise<boolean> {
  const isAlone = await isSuspect(job, marker)
  if (isAtWork) await beginWork(job, marker)
  job.stalledCounter += 1
  return isAlone
}

describe('a job whose workers die', () => {
  test('at work, at the same place, runs alone after two deaths', async () => {
    const job = someJob()
    const alone: boolean[] = []
    for (let death = 0; death < 4; death += 1) alone.push(await dies(job, 'same', true))
    assert.deepEqual(alone, [false, false, true, true])
  })

  test('while it waits runs alone after ten', async () => {
    const job = someJob()
    const alone: boolean[] = []
    for (let death = 0; death < 12; death += 1) alone.push(await dies(job, 'same', false))
    assert.equal(alone.indexOf(true), 10)
  })

  test('gets further each time and never runs alone', async () => {
    const job = someJob()
    for (let death = 0; death < 50; death += 1) assert.equal(await dies(job, `at ${death}`, true), false)
  })

  test('is not given up, however many workers die', async () => {
    const job = someJob()
    for (let death = 0; death < 300; death += 1) await dies(job, 'same', true)
    assert.equal(job.data.deaths?.crashes, 0)
  })

  test('after work that ended well is not blamed for a death while it waits', async () => {
    const job = someJob()
    await isSuspect(job, 'same')
    await beginWork(job, 'same')
    // It ends, and waits for its next turn when its worker dies.
    assert.equal(await isSuspect(job, 'same'), false)
    job.stalledCounter += 1
    await isSuspect(job, 'same')
    assert.equal(job.data.deaths?.count, 1)
  })
})

describe('a job whose own process dies', () => {
  test('is tried again after a growing pause, and given up at the third time', async () => {
    const job = someJob()
    const pauses: number[] = []
    for (let crash = 0; crash < 2; crash += 1) {
      await assert.rejects(isPoison(job), (error) => {
        assert.ok(error instanceof Later)
        pauses.push(error.delayMs)
        return true
      })
    }
    assert.deepEqual(pauses, [2_000, 4_000])
    assert.equal(await isPoison(job), true)
  })
})
