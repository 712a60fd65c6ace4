// Packets as Wireshark shows them, in a real browser: tshark is the oracle.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { Frame, Page } from 'playwright-core'
import {
  hindrances,
  type OpenPage,
  saved,
  show,
  tabTo,
  withoutDissector,
} from '../support/console/console-browser.ts'
import { DISSECTED_RANGE, DissectorStand, missingForDissector } from '../support/console/dissector-stand.ts'
import { eventually } from '../support/eventually.ts'
import { capturesNamed } from '../support/packets/capture-files.ts'
import { tempFolder } from '../support/temp-folder.ts'
import { WAIT_LIMIT_MS } from '../support/test-limits.ts'

const EAST = `#/inside?${DISSECTED_RANGE}&inside-devices=east`
/** Info of packets that later versions of Wireshark describe in other words, with the protocol in another version. */
const REWORDED = /\[TCP segment of a reassembled PDU\]$|^Client Hello$|JavaScript Object Notation/
/** Of others, if they lie beside the repository. All are in the order of time. */
const OTHER_CAPTURES = [
  'tcpdump_geneve.pcap',
  'tcpdump_various_gre.pcap',
  'zeek_linux_dlt_sll2.pcap',
  'zeek_mpls-in-vlan.pcap',
  'zeek_tunnels_gtp_gtp_ext_header.pcap',
  'zeek_vlan-qinqinq.pcap',
]
/** Index of the column with the protocol. */
const REWORDED_FROM = 5
/** After which the page takes a dissector for hung, as in dissector.ts. */
const ANSWER_LIMIT_MS = 30_000

