/** Lists on stdout: as a table for people, as the gateway's own JSON, as one entry per line, or as CSV. */
import { Option } from 'commander'
import { csvLine } from '../../../shared/query/capture-csv.ts'

const FORMATS = ['table', 'json', 'jsonl', 'csv'] as const
export type ListFormat = (typeof FORMATS)[number]

export interface FormatOptions {
  readonly output: ListFormat
}

export function formatOption(): Option {
  return new Option('-o, --output <format>', 'output format; json: as the gateway sent it')
    .choices(FORMATS)
    .default('table')
}

export interface Column<Entry> {
  readonly title: string
  /** The plain value: for CSV, and for tables without `shown`. */
  readonly value: (entry: Entry) => unknown
  /** How it is shown in a table; default: `value` unchanged. */
  readonly shown?: (entry: Entry) => string
}

export interface Listing<Entry> {
  /** The gateway's answer. */
  readonly text: string
  readonly entries: readonly Entry[]
  readonly columns: readonly Column<Entry>[]
}

export async function printListing<Entry>(listing: Listing<Entry>, { output }: FormatOptions): Promise<void> {
  const { text, entries, columns } = listing
  if (output === 'json') return await print(withLineEnd(text))
  if (output === 'jsonl') return await print(entries.map((entry) => `${JSON.stringify(entry)}\n`).join(''))
  if (output === 'csv') return await print(csvText(entries, columns))
  await print(tableText(entries, columns))
}

/** Prints a single entry, each of its columns on a line of a table. */
export async function printEntry<Entry>(listing: Listing<Entry>, { output }: FormatOptions): Promise<void> {
  const { entries, columns } = listing
  if (output !== 'table') return await printListing(listing, { output })
  const width = Math.max(...columns.map(({ title }) => title.length))
  const lines = entries.flatMap((entry) =>
    columns.map((column) => `${column.title.padEnd(width)}  ${shownOf(column, entry)}`.trimEnd()),
  )
  await print(lines.map((line) => `${line}\n`).join(''))
}

/** Resolves when the reader has accepted it. */
export function print(text: string): Promise<void> {
  return new Promise((resolve) => process.stdout.write(text, () => resolve()))
}

function csvText<Entry>(entries: readonly Entry[], columns: readonly Column<Entry>[]): string {
  const rows = entries.map((entry) => columns.map(({ value }) => value(entry)))
  return [columns.map(({ title }) => title), ...rows].map(csvLine).join('')
}

const GAP = '  '

/** A number with or without a unit: such columns are right-aligned. */
const AMOUNT = /^(-|-?\d+(\.\d+)?( ?[a-zA-Z%]{1,3})?)$/

export function tableText<Entry>(entries: readonly Entry[], columns: readonly Column<Entry>[]): string {
  const rows = [
    columns.map(({ title }) => title.toUpperCase()),
    ...entries.map((entry) => columns.map((column) => shownOf(column, entry))),
  ]
  const widths = columns.map((_, index) => Math.max(...rows.map((row) => row[index]?.length ?? 0)))
  const isAmount = columns.map((_, index) => rows.slice(1).every((row) => AMOUNT.test(row[index] ?? '')))
  const lines = rows.map((row) =>
    row
      .map((cell, index) =>
        isAmount[index] === true ? cell.padStart(widths[index] ?? 0) : cell.padEnd(widths[index] ?? 0),
      )
      .join(GAP)
      .trimEnd(),
  )
  return lines.map((line) => `${line}\n`).join('')
}

function shownOf<Entry>({ value, shown }: Column<Entry>, entry: Entry): string {
  const cell = shown === undefined ? value(entry) : shown(entry)
  // Capture names from a device must not be able to move the cursor.
  return cell === undefined || cell === null ? '-' : String(cell).replaceAll(/\p{Cc}/gu, '?')
}

function withLineEnd(text: string): string {
  return text.endsWith('\n') ? text : `${text}\n`
}

/** "2026-11-02 09:00:00Z" of epoch nanoseconds. */
export function shownNs(ns: string | null | undefined): string {
  if (ns === null || ns === undefined || ns === '0') return '-'
  return shownInstant(new Date(Number(BigInt(ns) / 1_000_000n)).toISOString())
}

/** The same for an instant. */
export function shownInstant(instant: string | null | undefined): string {
  return instant === null || instant === undefined ? '-' : `${instant.slice(0, 19).replace('T', ' ')}Z`
}

/** "40 s", "12 min", "3 h" */
export function shownDuration(ms: number): string {
  const seconds = Math.ceil(ms / 1_000)
  if (seconds < 120) return `${seconds} s`
  return seconds < 7_200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3_600)} h`
}
