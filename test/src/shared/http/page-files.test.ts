import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { PageFiles } from '../../../../src/shared/http/page-files.ts'
import { tempFolder } from '../../../support/temp-folder.ts'

const HTML = '<!doctype html>'.repeat(100)

test('has all files of the folder as they are, and zipped where that is smaller', async () => {
  await using folder = await tempFolder()
  await mkdir(join(folder.path, 'assets', 'deeper'), { recursive: true })
  await writeFile(join(folder.path, 'index.html'), HTML)
  await writeFile(join(folder.path, '.built'), 'no part of the page')
  await writeFile(join(folder.path, 'assets', 'a-1.js'), 'x')
  await writeFile(join(folder.path, 'assets', 'deeper', 'b.js'), 'y')
  await symlink('/etc/passwd', join(folder.path, 'assets', 'passwd.txt'))
  const page = await PageFiles.read(folder.path)
  assert.equal(page.isEmpty, false)
  const index = await page.file('index.html')
  assert.equal(index?.mediaType, 'text/html; charset=utf-8')
  assert.equal(index?.plain.bytes.toString(), HTML)
  assert.equal(gunzipSync(index?.gzip?.bytes ?? Buffer.alloc(0)).toString(), HTML)
  assert.notEqual(index?.gzip?.etag, index?.plain.etag)
  const script = await page.file('assets/a-1.js')
  assert.deepEqual([script?.mediaType, script?.gzip], ['text/javascript; charset=utf-8', undefined])
  assert.equal((await page.file('assets/deeper/b.js'))?.plain.bytes.toString(), 'y')
  for (const path of [
    '',
    '.',
    '.built',
    '/index.html',
    'assets',
    'assets/',
    'assets/../index.html',
    './index.html',
    'assets/passwd.txt',
    '__proto__',
  ])
    assert.equal(page.file(path), undefined, path)
})

test('names the scripts within a page by their hashes, as a policy does', async () => {
  await using folder = await tempFolder()
  const scripts = ['let x = 1 < 2', '', 'if (a</b/.c) d()']
  const html = [
    '<script src="./a.js"></script>',
    ...scripts.map((text) => `<script id="x">${text}</script>`),
    '<script type="module" src="./b.js"></script>',
  ].join('\n')
  await writeFile(join(folder.path, 'index.html'), html)
  await writeFile(join(folder.path, 'a.js'), '"<script>1</script>"')
  const page = await PageFiles.read(folder.path)
  const hashes = scripts.map((text) => `'sha256-${hash('sha256', text, 'base64')}'`)
  assert.deepEqual((await page.file('index.html'))?.scriptHashes, hashes)
  assert.deepEqual((await page.file('a.js'))?.scriptHashes, [])
})

test('is empty where nothing was built', async () => {
  await using folder = await tempFolder()
  const page = await PageFiles.read(join(folder.path, 'nothing'))
  assert.deepEqual([page.isEmpty, page.file('index.html')], [true, undefined])
})
