// The page of the demo, with the real programs as processes that the test may kill.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { after, before, describe, test } from 'node:test'
import type { Page } from 'playwright-core'
import {
  ConsoleBrowser,
  hindrances,
  missingForConsole,
  type OpenPage,
  saved,
  settled,
  show,
  signIn,
  withoutDissector,
} from '../support/console/console-browser.ts'
import { eventually } from '../support/eventually.ts'
import { readPcap, recordLines } from '../support/packets/pcap-records.ts'
import { type DemoProcess, startDemo, temporaryHome } from '../support/processes/demo-process.ts'

const CAPTURE = 'demo_20261102_0900'
const BEGIN_NS = 1_793_610_000_000_000_000n
const LENGTH_NS = 300_000_000_000n
const ALL_OF_IT = `#/timeline?view-from=${BEGIN_NS}&view-to=${BEGIN_NS + LENGTH_NS}`
const HALF_OF_IT = `#/timeline?view-from=${BEGIN_NS}&view-to=${BEGIN_NS + LENGTH_NS / 2n}`
const DOWN_WITHIN_MS = 10_000
/** Distance from the top of the lanes' picture: inside the first lane, below the axis. */
const IN_FIRST_LANE_PX = 60
/** Where the text begins in a line of bytes, after offset and hexadecimal digits. */
const TEXT_COLUMN = 56

