import assert from 'node:assert/strict'
import { test } from 'node:test'
import { endedName, mistakeInFileName, nameForFile } from '../../../../src/shared/query/capture-name-rule.ts'

test('names of files in any alphabet are accepted, and those that no folder has are not', () => {
  for (const name of ['a.pcap', 'größe 1.pcap', 'שלום.pcap', '\u200fa', 'x'.repeat(255)])
    assert.equal(mistakeInFileName(name, ''), undefined, name)
  for (const name of ['', '.', '..', 'a/b', 'a\nb', 'x'.repeat(256), '\ud800'])
    assert.match(mistakeInFileName(name, '"it"') ?? '', /^must be the name of a file, .*got "it"$/, name)
})

test('a character that shows the name in another order is refused by its number, not repeated', () => {
  const reordering = ['202A', '202B', '202C', '202D', '202E', '2066', '2067', '2068', '2069']
  for (const point of reordering) {
    const character = String.fromCharCode(Number.parseInt(point, 16))
    const mistake = mistakeInFileName(`a${character}b.pcap`, `"a${character}b.pcap"`) ?? ''
    assert.ok(mistake.startsWith(`must not contain U+${point},`), mistake)
    assert.ok(!mistake.includes(character))
  }
})

test('a suggested name is short, and says whether letters are lost', () => {
  assert.deepEqual(nameForFile('dump.2026.pcapng.gz'), { name: 'dump.2026', isLossy: false })
  assert.deepEqual(nameForFile('café.pcap'), { name: 'cafe', isLossy: false })
  assert.deepEqual(nameForFile('größe.pcap'), { name: 'gro_e', isLossy: true })
  assert.deepEqual(nameForFile('日本.pcap'), { name: '', isLossy: true })
  assert.equal(endedName('', '2'), 'import-2')
  assert.equal(endedName('x'.repeat(64), '22').length, 64)
})
