/** A real browser showing a gateway's page, which records everything that the page must not do. */

import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { AxeBuilder } from '@axe-core/playwright'
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'
import { REPOSITORY_ROOT } from '../repository-files.ts'
import { skipWithout } from '../set-up-tools.ts'
import { WAIT_LIMIT_MS } from '../test-limits.ts'

/** The browser that people use: each site has a process, and the download manager resumes. */
export const CHROMIUM = '/usr/bin/chromium'
/** The same engine without windows, which uses less than half of the processor time. */
const CHROMIUM_SHELL = '/usr/bin/chromium-headless-shell'

/** Skip reason for tests of the page, or false. */
export function missingForConsole(): string | false {
  const isBuilt = existsSync(join(REPOSITORY_ROOT, 'dist-console', 'index.html'))
  const hasBrowsers = [CHROMIUM, CHROMIUM_SHELL].every((path) => existsSync(path))
  return (
    skipWithout(hasBrowsers, 'no browser: apt-get install chromium chromium-headless-shell') ||
    skipWithout(isBuilt, 'the page is not built: node .ci/setup.mjs')
  )
}

export interface Viewer {
  readonly user: string
  readonly password: string
}

export interface OpenPage extends AsyncDisposable {
  readonly page: Page
  /** Violations of the page's content security policy, errors in the page, and requests to other hosts. */
  readonly faults: readonly string[]
}

export class ConsoleBrowser implements AsyncDisposable {
  readonly #browser: Browser

  private constructor(browser: Browser) {
    this.#browser = browser
  }

  static async launch(executablePath = CHROMIUM_SHELL): Promise<ConsoleBrowser> {
    // Tests run as root in containers, where the browser's own sandbox does not work.
    const args = ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu']
    return new ConsoleBrowser(await chromium.launch({ executablePath, args }))
  }

  /** Opens the page in a separate browser context, like another user. */
  async open(url: string, options: Parameters<Browser['newContext']>[0] = {}): Promise<OpenPage> {
    const context = await this.#browser.newContext({ acceptDownloads: true, ...options })
    context.setDefaultTimeout(WAIT_LIMIT_MS)
    const page = await context.newPage()
    const faults: string[] = []
    const host = new URL(url).host
    page.on('request', (request) => {
      const asked = new URL(request.url())
      if (asked.protocol.startsWith('http') && asked.host !== host) faults.push(`asked ${asked.host}`)
    })
    page.on('pageerror', (error) => faults.push(`failed: ${error.message}`))
    page.on('console', (message) => {
      if (/Content Security Policy/.test(message.text())) faults.push(message.text())
    })
    await page.goto(url)
    return { page, faults, [Symbol.asyncDispose]: () => closed(context) }
  }

  /** The file at an address, or undefined if the browser reports that the download failed. */
  async save(
    url: string,
    httpCredentials: { readonly username: string; readonly password: string },
  ): Promise<Buffer | undefined> {
    const context = await this.#browser.newContext({ acceptDownloads: true, httpCredentials })
    context.setDefaultTimeout(WAIT_LIMIT_MS)
    const page = await context.newPage()
    // The page is not left: the address becomes a download.
    const left = page.goto(url).catch(() => undefined)
    const download = await page.waitForEvent('download')
    await left
    const isFailed = (await download.failure()) !== null
    const file = isFailed ? undefined : await readFile(await download.path())
    await closed(context)
    return file
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#browser.close()
  }
}

async function closed(context: BrowserContext): Promise<void> {
  await context.close()
}

export async function signIn(page: Page, { user, password }: Viewer): Promise<void> {
  await page.getByLabel('User').fill(user)
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('navigation').waitFor()
}

/** As a gateway without the dissector answers, whose page shows a table of addresses. */
export async function withoutDissector(page: Page): Promise<void> {
  await page.route('**/v1/session', async (route) => {
    const answer = await route.fetch()
    await route.fulfill({ response: answer, json: { ...(await answer.json()), dissector: null } })
  })
}

/** Opens a view by its address, like a link. */
export async function show(page: Page, hash: string): Promise<void> {
  await page.evaluate((next) => {
    location.hash = next
  }, hash)
}

/** Waits until nothing is marked as loading. */
export async function settled(page: Page): Promise<void> {
  await page.waitForFunction(() => document.querySelector('.waiting, [aria-busy=true]') === null)
}

/** The file that the action saves. */
export async function saved(
  page: Page,
  action: () => Promise<void>,
): Promise<{ readonly bytes: Buffer; readonly name: string }> {
  const [download] = await Promise.all([page.waitForEvent('download'), action()])
  const path = await download.path()
  return { bytes: await readFile(path), name: download.suggestedFilename() }
}

export function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex')
}

/** Accessibility violations of any level in what is shown; `rules`: only of these. */
export async function hindrances(page: Page, rules?: readonly string[]): Promise<readonly string[]> {
  // The new mode opens a separate page for each result, which takes longer than the rules; there are no frames here.
  // Its half a megabyte of source stays in the page, and takes longer to bring than most rules.
  const isThere = await page.evaluate(() => 'axe' in window)
  const axe = new AxeBuilder({ page, ...(isThere ? { axeSource: 'undefined' } : {}) }).setLegacyMode(true)
  const { violations } = await axe
    .options({
      resultTypes: ['violations'],
      ...(rules === undefined ? {} : { runOnly: [...rules] }),
    })
    .analyze()
  return violations.flatMap(({ id, nodes }) => nodes.map(({ target }) => `${id}: ${target.join(' ')}`))
}

/** Presses Tab until the focus is on the selected element. */
export async function tabTo(page: Page, selector: string): Promise<void> {
  for (let presses = 0; presses < 120; presses += 1) {
    if (await page.evaluate((wanted) => document.activeElement?.matches(wanted) === true, selector)) return
    await page.keyboard.press('Tab')
  }
  assert.fail(`Tab does not reach ${selector}`)
}
