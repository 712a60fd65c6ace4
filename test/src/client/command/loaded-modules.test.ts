// What the command line loads before it does anything: every call of a script pays for it.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'
import { REPOSITORY_ROOT } from '../../../support/repository-files.ts'

/** Large parsers, of files and of the contract, that most calls do not need. */
const HEAVY = /node_modules\/(?:zod|yaml)\//
/** Prints the modules that were loaded, one per line. */
const HOOK = `data:text/javascript,${encodeURIComponent(`
  import { registerHooks } from 'node:module'
  registerHooks({
    load(url, context, next) {
      process.stderr.write(url + '\\n')
      return next(url, context)
    },
  })
`)}`

for (const command of ['get', 'seen', 'list', 'estimate', 'start', 'export', 'queue', 'token'])
  test(`capfleet ${command} does not load parsers that it may not need`, () => {
    const cli = join(REPOSITORY_ROOT, 'src/cli.ts')
    const shell = '"$0" "$@" 2>&1 >/dev/null'
    const loaded = execFileSync(
      'sh',
      ['-c', shell, process.execPath, '--import', HOOK, cli, command, '--help'],
      { encoding: 'utf8' },
    ).split('\n')
    assert.ok(loaded.some((url) => url.endsWith('src/client/command/command-line.ts')))
    assert.deepEqual(
      loaded.filter((url) => HEAVY.test(url)),
      [],
    )
  })
