/**
 * Clients that generators make from /openapi.json compile and work. They create a token and use it to list captures,
 * estimate, download as a stream and read a problem; and they run an export and fetch its file. The TypeScript client
 * uses the page's types. The others are built by `npm run clients`, which skips those whose tools are not installed.
 */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { copyFile, cp, mkdir, readFile, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import { httpGet } from '../support/http-get.ts'
import { SMALL_FLEET_START_NS, type SmallFleet, startSmallFleet } from '../support/processes/small-fleet.ts'
import { startTempWorker, type TempWorker } from '../support/processes/temp-worker.ts'
import { REPOSITORY_ROOT } from '../support/repository-files.ts'
import { USER_PASSWORD } from '../support/suite-secrets.ts'
import { type TempFolder, tempFolder } from '../support/temp-folder.ts'

const execute = promisify(execFile)
const TOOLS = join(REPOSITORY_ROOT, '.tools')
const PYTHON_TOOLS = join(TOOLS, 'clients', 'bin')
const PROGRAMS = join(REPOSITORY_ROOT, 'test/support/clients')
const GO_MODULE = join(REPOSITORY_ROOT, 'test/tools/clients')

/** `npm run clients`. */
const isAll = process.env.GENERATED_CLIENTS === '1'

/** The packets of small-fleet.ts: two devices with two captures each. */
const PACKETS = 80

describe('a client made of /openapi.json', () => {
  let folder: TempFolder
  let fleet: SmallFleet
  let worker: TempWorker
  let description: string
  before(async () => {
    folder = await tempFolder()
    fleet = await startSmallFleet()
    worker = await startTempWorker(fleet.gateway)
    description = join(folder.path, 'openapi.json')
    const { body } = await httpGet(`${fleet.gateway.url}/openapi.json`, { headers: fleet.gateway.as.viewer })
    await writeFile(description, body)
  })
  after(async () => {
    await worker[Symbol.asyncDispose]()
    await fleet[Symbol.asyncDispose]()
    await folder[Symbol.asyncDispose]()
  })

  /** Runs a program that uses a client, and checks its output and the files that it writes. */
  async function works(
    name: string,
    command: string,
    args: readonly string[],
    options: { readonly cwd?: string; readonly env?: Readonly<Record<string, string>> } = {},
  ): Promise<void> {
    const files = join(folder.path, `${name}-files`)
    await mkdir(files)
    const { stdout } = await run(command, args, {
      cwd: options.cwd ?? folder.path,
      env: {
        ...options.env,
        GATEWAY: fleet.gateway.url,
        GATEWAY_USER: 'full',
        GATEWAY_PASSWORD: USER_PASSWORD,
        FOLDER: files,
        BEGIN: String(SMALL_FLEET_START_NS),
        END: String(SMALL_FLEET_START_NS + 1_000_000_000n),
      },
    })
    const saw = JSON.parse(stdout) as Readonly<Record<string, unknown>>
    assert.deepEqual(saw, {
      scopes: ['device:read', 'capture:download'],
      captures: ['east-first', 'east-second', 'west-first', 'west-second'],
      packets: String(PACKETS),
      problem: 'bad-bpf',
      export: 'complete',
    })
    for (const file of ['download.pcap', 'export.pcap']) {
      const { stdout: packets } = await execute('tcpdump', ['--count', '-r', join(files, file)])
      assert.equal(packets, `${PACKETS} packets\n`, file)
    }
    assert.deepEqual(await readFile(join(files, 'download.pcap')), await readFile(join(files, 'export.pcap')))
  }

  test('by openapi-typescript', () =>
    works('typescript', process.execPath, [join(PROGRAMS, 'use-generated.ts')]))

  test('by oapi-codegen, in Go', { skip: unless('oapi-codegen') }, async () => {
    const module = join(folder.path, 'go')
    await cp(GO_MODULE, module, { recursive: true })
    await mkdir(join(module, 'gateway'))
    const generated = join(module, 'gateway', 'gateway.go')
    const generator = join(TOOLS, 'oapi-codegen')
    await run(generator, ['-generate=types,client', '-package=gateway', '-o', generated, description])
    await run('go', ['vet', './...'], { cwd: module })
    const program = join(module, 'use-generated')
    await run('go', ['build', '-mod=readonly', '-o', program, '.'], { cwd: module })
    await works('go', program, [])
  })

  test('by openapi-generator, in Python', { skip: unless('clients/bin/openapi-generator-cli') }, async () => {
    const target = join(folder.path, 'python')
    await openApiGenerator('python', target, 'packageName=capfleet')
    const python = join(PYTHON_TOOLS, 'python')
    await works('python', python, [join(PROGRAMS, 'use-generated.py')], { env: { PYTHONPATH: target } })
  })

  test('by openapi-python-client', { skip: unless('clients/bin/openapi-python-client') }, async () => {
    const target = join(folder.path, 'attrs')
    await mkdir(target)
    const settings = join(folder.path, 'attrs.json')
    const bytes = [
      'application/vnd.tcpdump.pcap',
      'application/x-pcapng',
      'application/gzip',
      'application/zstd',
    ]
    await writeFile(
      settings,
      JSON.stringify({
        content_type_overrides: Object.fromEntries(bytes.map((type) => [type, 'application/octet-stream'])),
        post_hooks: [],
      }),
    )
    await run(join(PYTHON_TOOLS, 'openapi-python-client'), [
      ...['generate', '--meta=none', `--path=${description}`, `--config=${settings}`],
      `--output-path=${join(target, 'capfleet_attrs')}`,
    ])
    const python = join(PYTHON_TOOLS, 'python')
    await works('attrs', python, [join(PROGRAMS, 'use-generated-attrs.py')], { env: { PYTHONPATH: target } })
  })

  const skipJava = unless('clients/bin/openapi-generator-cli') || unlessCommand('mvn')
  test('by openapi-generator, in Java', { skip: skipJava }, async () => {
    const target = join(folder.path, 'java')
    // No Java method can be called wait.
    const mapping = '--parameter-name-mappings=Wait=waitSeconds'
    await openApiGenerator('java', target, 'library=native,useSingleRequestParameter=true', mapping)
    await copyFile(join(PROGRAMS, 'use-generated.java'), join(target, 'src/main/java/UseGenerated.java'))
    const paths = join(folder.path, 'java-paths')
    const dependencies = 'org.apache.maven.plugins:maven-dependency-plugin:3.8.1:build-classpath'
    await run('mvn', ['-q', '-B', 'compile', dependencies, `-Dmdep.outputFile=${paths}`], { cwd: target })
    const classes = [join(target, 'target/classes'), (await readFile(paths, 'utf8')).trim()].join(delimiter)
    await works('java', 'java', ['-cp', classes, 'UseGenerated'])
  })

  async function openApiGenerator(
    generator: string,
    target: string,
    properties: string,
    ...more: readonly string[]
  ): Promise<void> {
    await run(join(PYTHON_TOOLS, 'openapi-generator-cli'), [
      ...['generate', '-g', generator, '-i', description, '-o', target],
      `--additional-properties=${properties}`,
      ...more,
    ])
  }
})

/** Why a test that needs this file of .tools is skipped, or false if the file exists. */
function unless(tool: string): string | false {
  if (!isAll) return 'is a part of `npm run clients`'
  return !existsSync(join(TOOLS, tool)) && `there is no .tools/${tool}: node .ci/setup.mjs --clients says why`
}

function unlessCommand(name: string): string | false {
  const folders = (process.env.PATH ?? '').split(delimiter)
  return !folders.some((path) => existsSync(join(path, name))) && `${name} is not installed`
}

/** Fails with the command's output. */
async function run(
  command: string,
  args: readonly string[],
  { cwd, env = {} }: { readonly cwd?: string; readonly env?: Readonly<Record<string, string>> } = {},
): Promise<{ readonly stdout: string }> {
  try {
    return await execute(command, [...args], { cwd, env: { ...process.env, ...env }, maxBuffer: 2 ** 28 })
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { readonly stdout?: string; readonly stderr?: string }
    throw new Error(`${command} failed: ${stdout.slice(-5_000)}${stderr.slice(-5_000)}`, { cause: error })
  }
}
