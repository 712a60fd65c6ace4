/** Tests of a selection that many devices, filters or typed times make: what is counted, read and shown. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { zstdCompressSync } from 'node:zlib'
import type { Page } from 'playwright-core'
import { EXPORT_BEGIN_NS } from '../exports/export-captures.ts'
import { WHOLE_RANGE } from '../exports/export-world.ts'
import { makePacket, makePcap } from '../packets/packet-maker.ts'
import { readPcap } from '../packets/pcap-records.ts'
import { hindrances, show } from './console-browser.ts'
import type { ConsoleStand } from './console-stand.ts'

const EXPORT_MS = Number(EXPORT_BEGIN_NS / 1_000_000n)
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

  test('where a filter makes the estimate a limit, the packets are counted exactly, as often as it changes', async () => {
    const { page, world } = stand()
    const filtered = `${WHOLE_RANGE}&FilterBPF=greater+700`
    await show(page, `#/timeline?${WHOLE_RANGE}`)
    await page.locator('.estimate', { hasText: 'exactly' }).waitFor()
    const button = page.getByRole('button', { name: 'Count exactly' })
    assert.equal(await button.count(), 0, 'what is exact needs no count')
    await show(page, `#/timeline?${filtered}`)
    await button.click()
    const counted = page.locator('.estimate strong[data-counted]')
    await counted.waitFor()
    const { records } = readPcap(await world.directRange(filtered))
    assert.equal(await counted.getAttribute('data-counted'), String(records.length))
    await page.locator('.estimate', { hasText: 'Counted: exactly' }).waitFor()
    assert.deepEqual(await hindrances(page), [])
    await page.locator('#parameter-FilterBPF').fill('greater 1000')
    await counted.waitFor({ state: 'detached' })
    await button.waitFor()
  })

  test('a count grows, is stopped, and ends when the query changes', async () => {
    const { page } = stand()
    await show(page, `#/timeline?${WHOLE_RANGE}&FilterBPF=greater+700`)
    await page.evaluate(() => {
      const original = window.fetch
      const lines = ['east', 'west'].map((device) =>
        JSON.stringify({ device, packets: '1204', bytes: '90000', checkedBytes: '12', rangeBytes: '100' }),
      )
      document.body.dataset.leftCounts = ''
      window.fetch = async (asked, init) => {
        if (!(asked instanceof Request) || !asked.url.includes('/v1/count?'))
          return await original(asked, init)
        asked.signal.addEventListener('abort', () => {
          document.body.dataset.leftCounts += 'x'
        })
        const start = (out: ReadableStreamDefaultController): void =>
          out.enqueue(new TextEncoder().encode(`${lines.join('\n')}\n`))
        return new Response(new ReadableStream({ start }))
      }
    })
    const leftCounts = (count: number) =>
      page.waitForFunction((left) => document.body.dataset.leftCounts?.length === left, count)
    const button = page.getByRole('button', { name: 'Count exactly' })
    const growing = page.getByText('Counted so far: 2,408 packets in 12 % of the range')
    await button.click()
    await growing.waitFor()
    assert.deepEqual(await hindrances(page), [])
    await page.locator('.estimate').getByRole('button', { name: 'Stop' }).click()
    await leftCounts(1)
    await button.click()
    await growing.waitFor()
    await page.locator('#parameter-FilterBPF').fill('greater 1000')
    await leftCounts(2)
    await growing.waitFor({ state: 'detached' })
    await page.reload()
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

export function testOperators(stand: () => ConsoleStand): void {
  test('500 devices are sorted by the rate of their drops, and keep their sites beside them', async () => {
    const { page } = stand()
    let probes = 0
    await page.route('**/v1/devices', async (route) => {
      const answer = await (await route.fetch()).json()
      probes += 1
      const [one] = answer.devices
      const devices = Array.from({ length: 500 }, (_, index) => ({
        ...one,
        name: `d${index}`,
        site: `site${index % 20}`,
        probedAt: new Date(EXPORT_MS + probes * 1_000).toISOString(),
        capture: { state: 'running', name: 'c_1', gbps: 1, mpps: 0.001, drops: index * probes },
      }))
      await route.fulfill({ json: { ...answer, devices } })
    })
    await show(page, '#/fleet')
    await page.getByText('500 devices').waitFor()
    await page.getByRole('button', { name: 'Drops' }).click()
    await page.getByRole('button', { name: 'Drops' }).click()
    const first = page.locator('.fleet-table tbody tr[data-device]').first()
    await first.getByText('+499/s').waitFor()
    assert.match(await first.innerText(), /d499.*site19/s)
    assert.equal(await page.locator('[aria-sort=descending]').count(), 1)
    await page.getByRole('button', { name: 'Drops' }).click()
    await page.locator('tr.site').first().waitFor()
    await page.unroute('**/v1/devices')
  })

  test('of many lanes only those of the selected devices are shown on request', async () => {
    const { page } = stand()
    await show(page, `#/timeline?${WHOLE_RANGE}&Device=west`)
    const names = page.locator('.lane-names .name')
    await names.nth(2).waitFor()
    await page.getByRole('button', { name: 'Selected devices only' }).click()
    await names.nth(1).waitFor({ state: 'detached' })
    assert.deepEqual(await names.allInnerTexts(), ['west'])
    await page.getByRole('button', { name: 'Selected devices only' }).click()
    await names.nth(2).waitFor()
  })

  test('the details of a device have its newest packet', async () => {
    const { page } = stand()
    await show(page, '#/fleet?device=north')
    const fact = page.locator('.details dl div', { hasText: 'Newest packet' })
    await fact.getByText(/^2026-09-21 14:14:\d\d\.\d{3} \(.* ago\)$/).waitFor()
  })

  test('the queue says why a request waits, and folds long lists of devices', async () => {
    const { page } = stand()
    const unknown = { export: null, capture: null, fromNs: null, toNs: null, bytes: null }
    const place = {
      ...unknown,
      user: 'ann',
      replica: 'g',
      enqueuedAt: '2026-11-28T15:00:00.000Z',
      grantedAt: null,
    }
    const streaming = { ...place, state: 'streaming', class: 'interactive', position: null, etaMs: null }
    const waiting = { ...streaming, state: 'waiting', position: 1, etaMs: 12_000 }
    const requests = [
      ...['a', 'b', 'c', 'd'].map((id) => ({ ...streaming, id, request: id, devices: ['north'] })),
      { ...waiting, id: 'e', request: 'e', devices: ['east', 'north', ...MANY] },
    ]
    await page.route('**/v1/queue', (route) => route.fulfill({ json: { requests } }))
    await show(page, '#/queue')
    const row = page.locator('tr', { hasText: 'waiting' })
    await row.getByText('north has 4 of 4 streams in use').waitFor()
    await row.getByText('and 46 more').click()
    assert.ok(await row.getByText('device47').isVisible())
    await page.unroute('**/v1/queue')
  })

  test('the queue shows what one downloads, how much has been sent, and cancels it', async () => {
    const { page } = stand()
    const range = { fromNs: '1793610060000000000', toNs: '1793610120500000000' }
    const what = { ...range, export: null, capture: null, bytes: '1572864' }
    const mine = {
      ...what,
      ...{
        id: 'mine-0001.0',
        request: 'mine-0001',
        user: 'full',
        state: 'streaming',
        class: 'interactive',
        devices: ['north'],
      },
      ...{
        replica: 'g',
        enqueuedAt: '2026-11-28T15:00:00.000Z',
        grantedAt: null,
        position: null,
        etaMs: null,
      },
    }
    const other = {
      ...mine,
      id: 'other-001',
      request: 'other-001',
      user: 'ann',
      fromNs: null,
      toNs: null,
      bytes: null,
    }
    let requests = [mine, other]
    await page.route('**/v1/queue', (route) => route.fulfill({ json: { requests } }))
    const cancelled: string[] = []
    await page.route('**/v1/queue/*', (route) => {
      cancelled.push(`${route.request().method()} ${new URL(route.request().url()).pathname}`)
      requests = [other]
      return route.fulfill({ status: 202, json: mine })
    })
    await show(page, '#/queue')
    const row = page.locator('tr', { hasText: 'full' })
    await row.getByText('2026-11-02 09:01:00.000').waitFor()
    await row.getByText('2026-11-02 09:02:00.500').waitFor()
    await row.getByText('1.50 MiB').waitFor()
    const others = page.locator('tr', { hasText: 'ann' })
    assert.equal(await others.getByRole('button', { name: 'Cancel request' }).count(), 0)
    await row.getByRole('button', { name: 'Cancel request' }).click()
    const dialog = page.getByRole('dialog', { name: 'Cancel request: full, mine-000' })
    await dialog.getByText('It has a row for each device').waitFor()
    await dialog.getByRole('button', { name: 'Cancel request' }).click()
    await row.waitFor({ state: 'detached' })
    assert.deepEqual(cancelled, ['DELETE /v1/queue/mine-0001'])
    for (const path of ['**/v1/queue', '**/v1/queue/*']) await page.unroute(path)
  })

  test('the audit names its facts, and gives the line as it is in the file', async () => {
    const { page } = stand()
    await show(page, '#/access')
    const row = page.locator('tr', { hasText: 'access.read' }).first()
    await row.locator('.facts li', { hasText: /^path \/v1\/audit$/ }).waitFor()
    await row.getByText('Line in the file').click()
    await row.getByText(/^\{"chain":.*"hash":"/).waitFor()
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
