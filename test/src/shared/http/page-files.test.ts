import assert from 'node:assert/strict'
import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { PageFiles } from '../../../../src/shared/http/page-files.ts'
import { tempFolder } from '../../../support/temp-folder.ts'

const HTML = '<!doctype html>'.repeat(100)

test('has the page and its files as they are, and zipped where that is smaller', async () => {
  await using folder = await tempFolder()
  await mkdir(join(folder.path, 'assets', 'deeper'), { recursive: true })
  await writeFile(join(folder.path, 'index.html'), HTML)
  await writeFile(join(folder.path, 'notes.txt'), 'no part of the page')
  await writeFile(join(folder.path, 'assets', 'a-1.js'), 'x')
  await writeFile(join(folder.path, 'assets', 'deeper', 'b.js'), 'y')
  await symlink('/etc/passwd', join(folder.path, 'assets', 'passwd.txt'))
  const page = await PageFiles.read(folder.path)
  assert.equal(page.index?.mediaType, 'text/html; charset=utf-8')
  assert.equal(page.index?.plain.bytes.toString(), HTML)
  assert.equal(gunzipSync(page.index?.gzip?.bytes ?? Buffer.alloc(0)).toString(), HTML)
  assert.notEqual(page.index?.gzip?.etag, page.index?.plain.etag)
  assert.deepEqual(
    [page.asset('a-1.js')?.mediaType, page.asset('a-1.js')?.gzip],
    ['text/javascript; charset=utf-8', undefined],
  )
  for (const name of [
    '',
    '.',
    '../index.html',
    '../notes.txt',
    'deeper',
    'deeper/b.js',
    'passwd.txt',
    '__proto__',
  ])
    assert.equal(page.asset(name), undefined, name)
})

test('is empty where nothing was built', async () => {
  await using folder = await tempFolder()
  const page = await PageFiles.read(join(folder.path, 'nothing'))
  assert.deepEqual([page.index, page.asset('a.js')], [undefined, undefined])
})
