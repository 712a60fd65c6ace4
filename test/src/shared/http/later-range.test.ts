import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import { test } from 'node:test'
import { refuseLaterRange, unlikeRange } from '../../../../src/shared/http/later-range.ts'

const asks = (headers: Readonly<Record<string, string>>, method = 'GET') =>
  refuseLaterRange({ method, headers } as unknown as IncomingMessage, 'ask in another way')

test('a Range that does not begin with the first byte is refused, with the way to resume', () => {
  const problem = { code: 'range-unsupported', message: /bytes=1000- .*; ask in another way$/ }
  assert.throws(() => asks({ range: 'bytes=1000-' }), problem)
  for (const range of [
    'bytes=1-',
    'bytes=1-1',
    'BYTES=007-',
    'bytes= 5-9 ',
    'bytes=-500',
    'bytes=0-4,9-',
    'bytes=,,9-',
  ])
    assert.throws(() => asks({ range }), { code: 'range-unsupported' }, range)
})

test('any other Range is ignored: from the first byte, malformed, of another unit, of HEAD, with If-Range', () => {
  for (const range of [
    'bytes=0-',
    'bytes=0-0',
    'bytes=000-99',
    'bytes=0-4,0-',
    'bytes=',
    'bytes=-',
    'bytes=a-',
    'bytes=9',
  ])
    asks({ range })
  for (const range of ['bytes=9-5', 'bytes=9-,x', '=9-', '9-', 'bytesx', 'records=9-', 'packets=9-'])
    asks({ range })
  asks({})
  asks({ range: 'bytes=9-' }, 'HEAD')
  asks({ range: 'bytes=9-', 'if-range': '"a"' })
})

test('a problem is never as long as the file that its client wants to resume', () => {
  assert.equal(unlikeRange('{"é":1}', 'bytes=8-'), '{"é":1} ')
  for (const range of [undefined, 'bytes=7-', 'bytes=9-', 'bytes=-8', 'records=8-'])
    assert.equal(unlikeRange('{"é":1}', range), '{"é":1}')
})
