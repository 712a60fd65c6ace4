// The page in a real browser, with a real gateway, worker, Redis and appliances.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { createServer, request as httpRequest, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import type { Page } from 'playwright-core'
import {
  hindrances,
  missingForConsole,
  saved,
  settled,
  sha256,
  show,
  signIn,
  tabTo,
} from '../support/console/console-browser.ts'
import { testControl, testDownloadsAndExports, testTypedSchedules } from '../support/console/console-jobs.ts'
import { testMarkup } from '../support/console/console-markup.ts'
import { testOperators, testSelection } from '../support/console/console-selection.ts'
import { ConsoleStand } from '../support/console/console-stand.ts'
import { EXPORT_BEGIN_NS, EXPORT_END_NS } from '../support/exports/export-captures.ts'
import { type ExportWorld, WHOLE_RANGE } from '../support/exports/export-world.ts'
import { httpGet } from '../support/http-get.ts'
import { readPcap } from '../support/packets/pcap-records.ts'
import { USER_PASSWORD } from '../support/suite-secrets.ts'
import { tempFolder } from '../support/temp-folder.ts'

const VIEWS = ['fleet', 'timeline', 'inside', 'queue', 'exports', 'events', 'access', 'pivot']
const MARKUP = '<img src=x onerror="document.title=`broken`">'
const SECOND_NS = 1_000_000_000n
const AROUND = `view-from=${EXPORT_BEGIN_NS - 6n * SECOND_NS}&view-to=${EXPORT_END_NS + 6n * SECOND_NS}`

