// What people come to the page for, with 3, 48 and 500 devices: how many clicks, fields and keys it takes. Each device
// is a name of one of three real appliances, because that many appliances do not fit on one machine.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { Page } from 'playwright-core'
import {
  CHROMIUM,
  ConsoleBrowser,
  missingForConsole,
  saved,
  settled,
  signIn,
} from '../support/console/console-browser.ts'
import { DeviceLine } from '../support/devices/device-line.ts'
import { EXPORT_BEGIN_NS, EXPORT_END_NS } from '../support/exports/export-captures.ts'
import { EXPORT_DEVICES, ExportWorld } from '../support/exports/export-world.ts'
import { makePacket, makePcap } from '../support/packets/packet-maker.ts'
import { readPcap } from '../support/packets/pcap-records.ts'
import { startTempGateway, type TempGateway } from '../support/processes/temp-gateway.ts'
import { startTempWorker } from '../support/processes/temp-worker.ts'
import { USER_PASSWORD } from '../support/suite-secrets.ts'

const CAPTURE_BYTES = 1_000_000
const DEVICES_PER_SITE = 25
/** A folder for a screenshot after each step; absent: none are taken. */
const { JOURNEY_SCREENSHOTS } = process.env

/** Counts what a person does. */
class Journey {
  readonly #page: Page
  readonly #name: string
  #steps = 0

  constructor(page: Page, name: string) {
    this.#page = page
    this.#name = name
  }

  get steps(): number {
    return this.#steps
  }

