// The page in a real browser under adverse conditions: devices that are down, a gateway that does not answer, hidden
// tabs, and times in another zone.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Page } from 'playwright-core'
import {
  missingForConsole,
  type OpenPage,
  saved,
  sha256,
  show,
  signIn,
} from '../support/console/console-browser.ts'
import { ConsoleStand } from '../support/console/console-stand.ts'
import { EXPORT_BEGIN_NS } from '../support/exports/export-captures.ts'
import { WHOLE_RANGE } from '../support/exports/export-world.ts'
import { USER_PASSWORD } from '../support/suite-secrets.ts'

const FULL = { user: 'full', password: USER_PASSWORD }
const RENEWED_WITHIN_MS = 5 * 60_000
/** The smallest auth.sessions.idleS. */
const SHORT_SESSION_MS = 60_000
const ZONE = 'Europe/Berlin'
/** Local times in the zone at the start of the captures, and a few seconds later. */
const BEGIN_LOCAL = localText(EXPORT_BEGIN_NS)
const END_LOCAL = localText(EXPORT_BEGIN_NS + 10_000_000_000n)
const TEN_SECONDS = `TSBegin=${EXPORT_BEGIN_NS}&TSEnd=${EXPORT_BEGIN_NS + 10_000_000_000n}`

function localText(ns: bigint): string {
  const text = new Date(Number(ns / 1_000_000n)).toLocaleString('sv-SE', { timeZone: ZONE })
  return text.replaceAll(/[-:]/g, '').replace(' ', '_')
}