describe('the dissector', { skip: missingForDissector() }, () => {
  const owned = new AsyncDisposableStack()
  let stand: DissectorStand
  let opened: OpenPage
  let page: Page
  /** The traffic of the device east, for tshark. */
  let path = ''

  before(async () => {
    stand = owned.use(await DissectorStand.create())
    path = join(owned.use(await tempFolder()).path, 'east.pcap')
    await writeFile(path, stand.captures.east)
    opened = owned.use(await stand.open())
    page = opened.page
    await showPackets(page, EAST)
  })
  after(() => owned.disposeAsync())

  test('shows the columns that tshark prints, and the device', async () => {
    const { packets, equal } = await comparedColumns(page, path)
    assert.ok(equal >= 1_000, `${equal} of ${packets} packets with all columns`)
  })

  const others = capturesNamed(...OTHER_CAPTURES)
  const missing = others.length === 0 && 'no other captures beside the repository'
  test('the columns of captures with tunnels, tags and other link types are those of tshark', {
    skip: missing,
  }, async () => {
    const [east] = stand.fleet.appliances
    for (const [index, file] of others.entries()) {
      const name = `other-${index}`
      await east?.importFiles(name, file)
      const times = tshark(file, ['-T', 'fields', '-e', 'frame.time_epoch']).map((text) =>
        BigInt(text.replace('.', '')),
      )
      await show(page, `#/inside?TSBegin=${times[0]}&TSEnd=${(times.at(-1) ?? 0n) + 1n}&Device=east`)
      await page.locator('.dissected [role=status]', { hasText: `${times.length} of ` }).waitFor()
      await comparedColumns(page, file)
    }
    await showPackets(page, EAST)
  })

  test('names the device of each packet where several devices are read', async () => {
    await showPackets(page, `#/inside?${DISSECTED_RANGE}`)
    await page.locator('.dissected-list td:nth-child(3)', { hasText: 'west' }).first().waitFor()
    await filter(page, 'frame.interface_name == "west"')
    await page
      .locator('.dissected-list td:nth-child(3)', { hasText: 'east' })
      .first()
      .waitFor({ state: 'detached' })
    // A packet that two sites have seen is no retransmission.
    await filter(page, 'tcp.analysis.retransmission')
    await page.getByText('No loaded packet passes the display filter.').waitFor()
  })

  test('a display filter selects what tshark selects, and a mistake is shown in its words', async () => {
    await showPackets(page, EAST)
    await filter(page, 'dns.flags.response == 1')
    const numbers = tshark(path, ['-Y', 'dns.flags.response == 1', '-T', 'fields', '-e', 'frame.number'])
    await page.locator('.dissected [role=status]', { hasText: `${numbers.length} of ` }).waitFor()
    assert.deepEqual(
      (await listedRows(page, numbers.length)).map(([number]) => number),
      numbers,
    )
    await filter(page, 'tcp.prt == 80')
    await page
      .getByRole('alert')
      .filter({ hasText: '"tcp.prt" is not a valid protocol or protocol field.' })
      .waitFor()
    assert.equal((await listedRows(page, numbers.length)).length, numbers.length)
    await page.getByRole('button', { name: 'Clear' }).click()
    await page.getByRole('alert').waitFor({ state: 'detached' })
  })

  test('a followed HTTP stream is that of tshark', async () => {
    await filter(page, 'http.request')
    await page.getByRole('button', { name: 'Follow HTTP stream' }).waitFor()
    await page.getByRole('button', { name: 'Follow TCP stream' }).click()
    const text = page.getByLabel('Bytes of the stream')
    await text.waitFor()
    const [number = ''] = tshark(path, ['-Y', 'http.request', '-T', 'fields', '-e', 'tcp.stream'])
    const followed = tshark(path, ['-q', '-z', `follow,tcp,raw,${number}`])
    const bytes = Buffer.from(
      followed
        .filter((line) => /^\t?[0-9a-f]+$/.test(line))
        .join('')
        .replaceAll('\t', ''),
      'hex',
    )
    assert.ok(bytes.length > 500, `${bytes.length} bytes`)
    assert.equal(
      await text.evaluate((element) => element.textContent),
      bytes.toString('latin1').replaceAll(/[^\t-\r -~]/g, '.'),
    )
    await page.getByRole('button', { name: 'Show only this stream' }).click()
    const inStream = tshark(path, ['-Y', `tcp.stream eq ${number}`])
    await page.locator('.dissected [role=status]', { hasText: `${inStream.length} of ` }).waitFor()
    await page.getByRole('button', { name: 'Clear' }).click()
  })

  test('a chosen field marks its bytes, and a byte chooses its field', async () => {
    await page.locator('.dissected-list').press('Home')
    await page.locator('tr[data-number="1"]').click()
    await page.getByRole('treeitem', { name: /^Ethernet II/ }).click()
    assert.equal(await markedHex(page), stand.captures.east.subarray(40, 54).toString('hex'))
    await page.locator('.byte-lines [data-hex="0"]').click({ position: { x: 2, y: 4 } })
    const chosen = page.locator('[role=treeitem][aria-selected=true]')
    await chosen.filter({ hasText: /[LI]G bit/ }).waitFor()
    await page.getByRole('button', { name: 'Apply as filter' }).click()
    await page.locator('.display-filter[value^="eth."]').waitFor()
    await page.getByRole('button', { name: 'Clear' }).click()
  })

  test('a packet leads to its conversation, in the devices that are selected, and to where its hosts were seen', async () => {
    const [line = ''] = tshark(path, [
      ...['-Y', 'http.request', '-T', 'fields'],
      ...['frame.number', 'tcp.stream', 'ip.src', 'ip.dst', 'tcp.srcport'].flatMap((name) => ['-e', name]),
    ])
    const [number = '', stream, client = '', server, port] = line.split('\t')
    await showPackets(page, `${EAST}&Device=east`)
    await filter(page, `frame.number == ${number}`)
    await page.locator(`tr[data-number="${number}"][aria-current=true]`).waitFor()
    const links = page.getByRole('list', { name: 'Other packets' })
    const [host, seen] = await Promise.all(
      ['This host', 'Where was it seen?'].map((name) =>
        links.getByRole('link', { name }).first().getAttribute('href'),
      ),
    )
    assert.match(host ?? '', /^#\/pivot\?src=[\d.]+&at=\d+&Device=east$/)
    assert.equal(seen, `#/timeline?seen=${client}`)
    await links.getByRole('link', { name: 'This conversation' }).click()
    await page.getByRole('link', { name: 'Look inside' }).last().click()
    await page.locator('.dissected tr[data-number="1"]').waitFor()
    const selected = new URLSearchParams(new URL(page.url()).hash.split('?')[1])
    assert.equal(selected.get('Device'), 'east')
    for (const text of [client, server, port]) assert.ok(selected.get('FilterBPF')?.includes(text ?? ''))
    const expected = tshark(path, ['-Y', `tcp.stream eq ${stream}`, '-T', 'fields', '-e', 'frame.len'])
    const shown = await listedRows(page, expected.length)
    assert.deepEqual(
      shown.map((cells) => cells[6]),
      expected,
    )
  })

  test('an alert that is pasted into the page ends in its packets in three actions, at the devices that saw it', async () => {
    const fields = ['ip.src', 'tcp.srcport', 'ip.dst', 'tcp.dstport', 'frame.time_epoch']
    const [line = ''] = tshark(path, [
      ...['-Y', 'http.request', '-T', 'fields'],
      ...fields.flatMap((name) => ['-e', name]),
    ])
    const [source, port, destination, service, at] = line.split('\t')
    await show(page, `#/timeline?${DISSECTED_RANGE}&Device=west&FilterBPF=udp`)
    const field = page.getByLabel('Where was it seen?')
    await field.waitFor()
    // 1
    await field.fill(`${at} tcp ${source}:${port} -> ${destination}:${service}`)
    // 2
    await field.press('Enter')
    await page.getByText('The device that saw this conversation is selected').waitFor()
    assert.deepEqual(await hindrances(page), [])
    // 3
    await page.getByRole('navigation').getByRole('link', { name: 'Look inside' }).click()
    await page.locator('.dissected tr[data-number="1"]').waitFor()
    assert.equal(new URLSearchParams(new URL(page.url()).hash.split('?')[1]).get('Device'), 'east')
    const flow = `ip.addr eq ${source} and ip.addr eq ${destination} and tcp.port eq ${port} and tcp.port eq ${service}`
    const expected = tshark(path, ['-Y', flow, '-T', 'fields', '-e', 'frame.len'])
    assert.ok(expected.length > 3)
    const shown = await listedRows(page, expected.length)
    assert.deepEqual(
      shown.map((cells) => [cells[2], cells[6]]),
      expected.map((length) => ['east', length]),
    )
  })

  test('the DNS names of a minute are in the list', async () => {
    await showPackets(page, EAST)
    const asked = 'dns.flags.response == 0'
    const names = tshark(path, ['-Y', asked, '-T', 'fields', '-e', 'dns.qry.name'])
    assert.ok(new Set(names).size > 3)
    await filter(page, asked)
    await page.locator('.dissected [role=status]', { hasText: `${names.length} of ` }).waitFor()
    const shown = await listedRows(page, names.length)
    assert.deepEqual(
      shown.map((cells) => cells[7]?.split(' ').at(-1)),
      names,
    )
  })

  test('a Community ID finds its conversation among the loaded packets', async () => {
    await showPackets(page, EAST)
    const fields = ['-T', 'fields', '-e', 'communityid', '-e', 'tcp.stream']
    const [line = ''] = tshark(path, ['--enable-protocol', 'communityid', '-Y', 'http.request', ...fields])
    const [id = '', stream] = line.split('\t')
    await filter(page, id)
    const expected = tshark(path, ['-Y', `tcp.stream eq ${stream}`])
    await page.locator('.dissected [role=status]', { hasText: `${expected.length} of ` }).waitFor()
    await page.getByRole('list', { name: 'Other packets' }).getByRole('button', { name: id }).waitFor()
    await filter(page, `1:${'A'.repeat(27)}=`)
    await page.getByRole('alert').filter({ hasText: 'with this Community ID' }).waitFor()
  })

  test('statistics count the packets shown, and lead to them', async () => {
    await showPackets(page, EAST)
    await filter(page, 'tcp')
    const lines = tshark(path, [
      '-Y',
      'tcp',
      '-T',
      'fields',
      '-e',
      'ip.addr',
      '-e',
      'ipv6.addr',
      '-e',
      'frame.len',
    ])
    const bytes = new Map<string, number>()
    for (const [ipv4 = '', ipv6 = '', length] of lines.map((line) => line.split('\t')))
      for (const address of `${ipv4}${ipv6}`.split(','))
        bytes.set(address, (bytes.get(address) ?? 0) + Number(length))
    const [talker = ''] = [...bytes].toSorted((a, b) => b[1] - a[1])[0] ?? []
    await page.getByText(/^Statistics of the .* packets shown$/).click()
    const row = page.getByRole('region', { name: 'Talkers: table' }).locator('tbody tr').first()
    await row.filter({ hasText: talker }).waitFor()
    const count = lines.filter((line) => line.split(/[,\t]/).includes(talker)).length
    assert.equal((await row.locator('td').nth(1).innerText()).replaceAll(/\D/g, ''), String(count))
    assert.deepEqual(await hindrances(page), [])
    await row.getByRole('button', { name: 'Show' }).click()
    const name = talker.includes(':') ? 'ipv6' : 'ip'
    const shown = tshark(path, ['-Y', `${name}.addr eq ${talker}`])
    await page.locator('.dissected [role=status]', { hasText: `${shown.length} of ` }).waitFor()
  })

  test('the main task needs no mouse', async () => {
    const { keyboard } = page
    await tabTo(page, '.display-filter')
    await keyboard.type('dns')
    await keyboard.press('Enter')
    await page
      .locator('.dissected-list td:nth-child(6)', { hasText: 'TCP' })
      .first()
      .waitFor({ state: 'detached' })
    await tabTo(page, '.dissected-list')
    const first = await page.locator('tr[aria-current=true]').getAttribute('data-number')
    await keyboard.press('ArrowDown')
    const next = page.locator(`tr[aria-current=true]:not([data-number="${first}"])`)
    await next.waitFor()
    const number = await next.getAttribute('data-number')
    await page.getByRole('heading', { name: `Packet ${number} ` }).waitFor()
    await keyboard.press('m')
    await page.getByRole('button', { name: 'Save marked packets (1)' }).waitFor()
    await keyboard.press('Enter')
    for (const key of ['End', 'ArrowRight']) await keyboard.press(key)
    await page
      .getByRole('treeitem', { name: /^Queries|^Transaction ID/ })
      .first()
      .waitFor()
    await keyboard.press('Control+ArrowUp')
    await page.getByRole('heading', { name: `Packet ${first} ` }).waitFor()
    await page.getByRole('treeitem', { name: /^Transaction ID/ }).waitFor()
    const { bytes, name } = await saved(page, () =>
      page.getByRole('button', { name: 'Save marked packets (1)' }).click(),
    )
    assert.equal(name, 'marked.pcapng')
    await using folder = await tempFolder()
    const file = join(folder.path, name)
    await writeFile(file, bytes)
    const shown = ['-T', 'fields', '-e', 'frame.time_epoch', '-e', 'frame.interface_name', '-e', 'ip.id']
    const [time, device, id] = (tshark(file, shown)[0] ?? '').split('\t')
    const original = tshark(path, [
      '-Y',
      `frame.number == ${number}`,
      '-T',
      'fields',
      '-e',
      'frame.time_epoch',
      '-e',
      'ip.id',
    ])
    assert.deepEqual([device, `${time}\t${id}`], ['east', original[0]])
  })

  test('its view is accessible', async () => {
    await showPackets(page, EAST)
    await page.getByRole('treeitem').first().click()
    assert.deepEqual(await hindrances(page), [])
    await filter(page, 'tcp and and')
    await page.locator('[aria-invalid=true]').waitFor()
    assert.deepEqual(await hindrances(page), [])
    await page.getByRole('button', { name: 'Follow TCP stream' }).click()
    await page.getByLabel('Bytes of the stream').waitFor()
    assert.deepEqual(await hindrances(page), [])
    await page.keyboard.press('Escape')
    await page.setViewportSize({ width: 320, height: 640 })
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 320)
    await page.setViewportSize({ width: 1_440, height: 900 })
  })

  test('nothing failed on the page, and its policy only allows the frame in addition', async () => {
    assert.deepEqual(opened.faults, [])
    const { headers } = await fetch(stand.url, { headers: { accept: 'text/html' } })
    const policy = headers.get('content-security-policy') ?? ''
    assert.match(policy, /script-src 'self';.*frame-src 'self'$/)
    assert.doesNotMatch(policy, /unsafe|http/)
  })

  test('its frame has no network, no storage, and no way to the page', async () => {
    await using own = await stand.open()
    await showPackets(own.page, EAST)
    const address = own.page.url()
    const asked: string[] = []
    const other = createServer((request, response) => {
      asked.push(request.url ?? '')
      response.end()
    })
    await new Promise<void>((resolve) => void other.listen(0, '127.0.0.1', resolve))
    owned.defer(() => void other.close())
    const outside = `http://127.0.0.1:${(other.address() as AddressInfo).port}/packets`
    const gateway: string[] = []
    own.page.on('requestfinished', (request) => gateway.push(request.url()))
    const tried = await frameOf(own.page).evaluate(escapes, { outside, inside: `${stand.url}v1/session` })
    assert.deepEqual(tried, {
      origin: 'null',
      fetchOutside: 'refused',
      fetchInside: 'refused',
      request: 'refused',
      socket: 'refused',
      peer: 'refused',
      beacon: 'refused',
      image: 'refused',
      worker: 'refused',
      frame: 'refused',
      script: 'refused',
      cookie: 'refused',
      localStorage: 'refused',
      sessionStorage: 'refused',
      indexedDB: 'refused',
      caches: 'refused',
      page: 'refused',
      navigatePage: 'refused',
      popup: 'refused',
    })
    // Its own navigation, which the page's policy refuses.
    await frameOf(own.page).evaluate((url) => location.assign(`${url}-by-navigation`), outside)
    await own.page.waitForFunction(() => document.querySelector('.dissected') !== null)
    assert.equal(own.page.url(), address)
    assert.equal(await own.page.getByRole('navigation').count(), 1)
    assert.deepEqual(asked, [])
    assert.deepEqual(
      gateway.filter((url) => !url.startsWith('data:')),
      [],
    )
  })

  test('its document has no rights where it is opened elsewhere either', async () => {
    await using own = await stand.browser.open(`${stand.url}dissector/${await buildOf(stand)}/frame.html`)
    assert.equal(await own.page.evaluate(() => self.origin), 'null')
    assert.deepEqual(await own.page.evaluate(async () => fetch('/').then(String, () => 'refused')), 'refused')
  })

  for (const [what, script, message] of [
    [
      'crashes',
      'loadWiregasm = async () => { throw new Error("out of bounds") }',
      /Wireshark failed.*out of bounds/,
    ],
    ['hangs', 'loadWiregasm = () => { for (;;); }', /Wireshark has not answered for 30 seconds/],
  ] as const)
    test(`a dissector that ${what} leaves the page usable, and can be started again`, async () => {
      await using own = await stand.open()
      await own.page.route('**/wiregasm.js', (route) =>
        route.fulfill({ contentType: 'text/javascript', body: `var ${script}` }),
      )
      await own.page.evaluate((limitMs) => {
        const { setTimeout: original } = window
        window.setTimeout = ((action: () => void, ms?: number) =>
          original(action, ms === limitMs ? 1_000 : ms)) as typeof setTimeout
      }, ANSWER_LIMIT_MS)
      await show(own.page, EAST)
      const row = own.page.locator('.packets tbody tr').nth(1)
      await row.click()
      await own.page.locator('.packets tr[aria-current=true]').waitFor()
      await own.page.getByRole('alert').filter({ hasText: message }).waitFor()
      assert.equal(await own.page.locator('iframe').count(), 0)
      await row.waitFor()
      // A page that is loaded again knows nothing of how the last one failed, so one way is enough by day.
      if (what !== 'crashes' && process.env.CAPFLEET_LONG !== '1') return
      await own.page.unroute('**/wiregasm.js')
      await own.page.reload()
      await own.page.locator('.dissected tr[data-number]').first().waitFor()
    })

  test('its memory is returned when it is closed', async () => {
    await using own = await stand.open()
    const session = await own.page.context().browser()?.newBrowserCDPSession()
    const renderers = async (): Promise<ReadonlyMap<number, number>> => {
      const info = await session?.send('SystemInfo.getProcessInfo')
      const ids = info?.processInfo.filter(({ type }) => type === 'renderer').map(({ id }) => id) ?? []
      return new Map(ids.map((id) => [id, residentKib(id)]))
    }
    const before = await renderers()
    await showPackets(own.page, EAST)
    const [largest] = [...(await renderers())]
      .map(([id, kib]) => ({ id, grownKib: kib - (before.get(id) ?? 0) }))
      .toSorted((a, b) => b.grownKib - a.grownKib)
    assert.ok(largest !== undefined && largest.grownKib > 100_000, `grown by ${largest?.grownKib} KiB`)
    await show(own.page, '#/fleet')
    await own.page.locator('iframe').waitFor({ state: 'detached' })
    await eventually(async () => !(await renderers()).has(largest.id), {
      message: 'the process of the frame has not ended',
    })
  })

  test('without it, the page shows a table of addresses and loads nothing of it', async () => {
    await using own = await stand.open()
    const asked: string[] = []
    own.page.on('request', (request) => asked.push(request.url()))
    await withoutDissector(own.page)
    await own.page.reload()
    await show(own.page, EAST)
    const rows = own.page.locator('.packets tbody tr')
    await rows.first().waitFor()
    assert.equal(await rows.count(), 200)
    const last = await rows.last().innerText()
    await own.page.getByRole('button', { name: 'Load the next packets' }).click()
    await own.page.waitForFunction(
      (text) => document.querySelector<HTMLElement>('.packets tbody tr')?.innerText === text,
      last,
    )
    assert.deepEqual(
      asked.filter((url) => /dissect/.test(url)),
      [],
    )
  })
})

