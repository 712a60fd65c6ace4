// The examples: each configuration is started or rendered, each link leads to what it names. Their programs run in
// documentation-commands.test.ts, where there is a demo.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { parse, stringify } from 'yaml'
import { applianceConfigSchema } from '../../appliance/appliance-config.ts'
import { parsePageState } from '../../src/console/base/page-url.ts'
import { withPivot } from '../../src/console/download/pivot-link.ts'
import { putUser } from '../../src/shared/auth/edit-users-file.ts'
import { parseConfig } from '../../src/shared/base/config-file.ts'
import { startReady } from '../support/processes/ready-program.ts'
import { REPOSITORY_ROOT } from '../support/repository-files.ts'
import { tempFolder } from '../support/temp-folder.ts'

const EXAMPLES = join(REPOSITORY_ROOT, 'examples')
const PROGRAM = join(REPOSITORY_ROOT, 'src/capfleet')
const PASSWORD = 'a long password'
const run = promisify(execFile)

/** With a port that is free, and `change` made to the document. */
async function prepared(path: string, change: (document: Record<string, unknown>) => void): Promise<void> {
  const document = parse(await readFile(path, 'utf8')) as Record<string, unknown>
  document.listen = { ...(document.listen as object | undefined), port: 0 }
  change(document)
  await writeFile(path, stringify(document))
}

test('one site: recorder, appliance and gateway start, and the gateway sees the appliance', async () => {
  await using parts = new AsyncDisposableStack()
  const folder = parts.use(await tempFolder()).path
  await cp(join(EXAMPLES, 'one-site'), folder, { recursive: true })
  await mkdir(join(folder, 'store'))
  await putUser(join(folder, 'appliance-users.yaml'), { name: 'gateway', role: 'full' }, PASSWORD)
  await putUser(join(folder, 'gateway-users.yaml'), { name: 'ann', role: 'user' }, PASSWORD)
  await writeFile(join(folder, 'lon1-password'), PASSWORD)
  await prepared(join(folder, 'appliance.yaml'), () => undefined)
  const start = async (program: string, configuration: string): Promise<string> =>
    parts.use(await startReady(`${PROGRAM} ${program} --config ${configuration}`, folder)).address
  await start('recorder', 'appliance.yaml')
  const appliance = await start('appliance', 'appliance.yaml')
  await prepared(join(folder, 'gateway.yaml'), (document) => {
    const [device] = document.devices as { url: string }[]
    assert.ok(device)
    device.url = appliance
  })
  const gateway = await start('gateway', 'gateway.yaml')
  const headers = { authorization: `Basic ${btoa(`ann:${PASSWORD}`)}` }
  const answer = await fetch(`${gateway}/api/v1/system/version?Device=lon1`, { headers })
  assert.equal(answer.status, 200, await answer.text())
})

