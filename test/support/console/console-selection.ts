/** Tests of a selection that many devices, filters or typed times make: what is counted, read and shown. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { zstdCompressSync } from 'node:zlib'
import type { Page } from 'playwright-core'
import { EXPORT_BEGIN_NS } from '../exports/export-captures.ts'
import { WHOLE_RANGE } from '../exports/export-world.ts'
import { makePacket, makePcap } from '../packets/packet-maker.ts'
import { show } from './console-browser.ts'
import type { ConsoleStand } from './console-stand.ts'

const MANY = Array.from({ length: 48 }, (_, index) => `device${index}`)
/** The only one of them that has packets that pass the filter. */
const HOLDER = 'device40'

export function testSelection(stand: () => ConsoleStand): void {
  test('with 48 devices the Download button is in view, and the total comes before the devices', async () => {
    const { page } = stand()
    await plantEstimate(page, { exact: false })
    await show(page, `#/timeline?${WHOLE_RANGE}&FilterBPF=udp`)
    await page.getByText('48 devices, each').waitFor()
    await page.getByText('counted without the filters').waitFor()
    const button = page.getByRole('button', { name: 'Download', exact: true })
    assert.ok(await isInView(page, button), 'the button is in view')
    await page.locator('.builder').evaluate((builder) => builder.scrollTo(0, builder.scrollHeight))
    assert.ok(await isInView(page, button), 'and stays there')
    await page.unroute('**/v1/estimate?*')
  })

  test('a look inside reads one device after another until one has a packet, then the others', async () => {
    const { page } = stand()
    const asked: string[] = []
    await plantEstimate(page, { exact: false })
    await page.route('**/devices/device*/**', async (route) => {
      const [, , device = ''] = new URL(route.request().url()).pathname.split('/')
      asked.push(device)
      const packets = device === HOLDER ? [makePacket(EXPORT_BEGIN_NS, 'found', 80)] : []
      await route.fulfill({ body: zstdCompressSync(makePcap(packets)) })
    })
    await show(page, `#/inside?${WHOLE_RANGE}&FilterBPF=udp`)
    await page.getByText('42 of 48 devices read.').waitFor()
    await page.locator('.packets td:nth-child(2)', { hasText: HOLDER }).first().waitFor()
    assert.equal(asked.length, 42)
    await page.getByRole('button', { name: 'Read the other 6 devices' }).click()
    await page.getByText('48 of 48 devices read.').waitFor()
    await show(page, `#/inside?${WHOLE_RANGE}&inside-devices=device1,device2`)
    await page.getByText('All 2 devices were read: none has a packet that passes the filters').waitFor()
    await page.unroute('**/devices/device*/**')
    await page.unroute('**/v1/estimate?*')
  })

  test('a typed time moves the lanes to it, and the example in the field looks like one', async () => {
    const { page } = stand()
    await show(page, '#/timeline?view-from=1000000000000000000&view-to=1000000001000000000')
    const begin = page.getByLabel('Begin')
    assert.equal(await begin.getAttribute('placeholder'), 'such as -15m')
    await begin.fill(String(EXPORT_BEGIN_NS))
    await begin.press('Enter')
    await page.getByLabel('End', { exact: true }).fill('+10s')
    await page.getByLabel('End', { exact: true }).press('Enter')
    await page.waitForFunction(() => !location.hash.includes('view-from=1000000000000000000'))
    const hash = new URLSearchParams((await page.evaluate(() => location.hash)).split('?')[1])
    const [from, to] = [BigInt(hash.get('view-from') ?? 0), BigInt(hash.get('view-to') ?? 0)]
    assert.ok(from < EXPORT_BEGIN_NS && EXPORT_BEGIN_NS + 10_000_000_000n < to, `${from} ${to}`)
  })

  test('a start that succeeds with a warning shows the warning', async () => {
    const { page } = stand()
    const warning = 'the port has no link; the capture stays empty'
    await page.route('**/sysmaster/capture_start?*', (route) =>
      route.fulfill({
        json: { Devices: [{ Device: 'east', Status: 200, Body: { StreamName: 'x_1', Warning: warning } }] },
      }),
    )
    await show(page, '#/fleet?device=east')
    await page.locator('.details').getByRole('button', { name: 'Start capture…' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('button', { name: 'Start capture', exact: true }).click()
    await dialog.getByText('1 of 1 report a warning').waitFor()
    await dialog.getByText(warning).waitFor()
    assert.equal(await dialog.getByText('All devices succeeded.').count(), 0)
    await dialog.getByRole('button', { name: 'Close' }).click()
    await page.unroute('**/sysmaster/capture_start?*')
  })

  test('a device is one row of few tab stops, with its disk and how far back it reaches', async () => {
    const { page } = stand()
    await show(page, '#/fleet')
    const row = page.locator('tr[data-device=north]')
    await row.getByText(/ of \d.* [KMGT]iB/).waitFor()
    const stops = await row.evaluate(
      (element) =>
        [...element.querySelectorAll<HTMLElement>('a, button, input')].filter(({ tabIndex }) => tabIndex >= 0)
          .length,
    )
    assert.equal(stops, 2, 'the box and the name')
  })
}

/** From now on 48 devices have packets, before the filters. */
async function plantEstimate(page: Page, { exact }: { readonly exact: boolean }): Promise<void> {
  const devices = MANY.map((device) => ({ device, packets: '1000', bytes: '100000', exact, linkType: 1 }))
  const json = { kind: 'timerange', packets: '48000', bytes: '4800000', exact, ignored: [], devices }
  await page.route('**/v1/estimate?*', (route) => route.fulfill({ json }))
}

async function isInView(page: Page, element: ReturnType<Page['locator']>): Promise<boolean> {
  const box = await element.boundingBox()
  const height = page.viewportSize()?.height ?? 0
  return box !== null && box.y >= 0 && box.y + box.height <= height
}
