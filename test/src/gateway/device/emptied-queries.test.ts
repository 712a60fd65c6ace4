// What a third-party device may send where other users' queries must be empty.
import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import {
  type BodyForm,
  QueryEmptier,
  withoutQueries,
} from '../../../../src/gateway/device/emptied-queries.ts'

const SECRET = 'SECRET'

function through(form: BodyForm, pieces: readonly string[]): Promise<string> {
  return text(Readable.from(pieces.map((piece) => Buffer.from(piece))).pipe(new QueryEmptier(form)))
}

test('queries are emptied, however a device writes them, and everything else is unchanged', () => {
  for (const member of [
    '"cat_0_CmdLine":"GET /SECRET \\" \\\\ x"',
    '"cat_0_CmdLin\\u0065":"SECRET"',
    '"cat_0_StreamName":["SECRET"]',
    '"cat_0_FilterBPF":{"a":"SECRET"}',
    '"cat_3_cmdline":"SECRET"',
    '"cat_7_CmdLine ":"SECRET"',
    '"cat_0_Anything":"SECRET"',
    '"FilterFrame":"SECRET"',
    '"Url":"?FilterBPF=SECRET"',
  ]) {
    const shown = withoutQueries(
      `{"a":18446744073709551615,"b":{${member}},"c":[1.50,"\\u4e2d"],"cat_0_Mode":"single"}`,
    )
    assert.ok(!shown.includes(SECRET), member)
    assert.match(
      shown,
      /^\{"a":18446744073709551615,"b":\{.*\},"c":\[1\.50,"中"\],"cat_0_Mode":"single"\}$/,
      member,
    )
  }
  assert.equal(
    withoutQueries(
      '{"cat_0_Enable":true,"cat_0_ReadPkt":18446744073709551615,"cat_0_Odd":true,"cat_EnableCnt":1}',
    ),
    '{"cat_0_Enable":true,"cat_0_ReadPkt":0,"cat_0_Odd":false,"cat_EnableCnt":1}',
  )
})

test('what is no JSON is left out', async () => {
  assert.equal(withoutQueries('{"cat_0_CmdLine":"SECRET'), '""')
  assert.equal(withoutQueries(`${'['.repeat(10_000)}"SECRET"`), '""')
  assert.equal(
    await through('lines', ['{"cat_0_CmdLine":\n', '"SECRET"}\n{"a":1}\n', '{"x":"SECRET']),
    '""\n""\n{"a":1}\n""',
  )
  assert.equal(await through('json', ['{"a":\n', '"b"}\n']), '{"a":"b"}')
})

test('events keep their names and ids, in whatever pieces they come', async () => {
  const events =
    'retry: 2000\n: hello\n\nid: 7\nevent: x\ndata: {"é":"中","CmdLine":"SECRET"}\n\nSECRET\ndata: SECRET\n'
  const bytes = Buffer.from(events)
  const pieces = Array.from(bytes, (byte) => Buffer.of(byte))
  const shown = await text(Readable.from(pieces).pipe(new QueryEmptier('events')))
  assert.equal(
    shown,
    'retry: 2000\n: hello\n\nid: 7\nevent: x\ndata: {"é":"中","CmdLine":""}\n\n\ndata: ""\n',
  )
})
