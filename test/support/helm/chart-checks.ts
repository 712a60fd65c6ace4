/** The checks that the chart must pass: each returns the mistakes it finds, and nothing if there are none. */
import { readdirSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { REPOSITORY_ROOT } from '../repository-files.ts'
import { tempFolder } from '../temp-folder.ts'
import { CHART, renderText, runTool, type ToolResult } from './chart.ts'

const SCHEMAS = join(REPOSITORY_ROOT, '.tools', 'kubernetes-schemas')

/** Kinds defined by operators; Kubernetes itself has no schemas for them. */
const OF_OPERATORS = ['HTTPRoute', 'BackendTLSPolicy', 'ServiceMonitor', 'PrometheusRule']

/** The minor versions of Kubernetes that the chart is checked against. */
export function kubernetesVersions(): readonly string[] {
  return readdirSync(SCHEMAS).sort()
}

export async function lint(chart: string, values: string): Promise<string> {
  return complaint(await runTool('helm', ['lint', '--strict', chart, '--values', values]))
}

/** Runs all unit tests, or those of one file of the chart's. */
export async function unitTest(chart: string = CHART, file = '*_test.yaml'): Promise<string> {
  return complaint(await runTool('helm-unittest', ['--strict', '--file', `tests/${file}`, chart]))
}

/** Renders the chart with each of the files, and checks all objects against the schemas of each version. */
export async function conform(
  versions: readonly string[],
  { chart = CHART, values }: { readonly chart?: string; readonly values: readonly string[] },
): Promise<string> {
  await using folder = await tempFolder()
  const rendered = await Promise.all(values.map((path) => renderText({ chart, values: [path] })))
  const unrendered = rendered.find(({ status }) => status !== 0)
  if (unrendered !== undefined) return complaint(unrendered)
  const files = rendered.map(({ stdout }, index) => ({ path: join(folder.path, `${index}.yaml`), stdout }))
  for (const { path, stdout } of files) await writeFile(path, stdout)
  const complaints: string[] = []
  for (const version of versions) {
    const location = `${join(SCHEMAS, version)}/{{ .ResourceKind }}{{ .KindSuffix }}.json`
    const options = ['-strict', '-skip', OF_OPERATORS.join(','), '-schema-location', location]
    const checked = await runTool('kubeconform', [...options, ...files.map(({ path }) => path)])
    complaints.push(complaint(checked))
  }
  return complaints.join('')
}

function complaint({ status, stdout, stderr }: ToolResult): string {
  return status === 0 ? '' : `${stdout}${stderr}` || `status ${status}`
}