/** Fails if a column of the list is not what tshark prints. Returns how many packets were compared in all columns. */
async function comparedColumns(
  page: Page,
  path: string,
): Promise<{ readonly packets: number; readonly equal: number }> {
  const fields = ['number', 'time_relative', 'len'].map((name) => `frame.${name}`)
  const columns = ['Source', 'Destination', 'Protocol', 'Info'].map((name) => `_ws.col.${name}`)
  const printed = tshark(path, [
    '-2',
    '-T',
    'fields',
    ...[...fields, ...columns].flatMap((name) => ['-e', name]),
  ])
  const listed = await listedRows(page, printed.length)
  assert.equal(listed.length, printed.length)
  const reworded = printed.filter((line, index) => {
    const [number, time, length, source, destination, protocol = '', info = ''] = line.split('\t')
    const expected = [number, time, 'east', source, destination, protocol, length, info]
    // Later versions of Wireshark than Debian's have other words for these.
    const isReworded = REWORDED.test(info)
    const count = isReworded ? REWORDED_FROM : expected.length
    assert.deepEqual(listed[index]?.slice(0, count), expected.slice(0, count), path)
    return isReworded
  })
  return { packets: printed.length, equal: printed.length - reworded.length }
}

async function showPackets(page: Page, hash: string): Promise<void> {
  await show(page, hash)
  await page.locator('.dissected tr[data-number="1"]').waitFor()
}