test('one site: the line that captures is valid without its mark', async () => {
  const text = await readFile(join(EXAMPLES, 'one-site/appliance.yaml'), 'utf8')
  const capturing = text.replace(/^# (?=capture: )/m, '')
  assert.notEqual(capturing, text)
  const { capture } = parseConfig(capturing, 'appliance.yaml', applianceConfigSchema)
  assert.deepEqual(
    capture.ports.map((port) => port.interface),
    ['enp1s0f0'],
  )
})

test('many sites: the configuration is checked with all files that it names', async () => {
  await using folder = await tempFolder()
  await cp(join(EXAMPLES, 'many-sites'), folder.path, { recursive: true })
  await putUser(join(folder.path, 'users.yaml'), { name: 'ann', role: 'user' }, PASSWORD)
  for (const name of ['lon1', 'lon2', 'nyc1', 'sgp1'])
    await writeFile(join(folder.path, `${name}-password`), PASSWORD)
  const subject = ['-nodes', '-days', '2', '-subj', '/CN=localhost']
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1']
  const files = ['-keyout', 'gateway-key.pem', '-out', 'gateway-cert.pem']
  await run('openssl', ['req', '-x509', ...key, ...subject, ...files], { cwd: folder.path })
  await cp(join(folder.path, 'gateway-cert.pem'), join(folder.path, 'devices-ca.pem'))
  await mkdir(join(folder.path, 'token-keys'))
  await writeFile(join(folder.path, 'token-keys', '2026.secret'), 'x'.repeat(40))
  const path = join(folder.path, 'gateway.yaml')
  const checked = await run(PROGRAM, ['gateway', '--config', path, '--check'])
  assert.equal(checked.stderr, `${path}: OK\n`)
})

test('links: Grafana and Kibana lead to the timeline, with a time, and a device or a filter', async () => {
  const grafana = JSON.parse(await readFile(join(EXAMPLES, 'links/grafana-data-link.json'), 'utf8')) as {
    url: string
  }
  const kibana = (await readFile(join(EXAMPLES, 'links/kibana-url-drilldown.txt'), 'utf8')).trim()
  const page = await readFile(join(REPOSITORY_ROOT, 'docs/guides/siem.md'), 'utf8')
  for (const link of [grafana.url, kibana]) assert.ok(page.includes(`\n${link}\n`), link)
  for (const [link, filter] of [
    [
      grafana.url.replace(/\$\{__(from|to)\}/g, '1793610060000').replace(/\$\{__field[^}]*\}/, 'lon1'),
      'Device',
    ],
    [
      kibana
        .replace(/\{\{context[^}]*\}\}/g, '2026-11-02T09:01:00.000Z')
        .replace('{{event.value}}', '192.0.2.1'),
      'FilterBPF',
    ],
  ] as const) {
    const { view, values } = parsePageState(new URL(link).hash)
    assert.equal(view, 'timeline')
    assert.match(values.TSBegin ?? '', /^(1793610060000000000|2026-11-02T09:01:00\.000Z)$/)
    assert.match(values[filter] ?? '', /^(lon1|host 192\.0\.2\.1)$/)
  }
})

test('links: an alert of Grafana, Kibana and Splunk leads to its packets', async () => {
  const read = async (name: string) => (await readFile(join(EXAMPLES, 'links', name), 'utf8')).trim()
  const page = await readFile(join(REPOSITORY_ROOT, 'docs/guides/siem.md'), 'utf8')
  const kibana = await read('kibana-alert-drilldown.txt')
  const { url: grafana } = JSON.parse(await read('grafana-alert-data-link.json')) as { url: string }
  const action = await read('splunk-workflow-action.conf')
  for (const text of [kibana, grafana, action]) assert.ok(page.includes(`\n${text}\n`), text)
  const [, splunk = ''] = /^link\.uri = (.*)$/m.exec(action) ?? []
  const facts = ['192.0.2.1', '51234', '203.0.113.9', '443', 'TCP']
  const values = (at: string) => [at, ...facts]
  const filled = [
    kibana.replace(/\{\{event\.values\.\[(\d)\]\}\}/g, (_, n) => values('2026-11-02T09:01:27.123Z')[n] ?? ''),
    splunk.replace(/\$(\w+)\$/g, (_, name) =>
      encodeURIComponent(
        values('2026-11-02T09:01:27.123000+0000')[
          ['timestamp', 'src_ip', 'src_port', 'dest_ip', 'dest_port', 'proto'].indexOf(name)
        ] ?? '',
      ),
    ),
    grafana
      .replace(`\${__value.time}`, '1793610087123')
      .replace(
        /\$\{__data\.fields\["(\w+)"\]\}/g,
        (_, name) => facts[['src_ip', 'src_port', 'dest_ip', 'dest_port', 'proto'].indexOf(name)] ?? '',
      ),
  ]
  const states = filled.map((link) => withPivot(parsePageState(new URL(link).hash), 'UTC'))
  for (const [index, { view, values: opened }] of states.entries()) {
    assert.equal(view, 'timeline', filled[index])
    assert.equal(opened.TSBegin, '1793610057123000000', filled[index])
    assert.match(
      opened.FilterBPF ?? '',
      /^\(tcp and \(\(src host 192\.0\.2\.1 and src port 51234 and dst host 203/,
    )
    assert.deepEqual(opened, states[0]?.values, filled[index])
  }
})
