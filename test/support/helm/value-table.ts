/** The values of the chart as values.yaml describes them: a comment that begins with "# --" above each. */
import { isMap, isScalar, type Pair, parseDocument, type YAMLMap } from 'yaml'

export interface DescribedValue {
  /** "gateway.replicas" */
  readonly path: string
  /** The default as JSON; "see values.yaml" for a long one. */
  readonly default: string
  readonly text: string
}

const MARK = '-- '
const LONG_DEFAULT = 60

/** The values with their comments, in the order of the file. */
export function describedValues(yaml: string): readonly DescribedValue[] {
  const { contents } = parseDocument(yaml)
  return isMap(contents) ? describedIn(contents, '') : []
}

/** A Markdown table of them. */
export function valueTable(yaml: string): string {
  const rows = describedValues(yaml).map(
    (value) => `| \`${value.path}\` | \`${value.default}\` | ${value.text.replaceAll('|', '\\|')} |`,
  )
  return ['| Value | Default | What |', '|---|---|---|', ...rows].join('\n')
}

function describedIn(map: YAMLMap, path: string): DescribedValue[] {
  return map.items.flatMap((item: Pair, index) => {
    const key = String(isScalar(item.key) ? item.key.value : item.key)
    const name = path === '' ? key : `${path}.${key}`
    // The comment above the first key of a map belongs to the map itself.
    const above = (index === 0 ? map.commentBefore : undefined) ?? commentOf(item.key)
    const text = descriptionIn(above ?? '')
    if (text === undefined) return isMap(item.value) ? describedIn(item.value, name) : []
    return [{ path: name, default: defaultOf(item.value), text }]
  })
}

function commentOf(node: unknown): string | undefined {
  return (node as { readonly commentBefore?: string | null }).commentBefore ?? undefined
}

/** The text after the mark, on one line. */
function descriptionIn(comment: string): string | undefined {
  const lines = comment.split('\n').map((line) => line.trim())
  const begin = lines.findLastIndex((line) => line.startsWith(MARK))
  return begin < 0 ? undefined : lines.slice(begin).join(' ').slice(MARK.length)
}

function defaultOf(node: unknown): string {
  const json = JSON.stringify((node as { toJSON(): unknown }).toJSON())
  return json.length <= LONG_DEFAULT ? json : 'see values.yaml'
}
