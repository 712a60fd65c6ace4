/** Tests of user actions on the page: downloads that continue, exports, schedules, captures, tokens, events. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { eventually } from '../eventually.ts'
import { WHOLE_RANGE } from '../exports/export-world.ts'
import { httpGet } from '../http-get.ts'
import { readPcap } from '../packets/pcap-records.ts'
import { saved, sha256, show } from './console-browser.ts'
import type { ConsoleStand } from './console-stand.ts'

const CUT_AFTER_BYTES = 400_000
const SLOW_BYTES_PER_SECOND = 100_000
const PCAP_HEADER_BYTES = 24

export function testDownloadsAndExports(stand: () => ConsoleStand): void {
  test('a download that broke off continues where it was cut', async () => {
    const { page, world } = stand()
    const { line } = world.device('north')
    await show(page, `#/timeline?${WHOLE_RANGE}&Device=north`)
    const button = page.getByRole('button', { name: 'Download', exact: true })
    await page.locator('.estimate', { hasText: 'exactly' }).waitFor()
    line.cutAfterBytes = CUT_AFTER_BYTES
    const [cut] = await Promise.all([page.waitForEvent('download'), button.click()])
    assert.notEqual(await cut.failure(), null)
    line.cutAfterBytes = Number.POSITIVE_INFINITY
    const receipt = page.locator('li[data-status=failed]').first()
    const { bytes } = await saved(page, () => receipt.getByRole('button', { name: 'Continue' }).click())
    const whole = readPcap(await world.direct(`/api/v1/pcap/timerange?${WHOLE_RANGE}&Device=north`)).records
    const rest = readPcap(bytes).records
    assert.ok(rest.length > 0 && rest.length < whole.length, `${rest.length} of ${whole.length}`)
    assert.deepEqual(rest, whole.slice(-rest.length))
  })

  test('a download that was given up continues after the part that a user has', async () => {
    const { page, world } = stand()
    const { line } = world.device('north')
    await show(page, `#/timeline?${WHOLE_RANGE}&Device=north`)
    await page.locator('.estimate', { hasText: 'exactly' }).waitFor()
    line.bytesPerSecond = SLOW_BYTES_PER_SECOND
    const button = page.getByRole('button', { name: 'Download', exact: true })
    const [download] = await Promise.all([page.waitForEvent('download'), button.click()])
    await download.cancel()
    line.bytesPerSecond = undefined
    await page.locator('li[data-status=client-gone]').getByRole('button', { name: 'Continue' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Size of your file in bytes').fill(String(PCAP_HEADER_BYTES))
    const { bytes } = await saved(page, () => dialog.getByRole('button', { name: 'Continue' }).click())
    const whole = await world.direct(`/api/v1/pcap/timerange?${WHOLE_RANGE}&Device=north`)
    assert.equal(sha256(bytes), sha256(whole.subarray(PCAP_HEADER_BYTES)))
  })

  test('a download that left out a device names it, and its estimate says whose packets it counts', async () => {
    const { page, world } = stand()
    const { line } = world.device('west')
    line.isDown = true
    await show(page, `#/timeline?${WHOLE_RANGE}&OnError=partial`)
    await page.locator('.estimate', { hasText: 'from 2 of 3 devices' }).waitFor()
    await saved(page, () => page.getByRole('button', { name: 'Download', exact: true }).click())
    line.isDown = false
    await page.locator('li[data-status=partial]', { hasText: /west is missing from \d.* to \d/ }).waitFor()
  })

  test('an export fetches what was missing when its device is back', async () => {
    const { page, world } = stand()
    const { line } = world.device('west')
    await show(page, `#/timeline?${WHOLE_RANGE}&OnMissing=partial&Reason=filled`)
    const order = page.getByRole('button', { name: 'Order export' })
    await page.locator('.estimate', { hasText: 'exactly' }).waitFor()
    line.isDown = true
    await order.click()
    await page.getByRole('link', { name: 'Export ordered' }).click()
    const row = page.locator('tr.marked')
    await row.locator('.state-partial').waitFor()
    assert.match(await row.innerText(), /Missing: west/)
    line.isDown = false
    await row.getByRole('button', { name: 'Fetch missing parts' }).click()
    await row.locator('.state-complete').waitFor()
    const { bytes } = await saved(page, () => row.getByRole('link', { name: /^File/ }).click())
    assert.equal(sha256(bytes), sha256(await world.direct(`/api/v1/pcap/timerange?${WHOLE_RANGE}`)))
  })

  test('an export whose events are not to be had is followed by the list', async () => {
    const { page, world } = stand()
    const { line } = world.device('west')
    await page.route('**/v1/exports/*/events', (route) => route.fulfill({ status: 503 }))
    await show(page, `#/timeline?${WHOLE_RANGE}&Device=west&Reason=followed`)
    await page.locator('.estimate', { hasText: 'exactly' }).waitFor()
    line.bytesPerSecond = SLOW_BYTES_PER_SECOND
    await page.getByRole('button', { name: 'Order export' }).click()
    const asked = page.waitForRequest('**/v1/exports/*/events')
    await page.getByRole('link', { name: 'Export ordered' }).click()
    await asked
    line.bytesPerSecond = undefined
    await page.locator('tr.marked .state-complete').waitFor()
    await page.unroute('**/v1/exports/*/events')
  })

  test('a schedule is ordered and ended', async () => {
    const { page, world } = stand()
    await show(page, `#/timeline?TSBegin=-1h&TSEnd=now&Cron=${encodeURIComponent('0 3 * * *')}`)
    await page.getByRole('button', { name: 'Order schedule' }).click()
    await page.getByRole('link', { name: 'Schedule created' }).click()
    const row = page.locator('tr', { hasText: '0 3 * * *' })
    await row.getByRole('link', { name: 'Copy and change' }).click()
    await page.locator('#parameter-Cron').waitFor()
    assert.equal(await page.locator('#parameter-Cron').inputValue(), '0 3 * * *')
    assert.equal(await page.locator('#parameter-TSBegin').inputValue(), '-1h')
    await page.goBack()
    await row.getByRole('button', { name: 'End schedule' }).click()
    assert.equal((await schedulesOf(world)).length, 1)
    await page.getByRole('dialog').getByRole('button', { name: 'End schedule' }).click()
    await row.waitFor({ state: 'detached' })
    assert.deepEqual(await schedulesOf(world), [])
  })
}

export function testTypedSchedules(stand: () => ConsoleStand): void {
  test('a schedule is checked while it is typed, with its next runs', async () => {
    const { page } = stand()
    await show(page, '#/timeline?TSBegin=-1h&TSEnd=now')
    await page.getByText('For schedules').click()
    const order = page.getByRole('button', { name: /^Order (export|schedule)$/ })
    const cron = page.locator('#parameter-Cron')
    await cron.fill('0 3 * *')
    await page.locator('#parameter-Cron-problem', { hasText: 'must have five fields' }).waitFor()
    assert.ok(await order.isDisabled())
    await cron.fill('0 3 31 2 *')
    await page.locator('#parameter-Cron-problem', { hasText: 'matches some time' }).waitFor()
    await cron.fill('30 3 * * *')
    await page.locator('.due', { hasText: /Next runs:( \d{4}-\d\d-\d\d 03:30:00,?){3} UTC/ }).waitFor()
    await page.locator('#parameter-CronZone').fill('Atlantis')
    await page.locator('#parameter-CronZone-problem', { hasText: '“Time zone of When”' }).waitFor()
    assert.ok(await order.isDisabled())
    await page.locator('#parameter-CronZone').fill('Asia/Kathmandu')
    await page.locator('.due', { hasText: / 21:45:00, / }).waitFor()
    await page.getByRole('button', { name: 'Every Monday' }).click()
    assert.equal(await cron.inputValue(), '0 3 * * 1')
    await page.waitForFunction(() => document.querySelector('.due')?.textContent?.includes(' 21:15:00, '))
    assert.ok(await order.isEnabled())
  })

  test('a schedule of days is one of days at each run, in the zone that is shown', async () => {
    const { page, world } = stand()
    await show(page, `#/timeline?Cron=${encodeURIComponent('0 3 1 1 *')}`)
    for (const [label, day] of [
      ['Begin', 'yesterday'],
      ['End', 'today'],
    ] as const) {
      await page.getByLabel(label, { exact: true }).fill(day)
      await page.getByLabel(label, { exact: true }).press('Tab')
      assert.equal(await page.getByLabel(label, { exact: true }).inputValue(), day)
    }
    await page.getByText('From midnight in UTC').first().waitFor()
    await page.getByRole('button', { name: 'Order schedule' }).click()
    await page.getByRole('link', { name: 'Schedule created' }).waitFor()
    const queries = (await schedulesOf(world)).map((schedule) => (schedule as { query: string }).query)
    const days = queries
      .map((query) => new URLSearchParams(query))
      .filter((one) => one.get('TSBegin') === 'yesterday')
    assert.deepEqual(
      days.map((one) => [one.get('TSEnd'), one.get('TSZone')]),
      [['today', 'UTC']],
    )
  })
}

async function schedulesOf(world: ConsoleStand['world']): Promise<readonly unknown[]> {
  return (await world.call('/v1/schedules', { as: 'full' })).json().schedules as unknown[]
}

export function testControl(stand: () => ConsoleStand): void {
  test('captures start and stop on several devices at a time, and each device reports its result', async () => {
    const { page, world } = stand()
    const stateOf = async (name: 'east' | 'north') =>
      (await world.device(name).appliance.get('/sysmaster/capture_status')).json().State
    await show(page, '#/fleet')
    await page.getByLabel('Select for start and stop: east').check()
    await control(page, 'Start capture', 'first')
    assert.equal(await stateOf('east'), 'running')
    await page.getByLabel('Select for start and stop: north').check()
    const partly = await control(page, 'Start capture', 'second')
    assert.match(partly.outcome, /1 of 2 devices failed/)
    assert.match(partly.devices.east ?? '', /first_\d+_\d+ is running; stop it first/)
    assert.match(partly.devices.north ?? '', /started second_\d+_\d+/)
    assert.equal(await stateOf('north'), 'running')
    const stopped = await control(page, 'Stop capture')
    assert.match(stopped.outcome, /All devices succeeded/)
    assert.deepEqual([await stateOf('east'), await stateOf('north')], ['idle', 'idle'])
  })

  test('a token is created, shown once, works, and stops working when it is revoked', async () => {
    const { page, url } = stand()
    await show(page, '#/access')
    await page.getByText('New token').click()
    await page.getByLabel('Note', { exact: true }).fill('made by a click')
    await page.locator('#parameter-Devices').fill('*')
    await page.getByRole('button', { name: 'Create token' }).click()
    const token = await page.locator('.made .value').innerText()
    const headers = { authorization: `Bearer ${token}` }
    const status = async () => (await httpGet(`${url}v1/devices`, { headers })).status
    assert.equal(await status(), 200)
    // The audit log below shows the same token in its own row, which may appear at any time.
    const row = page.getByLabel('Tokens', { exact: true }).locator('tr', { hasText: 'made by a click' })
    await row.getByRole('button', { name: 'Revoke' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click()
    await row.waitFor({ state: 'detached' })
    await eventually(async () => (await status()) === 401, { message: 'it is refused' })
  })
}

/** Confirms the question about the selected devices, which names them, and reads the result of each. */
async function control(
  page: Page,
  action: 'Start capture' | 'Stop capture',
  name?: string,
): Promise<{ readonly outcome: string; readonly devices: Readonly<Record<string, string>> }> {
  await page.getByRole('button', { name: `${action}s…` }).click()
  const dialog = page.getByRole('dialog')
  if (name !== undefined) await dialog.getByLabel('Name of the capture').fill(name)
  await dialog.getByRole('button', { name: action, exact: true }).click()
  await dialog.getByRole('heading', { name: 'Result on each device' }).waitFor()
  const outcome = await dialog.locator('[role=status], [role=alert]').innerText()
  const rows = await dialog.locator('li[data-device]').all()
  const devices = await Promise.all(
    rows.map(async (row) => [(await row.getAttribute('data-device')) ?? '', await row.innerText()] as const),
  )
  await dialog.getByRole('button', { name: 'Close' }).click()
  return { outcome, devices: Object.fromEntries(devices) }
}
