/** Tests that text from other people or devices stays text in every view. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Page } from 'playwright-core'
import { WHOLE_RANGE } from '../exports/export-world.ts'
import { USER_PASSWORD } from '../suite-secrets.ts'
import { type OpenPage, settled, show, signIn } from './console-browser.ts'
import type { ConsoleStand } from './console-stand.ts'
import { MARKUP, plantFailures, plantMarkup } from './planted-answers.ts'

const VIEWS = ['fleet', 'timeline', 'inside', 'queue', 'exports', 'events', 'access']
/** Its answer contains no foreign text while nothing is streaming. */
const WITHOUT_TEXT = new Set(['queue'])

export function testMarkup(stand: () => ConsoleStand): void {
  test('what others have written stays text in every view, and would be seen if it did not', async () => {
    const { browser, url } = stand()
    await using own = await browser.open(url)
    const { page } = own
    await plantMarkup(page.context())
    await signIn(page, { user: 'admin', password: USER_PASSWORD })
    for (const view of VIEWS) {
      await show(page, `#/${view}?${WHOLE_RANGE}&device=${encodeURIComponent(`east${MARKUP}`)}`)
      await settled(page)
      if (!WITHOUT_TEXT.has(view)) await shownIn(page, view, MARKUP)
      await isText(own, view)
    }
    await show(page, '#/fleet')
    await page.getByLabel(`Select for start and stop: east${MARKUP}`).check()
    await page.getByRole('button', { name: 'Stop captures…' }).click()
    await page.getByRole('dialog').getByText(MARKUP).waitFor()
    await isText(own, 'question')
    await page.keyboard.press('Escape')
    await plantFailures(page.context(), 'Device')
    for (const view of VIEWS) {
      await show(page, `#/${view}?${WHOLE_RANGE}&Device=${encodeURIComponent(MARKUP)}`)
      await shownIn(page, view, `why ${MARKUP}`)
      await isText(own, `${view} that fails`)
    }
    await page.evaluate((markup) => document.body.insertAdjacentHTML('beforeend', markup), MARKUP)
    await page.waitForFunction(() => document.images[0]?.complete)
    await assert.rejects(isText(own, 'planted'))
    assert.match(own.faults.join(), /Content Security Policy/)
  })
}

async function shownIn(page: Page, view: string, text: string): Promise<void> {
  const texts = page.locator('main').getByText(text).filter({ visible: true })
  await texts
    .first()
    .waitFor()
    .catch((cause: Error) => assert.fail(`${view} does not show ${text}: ${cause.message}`))
}

async function isText({ page, faults }: OpenPage, view: string): Promise<void> {
  assert.deepEqual(await madeOfMarkup(page), [], view)
  assert.deepEqual(faults, [], view)
  assert.notEqual(await page.title(), 'broken', view)
}

/** Elements that the page itself never creates. */
async function madeOfMarkup(page: Page): Promise<readonly string[]> {
  return await page.evaluate(() =>
    [...document.querySelectorAll('img, [onerror], body script:not([type=module])')].map(
      ({ outerHTML }) => outerHTML,
    ),
  )
}