describe('the page', { skip: missingForConsole() }, () => {
  let stand: ConsoleStand
  let world: ExportWorld
  let page: Page

  before(async () => {
    stand = await ConsoleStand.create()
    world = stand.world
    page = stand.page
  })
  after(() => stand[Symbol.asyncDispose]())

  test('rejects a wrong password, says so, and accepts the right one', async () => {
    await page.getByLabel('User').fill('full')
    await page.getByLabel('Password').fill('wrong')
    assert.deepEqual(await hindrances(page), [])
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('alert').waitFor()
    await signIn(page, { user: 'full', password: USER_PASSWORD })
    assert.equal(await page.evaluate(() => document.cookie), '', 'no script sees the cookie')
    for (const name of ['east', 'north', 'west'])
      await page.locator(`tr[data-device=${name}]`, { hasText: 'up' }).waitFor()
  })

  test('finds a capture, and its estimate, its file and what curl saves are the same', async () => {
    await page.getByRole('link', { name: 'Timeline' }).click()
    await page.getByRole('button', { name: /^north north/ }).click()
    const strong = page.locator('.estimate strong[data-packets]')
    await strong.waitFor()
    const estimated = await estimate(page)
    const { bytes, name } = await saved(page, () =>
      page.getByRole('button', { name: 'Download', exact: true }).click(),
    )
    const selected = new URLSearchParams((await page.evaluate(() => location.hash)).split('?')[1])
    const direct = await world.direct(
      `/api/v1/pcap/timerange?TSBegin=${selected.get('TSBegin')}&TSEnd=${selected.get('TSEnd')}&Device=north`,
    )
    assert.equal(selected.get('Device'), 'north')
    assert.equal(sha256(bytes), sha256(direct))
    assert.equal(bytes.length, estimated.bytes)
    assert.equal(readPcap(bytes).records.length, estimated.packets)
    assert.match(name, /\.pcap$/)
  })

  test('a drag selects to the nanosecond, and the address is the selection', async () => {
    await show(page, `#/timeline?${AROUND}`)
    await page.locator('.lane-canvas canvas').waitFor()
    await drag(page, 0.25, 0.5)
    const hash = await page.evaluate(() => location.hash)
    const selected = new URLSearchParams(hash.split('?')[1])
    const [from, to] = [BigInt(selected.get('TSBegin') ?? 0), BigInt(selected.get('TSEnd') ?? 0)]
    const span = EXPORT_END_NS - EXPORT_BEGIN_NS + 12n * SECOND_NS
    assert.ok(near(from, EXPORT_BEGIN_NS - 6n * SECOND_NS + span / 4n), `${from}`)
    assert.ok(near(to, EXPORT_BEGIN_NS - 6n * SECOND_NS + span / 2n), `${to}`)
    await using other = await stand.browser.open(stand.url + hash)
    await signIn(other.page, { user: 'user', password: USER_PASSWORD })
    const field = (of: Page) => of.getByLabel('Begin').inputValue()
    assert.equal(await field(other.page), await field(page))
  })

  test('a drag is one step of "back"', async () => {
    await show(page, `#/timeline?${AROUND}&${WHOLE_RANGE}`)
    await page.locator('.lane-canvas canvas').waitFor()
    const begin = page.getByLabel('Begin')
    await page.locator('.estimate strong[data-packets]').waitFor()
    const before = await begin.inputValue()
    await drag(page, 0.25, 0.5)
    assert.notEqual(await begin.inputValue(), before)
    await page.goBack()
    assert.equal(await begin.inputValue(), before)
  })

  test('a group does not shut while what was given in it is removed', async () => {
    await show(page, `#/timeline?${AROUND}&${WHOLE_RANGE}`)
    await page.getByText('Limits', { exact: true }).click()
    const packets = page.getByLabel('MaxPackets')
    await packets.focus()
    await page.keyboard.type('5')
    await page.locator('summary .count').waitFor()
    await page.keyboard.press('Backspace')
    await page.locator('summary .count').waitFor({ state: 'detached' })
    assert.ok(await packets.evaluate((field) => field === document.activeElement))
  })

  test('a wrong filter shows where, and nothing can be downloaded by it', async () => {
    await show(page, `#/timeline?${WHOLE_RANGE}`)
    await page.getByLabel('FilterFrame').fill('capture.port==0 and nonsense==1')
    const problem = page.locator('#parameter-FilterFrame-problem pre')
    await problem.waitFor()
    assert.equal(await problem.getAttribute('data-position'), '20')
    assert.ok(await page.getByRole('button', { name: 'Download', exact: true }).isDisabled())
    await page.locator('.estimate').getByRole('button', { name: 'Switch or port conditions' }).click()
    assert.ok(await page.getByLabel('FilterFrame').evaluate((field) => field === document.activeElement))
    await page.getByLabel('FilterFrame').fill('')
    await page.getByLabel('Begin', { exact: true }).fill('soon')
    await page.getByLabel('Begin', { exact: true }).blur()
    await page
      .locator('#parameter-TSBegin-problem', { hasText: /^“Begin” "soon" is not in a form/ })
      .waitFor()
    await page.locator('.estimate').getByRole('button', { name: 'Begin', exact: true }).waitFor()
    await show(page, `#/timeline?${WHOLE_RANGE}`)
    await page.getByLabel('FilterRE').fill('GET [a')
    assert.equal(
      await page.locator('#parameter-FilterRE-problem pre').getAttribute('data-position'),
      String('GET '.length),
    )
    await page.getByLabel('FilterRE').fill('')
    const bpf = page.locator('#parameter-FilterBPF')
    assert.match(
      await page.locator('#parameter-FilterBPF-says').innerText(),
      / or “Filter inside tunnels”\.$/,
    )
    await bpf.fill('tcp prt 80')
    await page
      .locator('#parameter-FilterBPF-problem', { hasText: /^“Filter” "tcp prt 80" does not .* syntax error/ })
      .waitFor()
    await bpf.fill('tcp port www or port nowhere')
    const word = page.locator('#parameter-FilterBPF-problem pre')
    assert.equal(await word.getAttribute('data-position'), String('tcp port www or port '.length))
    await bpf.fill('greater 700')
    await page.locator('.estimate strong[data-packets]').waitFor()
  })

  test('warns of copies where several devices deliver packets, unless they are dropped', async () => {
    const warning = page.locator('.estimate', { hasText: 'takes them for retransmissions' })
    await show(page, `#/timeline?${WHOLE_RANGE}`)
    await warning.waitFor()
    for (const instead of ['Dedup=1000000', 'Device=north']) {
      await show(page, `#/timeline?${WHOLE_RANGE}&${instead}`)
      await warning.waitFor({ state: 'detached' })
      await page.locator('.estimate strong[data-packets]').waitFor()
    }
  })

  test('claims no captures only when the devices have answered for the time range', async () => {
    const none = page.getByText('No captures in the time range shown.')
    const later = EXPORT_END_NS + 1_000n * SECOND_NS
    await show(page, `#/timeline?view-from=${later}&view-to=${later + SECOND_NS}`)
    await none.waitFor()
    const asked = Promise.withResolvers<void>()
    const answer = Promise.withResolvers<void>()
    await page.route('**/stream/list?*', async (route) => {
      asked.resolve()
      await answer.promise
      await route.continue()
    })
    await page.getByRole('button', { name: 'Show all', exact: true }).click()
    await asked.promise
    await none.waitFor({ state: 'detached' })
    answer.resolve()
    await page
      .locator('.capture-list summary', { hasText: /^Captures [1-9]\d* of the lanes and the time in sight/ })
      .waitFor()
    await page.unroute('**/stream/list?*')
  })

  test('looks inside: the first packets with their devices, decoded in the browser', async () => {
    await show(page, `#/inside?${WHOLE_RANGE}`)
    const rows = page.locator('.packets tbody tr')
    await rows.first().waitFor()
    const { records } = readPcap(await world.direct(`/api/v1/pcap/timerange?${WHOLE_RANGE}&MaxPackets=200`))
    assert.equal(await rows.count(), records.length)
    const lengths = await page.locator('.packets tbody td:last-child').allInnerTexts()
    assert.deepEqual(
      lengths.map(Number),
      records.map(({ originalLength }) => originalLength),
    )
    const first = await page.locator('.packet-bytes pre').innerText()
    const bytes = [...(records[0]?.captured.subarray(0, 8) ?? [])].map((byte) =>
      byte.toString(16).padStart(2, '0'),
    )
    assert.ok(first.startsWith(`0000  ${bytes.join(' ')}`), first.slice(0, 60))
    assert.match(await page.locator('.packet-bytes h2').innerText(), /^Bytes 2026-09-21 14:13:20\.\d{9}$/)
    await page.getByText('Choose devices').click()
    await page.getByRole('button', { name: /^west/ }).click()
    await page.locator('.packets td:nth-child(2)', { hasText: 'west' }).first().waitFor({ state: 'detached' })
    const shown = await page.locator('.packets td:nth-child(2)').allInnerTexts()
    assert.deepEqual([...new Set(shown)].toSorted(), ['east', 'north'])
  })

  test('an export goes from a click to its file, and a reason with markup stays text', async () => {
    await show(page, `#/timeline?${WHOLE_RANGE}&Reason=${encodeURIComponent(MARKUP)}`)
    await page.getByRole('button', { name: 'Order export' }).click()
    await page.getByRole('link', { name: 'Export ordered' }).click()
    const row = page.locator('tr.marked[data-state=complete]')
    await row.waitFor()
    const { bytes } = await saved(page, () => row.getByRole('link', { name: /^File/ }).click())
    assert.equal(sha256(bytes), sha256(await world.direct(`/api/v1/pcap/timerange?${WHOLE_RANGE}`)))
    const text = await row.innerText()
    assert.ok(text.includes(MARKUP))
    assert.match(text, /Devices east, .*\n.*Begin \d{4}-/s)
    assert.doesNotMatch(text, /TSBegin|TSUnit/)
    assert.notEqual(await page.title(), 'broken')
  })

  test('events appear as they come, and are marked in the timeline', async () => {
    await show(page, '#/events')
    await page.getByText('Listening.').waitFor()
    const east = world.device('east').appliance
    const rows = page.locator('main tr', { hasText: 'recorder-started' })
    const before = await rows.count()
    await east.stopRecorder()
    await east.startRecorder()
    await rows.nth(before).waitFor()
    await page.getByLabel('Filter by device').fill('north')
    await page.locator('main tr', { hasText: 'east' }).first().waitFor({ state: 'detached' })
    const from = BigInt(Date.now() - 60_000) * 1_000_000n
    await show(page, `#/timeline?view-from=${from}&view-to=${from + 120n * SECOND_NS}`)
    await page.locator('.lane-canvas[data-events]:not([data-events="0"])').waitFor()
  })

  testDownloadsAndExports(() => stand)
  testTypedSchedules(() => stand)
  testSelection(() => stand)
  testOperators(() => stand)
  testMarkup(() => stand)

  test('every view is accessible, in dark and light, and on a phone', async () => {
    const found = await Promise.all((['dark', 'light'] as const).map((theme) => hindrancesIn(stand, theme)))
    assert.deepEqual(found.flat(), [])
  })

  test('the main task needs no mouse', async () => {
    await using own = await stand.browser.open(stand.url)
    const { keyboard } = own.page
    await tabTo(own.page, '[name=user]')
    await keyboard.type('user')
    await tabTo(own.page, '[name=password]')
    await keyboard.type(USER_PASSWORD)
    await keyboard.press('Enter')
    await own.page.getByRole('navigation').waitFor()
    await tabTo(own.page, 'nav a[href*=timeline]')
    await keyboard.press('Enter')
    await own.page.locator('.capture-list li').first().waitFor()
    await tabTo(own.page, '.capture-list button')
    await keyboard.press('Enter')
    await tabTo(own.page, '.skip')
    await tabTo(own.page, '.lane-canvas')
    for (const key of ['Escape', 'Home', ...Array<string>(10).fill('ArrowRight'), 'Enter'])
      await keyboard.press(key)
    for (const key of [...Array<string>(10).fill('ArrowRight'), 'Enter']) await keyboard.press(key)
    await own.page.locator('.estimate strong[data-packets]').waitFor()
    await tabTo(own.page, '.builder .primary')
    const { bytes } = await saved(own.page, () => keyboard.press('Enter'))
    assert.ok(readPcap(bytes).records.length > 0)
  })

  test('a viewer sees no control', async () => {
    await using own = await stand.browser.open(stand.url)
    await signIn(own.page, { user: 'viewer', password: USER_PASSWORD })
    const links = await own.page.getByRole('navigation').getByRole('link').allInnerTexts()
    assert.deepEqual(links, ['Fleet', 'Timeline', 'Queue', 'Events', 'Access'])
    await show(own.page, '#/fleet?device=east')
    await own.page.locator('.details').waitFor()
    assert.equal(await own.page.getByRole('button', { name: /capture/ }).count(), 0)
    await show(own.page, `#/timeline?${WHOLE_RANGE}`)
    await own.page.locator('.lane-canvas').waitFor()
    assert.equal(await own.page.locator('.builder').count(), 0)
    // Through a link from another user: pages that viewers may not use are hidden, and none of their data is requested.
    const asked: string[] = []
    own.page.on('request', (request) => asked.push(new URL(request.url()).pathname))
    for (const hash of ['#/exports', '#/access', '#/exports?order=schedule']) {
      await show(own.page, hash)
      await own.page.locator('nav a[aria-current=page]', { hasText: 'Access' }).waitFor()
      await settled(own.page)
      const headings = await own.page.getByRole('main').getByRole('heading').allInnerTexts()
      assert.deepEqual(
        headings.filter((text) => /users|audit|export|schedule/i.test(text)),
        [],
        hash,
      )
    }
    assert.deepEqual(
      asked.filter((path) => /exports|schedules|users|audit/.test(path)),
      [],
    )
    assert.deepEqual(own.faults, [])
  })

  test('what is copied as curl brings the same file', async () => {
    const answer = await fetch(`${world.gateway.url}/v1/tokens?Scopes=capture:download`, {
      method: 'POST',
      headers: world.gateway.as.user,
    })
    const { token } = (await answer.json()) as { readonly token: string }
    await using own = await stand.browser.open(stand.url, {
      permissions: ['clipboard-read', 'clipboard-write'],
    })
    await signIn(own.page, { user: 'user', password: USER_PASSWORD })
    await show(own.page, `#/timeline?${WHOLE_RANGE}&FilterBPF=greater+700`)
    await own.page.getByRole('button', { name: 'Copy as curl' }).click()
    const line = await own.page.evaluate(() => navigator.clipboard.readText())
    assert.match(line, /^curl -fsS -u user -OJ 'http/)
    await using folder = await tempFolder()
    // curl would prompt for the password at a terminal.
    const byPassword = line.replace('-u user', '-u "user:$PASSWORD"')
    const byToken = line
      .replace('-u user', '-H "Authorization: Bearer $CAPFLEET_TOKEN"')
      .replace('-OJ', '-o by-token.pcap')
    const env = { ...process.env, PASSWORD: USER_PASSWORD, CAPFLEET_TOKEN: token }
    for (const command of [byPassword, byToken])
      await promisify(execFile)('sh', ['-c', command], { cwd: folder.path, env })
    const direct = await world.direct(`/api/v1/pcap/timerange?${WHOLE_RANGE}&FilterBPF=greater+700`)
    const names = await readdir(folder.path)
    assert.equal(names.length, 2)
    for (const name of names)
      assert.equal(sha256(await readFile(join(folder.path, name))), sha256(direct), name)
  })

  test('works below a path prefix, behind a proxy', async () => {
    const proxy = await startPrefixProxy(world.gateway.url, '/tools/capfleet')
    try {
      await using own = await stand.browser.open(`${proxy.url}/tools/capfleet/`)
      await signIn(own.page, { user: 'user', password: USER_PASSWORD })
      await show(own.page, `#/timeline?${WHOLE_RANGE}`)
      await own.page.locator('.estimate strong[data-packets]').waitFor()
      const { bytes } = await saved(own.page, () =>
        own.page.getByRole('button', { name: 'Download', exact: true }).click(),
      )
      assert.equal(sha256(bytes), sha256(await world.direct(`/api/v1/pcap/timerange?${WHOLE_RANGE}`)))
      assert.deepEqual(own.faults, [])
    } finally {
      proxy.server.closeAllConnections()
      proxy.server.close()
    }
  })

  test('its help opens the documentation, which searches and turns pages without another host', async () => {
    const proxy = await startPrefixProxy(world.gateway.url, '/tools/capfleet')
    try {
      await using own = await stand.browser.open(`${proxy.url}/tools/capfleet/`)
      await signIn(own.page, { user: 'user', password: USER_PASSWORD })
      await show(own.page, '#/queue')
      const help = own.page.getByRole('link', { name: 'Help', exact: true })
      const href = await help.getAttribute('href')
      await using site = await stand.browser.open(`${proxy.url}/tools/capfleet/${href}`)
      await site.page.getByRole('heading', { level: 1, name: 'The queue' }).waitFor()
      await site.page.getByRole('button', { name: 'Search' }).click()
      await site.page.locator('.VPLocalSearchBox input').fill('certificate ends')
      await site.page.locator('.VPLocalSearchBox .result', { hasText: 'A certificate ends' }).first().click()
      await site.page.getByRole('heading', { level: 2, name: 'A certificate ends' }).waitFor()
      assert.match(site.page.url(), /\/tools\/capfleet\/docs\/operations\/runbook\.html#a-certificate-ends$/)
      await site.page.reload()
      await site.page.getByRole('heading', { level: 2, name: 'A certificate ends' }).waitFor()
      assert.deepEqual([...own.faults, ...site.faults], [])
    } finally {
      proxy.server.closeAllConnections()
      proxy.server.close()
    }
  })

  testControl(() => stand)

  test('a device that does not answer is named beside its lane', async () => {
    const { line } = world.device('west')
    line.isDown = true
    await show(page, `#/timeline?${AROUND}`)
    await page.getByRole('button', { name: 'Zoom out' }).click()
    await page.locator('.status-line', { hasText: 'west: does not answer' }).waitFor()
    line.isDown = false
  })

  test('nothing failed in it, nothing was asked elsewhere, and its policy has no unsafe word', async () => {
    assert.deepEqual(stand.opened.faults, [])
    const policy = (await fetch(stand.url, { headers: { accept: 'text/html' } })).headers.get(
      'content-security-policy',
    )
    assert.match(policy ?? '', /script-src 'self'/)
    assert.doesNotMatch(policy ?? '', /unsafe|http/)
  })

  test('offers no tour, which is about the traffic of the demo', async () => {
    await page.getByRole('button', { name: 'Sign out' }).waitFor()
    assert.equal(await page.getByText('Tour', { exact: true }).count(), 0)
  })

  test('has less than 150 kB to load, without the decoder, which few need', async () => {
    const html = await (await fetch(stand.url, { headers: { accept: 'text/html' } })).text()
    const names = [...html.matchAll(/(?:href|src)="\.\/(assets\/[^"]+)"/g)].map(([, name]) => name)
    assert.ok(names.length >= 3, html)
    const sizes = await Promise.all(names.map((name) => loadedBytes(`${stand.url}${name}`)))
    const bytes = sizes.reduce((sum, size) => sum + size, 0)
    assert.ok(bytes > 10_000 && bytes < 150_000, `${bytes} bytes`)
  })
})

/** As a browser loads it: compressed. */
async function loadedBytes(url: string): Promise<number> {
  const answer = await httpGet(url, { headers: { 'accept-encoding': 'gzip' } })
  assert.equal(answer.headers['content-encoding'] ?? 'gzip', 'gzip', url)
  return answer.body.length
}

/** The exact totals that the page announces. */
async function estimate(page: Page): Promise<{ readonly packets: number; readonly bytes: number }> {
  const read = (name: string) => page.locator(`.estimate strong[data-${name}]`).getAttribute(`data-${name}`)
  await page.locator('.estimate', { hasText: 'exactly' }).waitFor()
  return { packets: Number(await read('packets')), bytes: Number(await read('bytes')) }
}

/** A drag from one place of the lanes to another, from 0 to 1. */
async function drag(page: Page, from: number, to: number): Promise<void> {
  const box = await page.locator('.lane-canvas').boundingBox()
  assert.ok(box)
  const y = box.y + box.height / 2
  await page.mouse.move(box.x + box.width * from, y)
  await page.mouse.down()
  await page.mouse.move(box.x + box.width * ((from + to) / 2), y)
  await page.mouse.move(box.x + box.width * to, y)
  await page.mouse.up()
}

/** Within a pixel or two, in a view of about a minute. */
function near(a: bigint, b: bigint): boolean {
  const distance = a > b ? a - b : b - a
  return distance < SECOND_NS / 4n
}

/** Themes differ in colours alone, and a phone in what is where; at night all rules are checked there too. */
const RULES = { dark: undefined, light: ['color-contrast'] }
const IS_LONG = process.env.CAPFLEET_LONG === '1'
/** Together they have every colour; at night all. */
const LIGHT_VIEWS = ['fleet', 'timeline', 'exports', 'access']
/** Those with the most that is laid out in another way there; at night all. */
const PHONE_VIEWS: ReadonlySet<string> = new Set(['fleet', 'timeline'])
const PHONE_RULES = ['aria-hidden-focus', 'button-name', 'label', 'link-name', 'scrollable-region-focusable']

/** Names of all views; the first one needs no role. */
async function hindrancesIn(
  { browser, url }: ConsoleStand,
  theme: 'dark' | 'light',
): Promise<readonly string[]> {
  await using own = await browser.open(url, { colorScheme: theme, reducedMotion: 'reduce' })
  const { page } = own
  await page.getByLabel('User').waitFor()
  const found = (await hindrances(page, RULES[theme])).map((hindrance) => `sign-in: ${hindrance}`)
  await signIn(page, { user: 'admin', password: USER_PASSWORD })
  for (const view of IS_LONG || theme === 'dark' ? VIEWS : LIGHT_VIEWS) {
    await show(page, `#/${view}?${WHOLE_RANGE}&device=east`)
    await settled(page)
    found.push(...(await hindrances(page, RULES[theme])).map((hindrance) => `${view}: ${hindrance}`))
    await page.setViewportSize({ width: 320, height: 640 })
    if (IS_LONG || (theme === 'dark' && PHONE_VIEWS.has(view))) {
      const rules = IS_LONG ? RULES[theme] : PHONE_RULES
      found.push(...(await hindrances(page, rules)).map((hindrance) => `${view} on a phone: ${hindrance}`))
    }
    const beyondPx = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth)
    if (beyondPx > 0) found.push(`${view}: ${beyondPx} px wider than a phone`)
    await page.setViewportSize({ width: 1_280, height: 720 })
  }
  await show(page, `#/timeline?${WHOLE_RANGE}&FilterBPF=tcp+prt+80`)
  await page.getByText('Limits', { exact: true }).click()
  await page.locator('#parameter-FilterBPF-problem', { hasText: 'syntax error' }).waitFor()
  found.push(...(await hindrances(page, RULES[theme])).map((hindrance) => `group and mistake: ${hindrance}`))
  await show(page, '#/fleet?device=east')
  await page
    .locator('.details')
    .getByRole('button', { name: /capture/ })
    .first()
    .click()
  await page.getByRole('dialog').waitFor()
  found.push(...(await hindrances(page, RULES[theme])).map((hindrance) => `dialog: ${hindrance}`))
  return [...found, ...own.faults].map((hindrance) => `${theme}: ${hindrance}`)
}

async function startPrefixProxy(
  target: string,
  prefix: string,
): Promise<{ readonly url: string; readonly server: Server }> {
  const { port } = new URL(target)
  const server = createServer((request, response) => {
    const { method, headers, url: asked = '/' } = request
    if (!asked.startsWith(`${prefix}/`)) return void response.writeHead(404).end()
    const passed = httpRequest(
      { host: '127.0.0.1', port, method, headers, path: asked.slice(prefix.length) },
      (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers)
        answer.pipe(response)
      },
    )
    passed.on('error', () => response.destroy())
    request.pipe(passed)
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}
