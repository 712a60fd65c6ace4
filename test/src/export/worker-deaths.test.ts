// Which job is to blame when workers die, with jobs as BullMQ would give them.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Job } from 'bullmq'
import type { WriteJob } from '../../../src/export/export-jobs.ts'
import { Later } from '../../../src/export/export-parts.ts'
import { beginWork, isPoison } from '../../../src/export/worker-deaths.ts'

/** Of a job, only what counts deaths. */
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

/** Runs the job until its worker dies: whether it was parked instead. A job that is to wait is asked again. */
async function dies(job: SomeJob, marker: string, isAtWork: boolean): Promise<boolean> {
  const asked = job as unknown as Job<WriteJob>
  const again = (error: unknown) => {
    if (error instanceof Later) return isPoison(asked, marker)
    throw error
  }
  if (await isPoison(asked, marker).catch(again)) return true
  if (isAtWork) await beginWork(asked, marker)
  job.stalledCounter += 1
  return false
}

describe('a job whose workers die', () => {
  test('at work, at the same place, is parked after five deaths', async () => {
    const job = someJob()
    const parked: boolean[] = []
    for (let death = 0; death < 6; death += 1) parked.push(await dies(job, 'same', true))
    assert.deepEqual(parked, [false, false, false, false, false, true])
  })

  test('lets others go first from its second death on', async () => {
    const job = someJob()
    await dies(job, 'same', true)
    await dies(job, 'same', true)
    await assert.rejects(isPoison(job as unknown as Job<WriteJob>, 'same'), Later)
  })

  test('gets further each time and is never parked', async () => {
    const job = someJob()
    for (let death = 0; death < 50; death += 1) assert.equal(await dies(job, `at ${death}`, true), false)
  })

  test('while it waits is parked much later', async () => {
    const job = someJob()
    let deaths = 0
    while (!(await dies(job, 'same', false))) deaths += 1
    assert.ok(deaths >= 40 && deaths <= 60, `${deaths}`)
  })

  test('after work that ended well is not blamed for a death while it waits', async () => {
    const job = someJob()
    const asked = job as unknown as Job<WriteJob>
    for (let turn = 0; turn < 20; turn += 1) {
      assert.equal(await isPoison(asked, 'same'), false)
      await beginWork(asked, 'same')
      // It ends, and waits at its next turn when its worker dies.
      assert.equal(await isPoison(asked, 'same'), false)
      job.stalledCounter += 1
    }
  })
})
