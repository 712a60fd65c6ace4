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
import { type SeededRandom, seededRandom } from '../../../support/seeded-random.ts'

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
      /^\{"a":18446744073709551615,"b":\{.*\},"c":\[1\.50,"\\u4e2d"\],"cat_0_Mode":"single"\}$/,
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

/** JSON with all that a scanner may stumble over: quotes, backslashes and brackets in names and values, and space. */
function randomJson(random: SeededRandom, depth = 0): string {
  const space = (): string => random.pick(['', '', ' ', '\n', '\t \r\n'])
  const text = (): string =>
    random.pick(['"a"', '""', '"\\""', '"\\\\"', '"{[\\",:"', '"\\u005c"', '"é中"', '"cmdline"', '"x:1"'])
  // Not "\\": beside such a name, the JSON.parse of Node.js 24 takes "\"" for it.
  const names = [
    '"a"',
    '""',
    '"\\""',
    '"{[\\",:"',
    '"é中"',
    '"x:1"',
    '"cmdline"',
    '"cat_1_Mode"',
    '"cat_1_x"',
  ]
  const name = (): string => random.pick([...names, '"fil\\u0074er"', '" cat_2_y "', '"Url"'])
  const kind = random.integer(0, depth > 5 ? 3 : 6)
  if (kind === 0) return text()
  if (kind === 1) return random.pick(['0', '-1.5e+3', '18446744073709551615', '7'])
  if (kind < 4) return random.pick(['true', 'false', 'null'])
  const isList = kind === 4
  const members = Array.from({ length: random.integer(0, 4) }, () => {
    const value = `${space()}${randomJson(random, depth + 1)}${space()}`
    return isList ? value : `${space()}${name()}${space()}:${value}`
  })
  return isList ? `[${members.join(',')}${space()}]` : `{${members.join(',')}${space()}}`
}

/** The same by a parser. */
function emptied(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(emptied)
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => {
      const isHidden =
        /cmdline|filter|url/i.test(name) || (/^cat_\d+_/.test(name.trim()) && name.trim() !== 'cat_1_Mode')
      if (!isHidden) return [name, emptied(member)]
      return [name, typeof member === 'boolean' ? false : typeof member === 'number' ? 0 : '']
    }),
  )
}

test('a scan empties what a parser would, whatever the JSON', () => {
  const random = seededRandom()
  for (let turn = 0; turn < 20_000; turn++) {
    const json = randomJson(random)
    const wanted = emptied(JSON.parse(json))
    assert.deepEqual(JSON.parse(withoutQueries(json)), wanted, `${json} (SEED=${random.seed})`)
  }
})

test('what is no JSON is left out', async () => {
  assert.equal(withoutQueries('{"cat_0_CmdLine":"SECRET'), '""')
  assert.equal(withoutQueries(`${'['.repeat(10_000)}"SECRET"`), '""')
  assert.equal(
    await through('lines', ['{"cat_0_CmdLine":\n', '"SECRET"}\n{"a":1}\n', '{"x":"SECRET']),
    '""\n""\n{"a":1}\n""',
  )
  assert.equal(await through('json', ['{"a":\n', '"b"}\n']), '{"a":\n"b"}\n')
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
