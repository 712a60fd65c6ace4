/**
 * The record of what was walked: each section of the documents with the number of its claims, and a digest of the
 * text that they were read from. Two documents lie beside the repository, not in it, and need not be there; of the
 * documentation, sections are walked that neither of them has.
 */
import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { REPOSITORY_ROOT } from '../support/repository-files.ts'

export interface Section {
  /** Claims are numbered starting at 1: "4.1-1". */
  readonly claims: number
  /** Digest of its own text, without the sections below it. */
  readonly digest: string
  /** Why a text makes no claim. */
  readonly nothing?: string
}

export interface Document {
  readonly file: string
  /** Prefix of its section numbers in ids. */
  readonly prefix: string
  readonly sections: Readonly<Record<string, Section>>
}

const NOT_SHOWN = 'tells what is not shown; the decisions fill it'

/** Its sections are those of its headings. */
const REFERENCE = 'docs/reference/activity-and-events.md'

export const DOCUMENTS: readonly Document[] = [
  {
    file: 'appliance-api.md',
    prefix: '',
    sections: {
      0: { claims: 3, digest: 'fa123925cb9a' },
      1: { claims: 7, digest: '143ef1f6317d' },
      2: { claims: 0, digest: '32d40484f61c', nothing: 'a heading alone' },
      '2.1': { claims: 2, digest: 'ed66900bbf55' },
      '2.2': { claims: 4, digest: 'a761722ebb2a' },
      '2.3': { claims: 3, digest: 'f895a5edfbc4' },
      '2.4': { claims: 5, digest: 'cc97bac97e79' },
      '2.5': { claims: 18, digest: '3e053b59bef9' },
      3: { claims: 4, digest: '05565f991d2c' },
      4: { claims: 3, digest: '46e7e78b50e2' },
      '4.1': { claims: 4, digest: '9c727f6e7076' },
      '4.2': { claims: 2, digest: '14b7ec8415be' },
      '4.3': { claims: 5, digest: 'c7fdd2c057bc' },
      '4.4': { claims: 12, digest: '2c72636c7306' },
      '4.4.1': { claims: 3, digest: 'ab2c726cc596' },
      '4.4.2': { claims: 18, digest: 'a1d04a602f13' },
      '4.4.3': { claims: 8, digest: '25631283e375' },
      '4.4.4': { claims: 11, digest: '3f4f64d1e4e7' },
      '4.4.5': { claims: 8, digest: '216c49c53e40' },
      '4.4.6': { claims: 9, digest: 'e730b6798380' },
      '4.5': { claims: 46, digest: '3b9853f3b9f6' },
      '4.6': { claims: 0, digest: 'c3f41c000e5e', nothing: NOT_SHOWN },
      5: { claims: 2, digest: '1181a7795946' },
      6: { claims: 1, digest: '6627d97e70a3' },
      7: { claims: 0, digest: '866640722423', nothing: NOT_SHOWN },
      8: { claims: 5, digest: '87696802487b' },
      9: { claims: 4, digest: '1a6c54cd85d7' },
    },
  },
  {
    file: 'api-decisions.md',
    prefix: 'D',
    sections: {
      0: { claims: 0, digest: '05e540c4f438', nothing: 'says what the two documents are' },
      1: { claims: 62, digest: '5888e8cf54d4' },
      2: { claims: 30, digest: 'a6033be1de0a' },
      3: { claims: 15, digest: 'f98b066d3b08' },
      4: { claims: 26, digest: '563b79b501b5' },
      5: { claims: 16, digest: 'dcdbc672708f' },
      6: { claims: 29, digest: '7369d1c90604' },
      7: { claims: 12, digest: '3a5b28b67fc1' },
      8: { claims: 28, digest: '3eafc39dc259' },
    },
  },
  {
    file: REFERENCE,
    prefix: 'R-',
    sections: {
      Activity: { claims: 7, digest: '118a0f2ba57a' },
      'Events of the fleet': { claims: 4, digest: '8faceb605c05' },
    },
  },
]

export const CLAIM_IDS: readonly string[] = DOCUMENTS.flatMap(({ prefix, sections }) =>
  Object.entries(sections).flatMap(([section, { claims }]) =>
    Array.from({ length: claims }, (_, index) => `${prefix}${section}-${index + 1}`),
  ),
)

function pathOf({ file }: Document): string {
  return file === REFERENCE ? join(REPOSITORY_ROOT, file) : join(REPOSITORY_ROOT, '..', 'shared', file)
}

/** Whether its text can be compared with the record, on which the rows are based. */
export function isThere(document: Document): boolean {
  return existsSync(pathOf(document))
}

/** Digests of the document's current sections; "0" is the text before the first numbered heading. */
export function digestsOf(document: Document): Record<string, string> {
  const text = readFileSync(pathOf(document), 'utf8')
  return document.file === REFERENCE ? headedSections(text, document) : chaptersOf(text)
}

function headedSections(text: string, { sections }: Document): Record<string, string> {
  const found = text.split(/^## /m).map((part) => [part.slice(0, part.indexOf('\n')), part] as const)
  const known = found.filter(([name]) => name in sections)
  return Object.fromEntries(known.map(([name, part]) => [name, digestOf(part)]))
}

function chaptersOf(document: string): Record<string, string> {
  const parts = document.split(/^#{2,4} (?=\d)/m)
  const texts = parts.map((part, index) => {
    const [, number = ''] = (index === 0 ? ['', '0'] : /^(\d+(?:\.\d+)*)/.exec(part)) ?? []
    return [number, part] as const
  })
  return Object.fromEntries(texts.map(([number, text]) => [number, digestOf(text)]))
}

/** White space does not count. */
function digestOf(text: string): string {
  return createHash('sha256').update(text.replaceAll(/\s+/g, ' ').trim()).digest('hex').slice(0, 12)
}
