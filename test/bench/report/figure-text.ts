/** Figures as lines for a terminal, and as the table of docs/reference/measured.md. */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { REPOSITORY_ROOT } from '../../support/repository-files.ts'
import type { Row } from '../rows/row.ts'
import type { Failure, Figures, Side } from './compare.ts'

const COLUMNS = [22, 52, 52, 8, 8] as const
const DOCUMENT = join(REPOSITORY_ROOT, 'docs', 'reference', 'measured.md')
const TABLE = /<!-- measured -->\n[\s\S]*?<!-- end of measured -->/

export function printHeading(): void {
  printRow(['row', 'capfleet', 'peer', 'time', 'cpu'])
}

export function printFigures({ name, inputBytes, ours, peer, timeRatio, cpuRatio }: Figures): void {
  printRow([name, sideText(ours, inputBytes), sideText(peer, inputBytes), ratio(timeRatio), ratio(cpuRatio)])
}

export function printControl(side: Side, inputBytes: number): void {
  printRow(['control', sideText(side, inputBytes)])
}

/** The rows of the table in the document: their names. */
export async function documentedRows(): Promise<string[]> {
  const table = TABLE.exec(await readFile(DOCUMENT, 'utf8'))?.[0] ?? ''
  return [...table.matchAll(/^\| `([\w-]+)` \|/gm)].map((match) => match[1] ?? '')
}

/** Writes the table, below a sentence about its subject. A row without figures says why. */
export async function documentFigures(
  rows: readonly Row[],
  figures: ReadonlyMap<string, Figures | Failure>,
  conditions: string,
): Promise<void> {
  const lines = rows.map((row) =>
    tableLine(row, figures.get(row.name) ?? { name: row.name, failed: 'not run' }),
  )
  const head =
    '| Row | Both do, and the peer | Ours | Peer | Time | Processor | Floor, goal |\n|---|---|---|---|---|---|---|'
  const table = `<!-- measured -->\n\n${conditions}\n\n${head}\n${lines.join('\n')}\n\n<!-- end of measured -->`
  const text = await readFile(DOCUMENT, 'utf8')
  await writeFile(
    DOCUMENT,
    text.replace(TABLE, () => table),
  )
}

function tableLine({ name, what, floor, goal, judgedBy = 'time' }: Row, figures: Figures | Failure): string {
  const bounds = floor === undefined ? '' : `${floor}, ${goal} (${judgedBy})`
  if ('failed' in figures) return `| \`${name}\` | ${what} | ${cellText(figures.failed)} | | | | ${bounds} |`
  const { inputBytes, ours, peer, timeRatio, cpuRatio } = figures
  const cells = [speed(ours, inputBytes), speed(peer, inputBytes), ratio(timeRatio), ratio(cpuRatio), bounds]
  return `| \`${name}\` | ${what} | ${cells.join(' | ')} |`
}

/** The beginning of a message, short enough for a cell. */
function cellText(message: string): string {
  return message.replaceAll(/[|\s]+/g, ' ').slice(0, 100)
}

function sideText(side: Side, inputBytes: number): string {
  const { label, seconds, peakRssMiB, cpuSeconds } = side
  const perGb = inputBytes === 0 ? '' : '/GB'
  return [
    `${label} ${seconds.toFixed(3)} s`,
    ...(inputBytes === 0 ? [] : [speed(side, inputBytes)]),
    ...(peakRssMiB === 0 ? [] : [`${peakRssMiB.toFixed(0)} MiB`]),
    ...(cpuSeconds === undefined
      ? []
      : [`${(cpuSeconds / (inputBytes === 0 ? 1 : inputBytes / 1e9)).toFixed(2)} cpu-s${perGb}`]),
  ].join(' ')
}

function speed({ seconds }: Side, inputBytes: number): string {
  if (inputBytes > 0) return `${(inputBytes / seconds / 1e6).toFixed(0)} MB/s`
  return `${(seconds * 1000).toFixed(1)} ms`
}

function ratio(value: number | undefined): string {
  return value === undefined ? '' : value.toFixed(2)
}

function printRow(cells: readonly string[]): void {
  const line = cells.map((text, i) => text.padEnd(COLUMNS[i] ?? 0)).join('  ')
  process.stdout.write(`${line.trimEnd()}\n`)
}
