/** The API reference next to the repository, if it exists: the members named in its tables. */
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { MemberType } from '../devices/status-members.ts'

const FILE = fileURLToPath(new URL('../../../../shared/appliance-api.md', import.meta.url))

/** Tests use status-members.ts, which was derived from this. */
export const HAS_REFERENCE = existsSync(FILE)

/** Cells of the rows of all tables in the section that begins with this heading. */
export function referenceRows(heading: string): string[][] {
  const text = readFileSync(FILE, 'utf8')
  const start = text.indexOf(`\n### ${heading}`)
  const end = text.slice(start + 5).search(/\n##/)
  const section = text.slice(start, start + 5 + end)
  return [...section.matchAll(/^\| (.*) \|$/gm)].map(([, row = '']) => row.split(' | '))
}

/** "A, B0 to B2 (numbers)" -> each name with its type. N and <id> stand for what the text lists. */
export function namedMembers(cell: string): [name: string, type: MemberType][] {
  const parts = cell.matchAll(/([^()]+)\(([a-z]+)(?:, [a-z ]+)?\)/g)
  return [...parts].flatMap(([, names = '', type = '']) =>
    names
      .replace(/For each disk id in .*?:/, '')
      .replace(/for N=0\.\.7/, '')
      .split(/,|;| and /)
      .flatMap((name) => expand(name.replace(/^[.\s]+/, '').trim()))
      .filter((name) => /^\w+$/.test(name))
      .map((name): [string, MemberType] => [name, type.replace(/s$/, '') as MemberType]),
  )
}

function expand(name: string): string[] {
  const [, first, from, ending, to] = /^(\w*?)(\d+)(\w*) to \w*?(\d+)\w*$/.exec(name) ?? []
  if (first !== undefined) {
    const numbers = Array.from({ length: Number(to) - Number(from) + 1 }, (_, index) => Number(from) + index)
    return numbers.map((number) => `${first}${number}${ending}`)
  }
  if (name.includes('<id>')) return DISK_IDS.map((id) => name.replace('<id>', id))
  if (name.includes('PortN_')) return Array.from({ length: 8 }, (_, port) => name.replace('N_', `${port}_`))
  return [name]
}

const DISK_IDS = ['os0', 'ssd0', 'ssd1', 'ssd2', 'ssd3', 'ssd4', 'ssd5', 'ssd6', 'ssd7', 'par0']