  async step(action: () => Promise<void>): Promise<void> {
    await action()
    this.#steps += 1
    if (JOURNEY_SCREENSHOTS === undefined) return
    await settled(this.#page)
    await this.#page.screenshot({ path: join(JOURNEY_SCREENSHOTS, `${this.#name}-${this.#steps}.png`) })
  }

  click(role: 'button' | 'link', name: string | RegExp): Promise<void> {
    return this.step(() =>
      this.#page
        .getByRole(role, { name, exact: typeof name === 'string' })
        .first()
        .click(),
    )
  }

  type(label: string, text: string): Promise<void> {
    return this.step(async () => {
      const field = this.#page.locator(label)
      await field.fill(text)
      await field.blur()
    })
  }
}

for (const count of [3, 48, 500]) {
  describe(`the journeys with ${count} devices`, { skip: missingForConsole() }, () => {
    const parts = new AsyncDisposableStack()
    let page: Page
    let gateway: TempGateway
    const last = `d${count - 1}`

    before(async () => {
      const world = parts.use(await ExportWorld.create({ captureBytes: CAPTURE_BYTES }))
      const devices = []
      for (let index = 0; index < count; index += 1) {
        // An address of its own, which a device of a gateway must have.
        const { appliance } = world.device(EXPORT_DEVICES[index % EXPORT_DEVICES.length] ?? 'east')
        const line = parts.use(await DeviceLine.start(appliance.url))
        devices.push({
          name: `d${index}`,
          site: `site${Math.floor(index / DEVICES_PER_SITE)}`,
          url: line.url,
          user: 'full',
          password: { env: 'EXPORT_WORLD_PASSWORD' },
        })
      }
      const targets = [{ name: 'files', type: 'directory', path: join(world.folder, 'journeys') }]
      const exports = { spool: join(world.folder, 'journeys-spool'), targets }
      // All of them are probed by the process that also is the three appliances.
      const health = { intervalS: 30, failuresMax: 1_000_000 }
      const redis = { url: world.redis.url, keyPrefix: 'journeys' }
      gateway = parts.use(
        await startTempGateway([], world.redis.url, {
          devices,
          exports,
          redis,
          health,
          console: { dissector: false },
        }),
      )
      parts.use(await startTempWorker(gateway))
      const browser = parts.use(await ConsoleBrowser.launch(CHROMIUM))
      const size = { viewport: { width: 1_440, height: 900 } }
      ;({ page } = parts.use(await browser.open(`${gateway.url}/`, size)))
      await signIn(page, { user: 'full', password: USER_PASSWORD })
    })
    after(() => parts.disposeAsync())

    async function begun(name: string): Promise<Journey> {
      await page.goto('about:blank')
      await page.goto(`${gateway.url}/#/fleet`)
      await page.locator('tr[data-device]').first().waitFor()
      return new Journey(page, `${count}-${name}`)
    }
    async function range(journey: Journey): Promise<void> {
      await journey.click('link', 'Timeline')
      await journey.type('#parameter-TSBegin', String(EXPORT_BEGIN_NS))
      await journey.type('#parameter-TSEnd', String(EXPORT_END_NS))
      await journey.type('#parameter-Device', `d0,${last}`)
      await page.locator('.estimate li', { hasText: last }).waitFor()
    }

    test('the packets of two devices that pass a filter, as a file: 6 steps', async () => {
      const journey = await begun('file')
      await range(journey)
      await journey.type('#parameter-FilterBPF', 'greater 500')
      await page.getByText('counted without the filters').waitFor()
      const { bytes } = await saved(page, () => journey.click('button', 'Download'))
      assert.ok(readPcap(bytes).records.length > 0)
      assert.equal(journey.steps, 6)
    })

    test('the bytes of a packet: 6 steps', async () => {
      const journey = await begun('inside')
      await range(journey)
      await journey.click('link', 'Look inside')
      const row = page.locator('.packets tbody tr').first()
      await row.waitFor()
      await journey.step(() => row.click())
      await page.locator('.packet-bytes').waitFor()
      assert.equal(journey.steps, 6)
    })

    test('captures on two devices: 6 steps, and 3 to stop them', async () => {
      const journey = await begun('capture')
      await journey.step(() => page.getByRole('searchbox').fill(count === 3 ? 'd' : 'site0'))
      for (const name of ['d0', 'd1'])
        await journey.step(() =>
          page.getByLabel(`Select for start and stop: ${name}`, { exact: true }).check(),
        )
      await journey.click('button', 'Start captures…')
      await journey.click('button', 'Start capture')
      await page.getByText('All devices succeeded').waitFor()
      await journey.click('button', 'Close')
      await page.locator('tr[data-device=d0]', { hasText: 'running' }).waitFor()
      assert.equal(journey.steps, 6)
      await journey.click('button', 'Stop captures…')
      await journey.click('button', 'Stop capture')
      await page.getByText('All devices succeeded').waitFor()
      await journey.click('button', 'Close')
      assert.equal(journey.steps, 9)
    })

    test('an export every night: 7 steps', async () => {
      const journey = await begun('nightly')
      await journey.click('link', 'Timeline')
      await journey.type('#parameter-TSBegin', '-1d')
      await journey.type('#parameter-TSEnd', 'now')
      await journey.type('#parameter-Device', last)
      await journey.step(() => page.getByText('For schedules').click())
      await journey.click('button', 'Every night')
      await page.locator('.due', { hasText: '03:00:00' }).waitFor()
      await journey.click('button', 'Order schedule')
      await page.getByRole('link', { name: 'Schedule created' }).waitFor()
      assert.equal(journey.steps, 7)
    })

    test('the fullest device, whether its packets still arrive, and the queue: 3 steps', async () => {
      const journey = await begun('operator')
      await journey.click('button', 'Free')
      assert.equal(await page.locator('[aria-sort=ascending]').innerText(), 'Free')
      await journey.step(() => page.locator('tr[data-device] th a').first().click())
      await page.locator('.details dl div', { hasText: 'Newest packet' }).getByText(' ago)').waitFor()
      await journey.click('link', 'Queue')
      await page.getByText('No request is streaming or waiting.').waitFor()
      assert.equal(journey.steps, 3)
    })

    test('a file becomes a capture and is seen: 5 steps', async () => {
      const journey = await begun('upload')
      await journey.click('button', 'Upload…')
      const dialog = page.getByRole('dialog')
      await journey.step(async () => void (await dialog.locator('select').selectOption(last)))
      const buffer = makePcap([makePacket(EXPORT_BEGIN_NS, 'uploaded', 80)])
      const file = { name: `j${count}.pcap`, mimeType: '', buffer }
      await journey.step(() => dialog.locator('input[type=file]').setInputFiles(file))
      await journey.click('button', 'Upload')
      await journey.click('link', 'Show in the timeline')
      await page.getByRole('button', { name: new RegExp(`^j${count} ${last}`) }).waitFor()
      assert.equal(journey.steps, 5)
    })
  })
}
