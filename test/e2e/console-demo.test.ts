// The page of the demo, with the real programs as processes that the test may kill.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Page } from 'playwright-core'
import {
  ConsoleBrowser,
  missingForConsole,
  type OpenPage,
  settled,
  show,
  signIn,
} from '../support/console/console-browser.ts'
import { type DemoProcess, startDemo, temporaryHome } from '../support/processes/demo-process.ts'

/** A host of the generated traffic that README.md names. */
const CAPTURE = 'demo_20261102_0900'
const BEGIN_NS = 1_793_610_000_000_000_000n
const LENGTH_NS = 300_000_000_000n
const ALL_OF_IT = `#/timeline?view-from=${BEGIN_NS}&view-to=${BEGIN_NS + LENGTH_NS}`
const HALF_OF_IT = `#/timeline?view-from=${BEGIN_NS}&view-to=${BEGIN_NS + LENGTH_NS / 2n}`
const DOWN_WITHIN_MS = 10_000
/** Distance from the top of the lanes' picture: inside the first lane, below the axis. */
const IN_FIRST_LANE_PX = 60

describe('the page of the demo', { skip: missingForConsole() }, () => {
  const owned = new AsyncDisposableStack()
  let demo: DemoProcess
  let opened: OpenPage
  let page: Page

  before(async () => {
    const home = owned.use(await temporaryHome())
    demo = owned.use(await startDemo(home.path))
    const browser = owned.use(await ConsoleBrowser.launch())
    opened = owned.use(await browser.open(`${demo.facts.gatewayUrl}/`, { colorScheme: 'dark' }))
    page = opened.page
    await signIn(page, demo.facts)
  })
  after(() => owned.disposeAsync())

  test("finds the demo's captures, and describes what is under the pointer", async () => {
    await show(page, ALL_OF_IT)
    for (const { name } of demo.facts.devices)
      await page.locator('.capture-list li', { hasText: CAPTURE }).filter({ hasText: name }).waitFor()
    await settled(page)
    const picture = page.locator('.lane-canvas canvas')
    const { width = 0 } = (await picture.boundingBox()) ?? {}
    await picture.hover({ position: { x: width / 2, y: IN_FIRST_LANE_PX } })
    const [first = ''] = demo.facts.devices.map(({ name }) => name)
    const told = await page.locator('.readout', { hasText: first }).innerText()
    // The middle of five minutes with 370 packets per second.
    assert.match(told, /09:02:30/)
    const [, rate = ''] = /([\d,.]+) packets\/s/.exec(told.replaceAll('\n', ' ')) ?? []
    assert.ok(Number(rate.replaceAll(',', '')) > 100, told)
  })

  test('says that older captures are left out where the list of the fleet was cut', async () => {
    await page.route('**/stream/list?*', async (route) => {
      const answer = await route.fetch()
      await route.fulfill({ response: answer, json: { ...(await answer.json()), Next: 'more' } })
    })
    await show(page, HALF_OF_IT)
    await page.locator('.capture-list summary', { hasText: 'The newest 3 are shown' }).waitFor()
    await page.unrouteAll({ behavior: 'wait' })
  })

  test('is of the chosen theme before its script has come', async () => {
    await page.getByRole('button', { name: 'Light' }).click()
    const mayCome = Promise.withResolvers<void>()
    await page.route('**/assets/index-*.js', async (route) => {
      await mayCome.promise
      await route.continue()
    })
    await page.reload({ waitUntil: 'commit' })
    await page.waitForFunction(() => getComputedStyle(document.documentElement).colorScheme === 'light')
    assert.equal(await page.locator('#page').innerHTML(), '')
    mayCome.resolve()
    await page.getByRole('navigation').waitFor()
    assert.deepEqual(opened.faults, [])
  })

  test(`a device that is killed is shown as down within ${DOWN_WITHIN_MS / 1_000} s`, async (t) => {
    const [device] = demo.facts.devices
    assert.ok(device)
    await show(page, '#/fleet')
    const row = page.locator(`tr[data-device=${device.name}]`)
    await row.filter({ hasText: 'up' }).waitFor()
    const startMs = performance.now()
    process.kill(device.pid, 'SIGKILL')
    await row.filter({ hasText: 'down' }).waitFor({ timeout: DOWN_WITHIN_MS })
    t.diagnostic(`down after ${Math.round(performance.now() - startMs)} ms`)
  })
})