async function filter(page: Page, text: string): Promise<void> {
  await page.getByLabel('Display filter').fill(text)
  await page.getByRole('button', { name: 'Apply', exact: true }).click()
}

/** All cells, collected by scrolling: only the rows in sight are in the page. */
async function listedRows(page: Page, count: number): Promise<readonly (readonly string[])[]> {
  return page.evaluate(async (wanted) => {
    const list = document.querySelector('.dissected-list')
    const found = new Map<number, string[]>()
    while (list !== null && found.size < wanted) {
      for (const row of list.querySelectorAll<HTMLElement>('tr[data-number]'))
        found.set(
          Number(row.getAttribute('aria-rowindex')),
          [...row.querySelectorAll('td')].map((cell) => cell.textContent ?? ''),
        )
      const places = [...found.keys()]
      const missing = Array.from({ length: wanted }, (_, index) => index + 2).find(
        (place) => !found.has(place),
      )
      if (missing !== undefined) list.scrollTop = (missing - 2) * 24
      await new Promise((resolve) => requestAnimationFrame(resolve))
      if (places.length === wanted) break
    }
    return [...found].toSorted(([a], [b]) => a - b).map(([, cells]) => cells)
  }, count)
}

async function markedHex(page: Page): Promise<string> {
  const marks = await page.locator('[data-hex] mark').allInnerTexts()
  return marks.join('').replaceAll(' ', '')
}

