// The search of the documentation, as the gateway serves it, in a browser: a reader who types a task finds its page.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { ConsoleBrowser, missingForConsole, type OpenPage } from '../support/console/console-browser.ts'
import { FakeDevice } from '../support/devices/fake-device.ts'
import { fleetPcap } from '../support/devices/fake-fleet.ts'
import { startTempGateway } from '../support/processes/temp-gateway.ts'
import { TempRedis } from '../support/processes/temp-redis.ts'

/** What a reader types, and the page that answers it. */
const TASKS = [
  ['add a device', 'guides/add-a-device'],
  ['set retention', 'guides/retention'],
  ['how long packets are kept', 'guides/retention'],
  ['set up TLS', 'guides/tls'],
  ['token for a contractor', 'guides/tokens'],
  ['export to S3', 'guides/exports'],
  ['download with python', 'guides/clients'],
  ['link from a SIEM', 'guides/siem'],
  ['upgrade', 'guides/upgrade'],
  ['disk full', 'operations/runbook'],
  ['behind nginx', 'guides/proxies'],
  ['sizing for 50 devices', 'guides/sizing'],
  ['report a vulnerability', 'operations/security'],
  ['report a security hole', 'operations/security'],
  ['report a bug', 'operations/security'],
  ['delete old packets', 'guides/retention'],
  ['ssl', 'guides/tls'],
  ['minio', 'guides/exports'],
  ['scapy', 'guides/clients'],
  ['kibana', 'guides/siem'],
  ['downgrade', 'guides/upgrade'],
  ['reverse proxy', 'guides/proxies'],
  ['hardware requirements', 'guides/sizing'],
] as const

/** Messages and symptoms, and the place that must come first: nobody reads a list while something is broken. */
const TROUBLES = [
  ['no space left on device', 'operations/runbook', 'the-disk-is-full'],
  ['ENOSPC', 'operations/runbook', 'the-disk-is-full'],
  ['too many requests', 'operations/runbook', 'requests-get-429'],
  ['certificate verify failed', 'guides/tls', 'messages-about-certificates'],
  ['self-signed certificate', 'guides/tls', 'messages-about-certificates'],
  ['unable to verify the first certificate', 'guides/tls', 'messages-about-certificates'],
  ['missing packets', 'concepts/completeness', 'missing-packets'],
  ['time wrong', 'operations/runbook', 'find-the-wrong-clock'],
  ['clock drift', 'operations/runbook', 'a-clock-is-off'],
  ['permission denied', 'operations/runbook', 'a-file-cannot-be-read'],
  ['401 unauthorized', 'operations/runbook', 'requests-get-401-or-403'],
  ['reset admin password', 'guides/users', 'reset-a-password'],
  ['connection refused', 'operations/runbook', 'a-device-is-down'],
  // No page has the last word.
  ['ENOSPC zzyzx', 'operations/runbook', 'the-disk-is-full'],
] as const

/** Results that a reader looks at. */
const LOOKED_AT = 3

describe('the search of the documentation', { skip: missingForConsole() }, () => {
  const owned = new AsyncDisposableStack()
  let site: OpenPage

  before(async () => {
    const redis = owned.use(await TempRedis.create())
    const device = owned.use(await FakeDevice.start('d0', fleetPcap(0, 1)))
    const gateway = owned.use(await startTempGateway([device], redis.url))
    const browser = owned.use(await ConsoleBrowser.launch())
    site = owned.use(await browser.open(`${gateway.url}/docs/`))
    await site.page.getByRole('button', { name: 'Search' }).click()
  })
  after(() => owned.disposeAsync())

  /** Where the results lead, the best one first. */
  async function found(query: string): Promise<readonly string[]> {
    const box = site.page.locator('.VPLocalSearchBox')
    // So that no result is that of the last query.
    await box.locator('input').fill('qqxxqq')
    await box.locator('.no-results').waitFor()
    await box.locator('input').fill(query)
    const results = box.locator('.result')
    await results.first().waitFor()
    assert.deepEqual(site.faults, [])
    return results.evaluateAll((all) => all.map((result) => result.getAttribute('href') ?? ''))
  }

  for (const [query, path] of TASKS)
    test(`"${query}" finds ${path}`, async () => {
      const first = (await found(query)).slice(0, LOOKED_AT)
      assert.ok(
        first.some((target) => target.includes(`/docs/${path}.html`)),
        first.join('\n'),
      )
    })

  for (const [query, path, anchor] of TROUBLES)
    test(`"${query}" leads to ${path}#${anchor} first`, async () => {
      const [first = ''] = await found(query)
      assert.ok(first.endsWith(`/docs/${path}.html#${anchor}`), first)
    })

  test('a word that all pages have, and the start of another one, find nothing', async () => {
    const box = site.page.locator('.VPLocalSearchBox')
    for (const query of ['no', 'the', 'zzyzx']) {
      await box.locator('input').fill('disk')
      await box.locator('.result').first().waitFor()
      await box.locator('input').fill(query)
      await box.locator('.no-results').waitFor()
    }
  })
})
