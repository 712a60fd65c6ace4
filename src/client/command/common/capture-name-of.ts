import { createHash } from 'node:crypto'
import { basename } from 'node:path'
import { CapfleetError } from '../../../shared/base/error.ts'
import { endedName, nameForFile } from '../../../shared/query/capture-name-rule.ts'

/** In place of the path of a file. */
export const STANDARD_INPUT = '-'

/** nameForFile(), where eight digits of a hash keep the names of different files different. */
export function captureNameOf(path: string): string {
  if (path === STANDARD_INPUT) {
    throw new CapfleetError('bad-parameter', 'standard input has no name; give the capture one with --name')
  }
  const file = basename(path)
  const { name, isLossy } = nameForFile(file)
  if (!isLossy) return name
  return endedName(name, createHash('sha256').update(file).digest('hex').slice(0, 8))
}
