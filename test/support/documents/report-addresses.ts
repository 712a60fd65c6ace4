/** Where to report holes and bugs, as Markdown, from `bugs` of package.json, which the publisher of a release fills in. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { REPOSITORY_ROOT } from '../repository-files.ts'

export interface Bugs {
  /** Private: for vulnerabilities. */
  readonly email?: string
  /** Public: for everything else. */
  readonly url?: string
}

export function reportAddresses({ email, url }: Bugs = bugsOfPackage()): string {
  if (email === undefined)
    return (
      '**This copy of capfleet names no address.** Its publisher fills in `bugs` of `package.json`, without which no release is ' +
      'made. Ask the people from whom you have it.'
    )
  const rows = [`| a vulnerability, in private | <${email}> |`, `| an ordinary bug | <${url ?? email}> |`]
  return ['| Report | To |', '|---|---|', ...rows].join('\n')
}

function bugsOfPackage(): Bugs {
  const { bugs = {} } = JSON.parse(readFileSync(join(REPOSITORY_ROOT, 'package.json'), 'utf8')) as {
    readonly bugs?: Bugs
  }
  return bugs
}