function frameOf(page: Page): Frame {
  const found = page.frames().find((frame) => frame.url().endsWith('/frame.html'))
  assert.ok(found)
  return found
}

async function buildOf(stand: DissectorStand): Promise<string> {
  const { gateway } = stand.fleet
  const answer = await fetch(`${gateway.url}/v1/session`, { headers: gateway.as.user })
  return ((await answer.json()) as { readonly dissector: string }).dissector
}

/** Runs in the frame: what each attempt to get out of it leads to. */
async function escapes({ outside, inside }: { readonly outside: string; readonly inside: string }) {
  const tried = async (attempt: () => unknown): Promise<string> => {
    try {
      return String(await attempt())
    } catch {
      return 'refused'
    }
  }
  const loaded = (element: HTMLElement & { src: string }, url: string) =>
    new Promise((resolve, reject) => {
      element.addEventListener('load', resolve)
      element.addEventListener('error', reject)
      document.addEventListener('securitypolicyviolation', reject)
      element.src = url
      document.documentElement.append(element)
    })
  return {
    origin: self.origin,
    fetchOutside: await tried(() => fetch(outside, { mode: 'no-cors' })),
    fetchInside: await tried(() => fetch(inside, { credentials: 'include' })),
    request: await tried(() => {
      const request = new XMLHttpRequest()
      request.open('GET', inside, false)
      request.send()
    }),
    socket: await tried(
      () =>
        new Promise((resolve, reject) => {
          const socket = new WebSocket(outside.replace('http', 'ws'))
          socket.addEventListener('open', resolve)
          socket.addEventListener('error', reject)
        }),
    ),
    peer: await tried(() => new RTCPeerConnection()),
    beacon: await tried(async () => {
      const refused = new Promise((resolve) =>
        document.addEventListener('securitypolicyviolation', () => resolve('refused'), { once: true }),
      )
      return navigator.sendBeacon(outside, 'packets') ? refused : 'refused'
    }),
    image: await tried(() => loaded(new Image(), outside)),
    worker: await tried(
      () =>
        new Promise((resolve, reject) => {
          const worker = new Worker(URL.createObjectURL(new Blob(['postMessage(1)'])))
          worker.addEventListener('message', resolve)
          worker.addEventListener('error', reject)
        }),
    ),
    frame: await tried(() => loaded(document.createElement('iframe'), outside)),
    script: await tried(() => loaded(document.createElement('script'), outside)),
    cookie: await tried(() => document.cookie),
    localStorage: await tried(() => localStorage.length),
    sessionStorage: await tried(() => sessionStorage.length),
    indexedDB: await tried(() => indexedDB.open('packets')),
    caches: await tried(() => caches.keys()),
    page: await tried(() => parent.document.title),
    navigatePage: await tried(() => {
      if (top !== null) top.location.href = outside
    }),
    popup: await tried(() => window.open(outside) ?? 'refused'),
  }
}

function tshark(path: string, options: readonly string[]): readonly string[] {
  const printed = execFileSync('tshark', ['-r', path, ...options], {
    encoding: 'utf8',
    maxBuffer: 64 << 20,
    stdio: ['ignore', 'pipe', 'ignore'],
    timeout: WAIT_LIMIT_MS,
  })
  return printed.split('\n').filter((line) => line !== '')
}

function residentKib(pid: number): number {
  return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0)
}
