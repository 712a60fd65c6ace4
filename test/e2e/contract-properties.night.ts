// Generated requests from /openapi.json (schemathesis): no request gets a 500, and no answer differs from the
// description.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { httpGet } from '../support/http-get.ts'
import { SMALL_FLEET_START_NS, type SmallFleet, startSmallFleet } from '../support/processes/small-fleet.ts'
import { REPOSITORY_ROOT } from '../support/repository-files.ts'
import { skipWithout } from '../support/set-up-tools.ts'
import { tempFolder } from '../support/temp-folder.ts'
import { TEST_LIMIT_MS } from '../support/test-limits.ts'

/**
 * Requests for each path. `npm run contract` sends more, and also violates each rule of each parameter one at a time.
 */
const EXAMPLES = Number(process.env.CONTRACT_EXAMPLES ?? 5)
const PHASES = process.env.CONTRACT_EXAMPLES === undefined ? 'fuzzing' : 'examples,coverage,fuzzing'
const SEED = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31))
const SCHEMATHESIS = join(REPOSITORY_ROOT, '.venv/bin/st')

/** Valid and invalid values that reach deeper than generated ones, which rarely name anything that exists. */
const VALUES: Readonly<Record<string, readonly string[]>> = {
  StreamName: ['east-first', 'west-second', 'nothing'],
  TSBegin: [String(SMALL_FLEET_START_NS), '-1h', 'x'],
  TSEnd: [String(SMALL_FLEET_START_NS + 5_000_000n), 'now'],
  Start: ['0', String(SMALL_FLEET_START_NS)],
  Stop: [String(SMALL_FLEET_START_NS + 5_000_000n), 'x'],
  FilterBPF: ['tcp', 'udp port 53', '('],
  Device: ['east', 'e*,west', '*', 'nowhere'],
  device: ['east', 'nowhere'],
  path: ['other'],
  // A value may be as long as the head of a request; longer heads are rejected before any path is known (431).
  For: ['/api/v1/pcap/timerange?TSBegin=-1h&TSEnd=now', '/nowhere', 'x'],
}

/** These answers continue as long as the client listens. */
const ENDLESS = /\/(system|v1|exports\/\{id\})\/(events|telemetry)$/

interface Operation {
  parameters: readonly (Parameter | { readonly $ref: string })[]
  readonly responses: Record<string, object>
}

interface Parameter {
  readonly name: string
  readonly schema: object
}

interface Document {
  readonly paths: Record<string, Record<string, Operation>>
  readonly components: { readonly parameters: Readonly<Record<string, Parameter>> }
}

/** The description without the streaming paths, and without the exceptions that let a path fail. */
function prepared(document: Document): Document {
  const paths = Object.entries(document.paths).filter(([path]) => !ENDLESS.test(path))
  for (const operation of paths.flatMap(([, operations]) => Object.values(operations))) {
    delete operation.responses[500]
    operation.parameters = operation.parameters
      .map((parameter) =>
        '$ref' in parameter
          ? document.components.parameters[parameter.$ref.split('/').at(-1) ?? '']
          : parameter,
      )
      .filter((parameter) => parameter !== undefined)
      .filter(({ name }) => name !== 'Follow')
      .map((parameter) => {
        const values = VALUES[parameter.name]
        return values === undefined ? parameter : { ...parameter, schema: { type: 'string', enum: values } }
      })
  }
  return { ...document, paths: Object.fromEntries(paths) }
}

const CHECKS = [
  'status_code_conformance',
  'content_type_conformance',
  'response_headers_conformance',
  'response_schema_conformance',
]

/** The output of schemathesis, and its exit code. */
function run(folder: string, args: readonly string[]): Promise<{ code: number | null; said: string }> {
  return new Promise((resolve) => {
    const env = { PATH: process.env.PATH, HOME: folder }
    const child = execFile(SCHEMATHESIS, ['run', ...args], { cwd: folder, env }, (_error, stdout, stderr) =>
      resolve({ code: child.exitCode, said: stdout + stderr }),
    )
  })
}

const skip = skipWithout(
  existsSync(SCHEMATHESIS),
  'there is no schemathesis in .venv; `node .ci/setup.mjs --test` brings it',
)

describe(`${EXAMPLES} made-up requests to each path (SEED=${SEED})`, {
  skip,
  timeout: TEST_LIMIT_MS + EXAMPLES * 30_000,
}, () => {
  let fleet: SmallFleet
  before(async () => {
    fleet = await startSmallFleet()
  })
  after(() => fleet[Symbol.asyncDispose]())

  async function answersAsDescribed(url: string, authorization: string): Promise<void> {
    await using folder = await tempFolder()
    const { json } = await httpGet(`${url}/openapi.json`, { headers: { authorization } })
    const path = join(folder.path, 'openapi.json')
    await writeFile(path, JSON.stringify(prepared(json() as unknown as Document)))
    const { code, said } = await run(folder.path, [
      path,
      ...[`--url=${url}`, '-H', `Authorization: ${authorization}`],
      ...[`--checks=${CHECKS.join(',')}`, `--phases=${PHASES}`, `--max-examples=${EXAMPLES}`],
      ...[`--seed=${SEED}`, '--workers=2', '--request-timeout=60', '--generation-database=none'],
      ...['--suppress-health-check=all', '--warnings=off', '--no-color'],
    ])
    assert.equal(code, 0, said)
    assert.match(said, /Test cases:\s+\d{2,}/, said)
  }

  test('are answered by an appliance as it says', async () => {
    const [appliance] = fleet.appliances
    assert.ok(appliance)
    await answersAsDescribed(appliance.url, `Basic ${btoa(appliance.credentials('full'))}`)
  })

  test('are answered by a gateway as it says', async () => {
    await answersAsDescribed(fleet.gateway.url, fleet.gateway.as.full.authorization)
  })
})
