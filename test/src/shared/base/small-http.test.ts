import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const MODULE = fileURLToPath(new URL('../../../../src/shared/base/small-http.ts', import.meta.url))
const PROGRAM = `
  const { importSmallHttp } = await import(${JSON.stringify(MODULE)})
  importSmallHttp()
  const { createServer } = await import('node:http')
  const loaded = process.moduleLoadList.filter((name) => name.endsWith('undici'))
  const server = createServer((_, answer) => answer.end('there')).listen(0, '127.0.0.1', async () => {
    const answer = await fetch('http://127.0.0.1:' + server.address().port)
    console.log(JSON.stringify([loaded, typeof WebSocket, await answer.text()]))
    server.close()
  })
`

test('an import of node:http does not load the code of fetch(), which works', () => {
  const printed = execFileSync(process.execPath, ['--input-type=module', '-e', PROGRAM], { encoding: 'utf8' })
  assert.deepEqual(JSON.parse(printed), [[], 'function', 'there'])
})
