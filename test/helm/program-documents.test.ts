// The programs load the documents that the chart renders.
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { type ApplianceConfig, loadApplianceConfig } from '../../appliance/appliance-config.ts'
import { type GatewayConfig, loadGatewayConfig } from '../../src/gateway/gateway-config.ts'
import { CI_VALUES, type Rendering, render, WITHOUT_HELM } from '../support/helm/chart.ts'
import { tempFolder } from '../support/temp-folder.ts'

const LOADERS = { 'gateway.yaml': loadGatewayConfig, 'appliance.yaml': loadApplianceConfig }

/** The configuration that each program reads from its document; programs that are not installed have none. */
async function loadDocuments(rendering: Rendering): Promise<Readonly<Record<string, unknown>>> {
  await using folder = await tempFolder()
  const loaded: Record<string, unknown> = {}
  const files = (await render(rendering))
    .filter(({ kind }) => kind === 'ConfigMap')
    .flatMap(({ data = {} }) => Object.entries(data))
  for (const [file, text] of files) {
    const load = LOADERS[file as keyof typeof LOADERS]
    if (load === undefined) continue
    await writeFile(join(folder.path, file), text)
    loaded[file] = await load(join(folder.path, file))
  }
  return loaded
}

describe('the documents of the chart', { skip: WITHOUT_HELM }, () => {
  for (const [name, path] of Object.entries(CI_VALUES)) {
    test(`are loaded by the programs, with the values ${name}`, async () => {
      const loaded = await loadDocuments({ values: [path] })
      const expected = ['appliance.yaml', 'gateway.yaml'].filter(
        (file) => `${file.replace('.yaml', '-only')}` === name || !name.endsWith('-only'),
      )
      assert.deepEqual(Object.keys(loaded).sort(), expected)
    })
  }

  test('drain for less time than the pod has', async () => {
    const set = [
      'gateway.terminationGracePeriodSeconds=100',
      'gateway.preStopSleepSeconds=10',
      'appliance.terminationGracePeriodSeconds=75',
    ]
    const { 'gateway.yaml': gateway, 'appliance.yaml': appliance } = await loadDocuments({ set })
    assert.equal((gateway as GatewayConfig).drainS, 70)
    assert.equal((appliance as ApplianceConfig).downloads.drainMs, 45_000)
  })

  test('are the operator’s where values.config says something', async () => {
    const set = ['config.downloads.waitS=7', 'config.listen.port=9000', 'config.logLevel=debug']
    const { 'gateway.yaml': gateway } = await loadDocuments({ set })
    const { downloads, listen, logLevel, home } = gateway as GatewayConfig
    assert.deepEqual([downloads.waitS, listen.port, listen.host], [7, 9000, '0.0.0.0'])
    assert.deepEqual([logLevel, home], ['debug', '/var/lib/capfleet'])
  })

  test('are refused by the program when values.config has a key that it does not know', async () => {
    await assert.rejects(
      loadDocuments({ set: ['config.downloads.waits=7'] }),
      /downloads\.waits: unknown key/,
    )
    await assert.rejects(loadDocuments({ set: ['appliance.config.stor=x'] }), /stor: unknown key/)
  })
})
