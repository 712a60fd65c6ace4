/** The table of alerts in docs/operations/alerts.md, generated from the rules that the chart installs. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { REPOSITORY_ROOT } from '../repository-files.ts'
import { code, table } from './reference-tables.ts'

interface Rule {
  readonly alert?: string
  readonly for?: string
  readonly labels?: { readonly severity?: string }
  readonly annotations?: { readonly summary?: string; readonly runbook_url?: string }
}

const RULES = join(REPOSITORY_ROOT, 'helm', 'rules')

/** Each links to its section of the runbook, which is in the same folder as the table. */
export function alertTable(): string {
  const rows = readdirSync(RULES)
    .toSorted()
    .flatMap((file) => rulesIn(file))
    .filter(({ alert }) => alert !== undefined)
  return table(
    ['Alert', 'Severity', 'After', 'What', 'What to do'],
    rows.map(({ alert = '', for: after = 'at once', labels, annotations = {} }) => {
      const anchor = annotations.runbook_url?.split('#')[1] ?? ''
      return [
        code(alert),
        labels?.severity ?? '',
        after,
        (annotations.summary ?? '').replaceAll(/\{\{ \$labels\.(\w+) \}\}/g, '`$1`'),
        `[${headingOf(anchor)}](runbook.md#${anchor})`,
      ]
    }),
  )
}

function rulesIn(file: string): readonly Rule[] {
  const { groups } = parse(readFileSync(join(RULES, file), 'utf8')) as {
    readonly groups: readonly { readonly rules: readonly Rule[] }[]
  }
  return groups.flatMap(({ rules }) => rules)
}

/** "a-device-is-down" -> "A device is down"; "redis" keeps its capital. */
function headingOf(anchor: string): string {
  const words = anchor.replaceAll('-', ' ').replace(/\bredis\b/, 'Redis')
  return words.charAt(0).toUpperCase() + words.slice(1)
}
