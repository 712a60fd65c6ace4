/**
 * How long a person waits at the page, in Chromium: until its first paint, with the dissector and without it in turn,
 * and from the click on "Look inside" to the first row that Wireshark has dissected, with an empty cache and with what
 * the browser has kept. Last, how evenly a list of that many packets scrolls.
 */
import type { Page } from 'playwright-core'
import { settled, show, withoutDissector } from '../../support/console/console-browser.ts'
import {
  DISSECTED_RANGE,
  DissectorStand,
  missingForDissector,
} from '../../support/console/dissector-stand.ts'
import { printCells } from '../report/print-cells.ts'

const ROUNDS = 7
/** Of one device. The page reads 10,000 of a device. */
const PACKETS = [1_400, 10_000]
const SCROLLED_FRAMES = 120
const WIDTHS = [44, 12, 12]

/** Prints the figures and leaves nothing behind. */
export async function printPageFigures(signal: AbortSignal): Promise<void> {
  const missing = missingForDissector()
  if (missing !== false) throw new Error(missing)
  printCells(['', 'median ms', 'largest'], WIDTHS)
  for (const [index, packets] of PACKETS.entries()) {
    await using stand = await DissectorStand.create(packets)
    if (index === 0) await printFirstPaint(stand, signal)
    await printLookInside(stand, packets, signal)
  }
}

async function printFirstPaint(stand: DissectorStand, signal: AbortSignal): Promise<void> {
  const tookMs: Record<'with' | 'without', number[]> = { with: [], without: [] }
  for (let round = 0; round < ROUNDS; round += 1)
    for (const kind of ['with', 'without'] as const) {
      await using opened = await stand.open()
      if (kind === 'without') await withoutDissector(opened.page)
      else
        await opened.page.route('**/v1/session', async (route) =>
          route.fulfill({ response: await route.fetch() }),
        )
      await opened.page.reload()
      await opened.page.getByRole('navigation').waitFor()
      tookMs[kind].push(
        await opened.page.evaluate(
          () => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? Number.NaN,
        ),
      )
      signal.throwIfAborted()
    }
  print('first paint, gateway with the dissector', tookMs.with)
  print('first paint, gateway without it', tookMs.without)
}

async function printLookInside(stand: DissectorStand, packets: number, signal: AbortSignal): Promise<void> {
  const coldMs: number[] = []
  const warmMs: number[] = []
  const frameMs: number[] = []
  for (let round = 0; round < ROUNDS; round += 1) {
    await using opened = await stand.open()
    coldMs.push(await lookInside(opened.page))
    warmMs.push(await lookInside(opened.page))
    frameMs.push(await medianFrameMs(opened.page))
    signal.throwIfAborted()
  }
  print(`first row of ${packets} packets, empty cache`, coldMs)
  print(`first row of ${packets} packets, seen before`, warmMs)
  print('frame while these scroll', frameMs)
}

/** From the click to the first dissected row. */
async function lookInside(page: Page): Promise<number> {
  await show(page, `#/timeline?${DISSECTED_RANGE}&Device=east`)
  const link = page.getByRole('navigation').getByRole('link', { name: 'Look inside' })
  await link.waitFor()
  await settled(page)
  const startMs = performance.now()
  await link.click()
  await page.locator('.dissected tr[data-number="1"]').waitFor()
  return performance.now() - startMs
}

async function medianFrameMs(page: Page): Promise<number> {
  const frames = await page.evaluate(async (count) => {
    const list = document.querySelector('.dissected-list')
    const took: number[] = []
    let before = await new Promise<number>(requestAnimationFrame)
    for (let frame = 0; frame < count && list !== null; frame += 1) {
      list.scrollTop += 240
      const now = await new Promise<number>(requestAnimationFrame)
      took.push(now - before)
      before = now
    }
    return took
  }, SCROLLED_FRAMES)
  return median(frames)
}

function print(what: string, values: readonly number[]): void {
  printCells([what, median(values).toFixed(0), Math.max(...values).toFixed(0)], WIDTHS)
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN
}