describe('the page of the demo', { skip: missingForConsole() }, () => {
  const owned = new AsyncDisposableStack()
  let demo: DemoProcess
  let browser: ConsoleBrowser
  let opened: OpenPage
  let page: Page

  before(async () => {
    const home = owned.use(await temporaryHome())
    demo = owned.use(await startDemo(home.path))
    browser = owned.use(await ConsoleBrowser.launch())
    opened = owned.use(await browser.open(`${demo.facts.gatewayUrl}/`, { colorScheme: 'dark' }))
    page = opened.page
    // What the tour shows is there with and without it; the table has all of its rows in the page.
    await withoutDissector(page)
    await signIn(page, demo.facts)
  })
  after(() => owned.disposeAsync())

  test("finds the demo's captures, and describes what is under the pointer", async () => {
    await show(page, ALL_OF_IT)
    for (const { name } of demo.facts.devices)
      await page.locator('.capture-list li', { hasText: CAPTURE }).filter({ hasText: name }).waitFor()
    await settled(page)
    const picture = page.locator('.lane-canvas canvas')
    const { width = 0 } = (await picture.boundingBox()) ?? {}
    await picture.hover({ position: { x: width / 2, y: IN_FIRST_LANE_PX } })
    const [first = ''] = demo.facts.devices.map(({ name }) => name)
    const told = await page.locator('.readout', { hasText: first }).innerText()
    // The middle of five minutes with 370 packets per second.
    assert.match(told, /09:02:30/)
    const [, rate = ''] = /([\d,.]+) packets\/s/.exec(told.replaceAll('\n', ' ')) ?? []
    assert.ok(Number(rate.replaceAll(',', '')) > 100, told)
  })

  describe('the tour', () => {
    const tour = () => page.getByRole('complementary', { name: 'Tour of the demo' })
    const showIt = () => tour().getByRole('link', { name: 'Show it' }).click()

    /** Opens the question, as a link to it would, and its answer. */
    async function ask(number: number, question: string): Promise<string> {
      await show(page, `#/timeline?tour=${number}`)
      await tour().getByRole('heading', { name: question }).waitFor()
      await tour().getByText('Answer', { exact: true }).click()
      return await tour().locator('details p').innerText()
    }

    /** Rows of the view "Look inside" as soon as they are what is expected: time, device, source, destination. */
    async function packets(isExpected: (rows: readonly string[][]) => boolean): Promise<readonly string[][]> {
      let rows: string[][] = []
      await eventually(
        async () => {
          const texts = await page.locator('.packets tbody tr').allInnerTexts()
          rows = texts.map((text) => text.split(/\s*\t\s*/))
          return isExpected(rows)
        },
        { message: 'the packets of the answer are shown' },
      )
      return rows
    }

    test('1: the timeline shows a peak at two of the three sites', async () => {
      const answer = await ask(1, 'When does something unusual happen')
      assert.deepEqual(await hindrances(page), [])
      await showIt()
      await page.locator('.estimate strong[data-packets]').waitFor()
      const told = (await page.locator('.estimate').innerText()).replaceAll(',', '').replaceAll('\n', ' ')
      const [atNewYork, atLondon, atSingapore] = ['nyc1', 'lon1', 'sgp1'].map((device) => {
        const [, count = ''] = new RegExp(`${device} (\\d+)`).exec(told) ?? []
        return Number(count)
      }) as [number, number, number]
      assert.ok(atSingapore > 500 && atNewYork > 4 * atSingapore && atLondon > 4 * atSingapore, told)
      assert.match(answer, /At 09:02:30 nyc1 .* and lon1/)
      await tour().getByRole('button', { name: 'Next' }).click()
      await tour().getByRole('heading', { name: 'Who sends these packets' }).waitFor()
    })

    test('2: one computer in New York sends the packets', async () => {
      const answer = await ask(2, 'Who sends these packets')
      await showIt()
      const rows = await packets(({ length }) => length === 200)
      const scanning = rows.filter(([, , source]) => source === '10.20.3.77:54321')
      assert.ok(scanning.length > 190)
      assert.ok(new Set(scanning.map(([, , , destination]) => destination)).size > 190)
      assert.match(answer, /^10\.20\.3\.77, /)
    })

    test('3: typing what the tour says shows the servers that answered', async () => {
      const answer = await ask(3, 'Which servers accepted')
      await page.locator('#parameter-TSBegin').fill('2026-11-02 09:02:30')
      await page.locator('#parameter-TSEnd').fill('2026-11-02 09:02:33')
      await page.locator('#parameter-Device').fill('lon1')
      await page.locator('#parameter-FilterBPF').fill(await tour().locator('code').innerText())
      await page.locator('.builder').getByRole('link', { name: 'Look inside' }).click()
      const rows = await packets(({ length }) => length === 3)
      const sources = rows.map(([, , source = '']) => source)
      assert.deepEqual(sources, ['10.21.9.80:80', '10.21.9.80:443', '10.21.9.25:445'])
      assert.match(answer, /10\.21\.9\.80 at 80 and 443, and 10\.21\.9\.25, .* at 445/)
    })

    test('4: the computer reports to a server outside every 20 seconds', async () => {
      const answer = await ask(4, 'To whom else')
      await showIt()
      const rows = await packets(({ length }) => length === 15)
      assert.deepEqual([...new Set(rows.map(([, , , destination]) => destination))], ['203.0.113.99:80'])
      const seconds = rows.map(([time = '']) => Date.parse(`${time.slice(0, 19)}Z`) / 1_000)
      assert.deepEqual(
        seconds,
        rows.map((_, n) => (seconds[0] ?? 0) + 20 * n),
      )
      assert.match(answer, /^To 203\.0\.113\.99, 15 times, exactly 20 seconds apart/)
    })

    test('5: DNS queries carry a file from London to New York', async () => {
      assert.match(await ask(5, 'What left London'), /a part of a file/)
      await showIt()
      const rows = await packets(
        ([first]) => first?.[2] === '10.21.9.25:50000' && first[3] === '10.20.3.77:53',
      )
      assert.deepEqual([...new Set(rows.map(([, device]) => device))].sort(), ['lon1', 'nyc1'])
      await page.locator('.packets tbody tr').first().click()
      const lines = (await page.locator('.packet-bytes pre').innerText()).split('\n')
      assert.match(lines.map((line) => line.slice(TEXT_COLUMN)).join(''), /\.000.*customers-csv\.example/)
      assert.ok(await tour().getByRole('button', { name: 'Next' }).isDisabled())
      assert.deepEqual(await hindrances(page), [])
    })

    test('leads to the page of the documentation that has the commands', async () => {
      const [documentation] = await Promise.all([
        page.context().waitForEvent('page'),
        tour().getByRole('link', { name: 'With curl and tcpdump' }).click(),
      ])
      await documentation.getByRole('heading', { name: 'Five questions' }).waitFor()
      assert.match(documentation.url(), /\/docs\/get-started\/demo\.html#five-questions$/)
      await documentation.close()
    })

    test('stays closed once it was closed, until it is opened again', async () => {
      await tour().getByRole('button', { name: 'Close the tour' }).click()
      await tour().waitFor({ state: 'detached' })
      await page.reload()
      await page.getByRole('navigation').waitFor()
      assert.equal(await tour().count(), 0)
      await page.getByRole('button', { name: 'Tour' }).click()
      await tour().getByRole('heading', { name: 'What left London' }).waitFor()
      assert.deepEqual(opened.faults, [])
    })
  })

  describe('the search for an address', () => {
    const field = () => page.getByRole('searchbox', { name: 'Where was it seen?' })
    const list = () => page.getByRole('list', { name: 'Times at which it was seen' })
    const form = (name: string) => page.locator(`#parameter-${name}`)

    async function search(addresses: string): Promise<void> {
      await field().fill(addresses)
      await field().press('Enter')
      await page.locator('.sightings', { hasText: /^(Seen|Not seen)/ }).waitFor()
    }

    test('names the devices, and a click on a time selects range, device and filter', async () => {
      await show(page, ALL_OF_IT)
      await search('203.0.113.99')
      assert.match(await page.locator('.sightings').innerText(), /^Seen at 1 of 3 devices\./)
      assert.deepEqual(await hindrances(page), [])
      await list().getByRole('button').first().click()
      await page.locator('.estimate strong[data-packets]').waitFor()
      assert.equal(await form('Device').inputValue(), 'nyc1')
      assert.equal(await form('FilterAddresses').inputValue(), '203.0.113.99')
      const { bytes } = await saved(page, () =>
        page.getByRole('button', { name: 'Download', exact: true }).click(),
      )
      const { gatewayUrl, token } = demo.facts
      const all = await fetch(`${gatewayUrl}/devices/nyc1/api/v1/pcap/single?StreamName=demo`, {
        headers: { authorization: `Bearer ${token}` },
      })
      const expected = execFileSync('tcpdump', ['-r', '-', '-w', '-', '--nano', 'host 203.0.113.99'], {
        input: Buffer.from(await all.arrayBuffer()),
        stdio: ['pipe', 'pipe', 'ignore'],
        maxBuffer: 100_000_000,
      })
      const chosen = readPcap(bytes).records
      const [first, last] = [chosen[0]?.ns ?? 0n, chosen.at(-1)?.ns ?? 0n]
      const within = readPcap(expected).records.filter(({ ns }) => first <= ns && ns <= last)
      assert.ok(chosen.length > 2)
      assert.deepEqual(recordLines(chosen), recordLines(within))
    })

    test('marks the lanes; a click on a mark selects it, and one beside it does not', async () => {
      await show(page, `${ALL_OF_IT}&seen=203.0.113.99`)
      await list().getByRole('button').first().waitFor()
      const span = await list().getByRole('button').first().locator('.mono').nth(1).innerText()
      const fromNs = BigInt(Date.parse(`${span.replace(' ', 'T')}Z`)) * 1_000_000n
      const picture = page.locator('.lane-canvas canvas')
      const { width = 0 } = (await picture.boundingBox()) ?? {}
      const names = await page.locator('.lane-names li').allInnerTexts()
      const lane = names.findIndex((text) => text.includes('nyc1'))
      const { height = 0 } = (await page.locator('.lane-names li').first().boundingBox()) ?? {}
      const y = IN_FIRST_LANE_PX + lane * height
      const x = (Number(fromNs + 500_000_000n - BEGIN_NS) / Number(LENGTH_NS)) * width
      await picture.click({ position: { x, y } })
      await page.waitForFunction(() => location.hash.includes('FilterAddresses=203.0.113.99'))
      assert.equal(await form('Device').inputValue(), 'nyc1')
      await page.goBack()
      await page.waitForFunction(() => !location.hash.includes('FilterAddresses'))
      const other = (lane + 1) % names.length
      await picture.click({ position: { x, y: IN_FIRST_LANE_PX + other * height } })
      assert.ok(!(await page.evaluate(() => location.hash)).includes('FilterAddresses'))
    })

    test('says that an address was not seen, and what is no address', async () => {
      await show(page, ALL_OF_IT)
      await search('192.0.2.200')
      assert.match(
        await page.locator('.sightings').innerText(),
        /^Not seen in anything that the 3 devices that answered have stored\./,
      )
      await field().fill('example.org')
      await field().press('Enter')
      await page.locator('.sightings [role=alert]', { hasText: 'is no IPv4 or IPv6 address' }).waitFor()
      await field().fill('')
      await field().press('Enter')
      await page.locator('.sightings').waitFor({ state: 'detached' })
      assert.deepEqual(
        opened.faults.filter((fault) => !fault.includes('400')),
        [],
      )
    })
  })

  test('a search by a user with a filter counts the packets that pass it', async () => {
    const { gatewayUrl, token } = demo.facts
    const scopes = 'Scopes=device:read,capture:download&Devices=*'
    const made = await fetch(
      `${gatewayUrl}/v1/tokens?${scopes}&Filter=${encodeURIComponent('tcp port 80')}`,
      {
        method: 'POST',
        headers: { authorization: `Bearer ${token}` },
      },
    )
    assert.equal(made.status, 201)
    const { token: limited } = (await made.json()) as { readonly token: string }
    await using own = await browser.open(`${gatewayUrl}/${ALL_OF_IT}&seen=203.0.113.99`)
    await own.page.getByRole('button', { name: 'Use a token instead' }).click()
    await own.page.getByLabel('Token').fill(limited)
    await own.page.getByRole('button', { name: 'Sign in' }).click()
    await own.page.locator('.sightings', { hasText: /^Seen at 1 of 3 devices/ }).waitFor()
    const row = own.page.getByRole('list', { name: 'Times at which it was seen' }).getByRole('button')
    assert.equal(await row.count(), 1)
    assert.match(await row.locator('.number').innerText(), /^\d+ packets$/)
  })

  describe('a link from an alert', () => {
    const BEACON = 'src=10.20.3.77&dst=203.0.113.99&proto=TCP&sport=&dport=80&Device=nyc1'
    const LINK = `#/pivot?${BEACON}&at=2026-11-02T09:01:27.001000%2B0000&before=5s&after=15s`
    const form = (name: string) => page.locator(`#parameter-${name}`)

    test('opens the form with range, device and filter, whose download is what tcpdump finds', async () => {
      await show(page, ALL_OF_IT)
      await page.locator('.builder').waitFor()
      await show(page, LINK)
      await page.locator('.estimate strong[data-packets]').waitFor()
      assert.equal(await form('TSBegin').inputValue(), '2026-11-02 09:01:22.001000000')
      assert.equal(await form('TSEnd').inputValue(), '2026-11-02 09:01:42.001000000')
      assert.equal(await form('Device').inputValue(), 'nyc1')
      assert.match(await form('FilterBPF').inputValue(), /src host 10\.20\.3\.77 and dst host .*vlan/)
      const shown = new URLSearchParams((await page.evaluate(() => location.hash)).split('?')[1])
      assert.ok(BigInt(shown.get('view-from') ?? 0) > BEGIN_NS, 'the lanes show the range')
      const { bytes } = await saved(page, () =>
        page.getByRole('button', { name: 'Download', exact: true }).click(),
      )
      const { gatewayUrl, token } = demo.facts
      const range = 'TSBegin=2026-11-02T09:01:22.001Z&TSEnd=2026-11-02T09:01:42.001Z'
      const all = await fetch(`${gatewayUrl}/devices/nyc1/api/v1/pcap/timerange?${range}`, {
        headers: { authorization: `Bearer ${token}` },
      })
      const filter = 'tcp port 80 and host 10.20.3.77 and host 203.0.113.99'
      const expected = execFileSync('tcpdump', ['-r', '-', '-w', '-', '--nano', filter], {
        input: Buffer.from(await all.arrayBuffer()),
        stdio: ['pipe', 'pipe', 'ignore'],
      })
      const packets = recordLines(readPcap(bytes).records)
      assert.ok(packets.length > 2)
      assert.deepEqual(packets, recordLines(readPcap(expected).records))
    })

    test('survives the sign-in', async () => {
      await using own = await browser.open(`${demo.facts.gatewayUrl}/${LINK}`)
      await signIn(own.page, demo.facts)
      await own.page.locator('.estimate strong[data-packets]').waitFor()
      assert.equal(await own.page.locator('#parameter-Device').inputValue(), 'nyc1')
      assert.deepEqual(own.faults, [])
    })

    test('says what is wrong with it, which stays text', async () => {
      const markup = '<img src=x onerror="document.title=`broken`">'
      for (const [query, said] of [
        [`src=${encodeURIComponent(markup)}&at=now`, /^src "<img src=x .* is no IPv4 or IPv6 address/],
        ['src=10.20.3.77&at=soon', /^at "soon" is not in a form that is understood/],
        ['src=10.20.3.77&at=now&port=80', /^port is unknown; a link from an alert has src, dst, proto/],
      ] as const) {
        await show(page, `#/pivot?${query}`)
        await page.getByRole('heading', { name: 'Link from an alert' }).waitFor()
        await eventually(async () => said.test(await page.getByRole('alert').innerText()), {
          message: String(said),
        })
        assert.equal(await page.locator('main img').count(), 0)
        assert.deepEqual(await hindrances(page), [])
      }
      await page.getByRole('link', { name: 'To the timeline' }).click()
      await page.locator('.lane-canvas').waitFor()
      assert.notEqual(await page.title(), 'broken')
      assert.deepEqual(opened.faults, [])
    })
  })

  test('says that older captures are left out where the list of the fleet was cut', async () => {
    await page.route('**/stream/list?*', async (route) => {
      const answer = await route.fetch()
      await route.fulfill({ response: answer, json: { ...(await answer.json()), Next: 'more' } })
    })
    await show(page, HALF_OF_IT)
    await page.locator('.capture-list summary', { hasText: 'The newest 3 are shown' }).waitFor()
    await page.unrouteAll({ behavior: 'wait' })
  })

  test('is of the chosen theme before its script has come', async () => {
    await page.getByRole('button', { name: 'Light' }).click()
    const mayCome = Promise.withResolvers<void>()
    await page.route('**/assets/index-*.js', async (route) => {
      await mayCome.promise
      await route.continue()
    })
    await page.reload({ waitUntil: 'commit' })
    await page.waitForFunction(() => getComputedStyle(document.documentElement).colorScheme === 'light')
    assert.equal(await page.locator('#page').innerHTML(), '')
    mayCome.resolve()
    await page.getByRole('navigation').waitFor()
    assert.deepEqual(opened.faults, [])
  })

  test(`a device that is killed is shown as down within ${DOWN_WITHIN_MS / 1_000} s`, async (t) => {
    const [device] = demo.facts.devices
    assert.ok(device)
    await show(page, '#/fleet')
    const row = page.locator(`tr[data-device=${device.name}]`)
    await row.filter({ hasText: 'up' }).waitFor()
    const startMs = performance.now()
    process.kill(device.pid, 'SIGKILL')
    await row.filter({ hasText: 'down' }).waitFor({ timeout: DOWN_WITHIN_MS })
    t.diagnostic(`down after ${Math.round(performance.now() - startMs)} ms`)
    await show(page, `${ALL_OF_IT}&seen=10.20.3.77`)
    const result = page.locator('.sightings', { hasText: `${device.name} did not answer: ` })
    await result.filter({ hasText: /^Seen at \d of 3 devices/ }).waitFor()
  })
})
