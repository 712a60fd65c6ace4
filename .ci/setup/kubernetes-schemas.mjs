// JSON schemas for kubeconform -strict, one file for each kind, generated from the API description in the Kubernetes
// sources: .tools/kubernetes-schemas/VERSION/KIND-GROUP-VERSION.json, as kubeconform spells them.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { output, ROOT, say } from './console.mjs'
import { GO } from './go-tools.mjs'
import { whenChanged } from './when-changed.mjs'

/** The minor versions that the chart supports, each with the checksum that Go gives its module. */
const VERSIONS = {
  '1.34.4': 'h1:Yy6R4QB8C9kJPp25GFqEvX5XQwY5qzKeqD0Xx6oAcmk=',
  '1.35.4': 'h1:o/8dBC/pHVpYoGV4OAIytAlNPZbdYVTXJHoYvXC4qzM=',
  '1.36.3': 'h1:qDQdoMiluAE2Eab6Fa52YV+WjiGz9mZFFoagEA6cI+o=',
  '1.37.2': 'h1:A2VDEiObzkYqFTKhSsn0ZEb0RlLEXpHWj93gi2HqEwE=',
}

/** Types that the description calls strings, but that may be numbers too. */
const NUMBER_OR_STRING = {
  'io.k8s.apimachinery.pkg.util.intstr.IntOrString': { oneOf: [{ type: 'string' }, { type: 'integer' }] },
  'io.k8s.apimachinery.pkg.api.resource.Quantity': { oneOf: [{ type: 'string' }, { type: 'number' }] },
}

export function makeKubernetesSchemas() {
  const folder = join(ROOT, '.tools', 'kubernetes-schemas')
  const stamp = join(ROOT, '.tools', 'kubernetes-schemas.sources')
  whenChanged(stamp, [fileURLToPath(import.meta.url)], () => {
    const lost = 'tests of the chart against schemas are skipped'
    say('generating the Kubernetes schemas')
    rmSync(folder, { recursive: true, force: true })
    return Object.entries(VERSIONS).every(([version, checksum]) => {
      const described = apiDescription(version, checksum)
      if (!described) return say(`no Kubernetes ${version} sources with the checksum ${checksum}: ${lost}`)
      writeSchemas(described, join(folder, version))
      return true
    })
  })
}

function apiDescription(version, checksum) {
  const answer = output(GO, ['mod', 'download', '-json', `k8s.io/kubernetes@v${version}`], { cwd: '/' })
  const module = answer && JSON.parse(answer)
  if (module?.Sum !== checksum) return undefined
  return JSON.parse(readFileSync(join(module.Dir, 'api', 'openapi-spec', 'swagger.json'), 'utf8'))
}

function writeSchemas(described, folder) {
  const definitions = { ...strict(described.definitions), ...NUMBER_OR_STRING }
  mkdirSync(folder, { recursive: true })
  for (const [name, definition] of Object.entries(definitions)) {
    const kinds = definition['x-kubernetes-group-version-kind'] ?? []
    // A type of all groups, such as DeleteOptions, is not a manifest.
    if (!definition.properties?.kind || kinds.length !== 1) continue
    const [{ group, version, kind }] = kinds
    definition.properties.kind = { type: 'string', enum: [kind] }
    definition.properties.apiVersion = { type: 'string', enum: [group ? `${group}/${version}` : version] }
    definition.required = [...new Set([...(definition.required ?? []), 'apiVersion', 'kind'])]
    const file = [kind.toLowerCase(), ...(group ? [group.split('.')[0]] : []), version].join('-')
    writeFileSync(
      join(folder, `${file}.json`),
      JSON.stringify({ $ref: `_definitions.json#/definitions/${name}` }),
    )
  }
  writeFileSync(join(folder, '_definitions.json'), JSON.stringify({ definitions }))
}

/** The same, without unknown fields, and with references into the file that contains the types. */
function strict(value) {
  if (Array.isArray(value)) return value.map(strict)
  if (value === null || typeof value !== 'object') return value
  const made = Object.fromEntries(
    Object.entries(value).map(([key, part]) => {
      const reference = key === '$ref' && typeof part === 'string'
      return [
        key,
        reference ? part.replace('#/definitions/', '_definitions.json#/definitions/') : strict(part),
      ]
    }),
  )
  const isType = made.type === 'object' && typeof made.properties === 'object' && made.properties !== null
  if (isType && made.additionalProperties === undefined) made.additionalProperties = false
  return made
}