describe('the page, when something is in the way', { skip: missingForConsole() }, () => {
  let stand: ConsoleStand
  let page: Page

  before(async () => {
    stand = await ConsoleStand.create()
    page = stand.page
    await signIn(page, FULL)
  })
  after(() => stand[Symbol.asyncDispose]())

  async function signedIn(options?: Parameters<ConsoleStand['browser']['open']>[1]): Promise<OpenPage> {
    const own = await stand.browser.open(stand.url, options)
    await signIn(own.page, FULL)
    return own
  }

  test('a local time that is typed, or in a link, is one of the zone that is shown, for all that is asked', async () => {
    await using own = await signedIn({ timezoneId: ZONE })
    await own.page.getByRole('button', { name: /^Times in/ }).click()
    await own.page.getByText(`${ZONE} (`).waitFor()
    await show(own.page, `#/timeline?TSBegin=${BEGIN_LOCAL}&TSEnd=now`)
    const end = own.page.getByLabel('End', { exact: true })
    await end.fill(END_LOCAL)
    // Requests for the previous range, which is drawn while a user types.
    await own.page.locator('.estimate', { hasText: 'exactly' }).waitFor()
    assert.equal(await end.inputValue(), END_LOCAL)
    await end.blur()
    await own.page.locator('.estimate[aria-busy=false]', { hasText: 'exactly' }).waitFor()
    const { bytes } = await saved(own.page, () =>
      own.page.getByRole('button', { name: 'Download', exact: true }).click(),
    )
    assert.equal(sha256(bytes), sha256(await stand.world.direct(`/api/v1/pcap/timerange?${TEN_SECONDS}`)))
    const hash = await own.page.evaluate(() => location.hash)
    assert.ok(hash.includes(TEN_SECONDS), hash)
    await show(own.page, `#/inside?TSBegin=${BEGIN_LOCAL}&TSEnd=${END_LOCAL}`)
    await own.page.locator('.packets tbody tr').first().waitFor()
  })

  test('a refused download says why', async () => {
    const button = page.getByRole('button', { name: 'Download', exact: true })
    const alert = page.locator('.builder').getByRole('alert')
    await show(page, `#/timeline?${WHOLE_RANGE}&Device=north&Align=1`)
    await page.locator('.estimate', { hasText: 'exactly' }).waitFor()
    await button.click()
    await alert.filter({ hasText: 'Align' }).waitFor()
    await show(page, `#/timeline?${WHOLE_RANGE}&Device=west`)
    await page.locator('.estimate li', { hasText: 'west' }).waitFor()
    await page.locator('.estimate', { hasText: 'exactly' }).waitFor()
    const { line } = stand.world.device('west')
    line.isDown = true
    await button.click()
    await alert.filter({ hasText: 'west' }).waitFor()
    line.isDown = false
  })

  test('a look inside names the devices that do not answer', async () => {
    const { line } = stand.world.device('west')
    line.isDown = true
    await show(page, `#/inside?${WHOLE_RANGE}`)
    await page.locator('li[data-device=west]').waitFor()
    await page.locator('.packets tbody tr').first().waitFor()
    line.isDown = false
  })

  test('a look inside shows the packets of the others when one breaks off', async () => {
    const { line } = stand.world.device('west')
    await using own = await signedIn()
    line.cutAfterBytes = 1_500
    await show(own.page, `#/inside?${WHOLE_RANGE}`)
    await own.page.locator('li[data-device=west]').waitFor()
    const shown = await own.page.locator('.packets td:nth-child(2)').allInnerTexts()
    assert.deepEqual([...new Set(shown)].toSorted(), ['east', 'north'])
    line.cutAfterBytes = Number.POSITIVE_INFINITY
    await own.page.getByRole('button', { name: 'Try again' }).click()
    await own.page.locator('.packets td:nth-child(2)', { hasText: 'west' }).first().waitFor()
  })

  test('what a device that is down would cut can be had without it', async () => {
    const { line } = stand.world.device('west')
    await using own = await signedIn()
    line.isDown = true
    await show(own.page, `#/timeline?${WHOLE_RANGE}`)
    await own.page.getByRole('button', { name: 'Leave out west' }).click()
    await own.page.locator('.estimate', { hasText: 'exactly' }).waitFor()
    assert.equal(await own.page.getByRole('textbox', { name: 'Devices' }).inputValue(), 'east,north')
    await saved(own.page, () => own.page.getByRole('button', { name: 'Download', exact: true }).click())
    line.isDown = false
  })

  test('a tab opened in the background loads when it is shown', async () => {
    await using own = await stand.browser.open('about:blank')
    await hideFromBegin(own.page)
    await own.page.goto(`${stand.url}#/inside?${WHOLE_RANGE}`)
    await signIn(own.page, FULL)
    await own.page.getByText('Downloading and decoding').waitFor()
    await look(own.page, false)
    await own.page.locator('.packets tbody tr').first().waitFor()
  })

  test('a hidden tab holds no connection, and catches up when it is shown', async () => {
    await using own = await signedIn()
    await show(own.page, '#/events')
    await own.page.getByText('Listening.').waitFor()
    const left = own.page.waitForEvent('requestfailed', isEvents)
    await look(own.page, true)
    await left
    const asked = own.page.waitForRequest(isEvents)
    await look(own.page, false)
    assert.match((await asked).url(), /LastEventID=/)
    await own.page.getByText('Listening.').waitFor()
  })

  test('a gateway that does not answer signs no one out', async () => {
    await using own = await signedIn()
    await own.page.route('**/v1/session', (route) => route.abort())
    await own.page.getByRole('button', { name: /^Sign out/ }).click()
    await own.page.getByRole('alert').filter({ hasText: 'does not answer' }).waitFor()
    await own.page.getByRole('navigation').waitFor()
    await own.page.reload()
    const again = own.page.getByRole('button', { name: 'Try again' })
    await again.waitFor()
    await own.page.unroute('**/v1/session')
    await again.click()
    await own.page.getByRole('navigation').waitFor()
    await own.page.getByRole('button', { name: /^Sign out/ }).click()
    await own.page.getByLabel('Password').waitFor()
  })

  test('a page that stays open renews its session', async () => {
    await using own = await stand.browser.open('about:blank')
    await own.page.clock.install()
    await own.page.goto(stand.url)
    await signIn(own.page, FULL)
    const renewed = own.page.waitForResponse((answer) => answer.url().endsWith('/v1/session'))
    await own.page.clock.runFor(RENEWED_WITHIN_MS)
    assert.match((await (await renewed).headerValue('set-cookie')) ?? '', /HttpOnly/i)
  })

  test('a session that soon ends is renewed when half of its time is over', async () => {
    await using own = await signedIn()
    await own.page.clock.install()
    await own.page.route('**/v1/session', async (route) => {
      const answer = await route.fetch()
      const expiresAt = new Date(Date.now() + SHORT_SESSION_MS).toISOString()
      await route.fulfill({ response: answer, json: { ...(await answer.json()), expiresAt } })
    })
    await own.page.reload()
    await own.page.getByRole('navigation').waitFor()
    const renewed = own.page.waitForRequest('**/v1/session')
    await own.page.clock.runFor(SHORT_SESSION_MS / 2)
    await renewed
    // Closing the page while an answer is being prepared would fail the test.
    await own.page.unrouteAll({ behavior: 'wait' })
  })

  test('after signing in again in another tab the first one continues', async () => {
    await using own = await signedIn()
    await show(own.page, '#/access')
    await own.page.getByText('New token').click()
    await own.page.locator('#parameter-Devices').fill('*')
    const other = await own.page.context().newPage()
    await other.goto(stand.url)
    await other.getByRole('button', { name: /^Sign out/ }).click()
    await signIn(other, FULL)
    await other.close()
    const looked = own.page.waitForResponse((answer) => answer.url().endsWith('/v1/session'))
    await own.page.getByRole('button', { name: 'Create token' }).click()
    await own.page.locator('.new-token').getByRole('alert').waitFor()
    await (await looked).finished()
    await own.page.getByRole('button', { name: 'Create token' }).click()
    await own.page.locator('.made').waitFor()
  })

  test('the focus goes back to where a question was asked, and where something was copied from', async () => {
    await using own = await stand.browser.open('about:blank')
    await own.page.addInitScript(() => Object.defineProperty(navigator, 'clipboard', { value: undefined }))
    await own.page.goto(stand.url)
    await signIn(own.page, FULL)
    await show(own.page, '#/fleet?device=east')
    await own.page.getByLabel('Select for start and stop: east').check()
    const stop = own.page.getByRole('button', { name: 'Stop captures…' })
    await stop.click()
    await own.page.getByRole('dialog').getByRole('button', { name: 'Back' }).click()
    assert.ok(await hasFocus(own.page, 'Stop captures…'))
    const value = own.page.locator('.details .value').first()
    await value.click()
    await own.page.getByRole('button', { name: 'Copied' }).waitFor()
    assert.ok(await hasFocus(own.page, 'Copied'))
  })

  test('an abandoned request reaches no further device', async () => {
    await using own = await signedIn()
    await own.page.route('**/sysmaster/capture_stop**', () => undefined)
    await show(own.page, '#/fleet')
    await own.page.getByLabel('Select for start and stop: east').check()
    await own.page.getByRole('button', { name: 'Stop captures…' }).click()
    const asked = own.page.waitForRequest('**/sysmaster/capture_stop**')
    await own.page.getByRole('dialog').getByRole('button', { name: 'Stop capture', exact: true }).click()
    await asked
    const left = own.page.waitForEvent('requestfailed', (request) => request.url().includes('capture_stop'))
    await own.page.keyboard.press('Escape')
    await left
  })

  test('a page whose files are those of another gateway is loaded again until they are there', async () => {
    await using own = await stand.browser.open('about:blank')
    const missing = { status: 404, contentType: 'text/javascript', body: '' }
    for (const ending of ['js', 'css'])
      await own.page.route(`**/assets/index-*.${ending}`, (route) => route.fulfill(missing), { times: 1 })
    await own.page.goto(stand.url)
    await signIn(own.page, FULL)
    assert.equal(await own.page.evaluate(() => sessionStorage.getItem('capfleet-missing')), '0')
  })

  test('a decoder that fails is reported, and recreated', async () => {
    await using own = await signedIn()
    const broken = { status: 200, contentType: 'text/javascript', body: 'throw new Error("broken")' }
    await own.page.route('**/assets/decoder-worker*', (route) => route.fulfill(broken))
    await show(own.page, `#/inside?${WHOLE_RANGE}`)
    await own.page.getByRole('alert').filter({ hasText: 'could not be decoded' }).waitFor()
    await own.page.unroute('**/assets/decoder-worker*')
    await own.page.getByRole('button', { name: 'Try again' }).click()
    await own.page.locator('.packets tbody tr').first().waitFor()
  })
})

function isEvents(request: { url(): string }): boolean {
  return new URL(request.url()).pathname.endsWith('/v1/events')
}

/** A headless browser reports all its pages as visible, so the test sends the visibility events itself. */
async function hideFromBegin(page: Page): Promise<void> {
  await page.addInitScript(() => {
    Object.defineProperty(document, 'hidden', { value: true, configurable: true })
  })
}

async function look(page: Page, isHidden: boolean): Promise<void> {
  await page.evaluate((hidden) => {
    Object.defineProperty(document, 'hidden', { value: hidden, configurable: true })
    document.dispatchEvent(new Event('visibilitychange'))
  }, isHidden)
}

function hasFocus(page: Page, text: string): Promise<boolean> {
  return page.evaluate((wanted) => document.activeElement?.textContent === wanted, text)
}
