/** The chart in `helm`, as rendered by Helm. */

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { cp, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { parseAllDocuments } from 'yaml'
import { REPOSITORY_ROOT } from '../repository-files.ts'
import { skipWithout } from '../set-up-tools.ts'
import { type TempFolder, tempFolder } from '../temp-folder.ts'

export const CHART = join(REPOSITORY_ROOT, 'helm')

const TOOLS = join(REPOSITORY_ROOT, '.tools')
const NEEDED = ['helm', 'helm-unittest', 'kubeconform', 'kubernetes-schemas']

/** Skip reason for tests, or false. */
export const WITHOUT_HELM = skipWithout(
  NEEDED.every((tool) => existsSync(join(TOOLS, tool))),
  `not all of these are in .tools: ${NEEDED.join(', ')}; \`node .ci/setup.mjs --test\` brings them`,
)

/** The value files in the chart's `ci` folder, by purpose. */
export const CI_VALUES: Readonly<Record<string, string>> = Object.fromEntries(
  readdirSync(join(CHART, 'ci')).map((file) => [file.replace(/-values\.yaml$/, ''), join(CHART, 'ci', file)]),
)

/** As the API accepts them; tests only check a few fields of what the chart renders. */
export interface Manifest {
  readonly kind: string
  readonly metadata: { readonly name: string; readonly namespace?: string }
  readonly data?: Readonly<Record<string, string>>
}

export interface ToolResult {
  readonly status: number
  readonly stdout: string
  readonly stderr: string
}

/** Runs a tool from `.tools` to its end, whatever its status. */
export async function runTool(name: string, args: readonly string[]): Promise<ToolResult> {
  const command = promisify(execFile)(join(TOOLS, name), args, { maxBuffer: 64 << 20 })
  return command.then(
    ({ stdout, stderr }) => ({ status: 0, stdout, stderr }),
    (error: { code: number; stdout: string; stderr: string }) => {
      if (typeof error.code !== 'number') throw error
      return { status: error.code, stdout: error.stdout, stderr: error.stderr }
    },
  )
}

export interface Rendering {
  /** A folder; default: the chart itself. */
  readonly chart?: string
  /** Paths of files. */
  readonly values?: readonly string[]
  /** Values in the syntax of Helm's --set. */
  readonly set?: readonly string[]
  /** Values in the syntax of --set-json. */
  readonly json?: readonly string[]
}

/** The output of `helm template`. */
export function renderText({
  chart = CHART,
  values = [],
  set = [],
  json = [],
}: Rendering = {}): Promise<ToolResult> {
  const files = values.flatMap((path) => ['--values', path])
  const settings = [
    ...set.flatMap((setting) => ['--set', setting]),
    ...json.flatMap((setting) => ['--set-json', setting]),
  ]
  return runTool('helm', ['template', 'fleet', chart, '--namespace', 'captures', ...files, ...settings])
}

/** All objects; fails with Helm's message. */
export async function render(rendering: Rendering = {}): Promise<readonly Manifest[]> {
  const { status, stdout, stderr } = await renderText(rendering)
  if (status !== 0) throw new Error(stderr)
  return parseManifests(stdout)
}

export function parseManifests(text: string): readonly Manifest[] {
  return parseAllDocuments(text)
    .map((document) => document.toJS() as Manifest | null)
    .filter((manifest) => manifest !== null)
}

/** A copy of the chart, into which a test may plant a mistake. */
export async function copyChart(): Promise<TempFolder> {
  const folder = await tempFolder()
  await cp(CHART, folder.path, { recursive: true })
  return folder
}

/** A copy of the chart with a text in one of its files replaced; fails if the text is not found. */
export async function plantInChart(file: string, good: string, bad: string): Promise<TempFolder> {
  const chart = await copyChart()
  const path = join(chart.path, file)
  const text = await readFile(path, 'utf8')
  assert.ok(text.includes(good), `${file} has no ${good}`)
  await writeFile(path, text.replace(good, bad))
  return chart
}
