/** The members of an audit line as names and values for people. */
import type { Schemas } from '../base/ask-gateway.ts'
import { instantText, type Zone } from '../base/instants.ts'

type Entry = Schemas['AuditPage']['entries'][number]

/** Members that have their own columns, or prove the line. `parameters` is `query` once more. */
const LEFT_OUT: ReadonlySet<string> = new Set([
  'chain',
  'seq',
  'at',
  'event',
  'user',
  'address',
  'prev',
  'hash',
  'parameters',
])

const EPOCH_NS = /^\d{17,20}$/

/** In the order of the line. A query is split into its parameters, each as it was before encoding. */
export function auditFacts(entry: Entry): readonly (readonly [name: string, value: string])[] {
  return Object.entries(entry)
    .filter(([name, value]) => !LEFT_OUT.has(name) && !isNothing(value))
    .flatMap(([name, value]) =>
      name === 'query' ? [...new URLSearchParams(String(value))] : [[name, textOf(value)]],
    )
    .map(([name = '', value = '']) => [name, value] as const)
}

/** An instant in the page's zone, to the nanosecond; anything else as it is. */
export function shownFact(name: string, value: string, zone: Zone): string {
  const isInstant = /^(TSBegin|TSEnd|Start|Stop|beginNs|endNs)$/.test(name) && EPOCH_NS.test(value)
  return isInstant ? instantText(BigInt(value), zone) : value
}

function isNothing(value: unknown): boolean {
  return value === null || value === '' || (Array.isArray(value) && value.length === 0)
}

function textOf(value: unknown): string {
  if (typeof value === 'string') return value
  if (Array.isArray(value) && value.every((item) => typeof item === 'string')) return value.join(', ')
  return JSON.stringify(value)
}
