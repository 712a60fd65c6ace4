import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  attachedName,
  attachment,
  downloadFileName,
  fileTime,
  plainFileName,
} from '../../../../../src/shared/query/download/download-file-name.ts'
import { parseDownloadQuery } from '../../../../../src/shared/query/download/parse-download-query.ts'
import { parseQueryString } from '../../../../../src/shared/query/parse-query-string.ts'
import { parseQueryTime, TIME_LIMIT_NS } from '../../../../../src/shared/query/time/query-time.ts'

const nameOf = (captureName: string, parameters = '', kind: 'single' | 'splittime' = 'single') => {
  const given = parseQueryString(`StreamName=a${parameters}`)
  const query = parseDownloadQuery(kind, given, { zone: 'UTC', nowNs: 0n })
  return downloadFileName(query, { captureName, place: 'lon1' })
}

test('a file is called as its capture where all systems can have that name', () => {
  assert.equal(nameOf('lab_20261102_0900'), 'lab_20261102_0900.pcap')
  assert.equal(
    nameOf('lab', '&Start=1793610060000000000&Stop=1793610060500000001&Compression=zstd', 'splittime'),
    'lab_20261102T090100Z-20261102T090100.500000001Z.pcap.zst',
  )
  assert.equal(nameOf('a\u202e/b\ufeff\u2028c'), 'a__b__c.pcap')
  assert.equal(nameOf('.hidden'), '_hidden.pcap')
})

test('the times in a name are exact and can be pasted as TSBegin', () => {
  const times = [0n, 1n, 1_000n, 1_000_000n, 500_000_000n, 999_999_999n].flatMap((fractionNs) => [
    fractionNs,
    1_793_610_060_000_000_000n + fractionNs,
    TIME_LIMIT_NS - 1_000_000_000n + fractionNs,
  ])
  for (const ns of [...times, TIME_LIMIT_NS]) {
    const text = fileTime(ns)
    assert.match(text, /^[\dT.]+Z$/)
    const context = { parameter: 'TSBegin', unit: undefined, zone: 'Asia/Tokyo', nowNs: 0n, isEnd: false }
    assert.equal(parseQueryTime(text, context).ns, ns, text)
  }
})

test('a long name ends with a whole letter, and leaves room for the rest within 255 bytes', () => {
  for (const letter of ['x', 'ö', '測', '𝄞']) {
    const name = nameOf(letter.repeat(300), `&Start=1&Stop=1793610060000000001&Compression=zstd`, 'splittime')
    assert.ok(Buffer.byteLength(name) < 200, name)
    assert.match(name, new RegExp(`^(${letter})+_19700101T`, 'u'))
    assert.ok(plainFileName(name).length < 200)
  }
})

test('the header has letters of ASCII alone, and gives all others by filename*', () => {
  assert.equal(attachment('lab.pcap'), 'attachment; filename="lab.pcap"')
  assert.equal(
    attachment(`it's (ö)*.pcap`),
    `attachment; filename="it_s_____.pcap"; filename*=UTF-8''it%27s%20%28%C3%B6%29%2A.pcap`,
  )
})

test('a name that is given is read again, unless it leads somewhere', () => {
  for (const name of ['lab.pcap', `it's "ö"; 50%.pcap`, '測.pcap'])
    assert.equal(attachedName(attachment(name)), name)
  assert.equal(attachedName(`attachment; filename="plain.pcap"; filename*=UTF-8''%E0%A4%A`), 'plain.pcap')
  for (const header of [
    '',
    'inline',
    'attachment; filename="../x"',
    'attachment; filename="a\\b"',
    'attachment; filename=".hidden"',
    `attachment; filename="ok"; filename*=UTF-8''..%2Fx`,
    `attachment; filename*=UTF-8''a%0Ab`,
  ])
    assert.equal(attachedName(header), undefined, header)
})
