// Prints the test files of `npm run test:quick`: those that start no process, because nothing that they import, directly or by
// another file, is node:child_process.
import { globSync } from 'node:fs'
import { importsOf } from './setup/imports.mjs'

const files = globSync('test/**/*.test.ts').sort()
const quick = files.filter((file) => !importsOf([file]).packages.has('node:child_process'))
process.stdout.write(`${quick.join('\n')}\n`)
