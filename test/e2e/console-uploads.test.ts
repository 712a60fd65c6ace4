// Capture files are uploaded with the page in a real browser, to real appliances through a real gateway.
import assert from 'node:assert/strict'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { Page } from 'playwright-core'
import { DEVICE_API } from '../../src/shared/contract/device-api.ts'
import {
  hindrances,
  missingForConsole,
  saved,
  sha256,
  show,
  signIn,
} from '../support/console/console-browser.ts'
import { ConsoleStand } from '../support/console/console-stand.ts'
import { eventually } from '../support/eventually.ts'
import { writeBigCapture } from '../support/packets/big-capture.ts'
import { makePacket, makePcap } from '../support/packets/packet-maker.ts'
import { USER_PASSWORD } from '../support/suite-secrets.ts'
import { type TempFolder, tempFolder } from '../support/temp-folder.ts'

const FIRST_NS = 1_795_000_000_000_000_000n
const SECOND_NS = 1_000_000_000n
/** The whole file would take minutes. */
const SLOW_BYTES_PER_S = 20_000

describe('uploads with the page', { skip: missingForConsole() }, () => {
  let stand: ConsoleStand
  let page: Page
  let folder: TempFolder
  let monday: Buffer

  before(async () => {
    stand = await ConsoleStand.create()
    page = stand.page
    folder = await tempFolder()
    await writeBigCapture(join(folder.path, 'monday.pcap'), 4_000)
    monday = await readFile(join(folder.path, 'monday.pcap'))
    await signIn(page, { user: 'full', password: USER_PASSWORD })
  })
  after(async () => {
    await stand[Symbol.asyncDispose]()
    await folder[Symbol.asyncDispose]()
  })

  const dialog = () => page.getByRole('dialog')
  const captures = (): Promise<string[]> =>
    readdir(join(stand.world.device('east').appliance.storePath, 'captures'))
  const choose = (...files: { readonly name: string; readonly buffer: Buffer }[]): Promise<void> =>
    dialog()
      .getByLabel('Files')
      .first()
      .setInputFiles(files.map((file) => ({ ...file, mimeType: '' })))
  const row = (file: string) => dialog().locator(`li[data-file="${file}"]`)
  async function opened(hash: string): Promise<void> {
    await show(page, hash)
    await page.getByRole('button', { name: 'Upload…' }).first().click()
    await dialog().getByLabel('Device that stores them').selectOption('east')
  }

  test('a file becomes a capture, and its link selects it on the lanes', async () => {
    await opened('#/fleet')
    await choose({ name: 'montag größe.pcap', buffer: monday })
    const name = dialog().getByLabel('Name of the capture')
    assert.match(await name.inputValue(), /^montag_gro_e-\d{8}-\d{6}$/, 'a name for files with other letters')
    await name.fill('monday')
    assert.deepEqual(await hindrances(page), [])
    await dialog().getByRole('button', { name: 'Upload', exact: true }).click()
    await row('montag größe.pcap').getByText('monday is on east:').waitFor()
    await row('montag größe.pcap').getByText('4,000 packets').waitFor()
    await dialog().getByRole('link', { name: 'Show in the timeline' }).click()
    await dialog().waitFor({ state: 'detached' })
    await page.getByRole('button', { name: /^monday east/ }).waitFor()
    await page.locator('.estimate strong[data-packets="4000"]').waitFor()
    const { bytes } = await saved(page, () =>
      page.getByRole('button', { name: 'Download', exact: true }).click(),
    )
    assert.equal(sha256(bytes), sha256(monday), 'what was uploaded comes back')
  })

  test('several files are sent one after another, and one that fails does not stop the others', async () => {
    await opened(`#/timeline?view-from=${FIRST_NS - SECOND_NS}&view-to=${FIRST_NS + 10n * SECOND_NS}`)
    const one = makePcap([makePacket(FIRST_NS, 'one', 80)])
    await choose(
      { name: 'one.pcap', buffer: one },
      { name: 'notes.txt', buffer: Buffer.from('no capture file at all') },
      { name: 'empty.pcap', buffer: Buffer.alloc(0) },
      { name: 'cut.pcap', buffer: monday.subarray(0, monday.length - 7) },
      { name: 'one.pcapng', buffer: one },
    )
    await dialog().getByRole('button', { name: 'Upload 5 files' }).click()
    await row('one.pcapng').getByText('one-2 is on east:').waitFor()
    await row('notes.txt').getByText('notes.txt is neither PCAP nor pcapng').waitFor()
    await row('empty.pcap').getByText('The file is empty.').waitFor()
    await row('cut.pcap').getByText('The file is damaged at byte').waitFor()
    await row('cut.pcap').getByText('3,999 packets').waitFor()
    await dialog().getByRole('button', { name: 'Remove notes.txt' }).click()
    await dialog().getByRole('button', { name: 'Remove empty.pcap' }).click()
    await dialog().getByRole('button', { name: 'Close' }).click()
    const stored = await captures()
    assert.ok(
      ['one', 'one-2', 'cut'].every((name) => stored.includes(name)),
      stored.join(),
    )
    assert.ok(!stored.some((name) => /^(notes|empty|\.)/.test(name)), stored.join())
    await page.getByRole('button', { name: /^one-2 east/ }).waitFor()
  })

  test('a name that is in use is refused, and another one accepted', async () => {
    await opened('#/fleet?device=east')
    await choose({ name: 'one.pcap', buffer: makePcap([makePacket(FIRST_NS, 'two', 80)]) })
    await dialog().getByRole('button', { name: 'Upload', exact: true }).click()
    await row('one.pcap').getByRole('alert').getByText('capture-exists').waitFor()
    await dialog().getByLabel('Name of the capture').fill('../x')
    await dialog().getByRole('button', { name: 'Upload', exact: true }).click()
    assert.ok(
      await dialog()
        .getByLabel('Name of the capture')
        .evaluate((field) => field.matches(':invalid')),
    )
    await dialog().getByLabel('Name of the capture').fill('three')
    await dialog().getByRole('button', { name: 'Upload', exact: true }).click()
    await row('one.pcap').getByText('three is on east:').waitFor()
    await dialog().getByRole('button', { name: 'Close' }).click()
  })

  test('dropped files open the dialog, wherever they are dropped', async () => {
    await show(page, '#/timeline')
    await page.getByRole('button', { name: 'Upload…' }).waitFor()
    await page.evaluate(() => {
      const transfer = new DataTransfer()
      transfer.items.add(new File(['x'], 'dropped.pcap'))
      const init = { dataTransfer: transfer, bubbles: true, cancelable: true }
      document.querySelector('.lane-canvas')?.dispatchEvent(new DragEvent('drop', init))
    })
    await row('dropped.pcap').waitFor()
    await dialog().getByRole('button', { name: 'Back' }).click()
  })

  test('the progress is shown, and an upload that is cancelled leaves nothing and can be sent again', async () => {
    const throttle = await page.context().newCDPSession(page)
    await throttle.send('Network.enable')
    const limit = (uploadThroughput: number) =>
      throttle.send('Network.emulateNetworkConditions', {
        offline: false,
        latency: 0,
        downloadThroughput: -1,
        uploadThroughput,
      })
    await opened('#/fleet')
    await limit(SLOW_BYTES_PER_S)
    await choose({ name: 'slow.pcap', buffer: monday })
    await dialog().getByRole('button', { name: 'Upload', exact: true }).click()
    await page.waitForFunction(
      () => (document.querySelector('dialog progress') as HTMLProgressElement)?.value > 0,
    )
    await page.keyboard.press('Escape')
    assert.ok(await dialog().isVisible(), 'Escape does not end an upload')
    await dialog().getByRole('button', { name: 'Cancel upload' }).click()
    await dialog().getByRole('button', { name: 'Upload', exact: true }).waitFor()
    assert.equal(await dialog().getByRole('alert').count(), 0, 'what the user wanted is no failure')
    await eventually(async () => !(await captures()).some((name) => /^(slow|\.)/.test(name)), {
      message: 'nothing is left',
    })
    await limit(-1)
    await dialog().getByRole('button', { name: 'Upload', exact: true }).click()
    await row('slow.pcap').getByText('slow is on east:').waitFor()
    await dialog().getByRole('button', { name: 'Close' }).click()
    await throttle.detach()
  })

  test('whatever the gateway answers is shown in its words with its code', async () => {
    await opened('#/fleet')
    await choose({ name: 'refused.pcap', buffer: makePcap([]) })
    const upload = dialog().getByRole('button', { name: 'Upload', exact: true })
    for (const code of [...DEVICE_API.uploadCapture.errors, 'too-many-requests', 'device-unreachable']) {
      const detail = `the reason of ${code}`
      await page.route('**/v1/captures?*', (route) => route.fulfill({ status: 507, json: { code, detail } }))
      await upload.click()
      const alert = row('refused.pcap').getByRole('alert')
      await alert.getByText(detail).waitFor()
      await alert.getByText(code, { exact: true }).waitFor()
      await page.unroute('**/v1/captures?*')
    }
    await page.route('**/v1/captures?*', (route) => route.abort())
    await upload.click()
    await row('refused.pcap').getByText('The connection to the gateway broke').waitFor()
    await page.unroute('**/v1/captures?*')
    await page.route('**/v1/captures?*', (route) => route.fulfill({ status: 200, body: '<html>' }))
    await upload.click()
    await row('refused.pcap').getByText('The server that answered is not a capfleet gateway').waitFor()
    await page.unroute('**/v1/captures?*')
    await dialog().getByRole('button', { name: 'Back' }).click()
  })

  test('users without the scope have no button', async () => {
    await using other = await stand.browser.open(stand.url)
    await signIn(other.page, { user: 'user', password: USER_PASSWORD })
    await other.page.locator('tr[data-device=east]').waitFor()
    assert.equal(await other.page.getByRole('button', { name: 'Upload…' }).count(), 0)
    assert.deepEqual(stand.opened.faults, [])
  })
})
