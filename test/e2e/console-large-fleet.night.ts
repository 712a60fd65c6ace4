// The page over a fleet of 1,000 devices that have captured for 30 days. The answers are derived from those of a real
// gateway, because that many appliances do not fit on one machine.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Page, Route } from 'playwright-core'
import { missingForConsole, settled, show, signIn } from '../support/console/console-browser.ts'
import { ConsoleStand } from '../support/console/console-stand.ts'
import { USER_PASSWORD } from '../support/suite-secrets.ts'

const DEVICES = 1_000
const DAY_NS = 86_400_000_000_000n
const TO_NS = 1_793_610_000_000_000_000n
const FROM_NS = TO_NS - 30n * DAY_NS
const THIRTY_DAYS = `view-from=${FROM_NS}&view-to=${TO_NS}`
const WHEEL_STEPS = 60
/** Visible rows, and a few around them. */
const ROWS_MAX = 100
/** The number of devices that the gateway reports per answer. */
const ASKED_MAX = 64

describe('the page over 1,000 devices and 30 days', { skip: missingForConsole() }, () => {
  let stand: ConsoleStand
  let page: Page
  const asked: string[][] = []

  before(async () => {
    stand = await ConsoleStand.create()
    page = stand.page
    await page.route('**/v1/devices', devices)
    await page.route('**/v1/activity?*', async (route) => {
      const query = new URL(route.request().url()).searchParams
      asked.push((query.get('Device') ?? '').split(','))
      await route.fulfill({ json: activity(query) })
    })
    await signIn(page, { user: 'full', password: USER_PASSWORD })
  })
  after(async () => {
    // Closing the page while an answer is being prepared would fail the test.
    await page.unrouteAll({ behavior: 'wait' })
    await stand[Symbol.asyncDispose]()
  })

  test('has only the rows in sight in it, and reaches the last device', async () => {
    await show(page, '#/fleet')
    const rows = page.locator('tr[data-device]')
    await rows.first().waitFor()
    assert.ok((await rows.count()) < ROWS_MAX, `${await rows.count()} rows`)
    await page.locator('.table-scroller').evaluate((scroller) => {
      scroller.scrollTop = scroller.scrollHeight
    })
    await page.locator(`tr[data-device=d${DEVICES - 1}]`).waitFor()
    assert.ok((await rows.count()) < ROWS_MAX, `${await rows.count()} rows`)
    await page.getByRole('searchbox').fill('d777')
    await page.locator('tr[data-device=d777]').waitFor()
    assert.equal(await rows.count(), 1)
  })

  test('fills lanes in one question, and asks no more of them for each turn of the wheel', async (t) => {
    asked.length = 0
    const startMs = performance.now()
    await show(page, `#/timeline?${THIRTY_DAYS}`)
    await page.locator('.lane-canvas[aria-busy=false] canvas, .lane-canvas:not([aria-busy]) canvas').waitFor()
    await page.waitForFunction(() => document.querySelectorAll('.scale').length > 0)
    t.diagnostic(`first lanes after ${Math.round(performance.now() - startMs)} ms`)
    await settled(page)
    assert.ok(asked.length > 0 && asked.length <= 2, `${asked.length} questions`)
    for (const names of asked) assert.ok(names.length <= ASKED_MAX, `${names.length} devices in one`)
    asked.length = 0
    const frames = await framesWhileZooming(page)
    t.diagnostic(`median frame of ${frames.length}: ${median(frames).toFixed(1)} ms`)
    await settled(page)
    assert.ok(asked.length <= WHEEL_STEPS / 4, `${asked.length} questions for ${WHEEL_STEPS} turns`)
    await page.waitForFunction((before) => !location.hash.includes(before), THIRTY_DAYS)
    const view = new URLSearchParams((await page.evaluate(() => location.hash)).split('?')[1])
    const span = BigInt(view.get('view-to') ?? 0) - BigInt(view.get('view-from') ?? 0)
    assert.ok(span > 0n && span < 15n * DAY_NS, `${span} ns are shown`)
    assert.deepEqual(stand.opened.faults, [])
  })
})

/** The report of one real device, repeated for each name. */
async function devices(route: Route): Promise<void> {
  const real = await route.fetch()
  const answer = await real.json()
  const [one] = answer.devices
  const many = Array.from({ length: DEVICES }, (_, index) => ({
    ...one,
    name: `d${index}`,
    site: `site${String(Math.floor(index / 50)).padStart(2, '0')}`,
  }))
  await route.fulfill({ response: real, json: { ...answer, devices: many } })
}

/** Each device captured all the time, with one gap. */
function activity(query: URLSearchParams): unknown {
  const [fromNs, toNs] = [BigInt(query.get('TSBegin') ?? 0), BigInt(query.get('TSEnd') ?? 0)]
  const count = Number(query.get('Buckets'))
  const bucketNs = (toNs - fromNs + BigInt(count) - 1n) / BigInt(count)
  const gapFromNs = fromNs + (toNs - fromNs) / 3n
  return {
    fromNs: String(fromNs),
    toNs: String(toNs),
    bucketNs: String(bucketNs),
    devices: (query.get('Device') ?? '').split(',').map((device, lane) => ({
      device,
      packets: Array.from({ length: count }, (_, index) => (index * 7 + lane) % 100),
      bytes: Array.from({ length: count }, (_, index) => ((index * 7 + lane) % 100) * 900),
      gaps: [{ fromNs: String(gapFromNs), toNs: String(gapFromNs + bucketNs * 3n) }],
      dropped: [],
      trimmed: [],
    })),
  }
}

/** How long each frame was on the screen while the wheel turned at each position, in milliseconds. */
async function framesWhileZooming(page: Page): Promise<readonly number[]> {
  const box = await page.locator('.lane-canvas').boundingBox()
  assert.ok(box)
  return await page.evaluate(
    async ({ steps, x, y }) => {
      const target = document.elementFromPoint(x, y)
      const frames: number[] = []
      let before = performance.now()
      for (let step = 0; step < steps; step += 1) {
        const options = {
          deltaY: -20,
          ctrlKey: true,
          clientX: x,
          clientY: y,
          bubbles: true,
          cancelable: true,
        }
        target?.dispatchEvent(new WheelEvent('wheel', options))
        await new Promise((resolve) => void requestAnimationFrame(resolve))
        const now = performance.now()
        frames.push(now - before)
        before = now
      }
      return frames
    },
    { steps: WHEEL_STEPS, x: box.x + box.width / 2, y: box.y + box.height / 2 },
  )
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0
}
