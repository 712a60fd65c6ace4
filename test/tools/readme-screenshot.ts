/**
 * The picture in README.md: the page over the demo's three devices, in Chromium. `npm run screenshot` makes it again.
 */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { CHROMIUM, ConsoleBrowser, settled, show, signIn } from '../support/console/console-browser.ts'
import { startDemo, temporaryHome } from '../support/processes/demo-process.ts'
import { REPOSITORY_ROOT } from '../support/repository-files.ts'

/** Of the generated traffic, with a minute of it selected. */
const BEGIN_NS = 1_793_610_000_000_000_000n
const MINUTE_NS = 60_000_000_000n
const ADDRESS = [
  `#/timeline?view-from=${BEGIN_NS}&view-to=${BEGIN_NS + 5n * MINUTE_NS}`,
  `TSBegin=${BEGIN_NS + MINUTE_NS}&TSEnd=${BEGIN_NS + 2n * MINUTE_NS}`,
].join('&')

await using home = await temporaryHome()
await using demo = await startDemo(home.path)
await using browser = await ConsoleBrowser.launch(CHROMIUM)
const viewport = { width: 1_180, height: 640 }
await using opened = await browser.open(`${demo.facts.gatewayUrl}/`, {
  viewport,
  colorScheme: 'light',
  timezoneId: 'UTC',
})
const { page } = opened
await signIn(page, demo.facts)
await page.getByRole('button', { name: 'Close the tour' }).click()
await show(page, ADDRESS)
await page.locator('.estimate strong[data-packets]').waitFor()
await settled(page)
await page.mouse.move(0, 0)
const folder = join(REPOSITORY_ROOT, 'docs', 'images')
await mkdir(folder, { recursive: true })
await writeFile(join(folder, 'page.png'), await page.screenshot({ type: 'png' }))
